// Faults: errors that end a launch, and where they happened.

package simt

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/kernels/ptx"
)

// FaultKind is the kind of a fault.
type FaultKind uint8

// The kinds of faults.
const (
	OutOfBounds FaultKind = iota
	Misaligned
	Trapped    // trap, or a failed assertion
	Stuck      // threads that wait for threads that never arrive
	Overflowed // the stack of device functions
	Stopped    // the launch was stopped
	BadCall    // a call through an address that is not a function
)

// Fault is an error of a running kernel.
type Fault struct {
	Kind          FaultKind
	Kernel        string
	Problem       string
	Thread, Block [3]uint32
	Line          int    // of the PTX, or 0
	Instruction   string // its opcode
	Source        string // file:line of the source, if the PTX has it
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
	return text.String()
}

// fail ends the launch with a fault of one lane at the current instruction.
func (x *exec) fail(kind FaultKind, lane int, format string, args ...any) {
	panic(x.fault(kind, lane, format, args...))
}

func (x *exec) fault(kind FaultKind, lane int, format string, args ...any) *Fault {
	f := &Fault{Kind: kind, Kernel: x.block.run.kernel.entry.f.Name, Problem: fmt.Sprintf(format, args...), Block: x.block.index,
		Thread: x.block.thread(x.warp.index*warpSize + lane)}
	if x.frame != nil && x.at >= 0 && int(x.at) < len(x.frame.fn.f.Code) {
		in := &x.frame.fn.f.Code[x.at]
		f.Line, f.Instruction = int(in.Position.Line), in.Form.Text
		if file, line, _, ok := x.block.run.kernel.program.module.Source(x.frame.fn.f, in); ok {
			f.Source = fmt.Sprintf("%s:%d", file, line)
		}
	}
	return f
}

// parameterName returns the name of a kernel's parameter for messages.
func parameterName(k *Kernel, i int) string {
	if i < len(k.entry.f.Params) {
		if id := k.entry.f.Params[i].Variable; id != ptx.NoVariable {
			return fmt.Sprintf("%d (%s)", i, k.program.module.Variables[id].Name)
		}
	}
	return fmt.Sprint(i)
}
