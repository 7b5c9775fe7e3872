// Graphs: what a launch of a graph does. Its nodes have an order of their own, so the launch is a unit of the checker.

package order

import (
	"encoding/binary"
	"fmt"

	"github.com/dagrun/dagrun/internal/happens"
	"github.com/dagrun/dagrun/internal/recording"
)

// newIndex fails where a call has fewer words than one of its kind.
func newIndex(p *recording.Process) (*index, error) {
	x := &index{executions: map[uint64][]int{}, graphs: map[uint64][]int{}, measured: map[uint64][]nodeAccess{},
		made: map[uint64]int32{}, children: map[uint64]bool{}, threads: map[uint32]bool{}}
	for i, g := range p.Graphs {
		if g.Execution != 0 {
			x.executions[g.Execution] = append(x.executions[g.Execution], i)
		}
		x.graphs[g.Graph] = append(x.graphs[g.Graph], i)
		for _, node := range g.Nodes {
			if node.Type == nodeChild && len(node.Body) >= 8 {
				x.children[binary.LittleEndian.Uint64(node.Body)] = true
			}
		}
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		if len(c.Args) < c.Kind.Words() {
			return nil, fmt.Errorf("byte %d: a call (%s) has %d words, and %d are needed", c.Offset, c.Kind, len(c.Args), c.Kind.Words())
		}
		x.threads[c.Thread] = true
		switch c.Kind {
		case recording.Instantiate:
			x.made[c.Args[0]] = int32(i)
		case recording.CaptureEnd:
			x.made[c.Args[1]] = int32(i)
		case recording.NodeAccess:
			x.measured[c.Args[1]] = append(x.measured[c.Args[1]], accessOf(p, c))
		}
	}
	return x, nil
}

// latest returns the last state of a graph up to a moment, or -1.
func latest(p *recording.Process, states []int, moment uint64) int {
	found := -1
	for _, i := range states {
		if p.Graphs[i].Sequence <= moment {
			found = i
		}
	}
	return found
}

// mostNodes is how many nodes of a graph are gone through, children included. A launch of a larger graph is not covered.
const mostNodes = 1 << 20

// flatten appends the nodes of a state of a graph, and those of its children in their place, between two empty nodes.
func (m *machine) flatten(g *graph, info *recording.GraphInfo, depth, top int) error {
	const mostDepth = 32
	if depth > mostDepth || len(g.nodes)+len(info.Nodes) > mostNodes {
		return fmt.Errorf("a graph within itself, or of more than %d nodes", mostNodes)
	}
	begins, ends := make([]int32, len(info.Nodes)), make([]int32, len(info.Nodes))
	for i := range info.Nodes {
		node := &info.Nodes[i]
		begins[i] = int32(len(g.nodes))
		at := graphNode{node: node, top: i, child: -1}
		if depth > 0 {
			at.top, at.child = top, i
		}
		g.nodes = append(g.nodes, at)
		if node.Type == nodeChild {
			if err := m.flattenChild(g, info, node, depth, at.top); err != nil {
				return err
			}
		}
		ends[i] = int32(len(g.nodes) - 1)
	}
	for i, edge := range info.Edges {
		if int(edge.From) >= len(begins) || int(edge.To) >= len(begins) {
			return fmt.Errorf("an edge of a graph that has no such nodes")
		}
		if edge.Programmatic {
			m.loosened = true
			if !m.pass.programmatic {
				continue
			}
		}
		g.edges = append(g.edges, [2]int32{ends[edge.From], begins[edge.To]})
		if depth > 0 {
			i = -1
		}
		g.origin = append(g.origin, i)
	}
	return nil
}

