// Topological order: every dependency points forward, and of several ready nodes the one declared first comes first.

package dag

import "github.com/dagrun/dagrun/dag/internal/ids"

// sort fills g.topo. It is needed only where some after: points to a later node.
func (g *Graph) sort() error {
	n := NodeID(g.Vertices())
	waiting := make([]int32, n)
	var ready ids.Heap[NodeID]
	for i := range n {
		if waiting[i] = g.predStart[i+1] - g.predStart[i]; waiting[i] == 0 {
			ready.Push(i)
		}
	}
	g.topo = make([]NodeID, 0, len(g.Nodes))
	g.sequence = make([]NodeID, 0, n)
	joins := make([]NodeID, 0, 1) // joins that are ready
	for len(ready) > 0 {
		i := ready.Pop()
		g.topo = append(g.topo, i)
		for joins = append(joins, i); len(joins) > 0; {
			i := joins[len(joins)-1]
			joins = joins[:len(joins)-1]
			g.sequence = append(g.sequence, i)
			for _, next := range g.Succs(i) {
				if waiting[next]--; waiting[next] > 0 {
					continue
				}
				if g.IsJoin(next) {
					joins = append(joins, next)
				} else {
					ready.Push(next)
				}
			}
		}
	}
	if len(g.topo) == len(g.Nodes) {
		return nil
	}
	return newCycleError(g.Pipeline, g.findCycle(waiting))
}
