// The transformation: from a graph and a device for every node to a graph over several devices.

package placement

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Transform makes the graph of a placement: a device for every node.
func Transform(p *Problem, at []int32) (*plan.Spread, error) {
	if err := p.check(at); err != nil {
		return nil, err
	}
	w := walk(p, at)
	m := &making{walker: w, pieces: w.pieces(), b: p.Graph.Empty(), names: map[string]bool{}}
	m.s = &plan.Spread{Devices: p.Devices, Original: p.Graph.Hash(), At: slices.Clone(at)}
	for k := range p.Graph.Buffers {
		m.names[p.Graph.Buffers[k].Name] = true
	}
	for k := range p.Graph.Buffers {
		m.buffer(dag.BufferID(k))
	}
	clear(m.names)
	for k := range p.levels {
		for i := range p.levels[k].graph.Nodes {
			m.names[p.levels[k].graph.Nodes[i].Name] = true
		}
	}
	m.ids = make([]dag.NodeID, p.nodes)
	m.s.Nodes = m.level(&p.levels[0], w.steps)
	var err error
	if m.s.Graph, err = m.b.Graph(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannot, err)
	}
	return m.s, nil
}

// making is the state of a transformation.
type making struct {
	*walker
	pieces *pieces
	b      *dag.Builder
	s      *plan.Spread
	ids    []dag.NodeID // by number of a node of the original
	nodes  []dag.NodeID // what the nodes of the level that is being made stand for
	names  map[string]bool
}

// buffer declares the pieces of a buffer. The one at home comes first and has the name.
func (m *making) buffer(id dag.BufferID) {
	b := &m.p.Graph.Buffers[id]
	order := []int32{m.homes[id]}
	for d := range int32(m.p.Devices) {
		if d != m.homes[id] {
			order = append(order, d)
		}
	}
	first := true
	for _, d := range order {
		list := *m.pieces.of(id, d)
		for k := range list {
			piece := *b
			piece.Device, piece.Fixed = d, false
			if b.Place == dag.Host {
				piece.Device = 0
			}
			m.shape(&piece, b, list[k])
			if !first {
				piece.Save, piece.Expect = "", nil
				piece.Name = m.unique(m.p.Graph.RangeText(dag.Range{Buffer: id, Lo: list[k].lo, Hi: list[k].hi}) + "@" + strconv.Itoa(int(d)))
				if !m.p.constant(id) {
					piece.Init = nil
				}
			}
			list[k].id = m.b.Buffer(piece)
			m.s.Buffers = append(m.s.Buffers, plan.Piece{Buffer: id, Lo: list[k].lo})
			first = false
		}
	}
}

// shape gives a piece its shape: rows of the buffer where it has whole rows, otherwise a list of elements.
func (m *making) shape(piece, b *dag.Buffer, p piece) {
	bytes := p.hi - p.lo
	if bytes == b.Bytes {
		return
	}
	if len(b.Shape) > 0 && b.Shape[0] > 0 {
		if row := b.Bytes / b.Shape[0]; row > 0 && p.lo%row == 0 && p.hi%row == 0 {
			piece.Shape = slices.Clone(b.Shape)
			piece.Shape[0] = bytes / row
			return
		}
	}
	piece.Shape = []int64{bytes / b.DType.Size()}
}

