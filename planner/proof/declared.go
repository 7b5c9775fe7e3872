// The order that a pipeline with sync: explicit declares: by after:, and by nodes that users bound to one stream. Where a plan puts other
// nodes, and in which order, depends on strategy, machine and sizes, so that does not count.

package proof

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// declaredOrder returns the order of an explicit schedule. Each stream that users numbered is a stream. Other nodes form streams in which
// each node names the one before it in after:. The pairs in more, sorted by submission of the later node, count as ordered.
func declaredOrder(g *dag.Graph, p *plan.Plan, real *schedule, more []pair) (*order, *ancestry) {
	s := &schedule{spots: make([]spot, len(real.spots)), order: real.order}
	var length, tail []int32 // by stream; tail is the last node of one that is not bound, plus 1
	numbered := map[int32]int32{}
	last := map[int32]int32{} // by stream that is bound, its last node
	var start, from []int32
	start = append(start, 0)
	for _, node := range s.order {
		first := len(from)
		stream := int32(-1)
		number := g.Nodes[node].Stream.Number()
		if number >= 0 {
			if known, ok := numbered[number]; ok {
				stream = known
				from = append(from, last[stream])
			}
		}
		for _, q := range g.Nodes[node].After {
			at := s.spots[q]
			if at.pos == 0 { // submitted later
				continue
			}
			from = append(from, int32(q))
			if number < 0 && stream < 0 && dag.NodeID(tail[at.stream]) == q+1 {
				stream = at.stream
			}
		}
		for len(more) > 0 && more[0].to == node {
			from = append(from, more[0].from)
			more = more[1:]
		}
		from = from[:first+distinct(from[first:])]
		if stream < 0 {
			stream = int32(len(length))
			length, tail = append(length, 0), append(tail, 0)
			if number >= 0 {
				numbered[number] = stream
			}
		}
		length[stream]++
		s.spots[node] = spot{stream, length[stream]}
		if number >= 0 {
			last[stream] = node
		} else {
			tail[stream] = node + 1
		}
		start = append(start, int32(len(from)))
	}
	a := &ancestry{s: s, streams: len(length), start: start, from: from}
	a.assignRows()
	return &order{p: &plan.Plan{Streams: make([]plan.Stream, len(length))}, s: s, source: a}, a
}

// distinct moves the first of each of a few nodes to the front and returns how many there are.
func distinct(nodes []int32) int {
	count := 0
	for _, node := range nodes {
		known := false
		for _, other := range nodes[:count] {
			known = known || other == node
		}
		if !known {
			nodes[count] = node
			count++
		}
	}
	return count
}
