// Limits above which a graph gets joins. Only tests may change them, to get joins in small graphs, or wrong joins.

// Package crowd holds the limits above which dependencies of a graph go through joins.
package crowd

// Limits is how many latest writers and readers accesses of a buffer may meet before the buffer gets joins.
type Limits struct {
	Usual  int64 // by one access, on average
	Start  int64 // how many more by all accesses of a buffer
	Excess int64 // how many beyond these all accesses of a pipeline may meet before its crowded buffers get joins
	Pushed int64 // how long a list of readers may be that is copied instead of joined

	// Lose drops the edge to a join from one of the nodes that it stands for: a fault that tests plant.
	Lose bool
}

// usual allows the excess of about a thousand writers of slices and a thousand readers of the whole buffer, so that pipelines written
// by people have no joins.
var usual = Limits{Usual: 16, Start: 1 << 10, Excess: 1 << 20, Pushed: 4}

// current is written only by tests, and never while a graph is being made.
var current = usual

// Current returns the present limits.
func Current() *Limits { return &current }

// Early sets limits that even small graphs exceed, until the returned function is called.
func Early(lose bool) (restore func()) {
	current = Limits{Pushed: 1, Lose: lose}
	return func() { current = usual }
}
