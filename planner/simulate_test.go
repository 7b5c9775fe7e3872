// Tests of the simulator and the lower bound: single effects by hand, laws on random pipelines. Measures no times.

package planner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
)

// model is a machine of round figures.
func model() *Machine {
	m := H200()
	m.Name = "model"
	m.LaunchUS, m.EventUS, m.SyncUS, m.GapUS, m.GraphNodeUS, m.GraphIssueUS = 2, 0.5, 0.25, 1, 0.5, 0.125
	m.KernelUS, m.CopyUS, m.CopySwitchUS = 1, 1, 0
	m.HostToDevice, m.DeviceToHost = 1000, 1000
	return m
}

// free is a machine on which submission, waits and gaps cost nothing, but engines take turns.
func free() *Machine {
	m := model()
	m.LaunchUS, m.EventUS, m.SyncUS, m.GapUS, m.GraphNodeUS, m.GraphIssueUS = 0, 0, 0, 0, 0, 0
	return m
}

// byHand makes a plan from one line a stream, such as "launch a, record 0, wait 1, launch b", and an order of stream numbers.
func byHand(tb testing.TB, g *dag.Graph, order string, streams ...string) *Plan {
	tb.Helper()
	p := &Plan{Name: g.Name}
	after := map[int32]int32{}
	for _, line := range streams {
		stream := Stream{}
		last := int32(-1)
		for _, text := range strings.Split(line, ", ") {
			word, rest, _ := strings.Cut(text, " ")
			op := Op{Node: -1, Event: -1}
			switch word {
			case "launch":
				for i := range g.Nodes {
					if g.Nodes[i].Name == rest {
						op.Node = int32(i)
					}
				}
				require.GreaterOrEqual(tb, op.Node, int32(0), rest)
				last = op.Node
				stream.Device, stream.Priority = g.Nodes[last].Device, g.Nodes[last].Priority
			case "record", "wait":
				_, err := fmt.Sscan(rest, &op.Event)
				require.NoError(tb, err)
				p.Events = max(p.Events, op.Event+1)
				op.Kind = Wait
				if word == "record" {
					op.Kind, op.Node = Record, last
					after[op.Event] = last
				}
			default:
				tb.Fatalf("no op %q", text)
			}
			stream.Ops = append(stream.Ops, op)
		}
		p.Streams = append(p.Streams, stream)
	}
	for k := range p.Streams {
		for i := range p.Streams[k].Ops {
			if op := &p.Streams[k].Ops[i]; op.Kind == Wait {
				op.Node = after[op.Event]
			}
		}
	}
	for _, c := range strings.Fields(order) {
		p.Order = append(p.Order, int32(c[0]-'0'))
	}
	return p
}

// kernels makes one kernel per entry, in one buffer each: declared cost, blocks (of 256 threads), priority.
type kernelSpec struct {
	us       float64
	blocks   int64
	priority dag.Priority
}

func kernelGraph(tb testing.TB, specs ...kernelSpec) *dag.Graph {
	b := dag.New("kernels")
	for i, k := range specs {
		buffer := b.Device(fmt.Sprintf("d%d", i), dag.F32, 1)
		b.Node(dag.Node{Name: string(rune('a' + i)), Kind: dag.Task, Stream: -1, Priority: k.priority, HasCost: true, CostUS: k.us,
			Work: dag.Work{Blocks: k.blocks, Threads: 256}}, b.Out(buffer))
	}
	g, err := b.Graph()
	require.NoError(tb, err)
	return g
}

// spans prints a timeline: node start-end cause(by).
func spans(g *dag.Graph, t *Timeline) string {
	var b strings.Builder
	for i, s := range t.Nodes {
		by := ""
		if s.By >= 0 {
			by = " " + g.Nodes[s.By].Name
		}
		fmt.Fprintf(&b, "%s %g-%g %v%s\n", g.Nodes[i].Name, s.Start, s.End, s.Cause, by)
	}
	return b.String()
}

