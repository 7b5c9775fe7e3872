// From a pipeline to its graph: the bodies of loops and branches first, then the edges and the adjacency in both directions.

package dag

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Graph checks the pipeline and derives its dependencies. The pipeline must not change afterwards. The error joins everything that
// is wrong: *DeclarationError, and where nothing else is wrong a *CycleError.
func (p *Pipeline) Graph() (*Graph, error) {
	if p == nil {
		return nil, &DeclarationError{What: "pipeline", Message: "there is none: it is nil"}
	}
	if err := p.Problem(); err != nil {
		return nil, err
	}
	p.chain()
	return newGraph(p)
}

// Derive derives the dependencies of a draft without mistakes, which must not change afterwards. It gives up once ended is closed.
func (d *Draft) Derive(ended <-chan struct{}) (*Graph, error) {
	d.ended = ended
	return newGraph(&d.Pipeline)
}

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
		if !h.used[i] && p.Nodes[i].Kind != Task && p.Nodes[i].Kind != HostFunction &&
			slices.ContainsFunc(p.Accesses(NodeID(i)), func(a Access) bool { return a.Mode&Write != 0 && a.Lo < a.Hi }) {
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

// settle makes graphs of all bodies, the innermost first, and finds the accesses of the nodes that they belong to.
func (p *Pipeline) settle() error {
	if !p.hasControl() {
		return nil
	}
	s := settling{root: p, home: make([][]*Control, len(p.Buffers)), seen: make([]bool, len(p.Buffers))}
	s.locate(p, nil)
	return s.pipeline(p)
}

// settling is the state of settle.
type settling struct {
	root *Pipeline
	home [][]*Control // by buffer: the loops and branches that all its accesses are in, outermost first
	seen []bool
}

// locate finds the home of each buffer.
func (s *settling) locate(p *Pipeline, path []*Control) {
	note := func(b BufferID) {
		if !s.seen[b] {
			s.seen[b], s.home[b] = true, slices.Clone(path)
			return
		}
		k := 0
		for k < len(s.home[b]) && k < len(path) && s.home[b][k] == path[k] {
			k++
		}
		s.home[b] = s.home[b][:k]
	}
	for i := range p.Nodes {
		c := p.Nodes[i].Control
		if c == nil {
			for _, a := range p.Accesses(NodeID(i)) {
				note(a.Buffer)
			}
			continue
		}
		inner := append(slices.Clip(path), c)
		if c.Condition != nil {
			for _, r := range c.Condition.Operands {
				note(r.Buffer)
			}
		}
		for _, body := range c.declared {
			s.locate(body, inner)
		}
	}
}

// pipeline settles the loops and branches of one level and gives them their accesses.
func (s *settling) pipeline(p *Pipeline) error {
	accesses := make([]Access, 0, len(p.accesses))
	start := make([]int32, 1, len(p.Nodes)+1)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		own := p.Accesses(NodeID(i))
		if n.Control != nil {
			if err := s.control(n); err != nil {
				return err
			}
			own = s.seenFromOutside(n.Control)
		}
		accesses = append(accesses, own...)
		if len(accesses) > math.MaxInt32 {
			return fmt.Errorf("there are more than %d accesses", math.MaxInt32)
		}
		start = append(start, int32(len(accesses)))
	}
	p.accesses, p.accessStart = accesses, start
	return nil
}

// control makes the graphs of a node's bodies.
func (s *settling) control(n *Node) error {
	c := n.Control
	for k, body := range c.declared {
		body.Name, body.Sync, body.Dir, body.Rank, body.Ranks = n.Name, s.root.Sync, s.root.Dir, s.root.Rank, s.root.Ranks
		body.Params, body.Modules, body.Buffers, body.MaxEdges = s.root.Params, s.root.Modules, s.root.Buffers, s.root.MaxEdges
		body.ended = s.root.ended
		if err := s.pipeline(body); err != nil {
			return err
		}
		g, err := deriveGraph(body)
		if err != nil {
			return err
		}
		c.Bodies = append(c.Bodies, g)
		e := body.effect()
		switch {
		case k == 0:
			c.effect = e
		default:
			c.effect.reads.addAll(&e.reads)
			c.effect.may.addAll(&e.may)
			c.effect.must.intersect(&e.must)
		}
	}
	c.declared = nil
	if n.Kind == Repeat {
		c.carried = c.effect.carried()
	}
	if n.Kind == Branch && len(c.Bodies) == 1 || n.Kind == Repeat && !c.MakesAPass() {
		c.effect.must = rangeSet{}
	}
	if c.Condition != nil {
		for _, r := range c.Condition.Operands {
			if n.Kind == Branch || c.While {
				c.effect.reads.add(r)
			} else {
				c.effect.reads.addExcept(r, &c.effect.must) // the test comes after a pass
			}
		}
	}
	return nil
}

// seenFromOutside returns the accesses of a loop or branch as one node. Bytes that are possibly not written keep their old contents, so
// they count as read, unless nothing outside could see the difference: in scratch, and in buffers that are used inside only.
func (s *settling) seenFromOutside(c *Control) []Access {
	var list []Access
	add := func(r Range, mode Mode) {
		if r.Lo < r.Hi {
			list = append(list, Access{r, mode})
		}
	}
	for _, b := range c.effect.buffers() {
		c.effect.cut(b, func(r Range, reads, may, must bool) {
			switch {
			case !may && reads:
				add(r, Read)
			case may && !reads && (must || s.unseen(b, c)):
				add(r, Write)
			case may:
				add(r, ReadWrite)
			}
		})
	}
	return list
}

// unseen reports whether the contents of a buffer are of no use outside a loop or branch.
func (s *settling) unseen(id BufferID, c *Control) bool {
	b := &s.root.Buffers[id]
	return b.InArena() && (b.Scratch && b.Expect == nil || b.Init == nil && b.Save == "" && b.Expect == nil && slices.Contains(s.home[id], c))
}
