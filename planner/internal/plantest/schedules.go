// Random graphs with accesses, simple plans of them, and the order that plans enforce, computed by brute force.

package plantest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// BruteClosure is reachability over edges.
func BruteClosure(nodes int, order []int32, edges []plan.GraphEdge) [][]bool {
	before := make([][]bool, nodes)
	for i := range before {
		before[i] = make([]bool, nodes)
	}
	for _, to := range order {
		for _, e := range edges {
			if e.To != dag.NodeID(to) || e.From == plan.GraphRoot {
				continue
			}
			for i := range before {
				before[i][to] = before[i][to] || before[i][e.From] || i == int(e.From)
			}
		}
	}
	return before
}

// Spread renumbers a plan's streams with gaps, so that their clocks fall into several blocks.
func Spread(p *plan.Plan) *plan.Plan {
	wide := ClonePlan(p)
	wide.Streams = make([]plan.Stream, 300)
	move := func(s int32) int32 { return s * 97 % 300 }
	for s := range p.Streams {
		wide.Streams[move(int32(s))] = p.Streams[s]
	}
	for k, s := range p.Order {
		wide.Order[k] = move(s)
	}
	return wide
}

// DrawSource draws a seed. Rapid's own integers are mostly tiny, which makes graphs without hazards.
func DrawSource(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
}

// EachOp visits ops in submission order, as far as the order is valid.
func EachOp(p *plan.Plan, visit func(at int, stream int32, op *plan.Op)) {
	next := make([]int32, len(p.Streams))
	for k, stream := range p.Order {
		if stream < 0 || int(stream) >= len(next) || int(next[stream]) >= len(p.Streams[stream].Ops) {
			return
		}
		op := &p.Streams[stream].Ops[next[stream]]
		next[stream]++
		visit(k, stream, op)
	}
}

// Launches returns a plan's nodes in submission order and, by node, the stream and the place in the order of ops.
func Launches(p *plan.Plan, nodes int) (order, stream, at []int32) {
	stream, at = make([]int32, nodes), make([]int32, nodes)
	EachOp(p, func(k int, s int32, op *plan.Op) {
		if op.Kind == plan.Launch {
			order = append(order, int32(op.Node))
			stream[op.Node], at[op.Node] = s, int32(k)
		}
	})
	return order, stream, at
}

// Between draws a number in lo..hi.
func Between(rng *rand.Rand, lo, hi int) int { return lo + rng.IntN(hi-lo+1) }

// DrawGraph makes a small graph of random accesses to parts of device buffers, with some after: and, if asked for, some bound streams.
func DrawGraph(t *rapid.T, maxNodes int, bind bool) *dag.Graph {
	rng := DrawSource(t)
	b := dag.New("drawn")
	var buffers []dag.BufferID
	for i := range Between(rng, 1, 6) {
		shape := [][]int64{{64}, {300}, {512}, {1000}, {8, 8}, {10, 30}}[rng.IntN(6)]
		buffers = append(buffers, b.Device(fmt.Sprintf("d%d", i), dag.U8, shape...))
	}
	written := make([]bool, len(buffers))
	for i := range Between(rng, 1, maxNodes) {
		var accesses []dag.Access
		for range Between(rng, 0, 3) {
			k := Between(rng, 0, len(buffers)-1)
			access := b.Out(buffers[k])
			// Buffers that are read before they are written keep their bytes, so most buffers are written first.
			if written[k] || rng.IntN(16) == 0 {
				access.Mode = dag.Mode(Between(rng, 1, 3))
				tiled := len(b.BufferAt(buffers[k]).Shape) == 2
				switch rng.IntN(3) {
				case 0:
					access.Hi /= 2
				case 1:
					access.Lo = access.Hi / 2
				case 2:
					if tiled {
						access.Range = b.HaloTile(buffers[k], int64(rng.IntN(2)), 2, int64(rng.IntN(3)), 3, int64(rng.IntN(2)))
					}
				}
			}
			written[k] = true
			accesses = append(accesses, access)
		}
		node := b.Task(fmt.Sprintf("n%d", i), accesses...)
		if i > 0 && Between(rng, 0, 4) == 0 {
			b.At(node).After = []dag.NodeID{dag.NodeID(Between(rng, 0, i-1))}
		}
		if bind && Between(rng, 0, 3) == 0 {
			b.At(node).Stream = dag.OnStream(int32(Between(rng, 0, 1)))
		}
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// EachRandomOps visits thousands of small plans of RandomOps, five times as many if long, and some with so many streams that several passes are
// needed. The generator that made a plan goes on for the visitor.
func EachRandomOps(t *testing.T, long bool, visit func(rng *rand.Rand, p *plan.Plan, nodes int, before [][]bool)) {
	t.Helper()
	small, wide := 4000, 40
	if long {
		small, wide = 20_000, 200
	}
	for seed := range small + wide {
		rng := rand.New(rand.NewPCG(uint64(seed), 12))
		nodes, streams, events := 1+rng.IntN(16), 1+rng.IntN(5), 1+rng.IntN(5)
		if seed >= small {
			nodes, streams, events = 150+rng.IntN(50), 65+rng.IntN(100), 1+rng.IntN(80)
		}
		p := RandomOps(rng, nodes, streams, events)
		visit(rng, p, nodes, BruteBeforeOf(p, nodes))
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, p)
		}
	}
}