func simulated(tb testing.TB, g *dag.Graph, p *Plan, m *Machine) string {
	tb.Helper()
	timeline, err := Simulate(g, p, m, nil)
	require.NoError(tb, err)
	return spans(g, timeline)
}

func TestSimulateStreamsAndHost(t *testing.T) {
	g := kernelGraph(t, kernelSpec{us: 10}, kernelSpec{us: 5}, kernelSpec{us: 1})
	p := byHand(t, g, "0 0 1 1 0", "launch a, record 0, launch b", "wait 0, launch c")
	// The host has a submitted at 2, the record at 2.5, the wait at 3, c at 5 and b at 7. a ends at 12; a gap later b may start,
	// and a sync later c.
	assert.Equal(t, "a 2-12 host\nb 13-18 stream order a\nc 13.25-14.25 wait a\n", simulated(t, g, p, model()))

	// Nothing to wait for: the host's pace shows.
	g = kernelGraph(t, kernelSpec{us: 0.5}, kernelSpec{us: 1})
	assert.Equal(t, "a 2-2.5 host\nb 4-5 host\n", simulated(t, g, byHand(t, g, "0 0", "launch a, launch b"), model()))
	assert.Equal(t, "a 0-0.5 start\nb 0.5-1.5 stream order a\n", simulated(t, g, byHand(t, g, "0 0", "launch a, launch b"), Unit()))

	timeline, err := SimulateGraph(g, byHand(t, g, "0 1", "launch a", "launch b"), model(), nil)
	require.NoError(t, err)
	assert.Equal(t, "a 0-0.5 start\nb 0.125-1.125 issue a\n", spans(g, timeline))
	timeline, err = SimulateGraph(g, byHand(t, g, "0 0 1 1", "launch a, record 0", "wait 0, launch b"), model(), nil)
	require.NoError(t, err)
	assert.Equal(t, "a 0-0.5 start\nb 1-2 wait a\n", spans(g, timeline))
	assert.Empty(t, timeline.Host)
}

func TestSimulateSharing(t *testing.T) {
	all := int64(132 * 8)
	two := func(specs ...kernelSpec) string {
		g := kernelGraph(t, specs...)
		var order string
		var streams []string
		for i := range specs {
			order += fmt.Sprintf("%d ", i)
			streams = append(streams, "launch "+g.Nodes[i].Name)
		}
		return simulated(t, g, byHand(t, g, order, streams...), free())
	}
	assert.Equal(t, "a 0-20 start\nb 0-20 start\n", two(kernelSpec{us: 10, blocks: all}, kernelSpec{us: 10, blocks: all}),
		"two that fill the device gain nothing")
	assert.Equal(t, "a 0-10 start\nb 0-10 start\n", two(kernelSpec{us: 10, blocks: 132}, kernelSpec{us: 10, blocks: 132}),
		"two halves fit")
	assert.Equal(t, "a 0-15 start\nb 0-20 start\n", two(kernelSpec{us: 7.5, blocks: all}, kernelSpec{us: 12.5, blocks: all}),
		"the rest of the longer goes at full speed")
	assert.Equal(t, "a 0-20 start\nb 0-10 start\n",
		two(kernelSpec{us: 10, blocks: all}, kernelSpec{us: 10, blocks: all, priority: dag.High}), "high priority is not slowed")
	assert.Equal(t, "a 0-10 start\nb 0-10 start\n", two(kernelSpec{us: 10}, kernelSpec{us: 10, blocks: all}),
		"a node of unknown size runs beside")
}

