// What one rank must get right by itself: all its communication is in one order, and nothing else touches the memory meanwhile.

package ranks

import (
	"fmt"
	"slices"
	"sort"

	"github.com/dagrun/dagrun/dag"
)

// alone checks one class, whose lowest rank is named in messages.
func alone(g *dag.Graph, ops []op, rank int32) []Violation {
	if len(ops) == 0 {
		return nil
	}
	o := newOrder(g, ops)
	var found []Violation
	for k := range ops[1:] {
		if o.next[ops[k].node] != int32(k+1) {
			found = append(found, Violation{[]int32{rank}, fmt.Sprintf("rank %d: nothing orders %s before %s; all communication of a rank needs one order",
				rank, ops[k].at(), ops[k+1].at())})
		}
	}
	if len(found) > 0 {
		return found
	}
	return o.touched(g, ops, rank)
}

// order says for each node which communication comes before it and which after it.
type order struct {
	last []int32 // the last communication that must be finished before the node begins; -1: none
	next []int32 // the first that begins only after the node; len(ops): none
}

func newOrder(g *dag.Graph, ops []op) *order {
	n := g.Vertices()
	succ := successors(g)
	degree := make([]int32, n)
	for _, list := range succ {
		for _, to := range list {
			degree[to]++
		}
	}
	var sequence []int32
	for v := range n {
		if degree[v] == 0 {
			sequence = append(sequence, int32(v))
		}
	}
	for k := 0; k < len(sequence); k++ {
		for _, to := range succ[sequence[k]] {
			if degree[to]--; degree[to] == 0 {
				sequence = append(sequence, to)
			}
		}
	}
	place := make([]int32, n)
	for v := range place {
		place[v] = -1
	}
	for k := range ops {
		place[ops[k].node] = int32(k)
	}
	o := &order{last: make([]int32, n), next: make([]int32, n)}
	for v := range n {
		o.last[v], o.next[v] = -1, int32(len(ops))
	}
	for _, v := range sequence {
		for _, to := range succ[v] {
			o.last[to] = max(o.last[to], o.last[v], place[v])
		}
	}
	for _, v := range slices.Backward(sequence) {
		for _, to := range succ[v] {
			o.next[v] = min(o.next[v], o.next[to])
			if place[to] >= 0 {
				o.next[v] = min(o.next[v], place[to])
			}
		}
	}
	return o
}

// successors are the dependencies that are enforced: with sync: explicit, only what the file declares and the order of its streams.
func successors(g *dag.Graph) [][]int32 {
	succ := make([][]int32, g.Vertices())
	for v := range succ {
		for _, e := range g.OutEdges(dag.NodeID(v)) {
			if g.Sync == dag.SyncAuto || e.Declared || e.Why == dag.After {
				succ[v] = append(succ[v], int32(e.To))
			}
		}
	}
	if g.Sync == dag.SyncAuto {
		return succ
	}
	last := map[int32]int32{}
	for i := range g.Nodes {
		if stream := g.Nodes[i].Stream.Number(); stream >= 0 {
			if before, ok := last[stream]; ok {
				succ[before] = append(succ[before], int32(i))
			}
			last[stream] = int32(i)
		}
	}
	return succ
}

// use is a range that a communication reads or writes.
type use struct {
	op     int32
	lo, hi int64
	write  bool
}

// touched finds nodes that touch memory which is communicated meanwhile.
func (o *order) touched(g *dag.Graph, ops []op, rank int32) []Violation {
	uses := make([][]use, len(g.Buffers))
	communicates := make([]bool, len(g.Nodes))
	for k := range ops {
		communicates[ops[k].node] = true
		for _, a := range g.Accesses(ops[k].node) {
			if a.Lo < a.Hi {
				uses[a.Buffer] = append(uses[a.Buffer], use{int32(k), a.Lo, a.Hi, a.Mode&dag.Write != 0})
			}
		}
	}
	var found []Violation
	for i := range g.Nodes {
		if communicates[i] {
			continue
		}
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if a.Lo >= a.Hi {
				continue
			}
			list := uses[a.Buffer]
			from := sort.Search(len(list), func(k int) bool { return list[k].op > o.last[i] })
			for _, u := range list[from:] {
				if u.op >= o.next[i] {
					break
				}
				if a.Lo < u.hi && u.lo < a.Hi && (u.write || a.Mode&dag.Write != 0) {
					found = append(found, Violation{[]int32{rank}, meanwhile(g, dag.NodeID(i), a, u, &ops[u.op], rank)})
					break
				}
			}
			if len(found) >= most {
				return found
			}
		}
	}
	return found
}

func meanwhile(g *dag.Graph, node dag.NodeID, a dag.Access, u use, with *op, rank int32) string {
	does, done := "reads", "sends"
	if a.Mode&dag.Write != 0 {
		does = "writes"
	}
	if u.write {
		done = "receives"
	}
	n := &g.Nodes[node]
	other := op{name: n.Name, line: n.Pos.Line}
	return fmt.Sprintf("rank %d: %s %s %s while %s %s it, because nothing orders the two", rank, other.at(), does, g.RangeText(a.Range), with.at(), done)
}
