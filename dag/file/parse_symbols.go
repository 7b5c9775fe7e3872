// Symbols of modules as buffers of a pipeline file: symbol:, and what is checked once the modules are known.

package file

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// symbol reads which variable a buffer of a file stands for. Its place, type and shape are known already.
func (p *parser) symbol(n *yaml.Node, b *dag.Buffer) bool {
	text, ok := p.expanded(n, "symbol")
	if !ok {
		return false
	}
	if module, _, _ := strings.Cut(text, "."); p.modules[module] == broken {
		if _, known := p.modules[module]; known {
			return false // the module's mistake has been reported
		}
	}
	b.Symbol = text
	if module, name, dotted := strings.Cut(text, "."); dotted {
		if id, known := p.modules[module]; known { // a used file's module has another name in the pipeline
			b.Symbol = p.pipeline.Modules[id].Name + "." + name
		}
	}
	if message, hint := p.pipeline.BindSymbol(b); message != "" {
		p.mistake(position(n), hint, "%s%s", message, p.repetition())
		return false
	}
	return true
}

// confirmSymbols compares the sizes of buffers with those of compiled code, which may only now be known.
func (p *parser) confirmSymbols() {
	for i := range p.pipeline.Buffers {
		b := &p.pipeline.Buffers[i]
		module, name, _ := strings.Cut(b.Symbol, ".")
		for k := range p.pipeline.Modules {
			table, ok := p.pipeline.Modules[k].Library.(dag.Symbols)
			if b.Symbol == "" || !ok || p.pipeline.Modules[k].Name != module {
				continue
			}
			if s, err := table.Symbol(name); err == nil {
				if problem := s.Problem(b); problem != "" {
					p.mistake(b.Pos, "", "%s", problem)
				}
			}
		}
	}
}

// unfilled warns about variables that kernels read and nothing fills: neither their code nor an init nor a node.
func (p *parser) unfilled(g *dag.Graph) {
	warned := map[string]bool{}
	written := make([]bool, len(g.Buffers))
	for i := range g.Nodes {
		for _, a := range g.Accesses(dag.NodeID(i)) {
			written[a.Buffer] = written[a.Buffer] || a.Mode&dag.Write != 0
		}
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Launch == nil || n.Launch.Module < 0 || n.Launch.Map != nil {
			continue
		}
		user, ok := n.Launch.Kernel.(dag.SymbolUser)
		if !ok {
			continue
		}
		for _, use := range user.SymbolUses() {
			name := g.Modules[n.Launch.Module].Name + "." + use.Symbol.Name
			if use.Symbol.Initialised || use.Mode&dag.Write != 0 && !use.Symbol.Constant || warned[name] {
				continue
			}
			id := g.SymbolBuffer(name, n.Device)
			switch {
			case id < 0:
				warned[name] = true
				p.warning(n.Pos, fmt.Sprintf("declare a buffer with symbol: %s, and copy to it", name), "kernel %q reads the variable %s, which nothing fills",
					n.Launch.Name, use.Symbol.String())
			case g.Buffers[id].Init == nil && !written[id]:
				warned[name] = true
				p.warning(g.Buffers[id].Pos, "give it an init, or copy to it", "%q is read by %q, and nothing fills it", words.Shorten(g.Buffers[id].Name),
					words.Shorten(n.Name))
			}
		}
	}
}
