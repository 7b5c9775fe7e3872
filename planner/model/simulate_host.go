// How the host submits a plan in the simulation, and for which copies it waits.

package model

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// hosted reports whether a graph has copies that the host makes.
func (s *simulation) hosted() bool {
	for i := range s.g.Nodes {
		if s.m.hostMakes(s.g, dag.NodeID(i)) {
			return true
		}
	}
	return false
}

// submit lets the host submit ops until all are submitted or it waits for a copy. The parts of a graph between such copies take it no time.
func (s *simulation) submit() {
	h := &s.host
	for h.at < len(s.p.Order) && h.blocked < 0 {
		k := s.p.Order[h.at]
		at := s.cursor[k]
		op := &s.p.Streams[k].Ops[at]
		start, cost := h.free, s.m.EventUS
		if op.Kind == plan.Launch {
			cost = s.m.submits(s.g, op.Node)
			if s.m.hostMakes(s.g, op.Node) || !s.graph && pageable(s.g, op.Node) {
				h.blocked = int32(op.Node)
			}
		}
		if !s.graph {
			h.free += cost
			s.timeline.Host = append(s.timeline.Host, plan.HostSpan{Start: start, End: h.free, Stream: k, Op: at})
		}
		s.submitted[s.firstOp[k]+at] = moment{h.free, h.after, plan.AfterHost}
		s.cursor[k]++
		h.at++
	}
}

// hostMakes reports whether the host itself makes a copy, and waits before it for what the copy depends on: one within host memory, pinned or not.
func (m *Machine) hostMakes(g *dag.Graph, node dag.NodeID) bool {
	return m.Cores == 0 && g.Nodes[node].Copy != nil && plan.EngineOf(g, node) == plan.HostCopy
}

// pageable reports whether the host waits for a node: for a copy from or to pageable memory.
func pageable(g *dag.Graph, node dag.NodeID) bool {
	c := g.Nodes[node].Copy
	return c != nil && (g.Buffers[c.Src.Buffer].Pageable || g.Buffers[c.Dst.Buffer].Pageable)
}
