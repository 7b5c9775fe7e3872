// Tests of the simulator and the lower bound: single effects computed by hand, invariants on random pipelines. Nothing is timed.

package model_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// spans prints a timeline: node start-end cause(by).
func spans(g *dag.Graph, t *plan.Timeline) string {
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

func simulated(tb testing.TB, g *dag.Graph, p *planner.Plan, m *model.Machine) string {
	tb.Helper()
	timeline, err := model.Simulate(g, p, m, nil)
	require.NoError(tb, err)
	return spans(g, timeline)
}

func TestSimulateStreamsAndHost(t *testing.T) {
	g := plantest.KernelGraph(t, plantest.KernelSpec{Us: 10}, plantest.KernelSpec{Us: 5}, plantest.KernelSpec{Us: 1})
	p := plantest.ByHand(t, g, "0 0 1 1 0", "launch a, record 0, launch b", "wait 0, launch c")
	// The host has submitted a at 2, the record at 2.5, the wait at 3, c at 5 and b at 7. a ends at 12; b may start one gap later
	// and c one sync later.
	assert.Equal(t, "a 2-12 host\nb 13-18 stream order a\nc 13.25-14.25 wait a\n", simulated(t, g, p, plantest.Model()))

	// Without waits, the host's submission limits the speed.
	g = plantest.KernelGraph(t, plantest.KernelSpec{Us: 0.5}, plantest.KernelSpec{Us: 1})
	assert.Equal(t, "a 2-2.5 host\nb 4-5 host\n", simulated(t, g, plantest.ByHand(t, g, "0 0", "launch a, launch b"), plantest.Model()))
	assert.Equal(t, "a 0-0.5 start\nb 0.5-1.5 stream order a\n", simulated(t, g, plantest.ByHand(t, g, "0 0", "launch a, launch b"), model.Unit()))

	timeline, err := model.SimulateGraph(g, plantest.ByHand(t, g, "0 1", "launch a", "launch b"), plantest.Model(), nil)
	require.NoError(t, err)
	assert.Equal(t, "a 0-0.5 start\nb 0.125-1.125 issue a\n", spans(g, timeline))
	timeline, err = model.SimulateGraph(g, plantest.ByHand(t, g, "0 0 1 1", "launch a, record 0", "wait 0, launch b"), plantest.Model(), nil)
	require.NoError(t, err)
	assert.Equal(t, "a 0-0.5 start\nb 1-2 wait a\n", spans(g, timeline))
	assert.Empty(t, timeline.Host)
}

func TestSimulateSharing(t *testing.T) {
	all := int64(132 * 8)
	two := func(specs ...plantest.KernelSpec) string {
		g := plantest.KernelGraph(t, specs...)
		var order string
		var streams []string
		for i := range specs {
			order += fmt.Sprintf("%d ", i)
			streams = append(streams, "launch "+g.Nodes[i].Name)
		}
		return simulated(t, g, plantest.ByHand(t, g, order, streams...), plantest.Free())
	}
	assert.Equal(t, "a 0-20 start\nb 0-20 start\n", two(plantest.KernelSpec{Us: 10, Blocks: all}, plantest.KernelSpec{Us: 10, Blocks: all}),
		"two that fill the device gain nothing")
	assert.Equal(t, "a 0-10 start\nb 0-10 start\n", two(plantest.KernelSpec{Us: 10, Blocks: 132}, plantest.KernelSpec{Us: 10, Blocks: 132}),
		"two halves fit")
	assert.Equal(t, "a 0-15 start\nb 0-20 start\n", two(plantest.KernelSpec{Us: 7.5, Blocks: all}, plantest.KernelSpec{Us: 12.5, Blocks: all}),
		"the rest of the longer goes at full speed")
	assert.Equal(t, "a 0-20 start\nb 0-10 start\n",
		two(plantest.KernelSpec{Us: 10, Blocks: all}, plantest.KernelSpec{Us: 10, Blocks: all, Priority: dag.High}), "high priority is not slowed")
	assert.Equal(t, "a 0-10 start\nb 0-10 start\n", two(plantest.KernelSpec{Us: 10}, plantest.KernelSpec{Us: 10, Blocks: all}),
		"a node of unknown size runs beside")
}

func TestSimulateCopyEngines(t *testing.T) {
	b := dag.New("copies")
	n := int64(9000)
	host, pageable := b.Host("h", dag.U8, 2*n), b.Buffer(dag.Buffer{Name: "p", Place: dag.Host, Pageable: true, DType: dag.U8, Shape: []int64{n}})
	device := b.Device("d", dag.U8, 3*n)
	part := func(buffer dag.BufferID, k int64) dag.Range {
		return dag.Range{Buffer: buffer, Lo: k * n, Hi: (k + 1) * n}
	}
	b.Copy("a", part(device, 0), part(host, 0))
	b.Copy("b", part(device, 1), part(host, 1))
	b.Copy("c", part(device, 2), part(pageable, 0))
	b.Task("d")
	g, err := b.Graph()
	require.NoError(t, err)
	p := plantest.ByHand(t, g, "0 1 2 3", "launch a", "launch b", "launch c", "launch d")
	m := plantest.Free()
	assert.Equal(t, "a 0-10 start\nb 10-20 engine a\nc 20-30 engine b\nd 30-31 host c\n", simulated(t, g, p, m),
		"one copy at a time; a pageable copy holds the host")
	m.CopyEngines = 2
	assert.Equal(t, "a 0-10 start\nb 0-10 start\nc 10-20 engine b\nd 20-21 host c\n", simulated(t, g, p, m))

	timeline, err := model.Simulate(g, p, plantest.Free(), nil)
	require.NoError(t, err)
	assert.Equal(t, []dag.NodeID{0, 1, 2, 3}, timeline.CriticalPath())
	busy, gaps := timeline.Engines(0)
	assert.Equal(t, []plan.Busy{{Device: 0, Engine: plan.Compute, Nodes: 1, US: 1, LoadUS: 1}, {Device: 0, Engine: plan.Upload, Nodes: 3, US: 30, LoadUS: 30}}, busy)
	assert.Equal(t, []plan.Gap{{Device: 0, Engine: plan.Compute, Start: 0, End: 30, Next: 3}}, gaps)
}

// The driver makes copies within host memory itself, when what comes before them is done, and starts nothing meanwhile: neither on streams nor of a graph.
func TestSimulateTheHostMakesCopiesWithinItsMemory(t *testing.T) {
	b := dag.New("copies")
	n := int64(9000)
	from, to, device, other := b.Host("f", dag.U8, n), b.Host("t", dag.U8, n), b.Device("d", dag.U8, n), b.Device("o", dag.U8, n)
	b.Copy("down", b.Whole(from), b.Whole(device))
	b.Task("early", b.InOut(other))
	b.Copy("within", b.Whole(to), b.Whole(from))
	b.Task("late", b.InOut(other))
	g, err := b.Graph()
	require.NoError(t, err)
	g.Nodes[1].CostUS, g.Nodes[1].HasCost = 15, true
	m := plantest.Free()
	m.HostToHost = 900
	p := plantest.ByHand(t, g, "0 1 0 1", "launch down, launch within", "launch early, launch late")
	want := "down 0-10 start\nearly 0-15 start\nwithin 10-20 stream order down\nlate 20-21 host within\n"
	assert.Equal(t, want, simulated(t, g, p, m))
	timeline, err := model.SimulateGraph(g, p, m, nil)
	require.NoError(t, err)
	assert.Equal(t, want, spans(g, timeline))
	us, err := model.Repeated(g, p, m, nil, false)
	require.NoError(t, err)
	assert.InDelta(t, 21, us, 1e-9, "replays cannot overlap either")
	m.Cores = 4
	assert.Contains(t, simulated(t, g, p, m), " stream order early", "cores make copies in their streams")
}

func TestSimulateAnEngineGoesOnWithItsStream(t *testing.T) {
	b := dag.New("copies")
	n := int64(9000)
	host, device := b.Host("h", dag.U8, 5*n), b.Device("d", dag.U8, 5*n)
	for k, name := range []string{"a", "b", "c", "d", "e"} {
		part := func(buffer dag.BufferID) dag.Range {
			return dag.Range{Buffer: buffer, Lo: int64(k) * n, Hi: int64(k+1) * n}
		}
		b.Copy(name, part(device), part(host))
	}
	b.Task("task")
	g, err := b.Graph()
	require.NoError(t, err)
	m := plantest.Free()
	p := plantest.ByHand(t, g, "0 1 0 1 0 0", "launch a, launch c, launch task, launch e", "launch b, launch d")
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
	part := func(buffer dag.BufferID, lo, hi int64) dag.Range { return dag.Range{Buffer: buffer, Lo: lo, Hi: hi} }
	b.Copy("up", part(device, 0, n), part(host, 0, n))
	b.Copy("more", part(device, n, 2*n), part(host, n, 2*n))
	b.Copy("down", part(host, 2*n, 3*n), part(device, 2*n, 3*n))
	g, err := b.Graph()
	require.NoError(t, err)
	p := plantest.ByHand(t, g, "0 0 1", "launch up, launch more", "launch down")
	m := plantest.Free()
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
	g := plantest.KernelGraph(t, plantest.KernelSpec{Us: 1}, plantest.KernelSpec{Us: 1})
	launch := func(node dag.NodeID) plan.Op { return plan.Op{Kind: plan.Launch, Node: node, Event: -1} }
	for _, c := range []struct {
		want string
		plan planner.Plan
	}{
		{`"b" is never launched (only 1 of 2 nodes are)`, planner.Plan{Streams: []plan.Stream{{Ops: []plan.Op{launch(0)}}}, Order: []int32{0}}},
		{`stream 0, op 1 launches "a", which was launched before`, planner.Plan{Streams: []plan.Stream{{Ops: []plan.Op{launch(0), launch(0)}}}, Order: []int32{0, 0}}},
		{`stream 0, op 0 launches node 7, but the graph has 2 nodes`, planner.Plan{Streams: []plan.Stream{{Ops: []plan.Op{launch(7)}}}, Order: []int32{0}}},
		{`the submission order has 1 ops, the streams have 0`, planner.Plan{Order: []int32{5}}},
		{`the submission order has more ops of stream 1 than the stream has`, planner.Plan{Streams: []plan.Stream{{Ops: []plan.Op{launch(0)}}}, Order: []int32{1}}},
		{`the submission order has more ops of stream -1 than the stream has`, planner.Plan{Streams: []plan.Stream{{Ops: []plan.Op{launch(0)}}}, Order: []int32{-1}}},
		{`stream 0, op 0 uses event 0, but the plan has 0 events`, planner.Plan{Streams: []plan.Stream{{Ops: []plan.Op{{Kind: plan.Wait, Node: 0, Event: 0}}}}, Order: []int32{0}}},
		{`stream 0, op 0 waits for event 0 before it is recorded`, planner.Plan{Events: 1, Streams: []plan.Stream{{Ops: []plan.Op{{Kind: plan.Wait, Node: 0, Event: 0}}}}, Order: []int32{0}}},
		{`stream 0, op 0 is of kind 9`, planner.Plan{Streams: []plan.Stream{{Ops: []plan.Op{{Kind: 9, Node: 0, Event: 0}}}}, Order: []int32{0}}},
		{`2147483647 events for 0 ops`, planner.Plan{Events: 1<<31 - 1}},
	} {
		_, err := model.Simulate(g, &c.plan, model.Unit(), nil)
		require.EqualError(t, err, "malformed plan: "+c.want)
		_, err = model.Simulate(g, &c.plan, model.H200(), nil)
		require.EqualError(t, err, "malformed plan: "+c.want)
	}
}

// simulateAs simulates on streams or as a graph.
func simulateAs(g *dag.Graph, p *planner.Plan, m *model.Machine, graph bool) (*plan.Timeline, error) {
	if graph {
		return model.SimulateGraph(g, p, m, nil)
	}
	return model.Simulate(g, p, m, nil)
}

// The invariants: nothing starts before what it depends on has ended and a gap has passed, copies of one engine do not overlap, kernels never use
// more than the whole device, and no run beats the lower bound.
func TestSimulateLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.Mixed(t, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "nodes"))
		streams := rapid.IntRange(1, 5).Draw(t, "streams")
		m := rapid.SampledFrom([]*model.Machine{model.H200(), plantest.Model(), plantest.Free(), model.Unit()}).Draw(t, "machine")
		m.CopyEngines = rapid.IntRange(1, 2).Draw(t, "engines")
		m.CopySwitchUS = rapid.SampledFrom([]float64{0, 5}).Draw(t, "switch")
		m.GraphSwitchUS = rapid.SampledFrom([]float64{0, 2}).Draw(t, "switch in a graph")
		m.EngineUS = rapid.SampledFrom([]float64{0, 4}).Draw(t, "change of engines")
		m.BothWays = rapid.SampledFrom([]float64{0, 0.5, 0.9, 1}).Draw(t, "both ways")
		made, err := planner.New(context.Background(), g, planner.Options{Strategy: rapid.SampledFrom([]string{"serial", "roundrobin", "list"}).Draw(t, "strategy"),
			Streams: streams, Machine: m})
		require.NoError(t, err)
		for _, graph := range []bool{false, true} {
			timeline, err := simulateAs(g, made, m, graph)
			require.NoError(t, err)
			again, err := simulateAs(g, made, m, graph)
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
				if s.Engine != plan.Compute && s.Engine != plan.Upload && s.Engine != plan.Download {
					require.InDelta(t, s.Alone, s.End-s.Start, 1e-6)
				}
				if s.Cause == plan.AfterQueue {
					change := 0.0
					if s.Engine == plan.Upload || s.Engine == plan.Download {
						if change = m.CopySwitchUS; graph {
							change = min(change, m.GraphSwitchUS)
						}
					}
					require.InDelta(t, s.Start, timeline.Nodes[s.By].End+change, 1e-9)
				}
			}
			turns(t, g, m, timeline)
			ways(t, m, timeline)
			shares(t, g, made, m, timeline)
			bound := model.LowerBound(g, m, nil, streams)
			if graph {
				bound = model.LowerBoundGraph(g, m, nil, streams)
			}
			require.LessOrEqual(t, bound.US(), timeline.MakespanUS*slack+1e-9, "%+v", bound)
			path := timeline.CriticalPath()
			require.Equal(t, timeline.MakespanUS, timeline.Nodes[path[len(path)-1]].End)
			for k := 1; k < len(path); k++ {
				require.Equal(t, path[k-1], timeline.Nodes[path[k]].By)
			}
			require.Equal(t, dag.NodeID(-1), timeline.Nodes[path[0]].By)
		}
	})
}

