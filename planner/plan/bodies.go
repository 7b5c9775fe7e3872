// Which plan a body of a loop or branch has. Each body is a plan of its own.

package plan

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// BodyOf returns the plan of body k of a node, or nil.
func (p *Plan) BodyOf(node dag.NodeID, k int) *Plan {
	if p == nil {
		return nil
	}
	for i := range p.Bodies {
		if b := &p.Bodies[i]; b.Node == node && int(b.Body) == k {
			return b.Plan
		}
	}
	return nil
}

// bodyOf returns the graph of a body, or nil.
func bodyOf(g *dag.Graph, node dag.NodeID, k int32) *dag.Graph {
	if node < 0 || int(node) >= g.Len() || g.Nodes[node].Control == nil || k < 0 || int(k) >= len(g.Nodes[node].Control.Bodies) {
		return nil
	}
	return g.Nodes[node].Control.Bodies[k]
}

// bodyTitle names a body for people: solve (repeat 20 times), or the else of refine.
func bodyTitle(g *dag.Graph, node dag.NodeID, k int32) string {
	n := &g.Nodes[node]
	if name := n.Control.BodyName(int(k)); name != "" {
		return fmt.Sprintf("%s, %s", n.Name, name)
	}
	return fmt.Sprintf("%s (%s)", n.Name, n.Control.Action(n.Kind))
}

var bodyKeys = []string{
	"node", // the loop or branch
	"body", // 0, or 1 for `else`
	"plan", // in this same format but without memory, which is that of the plan around it
}
