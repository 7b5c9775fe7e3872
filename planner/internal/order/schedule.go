// What happens before what in a plan that is being made: where each node is launched and in which order. The proof has its own
// reading of a plan; this one takes the plan to be whole.

// Package order says what happens before what in a plan, for the making of memory layouts and graph edges. The proof has its own.
package order

import (
	"github.com/dagrun/dagrun/planner/plan"
)

// Spot is where a node is launched: its stream, and the how many-th launch of that stream it is, from 1.
type Spot struct{ Stream, Pos int32 }

// Schedule is the launches of a plan.
type Schedule struct {
	Spots []Spot  // by node
	Order []int32 // nodes in submission order
	rank  []int32 // by node, its place in order; made when first asked for
}

// Read reads the launches of a plan of so many nodes.
func Read(p *plan.Plan, nodes int) *Schedule {
	s := &Schedule{Spots: make([]Spot, nodes), Order: make([]int32, 0, nodes)}
	launched := make([]int32, len(p.Streams))
	forEachOp(p, func(_ int, stream int32, op *plan.Op) {
		if op.Kind == plan.Launch {
			launched[stream]++
			s.Spots[op.Node] = Spot{stream, launched[stream]}
			s.Order = append(s.Order, op.Node)
		}
	})
	return s
}

// Ranks are the nodes' places in the submission order.
func (s *Schedule) Ranks() []int32 {
	if s.rank == nil {
		s.rank = make([]int32, len(s.Spots))
		for k, node := range s.Order {
			s.rank[node] = int32(k)
		}
	}
	return s.rank
}

// forEachOp visits ops in submission order.
func forEachOp(p *plan.Plan, visit func(at int, stream int32, op *plan.Op)) {
	next := make([]int32, len(p.Streams))
	for k, stream := range p.Order {
		op := &p.Streams[stream].Ops[next[stream]]
		next[stream]++
		visit(k, stream, op)
	}
}
