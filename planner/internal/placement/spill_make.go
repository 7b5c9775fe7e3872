// The spilled graph: buffers in parts that come and go, copies to host memory and back, and what has to wait for memory.

package placement

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// spilling is the state of making a spilled graph.
type spilling struct {
	making
	p      *SpillProblem
	walked *stepping
	parts  []dag.BufferID   // by residency: its buffer in the graph that is made
	homes  []piece          // by buffer: what it has in host memory; hi == 0: nothing
	whole  []dag.BufferID   // by buffer that is as it was
	made   []dag.NodeID     // by step
	bodies [][][]dag.NodeID // by node: what the nodes of each of its bodies stand for, and of those within
}

// Spill makes the graph in which data is in device memory when the residencies say so, and in host memory otherwise.
func Spill(p *SpillProblem, list []plan.Residency) (*plan.Spread, error) {
	if err := p.tooLarge(); err != nil {
		return nil, err
	}
	walked, err := p.steps(list)
	if err != nil {
		return nil, err
	}
	n := len(p.Graph.Buffers)
	m := &spilling{making: making{b: p.Graph.Empty(), names: map[string]bool{}}, p: p, walked: walked, parts: make([]dag.BufferID, len(list)),
		homes: make([]piece, n),
		whole: slices.Repeat([]dag.BufferID{-1}, n), made: make([]dag.NodeID, len(walked.steps))}
	m.making.walker = &walker{p: &Problem{Graph: p.Graph}}
	m.s = &plan.Spread{Devices: p.Graph.UsedDevices(), Original: p.Graph.Hash(), Spilled: slices.Clone(list)}
	for k := range p.Graph.Buffers {
		m.names[p.Graph.Buffers[k].Name] = true
	}
	if p.order != nil {
		m.s.Order = slices.Clone(p.order)
	}
	m.findHomes()
	m.buffers()
	clear(m.names)
	p.Graph.EachGraph(func(g *dag.Graph, _ []string) {
		for i := range g.Nodes {
			m.names[g.Nodes[i].Name] = true
		}
	})
	m.bodies = make([][][]dag.NodeID, p.Graph.Len())
	m.ids = make([]dag.NodeID, p.Graph.Len())
	for k := range walked.steps {
		m.made[k] = -1
		switch step := &walked.steps[k]; step.do {
		case compute:
			m.node(k)
		case load, storeOut:
			m.move(k)
		}
	}
	for i := range p.Graph.Nodes {
		for _, before := range p.Graph.Nodes[i].After {
			m.b.After(m.ids[i], m.ids[before])
		}
	}
	for _, list := range m.bodies {
		m.s.Bodies = append(m.s.Bodies, list...)
	}
	if m.s.Graph, err = m.b.Graph(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannotSpill, err)
	}
	m.s.Offsets = m.offsets()
	return m.s, nil
}

// offsets are those of the residencies. It returns nil if a buffer has none, because nothing uses it.
func (m *spilling) offsets() []int64 {
	offsets := slices.Repeat([]int64{-1}, len(m.s.Graph.Buffers))
	for k := range m.walked.list {
		r := &m.walked.list[k]
		if r.Stays {
			offsets[m.whole[r.Buffer]] = r.Offset
		} else {
			offsets[m.parts[k]] = r.Offset
		}
	}
	for k := range offsets {
		if offsets[k] < 0 && m.s.Graph.Buffers[k].InArena() {
			return nil
		}
	}
	return offsets
}

