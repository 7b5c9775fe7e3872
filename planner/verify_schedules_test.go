// Schedules for the tests of the proof: small random graphs, plans of them made the dull way, and happens-before by brute force.
// Uses nothing of what it tests.

package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"pgregory.net/rapid"
)

// drawSource draws a seed. Rapid's own integers are mostly tiny, which makes graphs without hazards.
func drawSource(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
}

// between is a number of lo..hi.
func between(rng *rand.Rand, lo, hi int) int { return lo + rng.IntN(hi-lo+1) }

// drawGraph makes a small graph of random accesses to parts of device buffers, with some after: and, if asked for, some bound streams.
func drawGraph(t *rapid.T, maxNodes int, bind bool) *dag.Graph {
	rng := drawSource(t)
	b := dag.New("drawn")
	var buffers []int32
	for i := range between(rng, 1, 6) {
		buffers = append(buffers, b.Device(fmt.Sprintf("d%d", i), dag.U8, int64([]int{64, 300, 512, 1000}[rng.IntN(4)])))
	}
	written := make([]bool, len(buffers))
	for i := range between(rng, 1, maxNodes) {
		var accesses []dag.Access
		for range between(rng, 0, 3) {
			k := between(rng, 0, len(buffers)-1)
			access := b.Out(buffers[k])
			// What is read before it is written keeps its bytes, so most buffers are written first.
			if written[k] || rng.IntN(16) == 0 {
				access.Mode = dag.Mode(between(rng, 1, 3))
				switch rng.IntN(3) {
				case 0:
					access.Hi /= 2
				case 1:
					access.Lo = access.Hi / 2
				}
			}
			written[k] = true
			accesses = append(accesses, access)
		}
		node := b.Task(fmt.Sprintf("n%d", i), accesses...)
		if i > 0 && between(rng, 0, 4) == 0 {
			b.At(node).After = []int32{int32(between(rng, 0, i-1))}
		}
		if bind && between(rng, 0, 3) == 0 {
			b.At(node).Stream = int32(between(rng, 0, 1))
		}
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// dullPlan puts nodes on the given streams, submits them in the given order, and waits for every predecessor on another stream. An event is
// recorded anew for another node where reuse allows: when no later wait means the old record.
func dullPlan(g *dag.Graph, streams int, streamOf, order []int32) *Plan {
	p := &Plan{Name: g.Name, Strategy: "dull", Streams: make([]Stream, streams)}
	push := func(stream int32, op Op) {
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
		for _, to := range g.Succs(int32(i)) {
			if streamOf[to] != streamOf[i] {
				lastUse[i] = max(lastUse[i], rank[to])
			}
		}
	}
	for k, node := range order {
		for _, from := range g.Preds(node) {
			if streamOf[from] != streamOf[node] {
				push(streamOf[node], Op{Wait, from, event[from]})
				p.Stats.Waits++
			}
		}
		for _, from := range g.Preds(node) {
			if lastUse[from] == int32(k) {
				free = append(free, event[from])
			}
		}
		push(streamOf[node], Op{Launch, node, -1})
		if lastUse[node] >= 0 {
			if len(free) > 0 {
				event[node], free = free[0], free[1:]
			} else {
				event[node] = p.Events
				p.Events++
			}
			push(streamOf[node], Op{Record, node, event[node]})
			p.Stats.Records++
		}
	}
	p.Stats.Nodes, p.Stats.Edges, p.Stats.Streams = g.Len(), len(g.Edges()), streams
	p.Stats.Events = int(p.Events)
	placeApart(g, p)
	return p
}

// placeApart gives every device buffer its own bytes.
func placeApart(g *dag.Graph, p *Plan) {
	p.Memory, p.Stats.PeakDeviceBytes, p.Stats.SumDeviceBytes = nil, 0, 0
	next := map[int32]int64{}
	ends := map[int32]int64{}
	for i, b := range g.Buffers {
		if b.Place != dag.Device {
			continue
		}
		p.Memory = append(p.Memory, Placement{int32(i), b.Device, next[b.Device], b.Bytes})
		ends[b.Device] = max(ends[b.Device], next[b.Device]+b.Bytes)
		next[b.Device] += (b.Bytes + 255) / 256 * 256
	}
	for _, end := range ends {
		p.Stats.PeakDeviceBytes += end
	}
	p.Stats.SumDeviceBytes = p.Stats.PeakDeviceBytes
}

// drawDullPlan draws streams and a submission order.
func drawDullPlan(t *rapid.T, g *dag.Graph, maxStreams int) *Plan {
	rng := drawSource(t)
	streams := between(rng, 1, maxStreams)
	bound := 0
	for i := range g.Nodes {
		bound = max(bound, int(g.Nodes[i].Stream)+1)
	}
	streams = max(streams, bound)
	streamOf := make([]int32, g.Len())
	for i := range streamOf {
		streamOf[i] = int32(between(rng, 0, streams-1))
		if k := g.Nodes[i].Stream; k >= 0 {
			streamOf[i] = k
		}
	}
	return dullPlan(g, streams, streamOf, drawOrder(rng, g))
}

// drawOrder draws a topological order.
func drawOrder(rng *rand.Rand, g *dag.Graph) []int32 {
	missing := make([]int, g.Len())
	var ready, order []int32
	for i := range missing {
		if missing[i] = len(g.Preds(int32(i))); missing[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	for len(ready) > 0 {
		k := between(rng, 0, len(ready)-1)
		node := ready[k]
		ready = slices.Delete(ready, k, k+1)
		order = append(order, node)
		for _, to := range g.Succs(node) {
			if missing[to]--; missing[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	return order
}

// bruteBefore says for all pairs of nodes whether the first has finished before the second starts: reachability over ops, each
// pair of neighbours on a stream and each wait with the latest record submitted being an edge.
func bruteBefore(g *dag.Graph, p *Plan) [][]bool {
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
	launch := make([]int, g.Len())
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
		case Launch:
			launch[op.Node] = k
		case Record:
			record[op.Event] = k
		case Wait:
			join(record[op.Event], k)
		}
	}
	before := make([][]bool, g.Len())
	for i := range before {
		before[i] = make([]bool, g.Len())
		for j := range before[i] {
			before[i][j] = reach[launch[i]][launch[j]]
		}
	}
	return before
}

// bruteAlive says whether two buffers may not share bytes.
func bruteAlive(g *dag.Graph, before [][]bool, a, b int32) bool {
	kept := func(b int32) bool {
		buffer := &g.Buffers[b]
		return buffer.Init != nil || buffer.Save != "" || buffer.Expect != nil || slices.ContainsFunc(g.ReadFirst(), func(u dag.UnwrittenRead) bool { return u.Buffer == b }) && !buffer.Scratch
	}
	if kept(a) || kept(b) {
		return true
	}
	done := func(a, b int32) bool {
		for i := range g.Nodes {
			for j := range g.Nodes {
				if bruteUses(g, int32(i), a) && bruteUses(g, int32(j), b) && !before[i][j] {
					return false
				}
			}
		}
		return true
	}
	return !done(a, b) && !done(b, a)
}

func bruteUses(g *dag.Graph, node, buffer int32) bool {
	for _, a := range g.Accesses(node) {
		if a.Buffer == buffer && a.Lo < a.Hi {
			return true
		}
	}
	return false
}

// bruteRight says whether a plan with whole ops enforces everything and shares no live bytes.
func bruteRight(g *dag.Graph, p *Plan) bool {
	before := bruteBefore(g, p)
	for _, e := range g.Edges() {
		if !before[e.From][e.To] {
			return false
		}
	}
	for i, a := range p.Memory {
		for _, b := range p.Memory[:i] {
			if a.Device == b.Device && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes && bruteAlive(g, before, a.Buffer, b.Buffer) {
				return false
			}
		}
	}
	return true
}

// clonePlan copies what tests change.
func clonePlan(p *Plan) *Plan {
	c := *p
	c.Streams = slices.Clone(p.Streams)
	for i := range c.Streams {
		c.Streams[i].Ops = slices.Clone(p.Streams[i].Ops)
	}
	c.Order = slices.Clone(p.Order)
	c.Memory = slices.Clone(p.Memory)
	return &c
}

// withoutOp takes one op out, given by stream and index.
func withoutOp(p *Plan, stream, index int) *Plan {
	c := clonePlan(p)
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

// thinned takes waits out of a plan, at most so many.
func thinned(rng *rand.Rand, p *Plan, most int) *Plan {
	for range rng.IntN(most + 1) {
		var waits [][2]int
		for s := range p.Streams {
			for i, op := range p.Streams[s].Ops {
				if op.Kind == Wait {
					waits = append(waits, [2]int{s, i})
				}
			}
		}
		if len(waits) > 0 {
			w := waits[rng.IntN(len(waits))]
			p = withoutOp(p, w[0], w[1])
		}
	}
	return p
}
