// Planning a known graph: which values move, which edges the new graph needs, and where in new memory the values that move lie.

package replan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// Options says how to plan.
type Options struct {
	Machine *planner.Machine
	Stay    bool // no value moves
	Exact   bool // nodes touch what they were seen to touch, and no tensor that they only point to
}

// Plans is what the program needs to make the new graph.
type Plans struct {
	Version int      `json:"version"`
	Memory  int64    `json:"memory"` // bytes that the plan of the most memory needs
	Moved   int      `json:"moved"`
	Values  int      `json:"values"` // of the graph's own memory
	Opaque  int      `json:"opaque"`
	Try     []Trial  `json:"try"`
	Outputs []Extent `json:"outputs"` // what the graph writes and others may read
	State   []Extent `json:"state"`   // what it writes outside its own memory
	Plans   []Plan   `json:"plans"`

	Chain    float64        `json:"chain"`    // microseconds of the nodes one after the other
	Critical float64        `json:"critical"` // and of the longest path, once values are moved
	Pinned   map[string]int `json:"pinned"`   // values that stay, by reason
}

// Trial is a node to be tried in the process before the plan is believed: everything that it was not seen to touch may hold anything.
type Trial struct {
	Node   int      `json:"node"`
	Reads  []Extent `json:"reads"`
	Writes []Extent `json:"writes"`
}

// Plan is one way to run the graph.
type Plan struct {
	Name   string     `json:"name"`
	US     float64    `json:"us"` // predicted
	Edges  [][2]int   `json:"edges"`
	Memory int64      `json:"memory"`
	Words  [][3]int64 `json:"words"`  // node, offset in its parameters, and what the new memory's address is to be increased by
	Sets   [][2]int64 `json:"sets"`   // memset node and the same
	Copies [][3]int64 `json:"copies"` // copy node, 0 for what it reads or 1 for what it writes, and the same
}

// network is a known graph as the planner takes it.
type network struct {
	*located
	graph   *dag.Graph
	nodes   []dag.NodeID
	node    []int // by dag.NodeID
	buffers []dag.BufferID
	moves   []bool
	pinned  []string
}

// Make plans a graph.
func Make(ctx context.Context, known *Known, g *Graph, o Options) (*Plans, error) {
	l, err := match(known, g)
	if err != nil {
		return nil, err
	}
	if len(g.US) == 0 {
		return nil, fmt.Errorf("a graph's description: no durations")
	}
	if o.Machine == nil {
		o.Machine = planner.H200()
	}
	n := &network{located: l}
	n.decide(o)
	if err := n.build(o); err != nil {
		return nil, err
	}
	plans := &Plans{Version: 1, Chain: g.Chain, Pinned: map[string]int{}}
	for v, is := range known.Values {
		switch {
		case n.moves[v]:
			plans.Moved++
		case is.Pool:
			plans.Pinned[n.pinned[v]]++
		}
		if is.Pool {
			plans.Values++
		}
	}
	n.results(plans)
	for k, node := range known.Nodes {
		if node.Opaque != "" {
			plans.Opaque++
		}
		if slices.Contains(l.other, k) {
			plans.Try = append(plans.Try, n.trial(k))
		}
	}
	return plans, n.plan(ctx, o, plans)
}

const held = "the program holds it"

// decide chooses the values that move.
func (n *network) decide(o Options) {
	values := n.known.Values
	n.moves, n.pinned = make([]bool, len(values)), make([]string, len(values))
	met := make([]bool, len(values))
	for v := range values {
		n.pinned[v] = values[v].Pinned
		if n.at[v] == 0 {
			n.pinned[v] = cmp.Or(n.pinned[v], "nothing tells where it lies")
		}
	}
	for _, k := range n.order {
		for _, u := range n.known.Nodes[k].Uses {
			if !met[u.Value] && (u.Read || u.Atomic) {
				n.pinned[u.Value] = cmp.Or(n.pinned[u.Value], "it is read before the graph writes it")
			}
			met[u.Value] = met[u.Value] || !u.Guess
		}
	}
	for _, block := range n.located.graph.Active {
		last := -1
		for v := range values {
			if values[v].Pool && n.at[v] != 0 && block.overlaps(Extent{n.at[v], values[v].Bytes}) && (last < 0 || values[v].Born > values[last].Born) {
				last = v
			}
		}
		if last >= 0 {
			n.pinned[last] = cmp.Or(n.pinned[last], held)
		}
	}
	for v := range values {
		if o.Stay {
			n.pinned[v] = cmp.Or(n.pinned[v], "nothing is to be moved")
		}
		n.moves[v] = n.pinned[v] == "" && met[v]
	}
}