func TestSimulateCopyEngines(t *testing.T) {
	b := dag.New("copies")
	n := int64(9000)
	host, pageable := b.Host("h", dag.U8, 2*n), b.Buffer(dag.Buffer{Name: "p", Place: dag.Host, Pageable: true, DType: dag.U8, Shape: []int64{n}})
	device := b.Device("d", dag.U8, 3*n)
	part := func(buffer int32, k int64) dag.Range { return dag.Range{Buffer: buffer, Lo: k * n, Hi: (k + 1) * n} }
	b.Copy("a", part(device, 0), part(host, 0))
	b.Copy("b", part(device, 1), part(host, 1))
	b.Copy("c", part(device, 2), part(pageable, 0))
	b.Task("d")
	g, err := b.Graph()
	require.NoError(t, err)
	p := byHand(t, g, "0 1 2 3", "launch a", "launch b", "launch c", "launch d")
	m := free()
	assert.Equal(t, "a 0-10 start\nb 10-20 engine a\nc 20-30 engine b\nd 30-31 host c\n", simulated(t, g, p, m),
		"one copy at a time; a pageable copy holds the host")
	m.CopyEngines = 2
	assert.Equal(t, "a 0-10 start\nb 0-10 start\nc 10-20 engine b\nd 20-21 host c\n", simulated(t, g, p, m))

	timeline, err := Simulate(g, p, free(), nil)
	require.NoError(t, err)
	assert.Equal(t, []int32{0, 1, 2, 3}, timeline.CriticalPath())
	busy, gaps := timeline.Engines(0)
	assert.Equal(t, []Busy{{0, Compute, 1, 1, 1}, {0, Upload, 3, 30, 30}}, busy)
	assert.Equal(t, []Gap{{0, Compute, 0, 30, 3}}, gaps)
}

func TestSimulateAnEngineGoesOnWithItsStream(t *testing.T) {
	b := dag.New("copies")
	n := int64(9000)
	host, device := b.Host("h", dag.U8, 5*n), b.Device("d", dag.U8, 5*n)
	for k, name := range []string{"a", "b", "c", "d", "e"} {
		part := func(buffer int32) dag.Range { return dag.Range{Buffer: buffer, Lo: int64(k) * n, Hi: int64(k+1) * n} }
		b.Copy(name, part(device), part(host))
	}
	b.Task("task")
	g, err := b.Graph()
	require.NoError(t, err)
	m := free()
	p := byHand(t, g, "0 1 0 1 0 0", "launch a, launch c, launch task, launch e", "launch b, launch d")
	assert.Equal(t, "a 0-10 start\nb 20-30 engine c\nc 10-20 stream order a\nd 30-40 stream order b\ne 40-50 engine d\ntask 20-21 stream order c\n",
		simulated(t, g, p, m), "c before b, though b was ready first; e only when the engine has left its stream")
	m.CopySwitchUS = 3
	assert.Equal(t, "a 0-10 start\nb 23-33 engine c\nc 10-20 stream order a\nd 33-43 stream order b\ne 46-56 engine d\ntask 20-21 stream order c\n",
		simulated(t, g, p, m), "to change streams takes time, to stay takes none")
	m.CopyEngines = 2
	assert.Equal(t, "a 0-10 start\nb 0-10 start\nc 10-20 stream order a\nd 10-20 stream order b\ne 21-31 stream order task\ntask 20-21 stream order c\n", simulated(t, g, p, m))
}

func TestSimulateCopiesBothWays(t *testing.T) {
	b := dag.New("both")
	n := int64(9000)
	host, device := b.Host("h", dag.U8, 3*n), b.Device("d", dag.U8, 3*n)
	part := func(buffer int32, lo, hi int64) dag.Range { return dag.Range{Buffer: buffer, Lo: lo, Hi: hi} }
	b.Copy("up", part(device, 0, n), part(host, 0, n))
	b.Copy("more", part(device, n, 2*n), part(host, n, 2*n))
	b.Copy("down", part(host, 2*n, 3*n), part(device, 2*n, 3*n))
	g, err := b.Graph()
	require.NoError(t, err)
	p := byHand(t, g, "0 0 1", "launch up, launch more", "launch down")
	m := free()
	m.BothWays = 0
	assert.Equal(t, "up 0-10 start\nmore 10-20 stream order up\ndown 0-10 start\n", simulated(t, g, p, m), "nothing is said of both ways")
	m.BothWays = 1
	assert.Equal(t, "up 0-10 start\nmore 10-20 stream order up\ndown 0-10 start\n", simulated(t, g, p, m))
	m.BothWays = 0.5
	assert.Equal(t, "up 0-20 start\nmore 20-30 stream order up\ndown 0-20 start\n", simulated(t, g, p, m), "at half the rate while both run, then at all of it")
	m.DeviceToHost = m.DeviceToHost * 2 / 3
	assert.Equal(t, "up 0-20 start\nmore 20-34.5 stream order up\ndown 0-29 start\n", simulated(t, g, p, m), "what is left when the other way is free goes faster")
}

