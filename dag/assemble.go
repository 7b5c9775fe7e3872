// From a pipeline to its graph: builds the adjacency, in both directions, from the derived edges.

package dag

import (
	"cmp"
	"slices"
)

// newGraph derives the dependencies of a pipeline whose ids and ranges are known to be valid, and of the bodies in it.
func newGraph(p *Pipeline) (*Graph, error) {
	if err := p.settle(); err != nil {
		return nil, err
	}
	return deriveGraph(p)
}

// deriveGraph derives the dependencies of one level.
func deriveGraph(p *Pipeline) (*Graph, error) {
	var h hazards
	selfish, err := h.derive(p, nil)
	if joined := h.crowd(); joined != nil && err == nil {
		// The first accesses of crowded buffers have edges from node to node. Derive again, so that all accesses go through joins.
		h = hazards{}
		selfish, err = h.derive(p, joined)
	}
	if err != nil {
		return nil, err
	}
	if selfish >= 0 {
		return nil, newCycleError(p, []NodeID{NodeID(selfish)})
	}
	g := &Graph{Pipeline: p, unwritten: h.unwritten, buffers: len(p.Buffers)}
	slices.SortFunc(g.unwritten, func(a, b UnwrittenRead) int { return cmp.Compare(a.Buffer, b.Buffer) })
	for k := range h.buffers {
		if h.buffers[k].carried {
			g.carried = append(g.carried, BufferID(k))
		}
	}
	for i := range p.Nodes {
		if !h.used[i] && p.Nodes[i].Kind != Task && slices.ContainsFunc(p.Accesses(NodeID(i)), func(a Access) bool { return a.Mode&Write != 0 && a.Lo < a.Hi }) {
			g.unread = append(g.unread, NodeID(i))
		}
	}
	backward := h.backward
	log, joins := h.log, h.joins
	h = hazards{}
	g.joins = joins.list
	g.connect(&log, &joins.edges)
	if backward {
		if err := g.sort(); err != nil {
			return nil, err
		}
		return g, nil
	}
	g.topo = make([]NodeID, len(p.Nodes))
	for i := range g.topo {
		g.topo[i] = NodeID(i)
	}
	g.sequence = g.topo
	if len(g.joins) > 0 {
		g.sequence = make([]NodeID, 0, g.Vertices())
		k := 0
		for i := range g.topo {
			for ; k < len(joins.node) && int(joins.node[k]) == i; k++ {
				g.sequence = append(g.sequence, NodeID(len(g.topo)+k))
			}
			g.sequence = append(g.sequence, NodeID(i))
		}
	}
	return g, nil
}

// connect builds the adjacency from edges that are grouped by To, ascending over both logs, one edge for each pair.
func (g *Graph) connect(logs ...*edgeLog) {
	n := g.Vertices()
	g.succStart = make([]int32, n+1)
	g.predStart = make([]int32, n+1)
	total := int32(0)
	for _, log := range logs {
		total += log.len
		for _, block := range log.blocks {
			for k := range block {
				g.succStart[block[k].From+1]++
				g.predStart[block[k].To+1]++
			}
		}
	}
	for i := range n {
		g.succStart[i+1] += g.succStart[i]
		g.predStart[i+1] += g.predStart[i]
	}
	// A counting sort by From, which keeps the order by To. Each pass advances the starts to the ends; the copies move them back.
	g.edges = make([]Edge, total)
	for _, log := range logs {
		for b, block := range log.blocks {
			for k := range block {
				e := &block[k]
				g.edges[g.succStart[e.From]] = *e
				g.succStart[e.From]++
			}
			log.blocks[b] = nil
		}
	}
	copy(g.succStart[1:], g.succStart[:n])
	g.succStart[0] = 0
	g.succ = make([]NodeID, len(g.edges))
	g.pred = make([]NodeID, len(g.edges))
	g.predEdge = make([]int32, len(g.edges))
	for k := range g.edges {
		e := &g.edges[k]
		g.succ[k] = e.To
		at := g.predStart[e.To]
		g.pred[at], g.predEdge[at] = e.From, int32(k)
		g.predStart[e.To]++
	}
	copy(g.predStart[1:], g.predStart[:n])
	g.predStart[0] = 0
}
