// What happens before what in a plan that is being made: where each node is launched and in which order. The proof has its own
// reading of a plan; this one takes the plan to be whole.

package planner

// ordSpot is where a node is launched: its stream, and the how many-th launch of that stream it is, from 1.
type ordSpot struct{ stream, pos int32 }

// ordSchedule is the launches of a plan.
type ordSchedule struct {
	spots []ordSpot // by node
	order []int32   // nodes in submission order
	rank  []int32   // by node, its place in order; made when first asked for
}

// readOrd reads the launches of a plan of so many nodes.
func readOrd(p *Plan, nodes int) *ordSchedule {
	s := &ordSchedule{spots: make([]ordSpot, nodes), order: make([]int32, 0, nodes)}
	launched := make([]int32, len(p.Streams))
	ordEachOp(p, func(_ int, stream int32, op *Op) {
		if op.Kind == Launch {
			launched[stream]++
			s.spots[op.Node] = ordSpot{stream, launched[stream]}
			s.order = append(s.order, op.Node)
		}
	})
	return s
}

// ranks are the nodes' places in the submission order.
func (s *ordSchedule) ranks() []int32 {
	if s.rank == nil {
		s.rank = make([]int32, len(s.spots))
		for k, node := range s.order {
			s.rank[node] = int32(k)
		}
	}
	return s.rank
}

// ordEachOp visits ops in submission order.
func ordEachOp(p *Plan, visit func(at int, stream int32, op *Op)) {
	next := make([]int32, len(p.Streams))
	for k, stream := range p.Order {
		op := &p.Streams[stream].Ops[next[stream]]
		next[stream]++
		visit(k, stream, op)
	}
}