// flattenChild appends the nodes of a child graph behind its node, and an empty node that they all come before.
func (m *machine) flattenChild(g *graph, info *recording.GraphInfo, node *recording.GraphNode, depth, top int) error {
	child := -1
	if len(node.Body) >= 8 {
		child = latest(m.process, m.index.graphs[binary.LittleEndian.Uint64(node.Body)], info.Sequence)
	}
	if child < 0 {
		g.unknown = true
		g.uncovered = append(g.uncovered, "a child graph that is not in the recording")
		return nil
	}
	first := len(g.nodes)
	if err := m.flatten(g, &m.process.Graphs[child], depth+1, top); err != nil {
		return err
	}
	end := int32(len(g.nodes))
	for inner := first; inner < int(end); inner++ {
		g.edges = append(g.edges, [2]int32{int32(first - 1), int32(inner)}, [2]int32{int32(inner), end})
		g.origin = append(g.origin, -1, -1)
	}
	g.nodes = append(g.nodes, graphNode{})
	return nil
}

// graphAt returns the state of an executable graph at a moment, or nil and why there is none.
func (m *machine) graphAt(execution, moment uint64) (*graph, string) {
	state := latest(m.process, m.index.executions[execution], moment)
	if state < 0 {
		return nil, "a launch of a graph that is not in the recording"
	}
	if updated := m.updates[execution]; updated > m.process.Graphs[state].Sequence {
		return nil, "a launch of a graph that was updated"
	}
	g := m.graphOf(state)
	return g, g.failed
}

// graphOf returns a state of a graph, flat.
func (m *machine) graphOf(state int) *graph {
	g := m.graphs[state]
	if g == nil {
		g = &graph{}
		m.graphs[state] = g
		err := m.flatten(g, &m.process.Graphs[state], 0, 0)
		if err == nil {
			g.shape, err = happens.NewShape(len(g.nodes), g.edges)
		}
		if err != nil {
			g.shape, g.failed = nil, err.Error()
		}
		for i := range g.nodes {
			m.prepare(g, &g.nodes[i])
		}
		g.accesses = make([][]happens.Access, len(g.nodes))
	}
	return g
}

// prepare finds out what a node does, as far as that is the same for all launches.
func (m *machine) prepare(g *graph, n *graphNode) {
	n.place = -1
	if n.node == nil {
		return
	}
	if made, found := m.nodes[n.node.Node]; found {
		n.place, g.records = made.call, g.records || made.records
	}
	need := 0
	switch n.node.Type {
	case nodeKernel:
		need = kernelWords
	case nodeCopy:
		need = copyWords
	case nodeSet:
		need = setWords
	case nodeAlloc:
		need = 2
	case nodeFree:
		need = 1
	case nodeWait, nodeRecord:
		need, g.external = 1, true
	case nodeHost:
		g.unknown = true
	case nodeChild, nodeEmpty:
	default:
		g.unknown = true
		g.uncovered = append(g.uncovered, fmt.Sprintf("a node of type %d in a graph", n.node.Type))
	}
	if len(n.node.Body) < need*8 {
		g.unknown = true
		g.uncovered = append(g.uncovered, fmt.Sprintf("a node of type %d that could not be read", n.node.Type))
		n.node = nil
		return
	}
	n.words = make([]uint64, need)
	for i := range n.words {
		n.words[i] = binary.LittleEndian.Uint64(n.node.Body[i*8:])
	}
}

// launchGraph is rules "graph" and "execution".
func (m *machine) launchGraph(at moment, c *recording.Call, s *stream) {
	on := m.enqueue(at, s)
	execution := c.Args[2]
	g, failed := m.graphAt(execution, c.Begin)
	if failed != "" {
		m.report.Uncovered[failed]++
		return
	}
	m.checker.After(on, m.executed[execution])
	if g.records {
		m.recorders = append(m.recorders, record{at.index, at.begin, at.end, m.checker.Now(on)})
	}
	for _, name := range g.uncovered {
		m.report.Uncovered[name]++
	}
	numbers := m.numbers(g, c.Begin)
	for i := range g.nodes {
		g.accesses[i] = m.nodeAccesses(g.accesses[i][:0], &g.nodes[i], numbers, c.Begin)
	}
	g.launched = true
	if g.external {
		m.launchNodes(at, s, g)
	} else {
		m.acts = append(m.acts, act{call: at.index, stream: s, graph: g, node: -1, doubtful: m.doubtful(on)})
		m.checker.Unit(on, g.shape, g.accesses)
	}
	m.executed[execution] = m.checker.Now(on)
	for _, accesses := range g.accesses {
		m.showsHost(on, accesses)
	}
}