// access returns how a node uses a value, or ok = false if it does not.
func (n *network) access(u Use, k int, exact bool) (dag.Mode, bool) {
	if u.Guess {
		if exact || !slices.ContainsFunc(n.known.Nodes[k].Words, func(w Word) bool { return w.Value == u.Value && !n.stale[[2]int{k, w.Offset}] }) {
			return dag.Read, false
		}
		return dag.ReadWrite, true
	}
	switch {
	case u.Atomic, u.Read && u.Write:
		return dag.ReadWrite, true
	case u.Write:
		return dag.Write, true
	}
	return dag.Read, true
}

// build declares the graph to the planner: a buffer for each value that moves, and one for each stretch of memory that stays.
func (n *network) build(o Options) error {
	b := dag.New("graph")
	values := n.known.Values
	n.buffers = make([]dag.BufferID, len(values))
	var stay []int
	for v := range values {
		if n.moves[v] {
			n.buffers[v] = b.Device(fmt.Sprint("v", v), dag.U8, int64(values[v].Bytes))
		} else if n.at[v] != 0 {
			stay = append(stay, v)
		}
	}
	slices.SortFunc(stay, func(x, y int) int { return cmp.Compare(n.at[x], n.at[y]) })
	base := make([]uint64, len(values))
	for from := 0; from < len(stay); {
		low, high, to := n.at[stay[from]], uint64(0), from
		for to < len(stay) && (to == from || n.at[stay[to]] < high) {
			high = max(high, n.at[stay[to]]+values[stay[to]].Bytes)
			to++
		}
		id := b.Host(fmt.Sprintf("memory at 0x%x", low), dag.U8, int64(high-low))
		for _, v := range stay[from:to] {
			n.buffers[v], base[v] = id, low
		}
		from = to
	}
	n.nodes = make([]dag.NodeID, len(n.known.Nodes))
	for _, k := range n.order {
		is := &n.known.Nodes[k]
		var accesses []dag.Access
		for _, u := range is.Uses {
			if n.at[u.Value] == 0 {
				continue
			}
			mode, ok := n.access(u, k, o.Exact)
			if !ok {
				continue
			}
			v := &values[u.Value]
			lo := int64(0)
			if !n.moves[u.Value] {
				lo = int64(n.at[u.Value] - base[u.Value])
			}
			if is.Opaque != "" {
				mode = dag.ReadWrite
			}
			accesses = append(accesses, dag.Access{Range: b.Slice(n.buffers[u.Value], lo, lo+int64(v.Bytes)), Mode: mode})
		}
		work := dag.Work{Blocks: int64(is.Grid[0]) * int64(is.Grid[1]) * int64(is.Grid[2]), Threads: int32(is.Block[0] * is.Block[1] * is.Block[2]), Shared: int32(is.Shared + is.Attributes["shared"])}
		id := b.Node(dag.Node{Name: fmt.Sprint(k), Kind: dag.Task, Work: work, HasCost: true, CostUS: max(0.1, n.located.graph.US[k]-o.Machine.GraphNodeUS)}, accesses...)
		n.nodes[k] = id
		for int(id) >= len(n.node) {
			n.node = append(n.node, -1)
		}
		n.node[id] = k
	}
	var err error
	n.graph, err = b.Graph()
	return err
}

