// Declarations of what kernels do, compared with their code once that is known.

package dag

import "gopkg.in/yaml.v3"

// launched is a launch of a module's kernel, and where its parts are written.
type launched struct {
	launch *Launch
	spec   *launchSpec
	nodes  []*yaml.Node // of spec.Args
	kernel *yaml.Node
	where  string // the repetition
}

// confirm asks the modules what the code of the kernels that are launched does.
func (p *parser) confirm() {
	if len(p.mistakes.list) > 0 {
		return
	}
	for id := range p.pipeline.Modules {
		m := &p.pipeline.Modules[id]
		confirmer, ok := m.Library.(Confirmer)
		if !ok {
			continue
		}
		var kernels []LaunchKernel
		seen := map[LaunchKernel]bool{}
		for _, l := range p.launched {
			if k := l.launch.Kernel; int(l.launch.Module) == id && !seen[k] {
				seen[k] = true
				kernels = append(kernels, k)
			}
		}
		if len(kernels) == 0 {
			continue
		}
		note, err := confirmer.Confirm(kernels)
		if err != nil {
			p.mistake(m.Pos, "", "module %q: %s", m.Name, err)
		}
		m.Unconfirmed = note
	}
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
		if !a.IsBuffer || params[k].Scratch || l.spec.origin[k] < 0 {
			continue
		}
		written := l.spec.origin[k]
		problem := contradiction(&params[k], a.Mode, l.spec.Args[written].Mode != 0, p.pipeline.Buffers[a.Range.Buffer].Name)
		if problem == "" {
			continue
		}
		at := l.kernel
		if l.nodes[written] != nil {
			at = l.nodes[written]
		}
		name := resolution{params: params}
		p.mistake(position(at), "", "argument %s of kernel %q %s%s", name.paramName(k), l.spec.Label, problem, l.where)
	}
}
