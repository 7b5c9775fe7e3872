// The launches of a plan that is being made: where each node is launched and in which order.

// Package order derives what happens before what in a plan, for memory layouts and graph edges. It assumes that the plan's ops are valid.
// Everything is derived backwards from the end of the plan, by what comes after each launch. The proof has a derivation of its own, which
// walks forwards, so that a mistake in one is not repeated in the other.
package order

import (
	"github.com/dagrun/dagrun/planner/plan"
)

// Spot is where a node is launched: its stream and its position among the launches of that stream, from 1.
type Spot struct{ Stream, Pos int32 }

// Schedule holds the launches of a plan.
type Schedule struct {
	Spots  []Spot  // by node
	Order  []int32 // nodes in submission order
	counts []int32 // by stream, how many launches it has
}

// Read reads the launches of a plan with this many nodes.
func Read(p *plan.Plan, nodes int) *Schedule {
	s := &Schedule{Spots: make([]Spot, nodes), Order: make([]int32, nodes), counts: make([]int32, len(p.Streams))}
	for stream := range p.Streams {
		for i := range p.Streams[stream].Ops {
			if op := &p.Streams[stream].Ops[i]; op.Kind == plan.Launch {
				s.counts[stream]++
				s.Spots[op.Node] = Spot{int32(stream), s.counts[stream]}
			}
		}
	}
	place := nodes
	forEachOpBackward(p, func(_ int32, op *plan.Op) {
		if op.Kind == plan.Launch {
			place--
			s.Order[place] = int32(op.Node)
		}
	})
	s.Order = s.Order[place:]
	return s
}

// forEachOpBackward visits the ops against the submission order.
func forEachOpBackward(p *plan.Plan, visit func(stream int32, op *plan.Op)) {
	left := make([]int32, len(p.Streams))
	for stream := range left {
		left[stream] = int32(len(p.Streams[stream].Ops))
	}
	for at := len(p.Order) - 1; at >= 0; at-- {
		stream := p.Order[at]
		left[stream]--
		visit(stream, &p.Streams[stream].Ops[left[stream]])
	}
}
