// The edges of a CUDA graph: what has to be linked so that a graph keeps a plan's order, and the proof of such a list. Builds
// no graph.

package planner

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// GraphRoot stands for the empty node that a graph with several roots starts with. Many roots cost: 512 independent ones take
// 40 times as long to submit as the same behind one.
const GraphRoot int32 = -1

// GraphEdge links two nodes of a CUDA graph. From may be [GraphRoot].
type GraphEdge struct{ From, To int32 }

// GraphEdges returns the edges that a CUDA graph of a plan needs: the transitive reduction of what happens before what in the
// plan, stream order included, because buffers that share bytes rely on it. They come in submission order of To, so that a
// graph can be built by walking the list, and for one To with ascending From. Where several nodes have no predecessor, each of them
// gets an edge from GraphRoot.
//
// The plan is taken to have passed [Verify]; only what would make the walk unsafe is checked.
func GraphEdges(g *dag.Graph, p *Plan) ([]GraphEdge, error) {
	s, v := readSchedule(g, p)
	if v != nil {
		return nil, v
	}
	a := planAncestry(p, s)
	needless := a.needless()
	roots := 0
	for k := range s.order {
		if len(a.of(k)) == 0 {
			roots++
		}
	}
	edges := make([]GraphEdge, 0, len(a.from)+roots)
	for k, node := range s.order {
		if len(a.of(k)) == 0 && roots > 1 {
			edges = append(edges, GraphEdge{GraphRoot, node})
		}
		first := len(edges)
		for i := a.start[k]; i < a.start[k+1]; i++ {
			if needless[i] {
				continue
			}
			edges = append(edges, GraphEdge{a.from[i], node})
			for at := len(edges) - 1; at > first && edges[at].From < edges[at-1].From; at-- {
				edges[at], edges[at-1] = edges[at-1], edges[at]
			}
		}
	}
	return edges, nil
}

// VerifyEdges proves that a CUDA graph with these edges is right for a graph and the memory layout of a plan, or returns what
// is wrong first, as a *Violation. Only the edges order anything: the plan gives the nodes' streams, which the edges must keep
// in order, and the layout. Edges from [GraphRoot] are allowed anywhere.
func VerifyEdges(g *dag.Graph, p *Plan, edges []GraphEdge) error {
	s, v := readSchedule(g, p)
	if v != nil {
		return v
	}
	a, v := edgeAncestry(g, p, s, edges)
	if v != nil {
		return v
	}
	// A hazard says more than a broken stream, so look for these first; under sync: explicit they may remain.
	hazard := checkEdges(g, p, s, a)
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
	}
	if v := checkMemory(g, p, s, a); v != nil {
		return asEdge(g, v)
	}
	if hazard != nil {
		return asEdge(g, hazard)
	}
	return nil
}

// asEdge says what would fix a violation in terms of edges.
func asEdge(g *dag.Graph, v *Violation) *Violation {
	if v.Before >= 0 && v.Before != v.Node && v.Fault != ErrRace {
		v.Fix = fmt.Sprintf("add an edge from %q to %q", nodeName(g, v.Before), nodeName(g, v.Node))
	}
	return v
}

// edgeAncestry reads edges, which may come from anywhere.
func edgeAncestry(g *dag.Graph, p *Plan, s *schedule, edges []GraphEdge) (*ancestry, *Violation) {
	n := int32(g.Len())
	rank := s.ranks()
	a := &ancestry{s: s, streams: len(p.Streams), start: make([]int32, len(s.order)+1)}
	for k, e := range edges {
		if e.To < 0 || e.To >= n || e.From != GraphRoot && (e.From < 0 || e.From >= n) {
			return nil, newViolation(ErrOtherGraph, "edge %d links nodes %d and %d, but the graph has %d nodes", k, e.From, e.To, n)
		}
		if e.From == GraphRoot {
			continue
		}
		if rank[e.From] >= rank[e.To] {
			v := newViolation(ErrDeadlock, "edge %d makes %q wait for %q, which the plan submits later", k, nodeName(g, e.To), nodeName(g, e.From)).node(g, e.To)
			v.Before, v.BeforeName = e.From, nodeName(g, e.From)
			v.Stream, v.BeforeStream = s.spots[e.To].stream, s.spots[e.From].stream
			return nil, v.fix("take the edge out")
		}
		a.start[rank[e.To]+1]++
	}
	for k := range s.order {
		a.start[k+1] += a.start[k]
	}
	a.from = make([]int32, a.start[len(s.order)])
	next := append([]int32(nil), a.start[:len(s.order)]...)
	for _, e := range edges {
		if e.From != GraphRoot {
			at := rank[e.To]
			a.from[next[at]] = e.From
			next[at]++
		}
	}
	a.assignRows()
	return a, nil
}

// checkStreamOrder checks that each launch of a stream comes after the one before it. Clocks count on it: they stand for all
// earlier launches of a stream by the last one.
func checkStreamOrder(g *dag.Graph, p *Plan, s *schedule, a *ancestry) *Violation {
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
		nodeName(g, first.to), nodeName(g, first.from), s.spots[first.to].stream).node(g, first.to)
	v.Before, v.BeforeName = first.from, nodeName(g, first.from)
	v.Stream, v.BeforeStream = s.spots[first.to].stream, s.spots[first.from].stream
	v.Op = s.opOf(p, first.to)
	return asEdge(g, v)
}