func TestSimulateRefusesMalformedPlans(t *testing.T) {
	g := kernelGraph(t, kernelSpec{us: 1}, kernelSpec{us: 1})
	launch := func(node int32) Op { return Op{Launch, node, -1} }
	for _, c := range []struct {
		want string
		plan Plan
	}{
		{`"b" is never launched (1 of 2 nodes are)`, Plan{Streams: []Stream{{Ops: []Op{launch(0)}}}, Order: []int32{0}}},
		{`stream 0, op 1 launches "a", which was launched before`, Plan{Streams: []Stream{{Ops: []Op{launch(0), launch(0)}}}, Order: []int32{0, 0}}},
		{`stream 0, op 0 launches node 7 of 2`, Plan{Streams: []Stream{{Ops: []Op{launch(7)}}}, Order: []int32{0}}},
		{`the submission order has 1 ops, the streams have 0`, Plan{Order: []int32{5}}},
		{`the submission order has more ops of stream 1 than the stream has`, Plan{Streams: []Stream{{Ops: []Op{launch(0)}}}, Order: []int32{1}}},
		{`the submission order has more ops of stream -1 than the stream has`, Plan{Streams: []Stream{{Ops: []Op{launch(0)}}}, Order: []int32{-1}}},
		{`stream 0, op 0: event 0 of 0`, Plan{Streams: []Stream{{Ops: []Op{{Wait, 0, 0}}}}, Order: []int32{0}}},
		{`stream 0, op 0 waits for event 0 before it is recorded`, Plan{Events: 1, Streams: []Stream{{Ops: []Op{{Wait, 0, 0}}}}, Order: []int32{0}}},
		{`stream 0, op 0 is of kind 9`, Plan{Streams: []Stream{{Ops: []Op{{9, 0, 0}}}}, Order: []int32{0}}},
		{`2147483647 events for 0 ops`, Plan{Events: 1<<31 - 1}},
	} {
		_, err := Simulate(g, &c.plan, Unit(), nil)
		require.EqualError(t, err, "malformed plan: "+c.want)
		_, err = Simulate(g, &c.plan, H200(), nil)
		require.EqualError(t, err, "malformed plan: "+c.want)
	}
}

