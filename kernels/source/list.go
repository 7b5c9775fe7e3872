// Everything that can be said of a file's kernels: for people who are about to use them.

package source

import (
	"context"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Info is what is known of one kernel of a file.
type Info struct {
	Name      string // as a pipeline calls it, without the module's name and a template's arguments
	Signature string // as its author declares it
	Place     string // file and line; "" for compiled code
	Template  []string
	Params    []dag.KernelParam
	Entry     string // its symbol; "" for a template, or where the file is not compiled

	Launched []Launched // by the file's own host code

	FloatAtomics string // where it adds floats atomically
	Shared       int64  // static bytes of a block; -1: not known
	Registers    int    // of a thread; 0: not known, as for everything but cubins
	Problem      string // why it cannot be launched
}

// List describes the kernels of the file in its order. CUDA C is compiled where the module was opened with compilers: note says why
// it was not, and an error what is wrong with it; the list is right all the same, but does not say what code shows.
func (m *Module) List(ctx context.Context) (list []Info, note string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var plain []dag.LaunchKernel
	at := map[string]int{}
	instances := map[int]*userKernel{} // of templates, as the file launches them
	for i := range m.found {
		found := &m.found[i]
		info := Info{Name: m.callName(found), Signature: found.display(), Shared: -1, Registers: found.registers}
		if found.compiled == nil {
			info.Place = fmt.Sprintf("%s:%d", found.file, found.line)
			info.Launched = m.launches[found.name[strings.LastIndexByte(found.name, ':')+1:]]
		} else {
			info.Entry, info.Params = found.symbol, found.params
		}
		for _, p := range found.template {
			name := p.name
			if name == "" {
				name = p.kind
			}
			info.Template = append(info.Template, name)
		}
		if found.template == nil {
			k, err := m.find(info.Name)
			if err != nil {
				info.Problem = strings.TrimPrefix(err.Error(), m.module.Path+": ")
			} else {
				at[k.entry] = len(list)
				info.Params = k.params
				plain = append(plain, k)
			}
		} else {
			info.Params = m.shown(found)
			if k := m.launchedInstance(&info); k != nil {
				instances[len(list)] = k
			}
		}
		list = append(list, info)
	}
	if m.module.Kind == launch.Source && m.compilers != nil {
		var shown map[string]shape
		wanted := plain
		for i := range list {
			if k := instances[i]; k != nil {
				at[k.entry] = i
				wanted = append(wanted, k)
			}
		}
		note, shown, err = m.confirm(ctx, wanted)
		if err != nil && len(instances) > 0 { // arguments that host code seemed to say may be others
			clear(instances)
			note, shown, err = m.confirm(ctx, plain)
		}
		for entry, s := range shown {
			info := &list[at[entry]]
			info.Entry, info.Shared = s.symbol, s.shared
		}
	}
	if m.module.Kind == launch.PTX {
		if text, err := ptx.Parse(string(m.module.Code)); err == nil {
			for i := range list {
				list[i].Shared = sharedBytes(text, list[i].Entry)
			}
		}
	}
	for i := range list {
		k := m.known[list[i].Name]
		if k == nil {
			k = instances[i]
		}
		if k != nil {
			list[i].Params, list[i].FloatAtomics = k.params, k.floatAtomics
			if k.err != nil {
				list[i].Problem = k.err.Error()
			}
		}
	}
	return list, note, err
}

// launchedInstance is the kernel that a launch of the file makes of a template, if its arguments are known.
func (m *Module) launchedInstance(info *Info) *userKernel {
	for _, l := range info.Launched {
		if len(l.Template) > 0 {
			k, err := m.find(info.Name + "<" + strings.Join(l.Template, ", ") + ">")
			if err != nil {
				return nil
			}
			return k
		}
	}
	return nil
}

// shown are the parameters of a template, of which some may have types that only its arguments tell. Those count as what they are for
// float and 1: a structure has the same members then.
func (m *Module) shown(k *sourceKernel) []dag.KernelParam {
	if params, err := k.parameters(nil, m.types, m.structs); err == nil {
		return params
	}
	means := map[string][]token{}
	for _, p := range k.template {
		switch {
		case p.standard != nil:
			means[p.name] = substitute(p.standard, means)
		case p.kind == "typename":
			means[p.name] = tokensOf("float")
		default:
			means[p.name] = tokensOf("1")
		}
	}
	var params []dag.KernelParam
	for i, raw := range k.raw {
		p := takeApart(substitute(raw, means), m.types)
		if own := takeApart(raw, nil); own.name != "" {
			p.name = own.name
		}
		param, _ := p.describe(i, m.structs) // has a name even if its type is not known
		params = append(params, param)
	}
	return params
}

// callName is the shortest name that finds a kernel.
func (m *Module) callName(k *sourceKernel) string {
	if k.compiled != nil {
		if same := m.count(k.compiled.full()); same < 2 {
			return k.compiled.full()
		}
		return k.symbol
	}
	if m.count(k.name) < 2 || k.template != nil {
		return k.name
	}
	return k.signature()
}

// count is how many kernels have a name.
func (m *Module) count(name string) int {
	n := 0
	for i := range m.found {
		if k := &m.found[i]; k.name == name && k.compiled == nil || k.compiled != nil && k.compiled.full() == name {
			n++
		}
	}
	return n
}

// display is the kernel's declaration with the names of its parameters.
func (k *sourceKernel) display() string {
	if k.compiled != nil {
		return k.compiled.signature()
	}
	var params []string
	for _, raw := range k.raw {
		params = append(params, textOf(raw))
	}
	text := k.name + "(" + strings.Join(params, ", ") + ")"
	if k.template != nil {
		return "template " + k.templateText() + " " + text
	}
	return text
}
