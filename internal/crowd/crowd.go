// From when on a graph has joins. Only tests may change it, to have joins in small graphs or to have wrong ones.

// Package crowd holds the limits beyond which dependencies of a graph go through joins.
package crowd

// Limits says how much looking up is usual: every last writer and every reader that an access meets is a visit.
type Limits struct {
	Usual  int64 // visits of an access, on average, in a buffer that gets no joins
	Start  int64 // how many more all accesses of a buffer may take
	Excess int64 // how many visits beyond these a pipeline may take before its crowded buffers get joins
	Pushed int64 // how long a list of readers may be that is copied instead of joined

	// Lose makes one of the nodes that a join stands for not lead to it: a fault planted by a test.
	Lose bool
}

// usual has an excess of what about a thousand writers of slices and a thousand readers of the whole take: pipelines that people draw
// have no joins.
var usual = Limits{Usual: 16, Start: 1 << 10, Excess: 1 << 20, Pushed: 4}

// current is written only by tests, and never while a graph is being made.
var current = usual

// Current returns the limits in force.
func Current() *Limits { return &current }

// Early puts limits in force that even small graphs exceed, until the returned function is called.
func Early(lose bool) (restore func()) {
	current = Limits{Pushed: 1, Lose: lose}
	return func() { current = usual }
}
