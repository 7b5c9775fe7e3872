// Lists what all nodes of a plan were assumed to take, those of bodies included.

package plan

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// EachCost calls visit with each node of a plan and what it was assumed to take. The nodes of a body come after the loop or branch that has
// them, and are one deeper.
func (p *Plan) EachCost(g *dag.Graph, visit func(n *dag.Node, c *Cost, depth int)) {
	if p == nil || g == nil || g.Pipeline == nil || visit == nil {
		return
	}
	p.eachCost(g, 0, visit)
}

func (p *Plan) eachCost(g *dag.Graph, depth int, visit func(n *dag.Node, c *Cost, depth int)) {
	next := 0
	for i := range p.Costs[:min(len(p.Costs), g.Len())] {
		visit(&g.Nodes[i], &p.Costs[i], depth)
		for ; next < len(p.Bodies) && p.Bodies[next].Node <= dag.NodeID(i); next++ {
			b := &p.Bodies[next]
			if body := bodyOf(g, b.Node, b.Body); body != nil && b.Plan != nil {
				b.Plan.eachCost(body, depth+1, visit)
			}
		}
	}
}

// tally counts the costs of all nodes. Loops and branches whose cost follows from those of their bodies are left out.
func (p *Plan) tally(g *dag.Graph) *costTally {
	var tally costTally
	p.EachCost(g, func(n *dag.Node, c *Cost, _ int) {
		if n.Control == nil || c.Source == MeasuredCost || c.Source == DeclaredCost {
			tally.add(n, c.Source)
		}
	})
	return &tally
}

func (p *Plan) costText(g *dag.Graph) string { return p.tally(g).text() }

// GuessText says how many durations are unknown, so that nothing follows from a prediction, and the way out: "4 nodes unknown: run with
// --iterations 200, or dagrun tune, and plan with --learn=auto". It is empty if none is.
func (p *Plan) GuessText(g *dag.Graph) string {
	if n := p.tally(g).count[UnknownCost]; n > 0 {
		return words.Count(n, "node", "nodes") + " unknown: run with --iterations 200, or dagrun tune, and plan with --learn=auto"
	}
	return ""
}