// RandomOps makes random ops of a plan: any stream launches, records and waits, so that waits come between a launch and its record,
// events are recorded again, and order passes through many events.
func RandomOps(rng *rand.Rand, nodes, streams, events int) *plan.Plan {
	p := &plan.Plan{Name: "random", Strategy: "random", Streams: make([]plan.Stream, streams)}
	number := make([]int32, events)                                 // plus 1: events count in the order of their first records
	last, recorded := make([]int32, streams), make([]int32, events) // nodes, plus 1
	push := func(stream int, op plan.Op) {
		p.Streams[stream].Ops = append(p.Streams[stream].Ops, op)
		p.Order = append(p.Order, int32(stream))
	}
	ids := rng.Perm(nodes)
	for len(ids) > 0 {
		stream, event := rng.IntN(streams), rng.IntN(events)
		switch kind := rng.IntN(8); {
		case kind < 3:
			push(stream, plan.Op{Kind: plan.Launch, Node: dag.NodeID(ids[0]), Event: -1})
			last[stream] = int32(ids[0]) + 1
			ids = ids[1:]
		case kind < 5 && last[stream] > 0:
			if number[event] == 0 {
				p.Events++
				number[event] = p.Events
			}
			push(stream, plan.Op{Kind: plan.Record, Node: dag.NodeID(last[stream] - 1), Event: number[event] - 1})
			recorded[event] = last[stream]
		case recorded[event] > 0:
			push(stream, plan.Op{Kind: plan.Wait, Node: dag.NodeID(recorded[event] - 1), Event: number[event] - 1})
		}
	}
	return p
}

// DullPlan puts nodes on the given streams, submits them in the given order, and waits for every predecessor on another stream. With
// reuse, an event is recorded again for another node once no later wait needs its old record.
func DullPlan(g *dag.Graph, streams int, streamOf, order []int32) *plan.Plan {
	p := &plan.Plan{Name: g.Name, Strategy: "dull", Streams: make([]plan.Stream, streams)}
	push := func(stream int32, op plan.Op) {
		p.Streams[stream].Ops = append(p.Streams[stream].Ops, op)
		p.Order = append(p.Order, stream)
	}
	rank := make([]int32, g.Len())
	for k, node := range order {
		rank[node] = int32(k)
	}
	event := make([]int32, g.Len())
	var free []int32
	lastUse := make([]int32, g.Len())
	for i := range event {
		event[i], lastUse[i] = -1, -1
		for _, to := range g.Succs(dag.NodeID(i)) {
			if streamOf[to] != streamOf[i] {
				lastUse[i] = max(lastUse[i], rank[to])
			}
		}
	}
	for k, node := range order {
		for _, from := range g.Preds(dag.NodeID(node)) {
			if streamOf[from] != streamOf[node] {
				push(streamOf[node], plan.Op{Kind: plan.Wait, Node: from, Event: event[from]})
				p.Stats.Waits++
			}
		}
		for _, from := range g.Preds(dag.NodeID(node)) {
			if lastUse[from] == int32(k) {
				free = append(free, event[from])
			}
		}
		push(streamOf[node], plan.Op{Kind: plan.Launch, Node: dag.NodeID(node), Event: -1})
		if lastUse[node] >= 0 {
			if len(free) > 0 {
				event[node], free = free[0], free[1:]
			} else {
				event[node] = p.Events
				p.Events++
			}
			push(streamOf[node], plan.Op{Kind: plan.Record, Node: dag.NodeID(node), Event: event[node]})
			p.Stats.Records++
		}
	}
	p.Stats.Nodes, p.Stats.Edges, p.Stats.Streams = g.Len(), len(g.Edges()), streams
	p.Stats.Events = int(p.Events)
	PlaceApart(g, p)
	return p
}