// mixed makes a random pipeline with copies of all kinds, kernels of all sizes, priorities and two devices.
func mixed(tb require.TestingT, seed uint64, n int) *dag.Graph {
	rng := rand.New(rand.NewPCG(seed, 0x5eed))
	b := dag.New("mixed")
	const size = 1 << 16
	var hosts, devices [2][]int32
	for d := range int32(2) {
		for k := range 3 {
			hosts[d] = append(hosts[d], b.Buffer(dag.Buffer{Name: fmt.Sprintf("h%d.%d", d, k), Place: dag.Host, Pageable: rng.IntN(8) == 0,
				DType: dag.U8, Shape: []int64{size}}))
			devices[d] = append(devices[d], b.Buffer(dag.Buffer{Name: fmt.Sprintf("d%d.%d", d, k), Place: dag.Device, Device: d, DType: dag.U8, Shape: []int64{size}}))
		}
	}
	slice := func(buffer int32) dag.Range {
		lo := rng.Int64N(size)
		return dag.Range{Buffer: buffer, Lo: lo, Hi: lo + 1 + rng.Int64N(size-lo)}
	}
	pick := func(of []int32) int32 { return of[rng.IntN(len(of))] }
	for i := range n {
		d := rng.IntN(2)
		node := dag.Node{Name: fmt.Sprintf("n%d", i), Kind: dag.Task, Stream: -1, Device: int32(d), Priority: dag.Priority(rng.IntN(3) - 1)}
		if rng.IntN(2) == 0 {
			src := slice(pick(hosts[d]))
			from, to := pick(hosts[d]), pick(devices[d])
			switch rng.IntN(5) {
			case 0:
				from, to = to, from
			case 1:
				from, to = pick(devices[d]), pick(devices[1-d])
			case 2:
				from, to = devices[d][0], devices[d][1]
			case 3:
				from, to = hosts[d][0], hosts[d][1]
			}
			src.Buffer = from
			dst := dag.Range{Buffer: to, Lo: src.Lo, Hi: src.Hi}
			id := b.Copy(node.Name, dst, src)
			b.At(id).Device, b.At(id).Priority = node.Device, node.Priority
			continue
		}
		node.Work = dag.Work{Bytes: rng.Int64N(1 << 24), Flops: rng.Int64N(1 << 30), Blocks: rng.Int64N(3000) * rng.Int64N(2), Threads: 32 << rng.IntN(6),
			Shared: rng.Int32N(64 << 10)}
		if rng.IntN(3) == 0 {
			node.HasCost, node.CostUS = true, float64(rng.IntN(40))
		}
		b.Node(node, dag.Access{Range: slice(pick(devices[d])), Mode: dag.Read}, dag.Access{Range: slice(pick(devices[d])), Mode: dag.Mode(1 + rng.IntN(3))})
	}
	if bind := seed % 4; bind > 0 {
		// Streams numbered by pool, so that no binding conflicts: of some nodes, of most, of all; the last under sync: explicit.
		for i := range int32(n) {
			if node := b.At(i); bind == 3 || rng.Uint64N(4) < bind {
				node.Stream = 2*(3*node.Device+int32(node.Priority)+1) + rng.Int32N(2)
			}
		}
		if bind == 3 && rng.IntN(2) == 0 {
			b.Sync(dag.SyncExplicit)
		}
	}
	g, err := b.Graph()
	require.NoError(tb, err)
	return g
}

// The laws: nothing starts before what it depends on has ended and a gap has passed, copies of one engine take turns, kernels never use
// more than the whole device, and no run beats the lower bound.
func TestSimulateLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := mixed(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "nodes"))
		streams := rapid.IntRange(1, 5).Draw(t, "streams")
		m := rapid.SampledFrom([]*Machine{H200(), model(), free(), Unit()}).Draw(t, "machine")
		m.CopyEngines = rapid.IntRange(1, 2).Draw(t, "engines")
		m.CopySwitchUS = rapid.SampledFrom([]float64{0, 5}).Draw(t, "switch")
		m.BothWays = rapid.SampledFrom([]float64{0, 0.5, 0.9, 1}).Draw(t, "both ways")
		plan, err := New(context.Background(), g, Options{Strategy: rapid.SampledFrom([]string{"serial", "roundrobin", "list"}).Draw(t, "strategy"),
			Streams: streams, Machine: m})
		require.NoError(t, err)
		for _, graph := range []bool{false, true} {
			durations := Durations(g, m, nil)
			timeline, err := simulatePlan(g, plan, m, durations, graph)
			require.NoError(t, err)
			again, err := simulatePlan(g, plan, m, durations, graph)
			require.NoError(t, err)
			require.Equal(t, timeline, again)
			gap := m.GapUS
			if graph {
				gap = m.GraphNodeUS
			}
			const slack = 1 + 1e-9
			for _, e := range g.Edges() {
				if g.Sync == dag.SyncExplicit && e.Why != dag.After {
					continue
				}
				require.LessOrEqual(t, timeline.Nodes[e.From].End+gap, timeline.Nodes[e.To].Start*slack+1e-9, "%v", e)
			}
			for i, s := range timeline.Nodes {
				require.GreaterOrEqual(t, (s.End-s.Start)*slack+1e-6, s.Alone, "node %d", i)
				if s.Engine != Compute && s.Engine != Upload && s.Engine != Download {
					require.InDelta(t, s.Alone, s.End-s.Start, 1e-6)
				}
				if s.Cause == AfterQueue {
					change := 0.0
					if s.Engine == Upload || s.Engine == Download {
						change = m.CopySwitchUS
					}
					require.InDelta(t, s.Start, timeline.Nodes[s.By].End+change, 1e-9)
				}
			}
			turns(t, g, m, timeline)
			ways(t, m, timeline)
			shares(t, g, plan, m, timeline)
			bound := lowerBound(g, m, durations, streams, graph)
			require.LessOrEqual(t, bound.US(), timeline.MakespanUS*slack+1e-9, "%+v", bound)
			path := timeline.CriticalPath()
			require.Equal(t, timeline.MakespanUS, timeline.Nodes[path[len(path)-1]].End)
			for k := 1; k < len(path); k++ {
				require.Equal(t, path[k-1], timeline.Nodes[path[k]].By)
			}
			require.Equal(t, int32(-1), timeline.Nodes[path[0]].By)
		}
	})
}

