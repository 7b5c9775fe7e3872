// Faults as they are found: in which thread, at which instruction and line.

package simt

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/internal/ptx"
)

// fail ends the launch with a fault of one lane at the current instruction.
func (x *exec) fail(kind FaultKind, lane int, format string, args ...any) {
	panic(x.fault(kind, lane, format, args...))
}

func (x *exec) fault(kind FaultKind, lane int, format string, args ...any) *Fault {
	f := &Fault{Argument: x.argument - 1, Kind: kind, Kernel: x.block.run.kernel.entry.f.Name, Problem: fmt.Sprintf(format, args...), Block: x.block.index,
		Thread: x.block.thread(x.warp.index*warpSize + lane)}
	x.argument = 0
	if x.frame != nil {
		f.Line, f.Instruction, f.Source = x.block.run.kernel.program.locate(x.frame.fn, x.at)
	}
	return f
}

// locate is where an instruction of a function stands: the line of the PTX, its first word, and the line of the source.
func (p *Program) locate(fn *function, at int32) (line int, instruction, source string) {
	if at < 0 || int(at) >= len(fn.f.Code) {
		return 0, "", ""
	}
	in := &fn.f.Code[at]
	for k := at; k >= 0; k-- { // instructions of no line belong to those before them
		if file, n, _, ok := p.module.Source(fn.f, &fn.f.Code[k]); ok && n > 0 {
			source = fmt.Sprintf("%s:%d", strings.TrimPrefix(file, "./"), n)
			break
		}
	}
	return int(in.Position.Line), in.Form.Text, source
}

// argumentName names the value of index i of a launch.
func (r *Run) argumentName(i int) string {
	if a := &r.Args[i]; a.Within > 0 {
		return fmt.Sprintf("argument %s, the pointer at byte %d,", parameterName(r.kernel, a.Within-1), a.Offset)
	}
	return "argument " + parameterName(r.kernel, i)
}

// parameterName is how a message names a parameter of a kernel.
func parameterName(k *Kernel, i int) string {
	if i < len(k.entry.f.Params) {
		if id := k.entry.f.Params[i].Variable; id != ptx.NoVariable {
			return fmt.Sprintf("%d (%s)", i, k.program.module.Variables[id].Name)
		}
	}
	return fmt.Sprint(i)
}

// accessAt is the access that a stamp stands for.
func (r *Run) accessAt(s *stamp) *Access {
	n := uint64(s.block - 1)
	a := &Access{Block: r.blockIndex(n), Thread: r.threadIndex(int(s.thread))}
	fn := r.kernel.list[s.site>>siteShift]
	a.Line, a.Instruction, a.Source = r.kernel.program.locate(fn, int32(s.site&(1<<siteShift-1)))
	return a
}

// blockIndex is place n of the grid.
func (r *Run) blockIndex(n uint64) [3]uint32 {
	g := r.grid
	return [3]uint32{uint32(n % uint64(g[0])), uint32(n / uint64(g[0]) % uint64(g[1])), uint32(n / uint64(g[0]) / uint64(g[1]))}
}