// PlaceApart gives every device buffer its own bytes.
func PlaceApart(g *dag.Graph, p *plan.Plan) {
	p.Memory, p.Kept, p.Stats.PeakDeviceBytes, p.Stats.SumDeviceBytes = nil, nil, 0, 0
	next := map[int32]int64{}
	ends := map[int32]int64{}
	for i, b := range g.Buffers {
		if !b.InArena() {
			continue
		}
		if bruteKept(g, int32(i)) {
			p.Kept = append(p.Kept, dag.BufferID(i))
		}
		if textured := g.Textured(); textured != nil && textured[i] {
			next[b.Device] = (next[b.Device] + 511) / 512 * 512
		}
		p.Memory = append(p.Memory, plan.Placement{Buffer: dag.BufferID(i), Device: b.Device, Offset: next[b.Device], Bytes: b.Bytes})
		ends[b.Device] = max(ends[b.Device], next[b.Device]+b.Bytes)
		next[b.Device] += (b.Bytes + 255) / 256 * 256
	}
	for _, end := range ends {
		p.Stats.PeakDeviceBytes += end
	}
	p.Stats.SumDeviceBytes = p.Stats.PeakDeviceBytes
}

// DrawDullPlan draws streams and a submission order.
func DrawDullPlan(t *rapid.T, g *dag.Graph, maxStreams int) *plan.Plan {
	rng := DrawSource(t)
	streams := Between(rng, 1, maxStreams)
	bound := 0
	for i := range g.Nodes {
		bound = max(bound, int(g.Nodes[i].Stream.Number())+1)
	}
	streams = max(streams, bound)
	streamOf := make([]int32, g.Len())
	for i := range streamOf {
		streamOf[i] = int32(Between(rng, 0, streams-1))
		if k := g.Nodes[i].Stream.Number(); k >= 0 {
			streamOf[i] = k
		}
	}
	return DullPlan(g, streams, streamOf, drawOrder(rng, g))
}

