// The kinds of faults, and how one is worded.

package simt

import (
	"fmt"
	"strings"
)

// FaultKind is the kind of a fault.
type FaultKind uint8

// The kinds of faults.
const (
	OutOfBounds FaultKind = iota
	Misaligned
	Trapped       // trap, or a failed assertion
	Stuck         // threads that wait for threads which never come
	Overflowed    // the stack of device functions
	Stopped       // the launch was stopped
	BadCall       // a call through an address that is no function
	Uninitialised // a value that nobody wrote was used
	Undeclared    // a write to memory that the launch only reads
	Race          // two accesses that nothing orders, of which one writes
	Endless       // the launch ran more instructions than it may
	Diverged      // a barrier that threads of a warp or block did not reach together
	BadTexture    // a fetch from what is no texture, or another kind of texture
)

// Fault is an error of a running kernel.
type Fault struct {
	Kind          FaultKind
	Kernel        string
	Problem       string
	Thread, Block [3]uint32
	Line          int     // of the PTX, or 0
	Instruction   string  // the word that opens it
	Source        string  // file:line of the source, where the PTX has it
	Other         *Access // that it conflicts with, or nil
	Argument      int     // of the launch whose memory it is about, or -1
}

// Access is what another thread did.
type Access struct {
	Thread, Block [3]uint32
	Verb          string // what it has to do with the fault; "" says that it conflicts
	Line          int
	Instruction   string
	Source        string
}

func (f *Fault) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "kernel %q, block (%d,%d,%d), thread (%d,%d,%d): %s", f.Kernel, f.Block[0], f.Block[1], f.Block[2],
		f.Thread[0], f.Thread[1], f.Thread[2], f.Problem)
	if f.Line > 0 {
		fmt.Fprintf(&text, " (%s, PTX line %d", f.Instruction, f.Line)
		if f.Source != "" {
			text.WriteString(", " + f.Source)
		}
		text.WriteString(")")
	}
	if o := f.Other; o != nil && o.Line > 0 {
		verb := o.Verb
		if verb == "" {
			verb = "the other"
		}
		fmt.Fprintf(&text, "; %s: %s, PTX line %d", verb, o.Instruction, o.Line)
		if o.Source != "" {
			text.WriteString(", " + o.Source)
		}
	}
	return text.String()
}