// launchNodes tells the nodes of a graph one by one, on lanes of their own, because some of them wait for events of others, or others for theirs.
func (m *machine) launchNodes(at moment, s *stream, g *graph) {
	on := s.last
	before := make([][]int32, len(g.nodes))
	for _, edge := range g.edges {
		before[edge[1]] = append(before[edge[1]], edge[0])
	}
	start, ends := m.checker.Now(on.lane), make([]happens.Clock, len(g.nodes))
	for _, node := range g.shape.Order() {
		n, chain := &g.nodes[node], g.shape.Chain(node)
		for len(on.chains) <= chain {
			on.chains = append(on.chains, m.checker.Lane())
		}
		lane := on.chains[chain]
		m.checker.After(lane, start)
		for _, other := range before[node] {
			m.checker.After(lane, ends[other])
		}
		if n.node != nil && n.node.Type == nodeWait {
			m.afterEvent(at, lane, m.event(n.words[0]))
		}
		m.acts = append(m.acts, act{call: at.index, stream: s, graph: g, node: node, doubtful: m.doubtful(lane)})
		m.checker.Step(lane, g.accesses[node])
		ends[node] = m.checker.Now(lane)
		if n.node != nil && n.node.Type == nodeRecord {
			m.recordClock(at, m.event(n.words[0]), ends[node])
		}
	}
	for _, end := range ends {
		m.checker.After(on.lane, end)
	}
}

// idleGraphs checks the graphs that were never launched, each by itself: no order but that of its edges.
func (m *machine) idleGraphs() {
	counted := *m.report
	idle := &stream{name: "no stream"}
	for state := range m.process.Graphs {
		info := &m.process.Graphs[state]
		if m.graphs[state] != nil || info.Execution == 0 && (m.index.children[info.Graph] || m.instantiated(info.Graph)) {
			continue
		}
		call, found := m.index.made[info.Execution]
		if info.Execution == 0 {
			call, found = m.index.made[info.Graph]
		}
		g := m.graphOf(state)
		if !found || g.failed != "" {
			continue
		}
		for i := range g.nodes {
			g.accesses[i] = m.nodeAccesses(nil, &g.nodes[i], nil, info.Sequence)
		}
		m.checker = happens.New(m.pair, nil)
		m.acts = []act{{call: call, stream: idle, graph: g, node: -1}}
		m.checker.Unit(m.checker.Lane(), g.shape, g.accesses)
	}
	*m.report = counted // nothing was launched
}

func (m *machine) instantiated(graph uint64) bool {
	for _, state := range m.index.graphs[graph] {
		if m.process.Graphs[state].Execution != 0 {
			return true
		}
	}
	return false
}

// nodeAccesses appends what a node touches in a launch.
func (m *machine) nodeAccesses(into []happens.Access, n *graphNode, numbers map[uint64]uint64, moment uint64) []happens.Access {
	if n.node == nil {
		return into
	}
	switch n.node.Type {
	case nodeKernel:
		f := m.function(n.words[0], moment)
		if n.place >= 0 { // a captured launch: the tensors of that moment are known, those of the graph's launch are others
			return m.launchAccesses(into, f, numbers[n.node.Node], func(into []happens.Access) []happens.Access {
				return append(into, m.nodes[n.node.Node].accesses...)
			})
		}
		return m.launchAccesses(into, f, numbers[n.node.Node], func(into []happens.Access) []happens.Access {
			return m.argumentAccesses(into, f, n.node.Body[kernelWords*8:])
		})
	case nodeCopy:
		return m.copyAccesses(into, n.words)
	case nodeSet:
		return setAccesses(into, n.words)
	case nodeAlloc:
		return append(into, happens.Access{Low: n.words[0], High: n.words[0] + n.words[1], Mode: happens.Write})
	case nodeFree:
		if is := m.allocations.at(n.words[0]); is != nil {
			return append(into, whole(is)...)
		}
	}
	return into
}