// unique makes a name that nothing else has. It adds a number where the name is taken.
func (m *making) unique(name string) string {
	const room = 16 // for the number
	for len(name) > dag.MaxName-room {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	full := name
	for k := 2; m.names[full]; k++ {
		full = fmt.Sprintf("%s #%d", name, k)
	}
	m.names[full] = true
	return full
}

// level declares the nodes of a level, and returns what each stands for.
func (m *making) level(l *level, steps []step) []dag.NodeID {
	around := m.nodes
	m.nodes = nil
	for k := range steps {
		switch s := &steps[k]; {
		case s.node == plan.Inserted:
			m.copy(s)
		case s.bodies != nil:
			m.control(l, s)
		default:
			m.node(l, s)
		}
	}
	for i := range l.graph.Nodes {
		for _, before := range l.graph.Nodes[i].After {
			m.b.After(m.ids[l.first+int32(i)], m.ids[l.first+int32(before)])
		}
	}
	made := m.nodes
	m.nodes = around
	return made
}

// control declares a loop or branch with its bodies.
func (m *making) control(l *level, s *step) {
	node, at := l.graph.Nodes[s.node], m.at[s.number]
	node.After, node.Fixed = nil, false
	var operands []dag.Range
	if c := node.Control.Condition; c != nil {
		for _, r := range c.Operands {
			operands = append(operands, m.pieces.find(r, m.p.where(r.Buffer, at)))
		}
	}
	var bodies []func()
	for k, steps := range s.bodies {
		bodies = append(bodies, func() {
			place := len(m.s.Bodies)
			m.s.Bodies = append(m.s.Bodies, nil)
			m.s.Bodies[place] = m.level(&m.p.levels[m.p.inner[s.number][k]], steps)
		})
	}
	m.ids[s.number] = m.b.ControlLike(node, operands, bodies...)
	m.nodes = append(m.nodes, s.node)
}

// copy declares a copy between devices.
func (m *making) copy(s *step) {
	name := m.unique(fmt.Sprintf("%s %d->%d", m.p.Graph.RangeText(s.moved), s.from, s.to))
	id := m.b.Copy(name, m.pieces.find(s.moved, s.to), m.pieces.find(s.moved, s.from))
	m.b.Priority(id, s.priority)
	m.nodes = append(m.nodes, plan.Inserted)
	m.s.Stats.Copies++
	m.s.Stats.Bytes += s.moved.Bytes()
}

// node declares a node of the original, on its device.
func (m *making) node(l *level, s *step) {
	g, at := l.graph, m.at[s.number]
	node := g.Nodes[s.node]
	accesses := slices.Clone(g.Accesses(s.node))
	for k := range accesses {
		device := at
		if node.Copy != nil && accesses[k].Range == node.Copy.Src && accesses[k].Mode == dag.Read {
			device = s.source
		}
		accesses[k].Range = m.pieces.find(accesses[k].Range, m.p.where(accesses[k].Buffer, device))
	}
	node.Device, node.After, node.Fixed = at, nil, node.Kind == dag.HostFunction // those of a body would be placed with it
	if node.Copy != nil {
		from, to := m.p.where(node.Copy.Src.Buffer, s.source), m.p.where(node.Copy.Dst.Buffer, at)
		src, dst := &g.Buffers[node.Copy.Src.Buffer], &g.Buffers[node.Copy.Dst.Buffer]
		node.Copy = &dag.Copy{Src: m.pieces.find(node.Copy.Src, from), Dst: m.pieces.find(node.Copy.Dst, to)}
		switch declared := &g.Nodes[s.node]; {
		case declared.Fixed, src.Place == dag.Host && dst.Place == dag.Host:
			node.Device = declared.Device
		case src.Place == dag.Device:
			node.Device = from
		default:
			node.Device = to
		}
	} else {
		redirect(&node, func(r dag.Range) dag.Range { return m.pieces.find(r, m.p.where(r.Buffer, at)) })
	}
	m.ids[s.number] = m.b.Node(node, accesses...)
	m.nodes = append(m.nodes, s.node)
}

// redirect lets a node that sets or launches work on other ranges.
func redirect(node *dag.Node, find func(dag.Range) dag.Range) {
	if node.Set != nil {
		set := *node.Set
		set.Dst = find(set.Dst)
		node.Set = &set
	}
	if node.Launch != nil {
		launch := *node.Launch
		launch.Args = slices.Clone(launch.Args)
		for k := range launch.Args {
			if a := &launch.Args[k]; a.IsBuffer {
				a.Range = find(a.Range)
			}
		}
		node.Launch = &launch
	}
}