// findHomes finds the bytes of each buffer that need a place in host memory.
func (m *spilling) findHomes() {
	add := func(b dag.BufferID, lo, hi int64) {
		h := &m.homes[b]
		if h.hi == 0 {
			*h = piece{lo: lo, hi: hi}
		}
		h.lo, h.hi = min(h.lo, lo), max(h.hi, hi)
	}
	for k := range m.p.Graph.Buffers {
		b := dag.BufferID(k)
		if at := &m.p.Graph.Buffers[k]; at.InArena() && !m.walked.stays[k] && m.p.whole(b) {
			add(b, 0, at.Bytes)
		}
	}
	for k := range m.walked.steps {
		step := &m.walked.steps[k]
		if step.do != compute {
			u := &m.p.units[m.walked.units[step.stay]]
			add(u.buffer, u.lo, u.hi)
			continue
		}
		for j, t := range m.p.touches[step.node] {
			u := &m.p.units[t.unit]
			if step.in[j] >= 0 || m.walked.stays[u.buffer] {
				continue
			}
			add(u.buffer, u.lo, u.hi)
			if t.across {
				for _, a := range m.p.Graph.Accesses(step.node) {
					if a.Buffer == u.buffer {
						lo, hi := bounds(use{lo: a.Lo, hi: a.Hi}, m.p.Graph.Buffers[u.buffer].Bytes, m.p.pitch[u.buffer], m.p.align[u.buffer])
						add(u.buffer, lo, hi)
					}
				}
			}
		}
	}
}

// buffers declares all buffers, those of each one of the graph together. The first has the name.
func (m *spilling) buffers() {
	g := m.p.Graph
	parts := make([][]int32, len(g.Buffers))
	for k := range m.walked.list {
		if m.walked.units[k] >= 0 {
			b := m.walked.list[k].Buffer
			parts[b] = append(parts[b], int32(k))
		}
	}
	for k := range g.Buffers {
		b := &g.Buffers[k]
		id := dag.BufferID(k)
		if !b.InArena() || m.walked.stays[k] {
			m.whole[k] = m.declare(*b, id, 0)
			continue
		}
		named := false
		name := func(piece *dag.Buffer, lo, hi int64, where string) {
			if named || !m.p.whole(id) && where == "host" {
				piece.Name = m.unique(g.RangeText(dag.Range{Buffer: id, Lo: lo, Hi: hi}) + "@" + where)
			}
			named = named || where != "host" || m.p.whole(id)
		}
		if h := &m.homes[k]; h.hi > 0 {
			piece := *b
			piece.Place, piece.Device, piece.Fixed, piece.Scratch = dag.Host, 0, false, false
			m.shape(&piece, b, *h)
			name(&piece, h.lo, h.hi, "host")
			h.id = m.declare(piece, id, h.lo)
		}
		for _, r := range parts[k] {
			at := &m.walked.list[r]
			piece := *b
			piece.Init, piece.Save, piece.Expect, piece.Fixed = nil, "", nil, false
			if !m.p.whole(id) {
				piece.Init = b.Init
			}
			m.shape(&piece, b, pieceOf(at))
			name(&piece, at.Lo, at.Hi, fmt.Sprint(b.Device))
			m.parts[r] = m.declare(piece, id, at.Lo)
		}
	}
}

func pieceOf(r *plan.Residency) piece { return piece{lo: r.Lo, hi: r.Hi} }

func (m *spilling) declare(b dag.Buffer, of dag.BufferID, lo int64) dag.BufferID {
	m.s.Buffers = append(m.s.Buffers, plan.Piece{Buffer: of, Lo: lo})
	return m.b.Buffer(b)
}

// move declares a copy between a part and its home.
func (m *spilling) move(k int) {
	step := &m.walked.steps[k]
	at, u := &m.walked.list[step.stay], &m.p.units[m.walked.units[step.stay]]
	h := &m.homes[u.buffer]
	r := step.moved
	part := dag.Range{Buffer: m.parts[step.stay], Pitch: r.Pitch, Lo: r.Lo - at.Lo, Hi: r.Hi - at.Lo}
	home := dag.Range{Buffer: h.id, Pitch: r.Pitch, Lo: r.Lo - h.lo, Hi: r.Hi - h.lo}
	text := m.p.Graph.RangeText(r)
	if step.do == load {
		m.made[k] = m.b.Copy(m.unique(text+" in"), part, home)
		m.s.Stats.Reloads++
	} else {
		m.made[k] = m.b.Copy(m.unique(text+" out"), home, part)
		m.s.Stats.Spills++
	}
	m.s.Stats.SpilledBytes += part.Bytes()
	m.s.Nodes = append(m.s.Nodes, plan.Inserted)
	m.after(k)
}

