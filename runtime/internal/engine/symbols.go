// Variables of modules as buffers: where they lie once their modules are loaded, and what they hold at first.

package engine

import (
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

// symbolModule returns the module and the name of the variable that a buffer stands for; nil if it stands for none.
func (p *Program) symbolModule(b *dag.Buffer) (*launch.Module, string) {
	module, name, _ := strings.Cut(b.Symbol, ".")
	for i := range p.graph.Modules {
		m := &p.graph.Modules[i]
		if code, ok := m.Library.(Coded); ok && b.Symbol != "" && m.Name == module {
			return code.Module(), name
		}
	}
	return nil, ""
}

// symbolName is how loaded code is asked for a variable: compiled code may have it under another name.
func symbolName(m *launch.Module, name string) string {
	if m.Kind == launch.Source {
		return "&" + name
	}
	return name
}

// Coded is a kernel that has its own module: a kernel from a user's file, or an elementwise expression.
type Coded interface{ Module() *launch.Module }
