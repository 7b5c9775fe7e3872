// What compiled code shows of kernels in CUDA C: which arguments they read and write.

package source

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/ptx"
	"github.com/dagrun/dagrun/kernels/ptx/access"
)

// Confirm implements [dag.Confirmer]. PTX shows what kernels do as soon as it is opened, and cubins never.
func (m *Module) Confirm(kernels []dag.LaunchKernel) (note string, err error) {
	if m.compilers == nil || m.module.Kind != launch.Source {
		return "", nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	note, _, err = m.confirm(kernels)
	return note, err
}

// confirm compiles kernels and takes over what their code shows. shown has those that were found, by their entries.
func (m *Module) confirm(kernels []dag.LaunchKernel) (note string, shown map[string]shape, err error) {
	source := *m.module
	var wanted []*kernel
	for _, k := range kernels {
		own, ok := k.(*kernel)
		if !ok || own.owner != m {
			return "", nil, fmt.Errorf("%T is no kernel of %s", k, m.module.Name)
		}
		wanted = append(wanted, own)
		if e := own.Expression(); e != "" {
			source.Build.Names = append(source.Build.Names, e)
		}
	}
	for _, name := range m.asked {
		source.Build.Names = append(source.Build.Names, "&"+name)
	}
	compiled, err := m.compilers.Compile(m.ctx, &source, Target{})
	switch {
	case errors.Is(err, ErrNoCompiler):
		return err.Error(), nil, nil
	case err != nil:
		return "", nil, err
	}
	text, err := ptx.Parse(string(compiled.Code))
	if err != nil {
		return fmt.Sprintf("the PTX that %s made of %s cannot be read: %v", compiled.Compiler, m.module.Name, err), nil, nil
	}
	entries, _ := entriesOf(text)
	shown = map[string]shape{}
	confirmed := map[ptx.FunctionID]*kernel{}
	for _, k := range wanted {
		symbol := k.entry
		if s := compiled.Symbols[k.entry]; s != "" {
			symbol = s
		}
		for i := range entries {
			if e := &entries[i]; e.name == symbol && len(e.params) == len(k.params) {
				k.confirm(e)
				k.read(text, symbol)
				shown[k.entry] = shape{symbol, sharedBytes(text, symbol)}
				confirmed[k.id] = k
			}
		}
	}
	return "", shown, m.confirmSymbols(text, compiled, confirmed)
}

// confirm takes over what the code of the kernel shows.
func (k *kernel) confirm(e *sourceKernel) {
	for i := range k.params {
		if k.params[i].Buffer {
			k.params[i].Code = e.params[i].Code
		}
	}
	k.floatAtomics = e.floatAtomics
}

// read takes the code of the kernel.
func (k *kernel) read(text *ptx.Module, symbol string) {
	for _, id := range text.Entries() {
		if text.Functions[id].Name == symbol && len(text.Functions[id].Params) == len(k.params) {
			k.code, k.id, k.left = text, id, map[string]leaving{}
		}
	}
}

// leaving is the answer of Leaves.
type leaving struct {
	arg     int
	problem string
}

// mostLaunches is how many different launches of a kernel are followed; large pipelines repeat few.
const mostLaunches = 256

// Leaves implements [dag.SliceChecker]: the threads at the corners of the launch are followed as far as their numbers are known.
func (k *kernel) Leaves(l *dag.Launch) (arg int, problem string) {
	if k.code == nil || len(l.Args) != len(k.params) {
		return -1, ""
	}
	known := access.Launch{Grid: l.Grid, Block: l.Block, Scalars: map[int]uint64{}}
	bytes := map[int]int64{}
	key := fmt.Append(nil, l.Grid, l.Block)
	for i := range l.Args {
		a := &l.Args[i]
		if a.IsBuffer {
			bytes[i] = a.Range.Hi - a.Range.Lo
			key = fmt.Append(key, " ", bytes[i])
			continue
		}
		known.Scalars[i] = a.Bits
		key = fmt.Append(key, " ", a.Bits)
	}
	if seen, ok := k.left[string(key)]; ok {
		return seen.arg, seen.problem
	}
	if len(k.left) >= mostLaunches {
		return -1, ""
	}
	answer := leaving{arg: -1}
	if w, ok := access.Escape(k.code, k.id, known, bytes); ok {
		does := "reads"
		if w.Write {
			does = "writes"
		}
		answer = leaving{w.Param, fmt.Sprintf("is exceeded: thread %s of block %s %s bytes %d to %d (%s)", place3(w.Thread), place3(w.Block), does, w.Lo, w.Hi-1, w.At)}
	}
	k.left[string(key)] = answer
	return answer.arg, answer.problem
}

func place3(at [3]uint32) string { return fmt.Sprintf("(%d, %d, %d)", at[0], at[1], at[2]) }