// after makes a step wait for those that used its memory.
func (m *spilling) after(k int) {
	for _, before := range m.walked.steps[k].after {
		if m.made[before] >= 0 {
			m.b.After(m.made[k], m.made[before])
		}
	}
}

// find maps a range that step k uses.
func (m *spilling) find(k int, r dag.Range) dag.Range {
	step := &m.walked.steps[k]
	if id := m.whole[r.Buffer]; id >= 0 {
		r.Buffer = id
		return r
	}
	u := m.p.unitOf(r)
	lo, id := m.homes[r.Buffer].lo, m.homes[r.Buffer].id
	for j, t := range m.p.touches[step.node] {
		if t.unit == u && !t.across && step.in[j] >= 0 {
			lo, id = m.walked.list[step.in[j]].Lo, m.parts[step.in[j]]
		}
	}
	return dag.Range{Buffer: id, Pitch: r.Pitch, Lo: r.Lo - lo, Hi: r.Hi - lo}
}

// node declares a node of the graph.
func (m *spilling) node(k int) {
	i := m.walked.steps[k].node
	m.made[k] = m.declareNode(k, m.p.Graph, i)
	m.ids[i] = m.made[k]
	m.s.Nodes = append(m.s.Nodes, i)
	m.after(k)
}

// declareNode declares a node of step k: that of the step itself, or one of its bodies.
func (m *spilling) declareNode(k int, g *dag.Graph, i dag.NodeID) dag.NodeID {
	node := g.Nodes[i]
	if node.Control != nil {
		return m.control(k, g, i)
	}
	accesses := slices.Clone(g.Accesses(i))
	for j := range accesses {
		accesses[j].Range = m.find(k, accesses[j].Range)
	}
	node.After, node.Fixed = nil, node.Kind == dag.HostFunction // those of a body would be placed with it
	if node.Copy != nil {
		node.Copy = &dag.Copy{Src: m.find(k, node.Copy.Src), Dst: m.find(k, node.Copy.Dst)}
		from, to := m.b.BufferAt(node.Copy.Src.Buffer), m.b.BufferAt(node.Copy.Dst.Buffer)
		onFrom, onTo := from.Place == dag.Device && from.Device == node.Device, to.Place == dag.Device && to.Device == node.Device
		switch {
		case onFrom || onTo:
		case to.Place == dag.Device:
			node.Device = to.Device
		case from.Place == dag.Device:
			node.Device = from.Device
		}
	} else {
		redirect(&node, func(r dag.Range) dag.Range { return m.find(k, r) })
	}
	return m.b.Node(node, accesses...)
}

// control declares a loop or branch with its bodies, as they are.
func (m *spilling) control(k int, g *dag.Graph, i dag.NodeID) dag.NodeID {
	node := g.Nodes[i]
	node.After, node.Fixed = nil, false
	var operands []dag.Range
	if c := node.Control.Condition; c != nil {
		for _, r := range c.Operands {
			operands = append(operands, m.find(k, r))
		}
	}
	lists := &m.bodies[m.walked.steps[k].node]
	var bodies []func()
	for _, body := range node.Control.Bodies {
		bodies = append(bodies, func() {
			same, ids := make([]dag.NodeID, body.Len()), make([]dag.NodeID, body.Len())
			for j := range same {
				same[j] = dag.NodeID(j)
			}
			*lists = append(*lists, same)
			for j := range ids {
				ids[j] = m.declareNode(k, body, dag.NodeID(j))
			}
			for j := range ids {
				for _, before := range body.Nodes[j].After {
					m.b.After(ids[j], ids[before])
				}
			}
		})
	}
	return m.b.ControlLike(node, operands, bodies...)
}
