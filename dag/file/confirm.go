// Declarations of what kernels do, compared with their code once that is known.

package file

import (
	"cmp"
	"context"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// confirm asks the modules what the code of the kernels that are launched does.
func (p *parser) confirm(ctx context.Context) {
	for id := range p.pipeline.Modules {
		m := &p.pipeline.Modules[id]
		confirmer, ok := m.Library.(dag.Confirmer)
		if !ok {
			continue
		}
		var kernels []dag.LaunchKernel
		seen := map[dag.LaunchKernel]bool{}
		for _, l := range p.launched {
			if k := l.launch.Kernel; int(l.launch.Module) == id && !seen[k] {
				seen[k] = true
				kernels = append(kernels, k)
			}
		}
		if len(kernels) == 0 {
			continue
		}
		note, err := confirmer.Confirm(ctx, kernels)
		if err != nil {
			p.mistake(m.Pos, "", "module %q: %s", m.Name, err)
		}
		m.Unconfirmed = note
	}
	p.confirmSymbols()
	for _, l := range p.launched {
		p.compare(&l)
	}
	p.launched = nil
}

// compare reports arguments that the code of a kernel uses otherwise than declared.
func (p *parser) compare(l *launched) {
	params := l.launch.Kernel.Params()
	for k := range l.launch.Args {
		a := &l.launch.Args[k]
		if !a.IsBuffer || params[k].Scratch || l.spec.Origin[k] < 0 {
			continue
		}
		if problem := p.pipeline.Contradiction(l.launch, k, l.spec.Declared[k] != 0); problem != "" {
			p.disagree(l, k, problem)
		}
	}
	if checker, ok := l.launch.Kernel.(dag.SliceChecker); ok {
		if k, problem := checker.Leaves(l.launch); k >= 0 && l.spec.Origin[k] >= 0 {
			a := &l.launch.Args[k]
			if a.Mode == dag.Untouched {
				p.disagree(l, k, fmt.Sprintf("%s, but the file declares {unused: %s}", problem, p.pipeline.Buffers[a.Range.Buffer].Name))
				return
			}
			p.disagree(l, k, fmt.Sprintf("%s, and %s has %s", problem, p.pipeline.RangeText(a.Range), words.Count(a.Range.Hi-a.Range.Lo, "byte", "bytes")))
			return
		}
	}
	if checker, ok := l.launch.Kernel.(dag.OutputChecker); ok {
		for k := range l.launch.Args {
			if a := &l.launch.Args[k]; a.IsBuffer && a.Mode == dag.Write && l.spec.Origin[k] >= 0 {
				if _, problem := checker.Writes(l.launch, k); problem != "" {
					p.disagree(l, k, problem)
				}
			}
		}
	}
}

// disagree reports what is wrong with an argument, at its place.
func (p *parser) disagree(l *launched, k int, problem string) {
	at := l.kernel
	if n := l.nodes[l.spec.Origin[k]]; n != nil {
		at = n
	}
	name := cmp.Or(l.launch.Kernel.Params()[k].Name, fmt.Sprint(k+1))
	p.mistake(position(at), "", "argument %s of kernel %q %s%s", name, l.spec.Label, problem, l.where)
}
