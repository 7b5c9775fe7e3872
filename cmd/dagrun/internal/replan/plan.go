// Planning a known graph: which values move, which edges the new graph needs, and where in new memory the values that move lie.

package replan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// Options says how to plan.
type Options struct {
	Name    string // of the graph, in what people read
	Machine *planner.Machine
	Stay    bool  // no value moves
	Keep    []int // nodes to which it matters what lies in bytes that the graph never writes
	Cap     int64 // bytes that the values which move may take, in new memory only; 0: they lie in the graph's own, and in as much new memory as they need
}

// ErrMemory is a plan whose values do not fit.
type ErrMemory struct{ Needs, Cap int64 }

func (e *ErrMemory) Error() string {
	return fmt.Sprintf("its values take %s, as they are laid out here, more than the %s that --memory-cap allows", words.Bytes(e.Needs), words.Bytes(e.Cap))
}

// CapturedGraph is a known graph as the planner takes it.
type CapturedGraph struct {
	*located
	dag     *dag.Graph
	options Options
	profile *planner.Profile
	nodes   []dag.NodeID
	node    []int // by dag.NodeID
	buffers []dag.BufferID
	moves   []bool
	pinned  []string
	passing []bool   // values of the graph's own memory that stay, and hold nothing before the graph writes them, nor after it
	carried []*lying // values whose contents move to the beginning of new memory and keep their place there, since what lies there before the graph matters
	arena   arena
}

// NewCapturedGraph declares a known graph to the planner, as it is in a process.
func NewCapturedGraph(known *Known, g *Graph, o Options) (*CapturedGraph, error) {
	l, err := match(known, g)
	if err != nil {
		return nil, err
	}
	if o.Machine == nil {
		o.Machine = planner.H200()
	}
	o.Name = cmp.Or(o.Name, "graph")
	n := &CapturedGraph{located: l, options: o}
	n.decide(o)
	n.room()
	return n, n.build(o)
}

// Graph is what the planner is given.
func (n *CapturedGraph) Graph() *dag.Graph { return n.dag }

// Durations are those that were measured; nil if none were.
func (n *CapturedGraph) Durations() *planner.Profile { return n.profile }

// Make plans a graph.
func Make(ctx context.Context, known *Known, g *Graph, o Options) (*Plans, error) {
	n, err := NewCapturedGraph(known, g, o)
	if err != nil {
		return nil, err
	}
	if len(g.US) == 0 {
		return nil, fmt.Errorf("a graph's description: no durations")
	}
	plans := &Plans{Version: 1, Chain: g.Chain, Pinned: map[string]int{}, Try: []Trial{}, Outputs: []Extent{}, State: []Extent{}}
	for v, is := range known.Values {
		switch {
		case n.moves[v]:
			plans.Moved++
		case is.Pool:
			plans.Pinned[n.pinned[v]]++
		}
		if is.Pool || n.moves[v] { // contents of workspaces can move, too
			plans.Values++
		}
		if is.Pool {
			plans.Stays = plans.Stays || o.Cap == 0 || !n.moves[v] && n.pinned[v] != held
		}
	}
	for _, l := range n.carried {
		plans.Carried = append(plans.Carried, [3]uint64{n.at[l.value], known.Values[l.value].Bytes, uint64(l.at)})
	}
	n.results(plans)
	for k, node := range known.Nodes {
		if node.Opaque != "" {
			plans.Opaque++
		}
		if t := n.trial(k); len(n.loose[k]) > 0 || len(t.Old) > 0 {
			plans.Try = append(plans.Try, t)
		} else if node.Type == kernelNode {
			plans.Others = append(plans.Others, t)
		}
		for _, w := range node.Words {
			if w.Touched {
				plans.Used = append(plans.Used, [2]int{k, w.Offset})
			}
		}
	}
	return plans, n.plan(ctx, plans)
}

const (
	held       = "the program holds it"
	oldMatters = "what lies there before the graph matters"
)

// ofContents tells whether a value stays for what lies there before the graph, so that it can move with its contents.
func ofContents(pinned string) bool { return pinned == oldMatters || pinned == readFirst }

