// What the kernels of the user's modules access, and how that is known.

package session

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// KernelAccess is what a kernel does with its arguments, for all nodes that launch it alike.
type KernelAccess struct {
	Kernel    string           `json:"kernel"`                  // its name
	Node      string           `json:"node"`                    // the first one
	Nodes     int              `json:"nodes"`                   // how many launch it
	Arguments []ArgumentAccess `json:"arguments"`               // one for each buffer argument
	Variables []ArgumentAccess `json:"variables,omitempty"`     // of the module
	Atomics   string           `json:"float_atomics,omitempty"` // where it adds floats atomically
}

type ArgumentAccess struct {
	Name   string `json:"name"`           // of the argument
	Mode   string `json:"mode"`           // in, out, inout or unused
	Access string `json:"access"`         // "declared", "inferred" or "proved"
	Why    string `json:"why,omitempty"`  // if it was declared: why the code does not tell
	Hint   string `json:"hint,omitempty"` // if the kernel needs less access than is declared
}

// Unconfirmed is a module whose code was not analysed.
type Unconfirmed struct {
	Module string `json:"module"`
	Why    string `json:"why"`
}

func UnconfirmedModules(g *dag.Graph) []Unconfirmed {
	list := []Unconfirmed{}
	for _, m := range g.Modules {
		if m.Unconfirmed != "" {
			list = append(list, Unconfirmed{m.Name, m.Unconfirmed})
		}
	}
	return list
}

// KernelAccesses lists the kernels of the user's modules, in the order of the nodes that launch them first.
func KernelAccesses(g *dag.Graph) []KernelAccess {
	list := []KernelAccess{}
	known := map[string]int{}
	for _, n := range allNodes(g) {
		l := n.Launch
		if l == nil || l.Module < 0 || l.Map != nil {
			continue
		}
		k := KernelAccess{Kernel: l.Name, Node: n.Name, Nodes: 1, Arguments: argumentAccesses(l), Variables: variableAccesses(l)}
		if f, ok := l.Kernel.(dag.FloatAtomics); ok {
			k.Atomics = f.FloatAtomics()
		}
		key := fmt.Sprint(k.Kernel, k.Arguments, k.Variables)
		if at, ok := known[key]; ok {
			list[at].Nodes++
			continue
		}
		known[key] = len(list)
		list = append(list, k)
	}
	return list
}

func argumentAccesses(l *dag.Launch) []ArgumentAccess {
	list := []ArgumentAccess{}
	params := l.Kernel.Params()
	for k := range l.Args {
		if !l.Args[k].IsBuffer {
			continue
		}
		name := params[k].Name
		if name == "" {
			name = fmt.Sprint(k + 1)
		}
		a := ArgumentAccess{Name: name, Mode: l.Args[k].Mode.String(), Access: l.Evidence(k).String()}
		if l.Evidence(k) == dag.Declared {
			a.Why = params[k].Code.Why
		}
		switch code := params[k].Code; {
		case !code.Decided || l.Args[k].Mode == dag.Untouched || l.Args[k].Texture != nil:
		case code.Mode == 0:
			a.Hint = "never used, {unused: ...} would do"
		case l.Args[k].Mode == dag.ReadWrite && code.Mode&dag.Write == 0:
			a.Hint = "never written, {in: ...} would do"
		}
		list = append(list, a)
	}
	return list
}

// variableAccesses lists the variables of its module that a launch uses.
func variableAccesses(l *dag.Launch) []ArgumentAccess {
	var list []ArgumentAccess
	user, ok := l.Kernel.(dag.SymbolUser)
	if !ok {
		return nil
	}
	for _, use := range user.SymbolUses() {
		list = append(list, ArgumentAccess{Name: use.Symbol.Name, Mode: use.Mode.String(), Access: use.Evidence.String()})
	}
	return list
}

// PrintAccess prints a line for each kernel, and a line if its results may differ from run to run.
func (u *Session) PrintAccess(kernels []KernelAccess) {
	for _, k := range kernels {
		var arguments []string
		for _, arg := range k.Arguments {
			text := fmt.Sprintf("argument %s %s (%s)", arg.Name, arg.Mode, arg.Access)
			if arg.Mode == dag.Write.String() && arg.Access == dag.Proved.String() {
				text = fmt.Sprintf("argument %s %s (proved to be written whole)", arg.Name, arg.Mode)
			}
			if note := arg.Why + arg.Hint; note != "" {
				text = fmt.Sprintf("argument %s %s (%s: %s)", arg.Name, arg.Mode, arg.Access, note)
			}
			arguments = append(arguments, text)
		}
		for _, v := range k.Variables {
			arguments = append(arguments, fmt.Sprintf("variable %s %s (%s)", v.Name, v.Mode, v.Access))
		}
		if len(arguments) > 0 {
			_ = u.Stdout.Printf("access: %s, %s\n", k.Kernel, strings.Join(arguments, ", "))
		}
		if k.Atomics != "" {
			_ = u.Stdout.Printf("%s adds floats atomically (%s): its results may differ in the last bits from run to run\n", k.Kernel, k.Atomics)
		}
	}
}
