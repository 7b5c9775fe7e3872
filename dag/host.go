// Host functions: nodes that run a function of the Go program that embeds dagrun. What they may access, and where they are.

package dag

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/words"
)

// HostWork is what a host function moves at most.
func HostWork(accesses []Access) Work {
	var w Work
	for _, a := range accesses {
		w.Bytes += a.Bytes()
	}
	return w
}

// HostAccessProblem says why a host function cannot access a range and what to do about it; "" if it can.
func (p *Pipeline) HostAccessProblem(r Range) (problem, hint string) {
	switch b := p.buffer(r.Buffer); {
	case b == nil:
		return fmt.Sprintf("there is no buffer %d", r.Buffer), ""
	case b.Place != Host:
		return fmt.Sprintf("a host function cannot access %q, which is in device memory", words.Shorten(b.Name)), "copy it to a host buffer before, and back after"
	case r.Tile():
		return fmt.Sprintf("a host function cannot access the tile %s", p.rangeText(r)), "slice whole rows"
	}
	return "", ""
}

// Functions lists the names of the host functions that a graph runs, those of bodies included, each once, in the order of declaration.
func (g *Graph) Functions() []string {
	var names []string
	seen := map[string]bool{}
	g.EachGraph(func(g *Graph, _ []string) {
		for i := range g.Nodes {
			if name := g.Nodes[i].Function; name != "" && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	})
	return names
}
