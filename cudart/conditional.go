// Loops and branches as nodes of a graph.

package cudart

import "github.com/dagrun/dagrun/kernels/conditions"

// Conditional is a loop or branch inside of a graph. A platform that cannot put it into a graph refuses the graph with an error that
// is [ErrUnsupported] and says why.
type Conditional struct {
	conditions.Test
	Operands []Ptr // of the condition: device memory that holds one element each
	// Counts is device memory for conditions.CountWords words of eight bytes. The conditional keeps count there of what it does.
	Counts Ptr
	// Clear is how many sets of counts, from Counts on, become zero when it starts: its own and those of the conditionals in it, or 0 if
	// it is in the body of another one.
	Clear int
	// Bodies are what runs: one for a loop; one for a branch, or a second that runs if the condition does not hold. All their work is on
	// the device of the conditional.
	Bodies []Body
}

// Body is commands and what each of them waits for, as for BuildGraph.
type Body struct {
	Commands []Command
	Deps     [][]int32
}
