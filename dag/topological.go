// Topological order: every dependency points forward, and of several ready nodes the one declared first comes first.

package dag

// sort fills g.topo. It is needed only where some after: points to a later node.
func (g *Graph) sort() error {
	n := NodeID(g.Vertices())
	waiting := make([]int32, n)
	var ready nodeHeap
	for i := range n {
		if waiting[i] = g.predStart[i+1] - g.predStart[i]; waiting[i] == 0 {
			ready.push(i)
		}
	}
	g.topo = make([]NodeID, 0, len(g.Nodes))
	g.sequence = make([]NodeID, 0, n)
	joins := make([]NodeID, 0, 1) // joins that are ready
	for len(ready) > 0 {
		i := ready.pop()
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
					ready.push(next)
				}
			}
		}
	}
	if len(g.topo) == len(g.Nodes) {
		return nil
	}
	return newCycleError(g.Pipeline, g.findCycle(waiting))
}

// nodeHeap is a binary heap with the smallest node on top.
type nodeHeap []NodeID

func (h *nodeHeap) push(v NodeID) {
	s := append(*h, v)
	i := len(s) - 1
	for i > 0 && s[(i-1)/2] > v {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = v
	*h = s
}

func (h *nodeHeap) pop() NodeID {
	s := *h
	top, v := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if s[child] >= v {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = v
	return top
}