// drawOrder draws a topological order.
func drawOrder(rng *rand.Rand, g *dag.Graph) []int32 {
	missing := make([]int, g.Len())
	var ready, order []int32
	for i := range missing {
		if missing[i] = len(g.Preds(dag.NodeID(i))); missing[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	for len(ready) > 0 {
		k := Between(rng, 0, len(ready)-1)
		node := ready[k]
		ready = slices.Delete(ready, k, k+1)
		order = append(order, node)
		for _, to := range g.Succs(dag.NodeID(node)) {
			if missing[to]--; missing[to] == 0 {
				ready = append(ready, int32(to))
			}
		}
	}
	return order
}

// BruteBefore returns for all pairs of nodes whether the first has finished before the second starts: reachability over ops, with an
// edge between neighbours on a stream, and from the latest submitted record of an event to each wait for it.
func BruteBefore(g *dag.Graph, p *plan.Plan) [][]bool { return BruteBeforeOf(p, g.Len()) }

// BruteBeforeOf does the same for a plan with the given number of nodes.
func BruteBeforeOf(p *plan.Plan, nodes int) [][]bool {
	total := len(p.Order)
	reach := make([][]bool, total) // reach[i][j]: op i before op j
	for i := range reach {
		reach[i] = make([]bool, total)
	}
	next := make([]int, len(p.Streams))
	lastOp := make([]int, len(p.Streams))
	for i := range lastOp {
		lastOp[i] = -1
	}
	record := map[int32]int{}
	launch := make([]int, nodes)
	join := func(from, to int) {
		reach[from][to] = true
		for i := range from {
			if reach[i][from] {
				reach[i][to] = true
			}
		}
	}
	for k, s := range p.Order {
		op := p.Streams[s].Ops[next[s]]
		next[s]++
		if lastOp[s] >= 0 {
			join(lastOp[s], k)
		}
		lastOp[s] = k
		switch op.Kind {
		case plan.Launch:
			launch[op.Node] = k
		case plan.Record:
			record[op.Event] = k
		case plan.Wait:
			join(record[op.Event], k)
		}
	}
	before := make([][]bool, nodes)
	for i := range before {
		before[i] = make([]bool, nodes)
		for j := range before[i] {
			before[i][j] = reach[launch[i]][launch[j]]
		}
	}
	return before
}

// BruteAlive reports whether two buffers may not share bytes.
func BruteAlive(g *dag.Graph, before [][]bool, a, b int32) bool {
	if bruteKept(g, a) || bruteKept(g, b) {
		return true
	}
	done := func(a, b int32) bool {
		for i := range g.Nodes {
			for j := range g.Nodes {
				if bruteUses(g, dag.NodeID(i), dag.BufferID(a)) && bruteUses(g, dag.NodeID(j), dag.BufferID(b)) && !before[i][j] {
					return false
				}
			}
		}
		return true
	}
	return !done(a, b) && !done(b, a)
}

// bruteKept reports whether a buffer must keep its bytes for the whole program.
func bruteKept(g *dag.Graph, b int32) bool {
	buffer := &g.Buffers[b]
	return buffer.Init != nil || buffer.Save != "" || buffer.Expect != nil ||
		slices.ContainsFunc(g.ReadFirst(), func(u dag.UnwrittenRead) bool { return u.Buffer == dag.BufferID(b) }) && !buffer.Scratch
}

func bruteUses(g *dag.Graph, node dag.NodeID, buffer dag.BufferID) bool {
	for _, a := range g.Accesses(node) {
		if a.Buffer == buffer && a.Lo < a.Hi {
			return true
		}
	}
	return false
}

// BruteRight reports whether a plan with valid ops enforces every dependency and shares no live bytes.
func BruteRight(g *dag.Graph, p *plan.Plan) bool {
	before := BruteBefore(g, p)
	for _, e := range g.Edges() {
		if !before[e.From][e.To] {
			return false
		}
	}
	for i, a := range p.Memory {
		for _, b := range p.Memory[:i] {
			if a.Device == b.Device && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes && BruteAlive(g, before, int32(a.Buffer), int32(b.Buffer)) {
				return false
			}
		}
	}
	return true
}

// ClonePlan copies the parts of a plan that tests change.
func ClonePlan(p *plan.Plan) *plan.Plan {
	c := *p
	c.Streams = slices.Clone(p.Streams)
	for i := range c.Streams {
		c.Streams[i].Ops = slices.Clone(p.Streams[i].Ops)
	}
	c.Order = slices.Clone(p.Order)
	c.Memory = slices.Clone(p.Memory)
	c.Kept = slices.Clone(p.Kept)
	return &c
}

// WithoutOp removes the op at an index of a stream.
func WithoutOp(p *plan.Plan, stream, index int) *plan.Plan {
	c := ClonePlan(p)
	c.Streams[stream].Ops = slices.Delete(c.Streams[stream].Ops, index, index+1)
	seen := 0
	for k, s := range c.Order {
		if int(s) == stream {
			if seen == index {
				c.Order = slices.Delete(c.Order, k, k+1)
				break
			}
			seen++
		}
	}
	return c
}
