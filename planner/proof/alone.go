// Which buffers only one loop or branch of a graph uses.

package proof

import "github.com/dagrun/dagrun/dag"

// usedAlone returns, by buffer, the loop or branch that uses it if no other node does, nor the condition of that one, else a number below 0. The
// contents of such a buffer matter to nothing outside of the bodies, unless the plan keeps it.
func usedAlone(g *dag.Graph) []dag.NodeID {
	const several = -2
	alone := make([]dag.NodeID, len(g.Buffers))
	for b := range alone {
		alone[b] = -1
	}
	for i := range g.Nodes {
		id, c := dag.NodeID(i), g.Nodes[i].Control
		for _, a := range g.Accesses(id) {
			if at := &alone[a.Buffer]; c == nil || *at != -1 && *at != id {
				*at = several
			} else {
				*at = id
			}
		}
		if c != nil && c.Condition != nil {
			for _, r := range c.Condition.Operands {
				alone[r.Buffer] = several
			}
		}
	}
	return alone
}