// results tells what the graph leaves behind: what it writes outside its own memory, and what of that the program holds.
func (n *network) results(plans *Plans) {
	written := make([]bool, len(n.known.Values))
	for k, node := range n.known.Nodes {
		for _, u := range node.Uses {
			if mode, ok := n.access(u, k, true); ok && mode != dag.Read {
				written[u.Value] = true
			}
		}
	}
	for v, is := range n.known.Values {
		e := Extent{n.at[v], is.Bytes}
		switch {
		case !written[v] || n.at[v] == 0:
		case !is.Pool:
			plans.State = append(plans.State, e)
			plans.Outputs = append(plans.Outputs, e)
		case n.pinned[v] == held:
			plans.Outputs = append(plans.Outputs, e)
		}
	}
}

func (n *network) trial(k int) Trial {
	t := Trial{Node: k}
	for _, u := range n.known.Nodes[k].Uses {
		e := Extent{n.at[u.Value], n.known.Values[u.Value].Bytes}
		if u.Read || u.Atomic {
			t.Reads = append(t.Reads, e)
		}
		if u.Write || u.Atomic {
			t.Writes = append(t.Writes, e)
		}
	}
	return t
}

// plan makes the plans that the program is to compare.
func (n *network) plan(ctx context.Context, o Options, plans *Plans) error {
	for _, streams := range []int{2, 3, 4, 6, 8} {
		for _, strategy := range []string{"list", "heft"} {
			p, err := planner.New(ctx, n.graph, planner.Options{Strategy: strategy, Streams: streams, Machine: o.Machine, KeepAll: true})
			if err != nil {
				return err
			}
			if err := planner.Verify(n.graph, p); err != nil {
				return err
			}
			edges, err := planner.GraphEdges(n.graph, p)
			if err != nil {
				return err
			}
			us, err := planner.Repeated(n.graph, p, o.Machine, nil, true)
			if err != nil {
				return err
			}
			plans.Critical = p.Stats.CriticalPathUS
			plans.Plans = append(plans.Plans, n.made(fmt.Sprintf("%s on %d streams", strategy, streams), us, edges, p))
		}
	}
	return nil
}

func (n *network) made(name string, us float64, edges []planner.GraphEdge, p *planner.Plan) Plan {
	out := Plan{Name: name, US: us, Memory: p.Stats.PeakDeviceBytes}
	for _, e := range edges {
		if e.From >= 0 && int(e.From) < len(n.node) {
			out.Edges = append(out.Edges, [2]int{n.node[e.From], n.node[e.To]})
		}
	}
	at := map[dag.BufferID]int64{}
	for _, m := range p.Memory {
		at[m.Buffer] = m.Offset
	}
	for k, node := range n.known.Nodes {
		for _, w := range node.Words {
			if n.moves[w.Value] && !n.stale[[2]int{k, w.Offset}] {
				out.Words = append(out.Words, [3]int64{int64(k), int64(w.Offset), at[n.buffers[w.Value]] + w.Delta})
			}
		}
	}
	for k, node := range n.known.Nodes {
		for _, u := range node.Uses {
			if !n.moves[u.Value] {
				continue
			}
			v := &n.known.Values[u.Value]
			lies, to := Extent{v.At, v.Bytes}, at[n.buffers[u.Value]]
			if node.Set != nil && lies.holds(node.Set.Address) {
				out.Sets = append(out.Sets, [2]int64{int64(k), to + int64(node.Set.Address-v.At)})
			}
			if node.Copy != nil && u.Read && lies.holds(node.Copy.Source.Address) {
				out.Copies = append(out.Copies, [3]int64{int64(k), 0, to + int64(node.Copy.Source.Address-v.At)})
			}
			if node.Copy != nil && u.Write && lies.holds(node.Copy.Destination.Address) {
				out.Copies = append(out.Copies, [3]int64{int64(k), 1, to + int64(node.Copy.Destination.Address-v.At)})
			}
		}
	}
	return out
}