// turns checks at every start that no copy engine has more to do than it can, and the area of what kernels did.
func turns(t *rapid.T, g *dag.Graph, m *Machine, timeline *Timeline) {
	if m.Unit {
		return
	}
	area := [2]float64{}
	for i, s := range timeline.Nodes {
		if s.Engine == Compute {
			area[s.Device] += s.Alone * m.share(&g.Nodes[i])
			continue
		}
		room := 1
		if s.Engine == Upload || s.Engine == Download {
			room = m.CopyEngines
		}
		count := 0
		for j, o := range timeline.Nodes {
			same := o.Engine == s.Engine && (o.Device == s.Device || s.Engine == HostCopy)
			if same && (o.Start < s.Start || o.Start == s.Start && j <= i) && o.End > s.Start {
				count++
			}
		}
		require.LessOrEqual(t, count, max(1, room), "node %d", i)
	}
	for d := range area {
		require.LessOrEqual(t, area[d], timeline.MakespanUS*(1+1e-9))
	}
}

// ways integrates the speed of each copy over its span, from who ran the other way: that must be what it takes alone.
func ways(t *rapid.T, m *Machine, timeline *Timeline) {
	slowed := m.BothWays
	if m.Unit || slowed == 0 {
		slowed = 1
	}
	for i, s := range timeline.Nodes {
		if s.Engine != Upload && s.Engine != Download {
			continue
		}
		times := []float64{s.Start, s.End}
		var other []Span
		for _, o := range timeline.Nodes {
			if o.Device == s.Device && (o.Engine == Upload || o.Engine == Download) && o.Engine != s.Engine && o.Start < s.End && o.End > s.Start {
				other = append(other, o)
				times = append(times, max(o.Start, s.Start), min(o.End, s.End))
			}
		}
		slices.Sort(times)
		done := 0.0
		for k := 1; k < len(times); k++ {
			speed := 1.0
			if slices.ContainsFunc(other, func(o Span) bool { return o.Start < times[k] && o.End > times[k-1] }) {
				speed = slowed
			}
			done += (times[k] - times[k-1]) * speed
		}
		require.InDelta(t, s.Alone, done, 1e-5, "node %d", i)
	}
}

