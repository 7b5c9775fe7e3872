// Faults that tests switch on in the code that makes plans, to check that the proof refuses the result. Only tests may switch one on.

// Package planted has one switch for each mistake that the making of a plan could contain.
package planted

// Fault is a mistake made on purpose.
type Fault uint8

const (
	None      Fault = iota
	Placement       // a node runs on another stream than its waits were inserted for
	Order           // two nodes of a stream are exchanged
	Waits           // a wait is left out
	Layout          // all buffers that may share bytes lie on the same bytes
	Lifetimes       // every buffer counts as finished before any other starts
	Kept            // buffers that are read before they are written do not count as kept
	Edges           // an edge of the graph is left out
	Fork            // a stream does not wait for the origin at the start
	Join            // the origin does not wait for a stream at the end

	Held     // nothing counts as held during all passes of a loop, not even what passes carry
	MayWrite // what a pass of a loop possibly leaves unwritten counts as written in each

	Missing // a copy between devices is left out
	Stale   // what a device holds still counts as current after another one has written it
	Late    // a copy between devices comes after the node that it is for
	Source  // a copy between devices comes from a third one
	Carried // every device counts as holding what one replay leaves to the next

	Reload     // what was spilled is not brought back
	LateReload // it is brought back after the node that it is for
	Unsaved    // it is dropped without a copy to host memory, so that a reload is stale
	EarlySave  // it is copied to host memory before the last node that writes it
)

// current is written only by tests, and never while a plan is being made.
var current Fault

// Is reports whether a fault is switched on.
func Is(f Fault) bool { return current == f }

// Plant switches a fault on until the returned function is called.
func Plant(f Fault) (remove func()) {
	current = f
	return func() { current = None }
}
