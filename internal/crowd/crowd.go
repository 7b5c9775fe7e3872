// From when on a graph has joins. Only tests may change it, to have joins in small graphs or to have wrong ones.

// Package crowd holds the limits beyond which dependencies of a graph go through joins.
package crowd

// Limits says how many last writers and readers it is usual for the accesses of a buffer to meet.
type Limits struct {
	Usual  int64 // by one access, on average
	Start  int64 // how many more by all accesses of a buffer
	Excess int64 // how many beyond these all accesses of a pipeline may meet before its crowded buffers get joins
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