// leastUS is what a kernel takes of which no duration is known, whatever its bytes are.
const leastUS = 1

// decide chooses the values that move.
func (n *CapturedGraph) decide(o Options) {
	values := n.known.Values
	n.moves, n.pinned = make([]bool, len(values)), make([]string, len(values))
	met, used := make([]bool, len(values)), make([]bool, len(values))
	for v := range values {
		n.pinned[v] = values[v].Pinned
		if n.at[v] == 0 {
			n.pinned[v] = cmp.Or(n.pinned[v], "nothing tells where it lies")
		}
	}
	for _, k := range n.order {
		for _, u := range n.known.Nodes[k].Uses {
			met[u.Value] = met[u.Value] || !u.Guess
			if _, ok := n.access(u, k); ok {
				used[u.Value] = true
			}
			if len(u.Old) > 0 && slices.Contains(o.Keep, k) {
				n.pinned[u.Value] = cmp.Or(n.pinned[u.Value], oldMatters)
			}
		}
	}
	for _, block := range n.graph.Active {
		last := -1
		for v := range values {
			if values[v].Pool && n.at[v] != 0 && block.overlaps(Extent{n.at[v], values[v].Bytes}) && (last < 0 || values[v].Born >= values[last].Born) {
				last = v
			}
		}
		for v := range values { // all its contents: the program sees what is left of each
			if last >= 0 && values[v].Pool && values[v].Born == values[last].Born && (n.pinned[v] == "" || ofContents(n.pinned[v])) {
				n.pinned[v] = held
			}
		}
	}
	n.passing = make([]bool, len(values))
	for v := range values {
		_, inside := n.arena.of(n.graph.Pool, n.at[v])
		n.passing[v] = o.Cap == 0 && values[v].Pool && inside && met[v] && n.pinned[v] == values[v].Pinned && n.pinned[v] != readFirst
		if !used[v] {
			n.pinned[v] = cmp.Or(n.pinned[v], "no node points to it")
		}
		if o.Stay {
			n.pinned[v] = cmp.Or(n.pinned[v], "nothing is to be moved")
		}
		if o.Cap > 0 && values[v].Pool && ofContents(n.pinned[v]) {
			n.pinned[v] = ""
			n.carry(v)
		}
		n.moves[v] = n.pinned[v] == "" // also what no node was seen to touch: kernels that only point to one tensor need not wait for each other
	}
}

// carry gives a value a place of its own at the beginning of new memory.
func (n *CapturedGraph) carry(v int) {
	n.carried = append(n.carried, &lying{value: v, size: placed(n.known.Values[v].Bytes), at: n.carriedEnd(), alone: true})
}

// carriedEnd returns where the places of what is carried end.
func (n *CapturedGraph) carriedEnd() int64 {
	if last := len(n.carried) - 1; last >= 0 {
		return n.carried[last].at + n.carried[last].size
	}
	return 0
}

func (n *CapturedGraph) carries(v int) bool {
	return slices.ContainsFunc(n.carried, func(l *lying) bool { return l.value == v })
}

// placed is how many bytes a place for some bytes takes.
func placed(bytes uint64) int64 { return int64(bytes+255) &^ 255 }