// shares integrates the speed of each kernel over its span, from who ran beside it: that must be what it takes alone.
func shares(t *rapid.T, g *dag.Graph, p *Plan, m *Machine, timeline *Timeline) {
	if m.Unit {
		return
	}
	for d := range int32(2) {
		var times []float64
		var kernels []int32
		for i, s := range timeline.Nodes {
			if s.Engine == Compute && s.Device == d && m.share(&g.Nodes[i]) > 0 {
				kernels = append(kernels, int32(i))
				times = append(times, s.Start, s.End)
			}
		}
		slices.Sort(times)
		done := make([]float64, g.Len())
		for k := 1; k < len(times); k++ {
			from, to := times[k-1], times[k]
			var demand [3]float64
			priority := func(i int32) dag.Priority { return p.Streams[timeline.Nodes[i].Stream].Priority }
			beside := slices.DeleteFunc(slices.Clone(kernels), func(i int32) bool { return timeline.Nodes[i].Start >= to || timeline.Nodes[i].End <= from })
			for _, i := range beside {
				demand[1-priority(i)] += m.share(&g.Nodes[i])
			}
			for _, i := range beside {
				free := 1.0
				for c := range 1 - priority(i) {
					free = max(0, free-demand[c])
				}
				done[i] += (to - from) * min(1, free/demand[1-priority(i)])
			}
		}
		for _, i := range kernels {
			require.InDelta(t, timeline.Nodes[i].Alone, done[i], 1e-5, "node %d", i)
		}
	}
}

// On a machine where nothing but nodes takes time, the event loop and the one pass of the unit machine agree to the last bit.
func TestUnitPassAgreesWithEvents(t *testing.T) {
	zero := &Machine{Name: "zero", CopyEngines: 1}
	rapid.Check(t, func(t *rapid.T) {
		s := randomShape(rapid.IntRange(0, len(families)-1).Draw(t, "family"), rapid.IntRange(2, 200).Draw(t, "nodes"), rapid.Uint64().Draw(t, "seed"))
		b := dag.New("zero")
		for i, preds := range s.preds {
			b.At(s.declare(b, i)).After = preds
		}
		g, err := b.Graph()
		require.NoError(t, err)
		plan, err := New(context.Background(), g, Options{Strategy: "list", Streams: rapid.IntRange(1, 8).Draw(t, "streams"), Machine: Unit()})
		require.NoError(t, err)
		unit, err := Simulate(g, plan, Unit(), nil)
		require.NoError(t, err)
		events, err := Simulate(g, plan, zero, nil)
		require.NoError(t, err)
		require.Equal(t, unit.MakespanUS, events.MakespanUS)
		for i := range unit.Nodes {
			require.Equal(t, unit.Nodes[i].Start, events.Nodes[i].Start, "node %d", i)
			require.Equal(t, unit.Nodes[i].End, events.Nodes[i].End, "node %d", i)
		}
	})
}

func TestLowerBoundParts(t *testing.T) {
	g := kernelGraph(t, kernelSpec{us: 10, blocks: 132 * 8}, kernelSpec{us: 6, blocks: 132 * 8}, kernelSpec{us: 1})
	assert.Equal(t, Bound{CriticalPathUS: 10, EngineUS: 16, StreamsUS: 8.5, HostUS: 1}, LowerBound(g, free(), nil, 2))
	assert.Equal(t, Bound{CriticalPathUS: 12, EngineUS: 18, StreamsUS: 2 + (17+1)/2., HostUS: 7}, LowerBound(g, model(), nil, 2))
	assert.Equal(t, Bound{CriticalPathUS: 10, StreamsUS: 8.5, HostUS: 1}, LowerBound(g, Unit(), nil, 2))
	assert.Equal(t, 16.0, LowerBound(g, free(), nil, 0).US())
	assert.Zero(t, LowerBound(kernelGraph(t), H200(), nil, 0).US())
}

func BenchmarkSimulate(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		if n > 100_000 && testing.Short() {
			continue
		}
		g := growthShape(n).ordered(b)
		plan, err := New(context.Background(), g, Options{Strategy: "list", Streams: 8})
		require.NoError(b, err)
		for _, m := range []*Machine{Unit(), H200()} {
			b.Run(fmt.Sprintf("%s/%d", m.Name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Simulate(g, plan, m, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
			})
		}
	}
}