// A copy that waits for several nodes enters its engine after a copy that is issued later: the later one is then the reason why the first
// waits, and must not name the first as its own.
func TestOfTwoNodesOneIsTheCause(t *testing.T) {
	g := plantest.Mixed(t, 2, 23)
	m := model.H200()
	m.CopyEngines, m.CopySwitchUS, m.GraphSwitchUS, m.EngineUS, m.BothWays = 1, 0, 0, 0, 0
	made, err := planner.New(context.Background(), g, planner.Options{Strategy: "serial", Streams: 1, Machine: m})
	require.NoError(t, err)
	timeline, err := model.SimulateGraph(g, made, m, nil)
	require.NoError(t, err)
	path := timeline.CriticalPath()
	assert.Equal(t, dag.NodeID(-1), timeline.Nodes[path[0]].By)
	later := timeline.Nodes[22]
	assert.Equal(t, plan.AfterIssue, later.Cause)
	assert.Equal(t, dag.NodeID(22), timeline.Nodes[20].By, "copy 20 waits for the engine until copy 22 is made")
	assert.Less(t, timeline.Nodes[later.By].End, later.Start)
}

// turns checks at every start that no copy engine has more copies than it can run, and checks the total work of the kernels.
func turns(t *rapid.T, g *dag.Graph, m *model.Machine, timeline *plan.Timeline) {
	if m.Unit {
		return
	}
	area := [2]float64{}
	for i, s := range timeline.Nodes {
		if s.Engine == plan.Compute {
			area[s.Device] += s.Alone * m.Share(&g.Nodes[i])
			continue
		}
		room := 1
		if s.Engine == plan.Upload || s.Engine == plan.Download {
			room = m.CopyEngines
		}
		count := 0
		for j, o := range timeline.Nodes {
			same := o.Engine == s.Engine && (o.Device == s.Device || s.Engine == plan.HostCopy)
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

// ways integrates the speed of each copy over its span, given the copies in the other direction: the result must be its time alone.
func ways(t *rapid.T, m *model.Machine, timeline *plan.Timeline) {
	slowed := m.BothWays
	if m.Unit || slowed == 0 {
		slowed = 1
	}
	for i, s := range timeline.Nodes {
		if s.Engine != plan.Upload && s.Engine != plan.Download {
			continue
		}
		times := []float64{s.Start, s.End}
		var other []plan.Span
		for _, o := range timeline.Nodes {
			if o.Device == s.Device && (o.Engine == plan.Upload || o.Engine == plan.Download) && o.Engine != s.Engine && o.Start < s.End && o.End > s.Start {
				other = append(other, o)
				times = append(times, max(o.Start, s.Start), min(o.End, s.End))
			}
		}
		slices.Sort(times)
		done := 0.0
		for k := 1; k < len(times); k++ {
			speed := 1.0
			if slices.ContainsFunc(other, func(o plan.Span) bool { return o.Start < times[k] && o.End > times[k-1] }) {
				speed = slowed
			}
			done += (times[k] - times[k-1]) * speed
		}
		require.InDelta(t, s.Alone, done, 1e-5, "node %d", i)
	}
}

// shares integrates the speed of each kernel over its span, given the kernels beside it: the result must be its time alone.
func shares(t *rapid.T, g *dag.Graph, p *planner.Plan, m *model.Machine, timeline *plan.Timeline) {
	if m.Unit {
		return
	}
	for d := range int32(2) {
		var times []float64
		var kernels []int32
		for i, s := range timeline.Nodes {
			if s.Engine == plan.Compute && s.Device == d && m.Share(&g.Nodes[i]) > 0 {
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
				demand[1-priority(i)] += m.Share(&g.Nodes[i])
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

// On a machine where only nodes take time, the event loop and the single pass for the unit machine agree to the last bit.
func TestUnitPassAgreesWithEvents(t *testing.T) {
	zero := &model.Machine{Name: "zero", CopyEngines: 1}
	rapid.Check(t, func(t *rapid.T) {
		s := plantest.RandomShape(rapid.IntRange(0, len(plantest.Families)-1).Draw(t, "family"), rapid.IntRange(2, 200).Draw(t, "nodes"), rapid.Uint64().Draw(t, "seed"))
		b := dag.New("zero")
		for i, preds := range s.Preds {
			b.At(dag.NodeID(s.Declare(b, i))).After = plantest.IDs(preds)
		}
		g, err := b.Graph()
		require.NoError(t, err)
		plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "list", Streams: rapid.IntRange(1, 8).Draw(t, "streams"), Machine: model.Unit()})
		require.NoError(t, err)
		unit, err := model.Simulate(g, plan, model.Unit(), nil)
		require.NoError(t, err)
		events, err := model.Simulate(g, plan, zero, nil)
		require.NoError(t, err)
		require.Equal(t, unit.MakespanUS, events.MakespanUS)
		for i := range unit.Nodes {
			require.Equal(t, unit.Nodes[i].Start, events.Nodes[i].Start, "node %d", i)
			require.Equal(t, unit.Nodes[i].End, events.Nodes[i].End, "node %d", i)
		}
	})
}

func TestLowerBoundParts(t *testing.T) {
	g := plantest.KernelGraph(t, plantest.KernelSpec{Us: 10, Blocks: 132 * 8}, plantest.KernelSpec{Us: 6, Blocks: 132 * 8}, plantest.KernelSpec{Us: 1})
	assert.Equal(t, model.Bound{CriticalPathUS: 10, EngineUS: 16, StreamsUS: 8.5, HostUS: 1}, model.LowerBound(g, plantest.Free(), nil, 2))
	assert.Equal(t, model.Bound{CriticalPathUS: 12, EngineUS: 18, StreamsUS: 2 + (17+1)/2., HostUS: 7}, model.LowerBound(g, plantest.Model(), nil, 2))
	assert.Equal(t, model.Bound{CriticalPathUS: 10, StreamsUS: 8.5, HostUS: 1}, model.LowerBound(g, model.Unit(), nil, 2))
	assert.Equal(t, 16.0, model.LowerBound(g, plantest.Free(), nil, 0).US())
	assert.Zero(t, model.LowerBound(plantest.KernelGraph(t), model.H200(), nil, 0).US())
}

func BenchmarkSimulate(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		if n > 100_000 && testing.Short() {
			continue
		}
		g := plantest.GrowthShape(n).Ordered(b)
		plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "list", Streams: 8})
		require.NoError(b, err)
		for _, m := range []*model.Machine{model.Unit(), model.H200()} {
			b.Run(fmt.Sprintf("%s/%d", m.Name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := model.Simulate(g, plan, m, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
			})
		}
	}
}