// access returns how a node uses a value, or ok = false if it does not.
func (n *CapturedGraph) access(u Use, k int) (dag.Mode, bool) {
	if u.Guess {
		if !slices.ContainsFunc(n.known.Nodes[k].Words, func(w Word) bool { return w.Value == u.Value && !n.stale[[2]int{k, w.Offset}] }) {
			return dag.Read, false
		}
		return dag.Write, true
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
func (n *CapturedGraph) build(o Options) error {
	b := dag.New(o.Name)
	values := n.known.Values
	n.buffers = make([]dag.BufferID, len(values))
	var stay []int
	begun := make([]bool, len(values))
	for _, l := range n.carried {
		n.buffers[l.value] = b.Host(fmt.Sprint("v", l.value), dag.U8, int64(values[l.value].Bytes))
		begun[l.value] = true
	}
	for v := range values {
		if begun[v] {
			continue
		}
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
	if len(n.graph.US) > 0 {
		n.profile = &planner.Profile{Nodes: map[string]float64{}}
	}
	for _, k := range n.order {
		is := &n.known.Nodes[k]
		var accesses []dag.Access
		bytes := int64(0)
		for _, u := range is.Uses {
			if n.at[u.Value] == 0 {
				continue
			}
			mode, ok := n.access(u, k)
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
			if n.moves[u.Value] && !begun[u.Value] { // what it reads there, if anything, is there by chance
				mode, begun[u.Value] = dag.Write, true
			}
			if !u.Guess {
				bytes += int64(v.Bytes)
			}
			accesses = append(accesses, dag.Access{Range: b.Slice(n.buffers[u.Value], lo, lo+int64(v.Bytes)), Mode: mode})
		}
		work := dag.Work{US: leastUS, Bytes: bytes, Blocks: int64(is.Grid[0]) * int64(is.Grid[1]) * int64(is.Grid[2]),
			Threads: int32(is.Block[0] * is.Block[1] * is.Block[2]), Shared: int32(is.Shared + is.Attributes["shared"])}
		name := is.name(k)
		if n.profile != nil {
			n.profile.Nodes[name] = max(0.1, n.graph.US[k]-o.Machine.GraphNodeUS)
		}
		id := b.Node(dag.Node{Name: name, Kind: dag.Task, Work: work}, accesses...)
		n.nodes[k] = id
		for int(id) >= len(n.node) {
			n.node = append(n.node, -1)
		}
		n.node[id] = k
	}
	var err error
	n.dag, err = b.Graph()
	return err
}

// results tells what the graph leaves behind: what it writes outside its own memory, and what of that the program holds.
func (n *CapturedGraph) results(plans *Plans) {
	written := make([]bool, len(n.known.Values))
	for k, node := range n.known.Nodes {
		for _, u := range node.Uses {
			if mode, ok := n.access(u, k); ok && !u.Guess && mode != dag.Read {
				written[u.Value] = true
			}
		}
	}
	for v, is := range n.known.Values {
		e := Extent{n.at[v], is.Bytes}
		switch {
		case !written[v] || n.at[v] == 0 || slices.Contains(plans.Outputs, e): // a workspace has many contents
		case !is.Pool:
			plans.State = append(plans.State, e)
			plans.Outputs = append(plans.Outputs, e)
		case n.pinned[v] == held:
			plans.Outputs = append(plans.Outputs, e)
		}
	}
}

func (n *CapturedGraph) trial(k int) Trial {
	t := Trial{Node: k, Reads: []Extent{}, Writes: []Extent{}, Old: []Extent{}}
	for _, u := range n.known.Nodes[k].Uses {
		e := Extent{n.at[u.Value], n.known.Values[u.Value].Bytes}
		if u.Read || u.Atomic {
			t.Reads = append(t.Reads, e)
		}
		for _, old := range u.Old {
			if n.moves[u.Value] && !n.carries(u.Value) {
				t.Old = append(t.Old, Extent{e[0] + old[0], old[1]})
			}
		}
		if u.Write || u.Atomic {
			t.Writes = append(t.Writes, e)
		}
	}
	return t
}

// Bounds returns the bounds for the durations of a profile.
func (n *CapturedGraph) Bounds(profile *planner.Profile) Bounds {
	bound := model.LowerBoundGraph(n.dag, n.options.Machine, profile, max(1, len(n.nodes)))
	b := Bounds{CriticalUS: bound.CriticalPathUS, FilledUS: bound.EngineUS}
	for _, us := range model.Durations(n.dag, n.options.Machine, profile) {
		b.ChainUS += us + n.options.Machine.GraphNodeUS
	}
	return b
}

// ways are the schedules that are tried: as many streams as may help, by two strategies.
var ways = []struct {
	strategy string
	streams  int
}{{"list", 1}, {"list", 2}, {"list", 3}, {"list", 4}, {"list", 6}, {"list", 8}, {"heft", 2}, {"heft", 3}, {"heft", 4}, {"heft", 8}}

// PlanName is what a plan is called that a strategy makes for a number of streams.
func PlanName(strategy string, streams int) string {
	return fmt.Sprintf("%s on %d streams", strategy, streams)
}

// mostAtOnce is how many plans are made at once: each takes two bits for each pair of nodes.
const mostAtOnce = 4

// plan makes the plans that the program is to compare.
func (n *CapturedGraph) plan(ctx context.Context, plans *Plans) error {
	bounds := n.Bounds(n.profile)
	plans.Critical, plans.Filled = bounds.CriticalUS, bounds.FilledUS
	bounds.ChainUS = plans.Chain
	plans.Binds = bounds.Text()
	made, large := make([]*Plan, len(ways)), make([]*ErrMemory, len(ways))
	var group errgroup.Group
	group.SetLimit(mostAtOnce)
	for k, way := range ways {
		group.Go(func() error {
			p, out, err := n.planned(ctx, planner.Options{Strategy: way.strategy, Streams: way.streams, Machine: n.options.Machine, Profile: n.profile})
			if errors.As(err, &large[k]) {
				return nil
			}
			if err != nil {
				return err
			}
			out.Name = PlanName(way.strategy, way.streams)
			out.US, err = model.Repeated(n.dag, p, n.options.Machine, n.profile, true)
			made[k] = out
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, out := range made {
		if out != nil && !slices.ContainsFunc(plans.Plans, func(other Plan) bool { return slices.Equal(other.Edges, out.Edges) }) {
			plans.Plans = append(plans.Plans, *out)
		}
	}
	if len(plans.Plans) == 0 {
		return slices.MinFunc(large, func(a, b *ErrMemory) int { return cmp.Compare(a.Needs, b.Needs) })
	}
	return nil
}

// planned makes one plan, with its proof.
func (n *CapturedGraph) planned(ctx context.Context, o planner.Options) (*planner.Plan, *Plan, error) {
	o.KeepAll = true // place lays the values out
	p, err := planner.New(ctx, n.dag, o)
	if err != nil {
		return nil, nil, err
	}
	reduced, err := planner.GraphEdges(n.dag, p)
	if err != nil {
		return nil, nil, err
	}
	out := &Plan{Edges: n.edges(reduced), Words: [][4]int64{}, Sets: [][3]int64{}, Copies: [][4]int64{}}
	if err := n.place(p, out); err != nil {
		return nil, nil, err
	}
	if err := planner.Verify(n.dag, p); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", PlanName(o.Strategy, o.Streams), err)
	}
	return p, out, nil
}

func (n *CapturedGraph) edges(reduced []plan.GraphEdge) [][2]int {
	var edges [][2]int
	for _, e := range reduced {
		if e.From >= 0 && int(e.From) < len(n.node) {
			edges = append(edges, [2]int{n.node[e.From], n.node[e.To]})
		}
	}
	return edges
}

// place lays out the values that move, tells the planner's plan where, so that it can be proved, and notes what changes in the graph.
func (n *CapturedGraph) place(p *planner.Plan, out *Plan) error {
	order, err := sorted(len(n.nodes), out.Edges)
	if err != nil {
		return err
	}
	position := make([]int, len(order))
	for at, k := range order {
		position[k] = at
	}
	users := make([][]int, len(n.known.Values))
	for _, k := range n.order {
		for _, u := range n.known.Nodes[k].Uses {
			if _, ok := n.access(u, k); ok {
				users[u.Value] = append(users[u.Value], k)
			}
		}
	}
	r := newReach(len(order), out.Edges, order)
	values, stays, at := []*lying{}, []*lying{}, make([]int64, len(n.known.Values))
	for _, l := range n.carried {
		at[l.value] = l.at
	}
	for v := range n.known.Values {
		if !n.moves[v] && !n.passing[v] || n.carries(v) {
			continue
		}
		l := &lying{value: v, size: placed(n.known.Values[v].Bytes), begins: len(order)}
		l.first, l.last = r.ends(users[v])
		for _, k := range users[v] {
			l.begins, l.ends = min(l.begins, position[k]), max(l.ends, position[k])
		}
		if n.moves[v] {
			values = append(values, l)
		} else {
			l.at, _ = n.arena.of(n.graph.Pool, n.at[v])
			stays = append(stays, l)
		}
	}
	end := max(n.arena.place(values, stays, r), n.carriedEnd())
	if most := n.options.Cap; most > 0 && end > most {
		return &ErrMemory{end, most}
	}
	out.Memory = max(0, end-n.arena.own)
	p.Stats.PeakDeviceBytes = end
	offsets := map[dag.BufferID]int64{}
	for _, v := range values {
		at[v.value] = v.at
		offsets[n.buffers[v.value]] = v.at
	}
	for k := range p.Memory {
		p.Memory[k].Offset = offsets[p.Memory[k].Buffer]
	}
	p.Kept = nil
	n.change(out, at)
	return disjoint(len(n.nodes), out.Edges, users, slices.Concat(values, stays, n.carried))
}

// address returns what a place in the arena is in the program: an address, or a distance into new memory.
func (n *CapturedGraph) address(at int64) (int64, int64) {
	if at >= n.arena.own {
		return at - n.arena.own, 1
	}
	for _, e := range n.graph.Pool {
		if at < int64(e[1]) {
			return int64(e[0]) + at, 0
		}
		at -= int64(e[1])
	}
	panic("a place outside the arena")
}

// change notes what is different in the new graph.
func (n *CapturedGraph) change(out *Plan, at []int64) {
	for k, node := range n.known.Nodes {
		for _, w := range node.Words {
			if n.moves[w.Value] && !n.stale[[2]int{k, w.Offset}] {
				to, fresh := n.address(at[w.Value])
				out.Words = append(out.Words, [4]int64{int64(k), int64(w.Offset), to + w.Delta, fresh})
			}
		}
		for _, u := range node.Uses {
			if !n.moves[u.Value] {
				continue
			}
			v := &n.known.Values[u.Value]
			lies := Extent{v.At, v.Bytes}
			to, fresh := n.address(at[u.Value])
			if node.Set != nil && lies.holds(node.Set.Address) {
				out.Sets = append(out.Sets, [3]int64{int64(k), to + int64(node.Set.Address-v.At), fresh})
			}
			if node.Copy != nil && u.Read && lies.holds(node.Copy.Source.Address) {
				out.Copies = append(out.Copies, [4]int64{int64(k), 0, to + int64(node.Copy.Source.Address-v.At), fresh})
			}
			if node.Copy != nil && u.Write && lies.holds(node.Copy.Destination.Address) {
				out.Copies = append(out.Copies, [4]int64{int64(k), 1, to + int64(node.Copy.Destination.Address-v.At), fresh})
			}
		}
	}
}

// room finds out which parts of memory values may be placed in: those where nothing lies that stays or is carried, or that the program holds.
func (n *CapturedGraph) room() {
	if n.options.Cap > 0 {
		if end := n.carriedEnd(); end > 0 {
			n.arena.taken = [][2]int64{{0, end}}
		}
		return
	}
	base := int64(0)
	for _, e := range n.graph.Pool {
		take := func(other Extent) {
			if low, high := max(e[0], other[0]), min(e.end(), other.end()); low < high {
				n.arena.taken = append(n.arena.taken, [2]int64{base + int64(low-e[0]), base + int64(high-e[0])})
			}
		}
		for _, other := range n.graph.Active {
			take(other)
		}
		for v, is := range n.known.Values {
			if !n.moves[v] && n.at[v] != 0 && !n.passing[v] {
				take(Extent{n.at[v], is.Bytes})
			}
		}
		base += int64(e[1])
		n.arena.taken = append(n.arena.taken, [2]int64{base, base}) // nothing lies across the end of a segment
	}
	n.arena.own = base
	n.arena.taken = apart(n.arena.taken)
}
