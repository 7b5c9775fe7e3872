// Lists the loops of a plan and its bodies with the passes that they count with.

package plan

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// EachLoop calls visit with each loop whose passes a plan counts with, those of a body after the loop around it.
func (p *Plan) EachLoop(g *dag.Graph, visit func(n *dag.Node, passes Passes)) {
	if p == nil || g == nil || g.Pipeline == nil || visit == nil {
		return
	}
	next := 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Control == nil {
			continue
		}
		if i < len(p.Costs) && p.Costs[i].Passes.Source != NoPasses {
			visit(n, p.Costs[i].Passes)
		}
		for ; next < len(p.Bodies) && p.Bodies[next].Node <= dag.NodeID(i); next++ {
			b := &p.Bodies[next]
			b.Plan.EachLoop(bodyOf(g, b.Node, b.Body), visit)
		}
	}
}

// passesText lists the passes that a plan counts with: "solve learned 37 passes, inner at most 500 passes".
func (p *Plan) passesText(g *dag.Graph) string {
	var parts []string
	more := 0
	p.EachLoop(g, func(n *dag.Node, passes Passes) {
		if len(parts) == mostNamed {
			more++
			return
		}
		parts = append(parts, words.Line(n.Name)+" "+passes.Text())
	})
	text := strings.Join(parts, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
