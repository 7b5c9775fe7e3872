// The proof of a CUDA graph's edges: that they keep every order that a plan's streams, hazards and memory layout need.

package proof

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// VerifyEdges proves that a CUDA graph with these edges is correct for a graph and the memory layout of a plan, or returns the first fault
// as a *Violation. Only the edges count as order: from the plan come the streams, whose order the edges must keep, and the layout. Edges
// from [GraphRoot] are allowed anywhere.
func VerifyEdges(g *dag.Graph, p *plan.Plan, edges []plan.GraphEdge) error {
	return verifyEdges(g, p, edges, checkMemory)
}

// VerifyBodyEdges is VerifyEdges for the body of a loop or branch and its plan, which has no memory layout of its own: memory is the layout of
// the plan around it. That a pass ends before the next begins is not a matter of edges: a conditional node waits for its whole body.
func VerifyBodyEdges(g *dag.Graph, p *plan.Plan, edges []plan.GraphEdge, memory []plan.Placement) error {
	return verifyEdges(g, p, edges, func(g *dag.Graph, p *plan.Plan, s *schedule, clocks clockSource, _ []bool) *Violation {
		for k := range memory {
			if b := memory[k].Buffer; b < 0 || int(b) >= len(g.Buffers) {
				return newViolation(plan.ErrMemory, "placement %d of the layout is of buffer %d, but there are %d buffers", k, b, len(g.Buffers))
			}
		}
		return bodyMemory(g, p, s, clocks, memory)
	})
}

func verifyEdges(g *dag.Graph, p *plan.Plan, edges []plan.GraphEdge, memory func(*dag.Graph, *plan.Plan, *schedule, clockSource, []bool) *Violation) error {
	s, v := readSchedule(g, p)
	if v != nil {
		return v
	}
	a, v := edgeAncestry(g, p, s, edges)
	if v != nil {
		return v
	}
	// A hazard tells more than a stream out of order, so look for hazards first. Under sync: explicit they may remain.
	enforced := &order{p: p, s: s, source: a}
	if g.Sync == dag.SyncExplicit {
		enforced, _ = declaredOrder(g, p, s, nil)
	}
	readFirst, hazard := checkConflicts(g, p, s, enforced)
	if hazard != nil && hazard.Fault != ErrRace {
		return asEdge(g, hazard)
	}
	if v := checkStreamOrder(g, p, s, a); v != nil {
		return v
	}
	if g.Sync == dag.SyncExplicit {
		if v := checkDeclared(g, p, s, a); v != nil {
			return asEdge(g, v)
		}
		readFirst = readFirstOf(g, s)
	}
	if v := memory(g, p, s, a, readFirst); v != nil {
		return asEdge(g, v)
	}
	if hazard != nil {
		return asEdge(g, hazard)
	}
	return nil
}

// asEdge changes the fix of a violation to one that adds an edge.
func asEdge(g *dag.Graph, v *Violation) *Violation {
	if v.Before >= 0 && v.Before != v.Node && v.Fault != ErrRace {
		v.Fix = fmt.Sprintf("add an edge from %q to %q", plan.NodeName(g, v.Before), plan.NodeName(g, v.Node))
	}
	return v
}

// edgeAncestry reads edges and checks them, because they may come from anywhere.
func edgeAncestry(g *dag.Graph, p *plan.Plan, s *schedule, edges []plan.GraphEdge) (*ancestry, *Violation) {
	n := int32(g.Len())
	rank := s.ranks()
	a := &ancestry{s: s, streams: len(p.Streams), start: make([]int32, len(s.order)+1)}
	for k, e := range edges {
		if e.To < 0 || e.To >= dag.NodeID(n) || e.From != plan.GraphRoot && (e.From < 0 || e.From >= dag.NodeID(n)) {
			return nil, newViolation(plan.ErrOtherGraph, "edge %d links nodes %d and %d, but the graph has %d nodes", k, e.From, e.To, n)
		}
		if e.From == plan.GraphRoot {
			continue
		}
		if rank[e.From] >= rank[e.To] {
			v := newViolation(ErrDeadlock, "edge %d makes %q wait for %q, which the plan submits later", k, plan.NodeName(g, e.To),
				plan.NodeName(g, e.From)).node(g, e.To)
			v.Before, v.BeforeName = e.From, plan.NodeName(g, e.From)
			v.Stream, v.BeforeStream = s.spots[e.To].stream, s.spots[e.From].stream
			return nil, v.fix("remove the edge")
		}
		a.start[rank[e.To]+1]++
	}
	for k := range s.order {
		a.start[k+1] += a.start[k]
	}
	a.from = make([]int32, a.start[len(s.order)])
	next := append([]int32(nil), a.start[:len(s.order)]...)
	for _, e := range edges {
		if e.From != plan.GraphRoot {
			at := rank[e.To]
			a.from[next[at]] = int32(e.From)
			next[at]++
		}
	}
	a.assignRows()
	return a, nil
}

// checkStreamOrder checks that each launch of a stream comes after the one before it. Clocks rely on this: for each stream they hold only
// the last launch that has finished.
func checkStreamOrder(g *dag.Graph, p *plan.Plan, s *schedule, a *ancestry) *Violation {
	asked := make([]pair, 0, len(s.order))
	last := make([]int32, len(p.Streams)) // plus 1
	for _, node := range s.order {
		stream := s.spots[node].stream
		if last[stream] > 0 {
			asked = append(asked, pair{last[stream] - 1, node})
		}
		last[stream] = node + 1
	}
	bad := unordered(p, s, a, asked)
	if len(bad) == 0 {
		return nil
	}
	first := asked[bad[0]]
	v := newViolation(ErrHazard, "%q does not come after %q, which is before it on stream %d",
		plan.NodeName(g, dag.NodeID(first.to)), plan.NodeName(g, dag.NodeID(first.from)), s.spots[first.to].stream).node(g, dag.NodeID(first.to))
	v.Before, v.BeforeName = dag.NodeID(first.from), plan.NodeName(g, dag.NodeID(first.from))
	v.Stream, v.BeforeStream = s.spots[first.to].stream, s.spots[first.from].stream
	v.Op = s.opOf(p, dag.NodeID(first.to))
	return asEdge(g, v)
}
