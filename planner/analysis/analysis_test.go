// Tests of analyses: of small runs whose answer is known, and of simulated ones, whose causes the simulator knows.

package analysis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/analysis"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// planned plans a graph with a strategy.
func planned(t require.TestingT, b *dag.Builder, strategy string) (*dag.Graph, *planner.Plan) {
	g, err := b.Graph()
	require.NoError(t, err)
	p, err := planner.New(context.Background(), g, planner.Options{Strategy: strategy, Machine: planner.H200()})
	require.NoError(t, err)
	return g, p
}

// ran is a replay in which node i ran from times[2i] to times[2i+1].
func ran(times ...float64) *analysis.Replay {
	r := &analysis.Replay{}
	for k := 0; k < len(times); k += 2 {
		r.Start, r.End = append(r.Start, times[k]), append(r.End, times[k+1])
	}
	return r
}

// read returns a line per node, "b: 10..20 after a (wait)", and the lines of the analysis.
func read(t *testing.T, g *dag.Graph, p *planner.Plan, m *planner.Machine, r *analysis.Replay, run analysis.Run) string {
	t.Helper()
	timeline, err := analysis.Measured(g, p, m, r)
	require.NoError(t, err)
	var b strings.Builder
	for i := range timeline.Nodes {
		s := &timeline.Nodes[i]
		fmt.Fprintf(&b, "%s: %v..%v", g.Nodes[i].Name, s.Start, s.End)
		if s.By >= 0 {
			fmt.Fprintf(&b, " after %s", g.Nodes[s.By].Name)
		}
		fmt.Fprintf(&b, " (%v)\n", s.Cause)
	}
	a, err := analysis.Of(g, p, timeline, run)
	require.NoError(t, err)
	for _, line := range a.Lines() {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// chainOf is nodes that each need the one before.
func chainOf(names ...string) *dag.Builder {
	b := dag.New("chain")
	d := b.Device("d", dag.F32, 1024)
	for _, name := range names {
		b.Cost(b.Task(name, b.InOut(d)), 10)
	}
	return b
}

func TestAChainBinds(t *testing.T) {
	g, p := planned(t, chainOf("a", "b", "c"), "list")
	require.Equal(t, `a: 0..10 (start)
b: 11..30 after a (stream order)
c: 32..40 after b (stream order)
bound by a chain: a chain of 3 nodes takes 37 us of 40 us (92 %): a -> b -> c; only a shorter chain helps: split its nodes so that their parts overlap
critical path: 3 nodes, which ran for 37 us and waited 3 us from one node of a stream to the next
engine compute: busy 92 %; idle 3 us for the node before on a stream
memory: at most 4 KiB of device 0 alive, in 4 KiB
`, read(t, g, p, nil, ran(0, 10, 11, 30, 32, 40), analysis.Run{SubmitUS: 8}))
}

func TestSubmissionBinds(t *testing.T) {
	b := dag.New("many")
	for i := range 8 {
		b.Cost(b.Task(fmt.Sprintf("t%d", i), b.InOut(b.Device(fmt.Sprintf("d%d", i), dag.F32, 64))), 1)
	}
	g, p := planned(t, b, "list")
	r := &analysis.Replay{SubmitUS: 80}
	order := launches(p)
	r.Start, r.End = make([]float64, 8), make([]float64, 8)
	for k, i := range order { // each starts when it is submitted and takes 1 us
		r.Start[i], r.End[i] = 10*float64(k), 10*float64(k)+1
	}
	text := read(t, g, p, model.Clean(), r, analysis.Run{SubmitUS: 80})
	require.Contains(t, text, fmt.Sprintf("%s: 70..71 (host)\n", g.Nodes[order[7]].Name))
	require.Contains(t, text, "bound by submission: the host takes 80 us of 71 us (113 %) to submit 8 nodes; run it as a graph (--graph), or give each node more to do\n")
	require.Contains(t, text, "critical path: 1 node, which ran for 1 us and waited 70 us for the host\n")

	r.Graph = true
	require.NotContains(t, read(t, g, p, model.Clean(), r, analysis.Run{}), "host", "a graph is submitted as a whole")
}

// launches returns a plan's nodes in submission order.
func launches(p *planner.Plan) []dag.NodeID {
	var order []dag.NodeID
	cursor := make([]int, len(p.Streams))
	for _, k := range p.Order {
		if op := p.Streams[k].Ops[cursor[k]]; op.Kind == plan.Launch {
			order = append(order, op.Node)
		}
		cursor[k]++
	}
	return order
}

func TestACopyEngineBinds(t *testing.T) {
	var declared strings.Builder
	declared.WriteString("version: 1\nbuffers:\n")
	for i := range 3 {
		fmt.Fprintf(&declared, "  h%d: {place: host, dtype: f32, shape: [64], init: zeros}\n  d%d: {place: device, dtype: f32, shape: [64]}\n", i, i)
	}
	declared.WriteString("nodes:\n")
	for i := range 3 {
		fmt.Fprintf(&declared, "  - {name: up%d, memcpy: {from: h%d, to: d%d}, stream: %d}\n  - {name: work%d, memset: {to: d%d, value: 0}, stream: %d}\n", i, i, i, i, i, i, i)
	}
	g, err := file.Parse([]byte(declared.String()), file.Options{})
	require.NoError(t, err)
	p, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	require.Len(t, p.Streams, 3)
	text := read(t, g, p, planner.H200(), ran(0, 100, 101, 120, 100.2, 200, 201, 220, 200.1, 300, 302, 320), analysis.Run{SubmitUS: 10})
	require.Contains(t, text, "up1: 100.2..200 after up0 (engine)\n")
	require.Contains(t, text, "up2: 200.1..300 after up1 (engine)\n")
	require.Contains(t, text, "work2: 302..320 after up2 (stream order)\n")
	require.Contains(t, text, "bound by an engine: engine h2d is busy for 299.7 us of 320 us (94 %); only fewer bytes, or copies on another engine, help\n")
	require.Contains(t, text, "engine compute: busy 18 %; idle 264 us for the node before on a stream\n")
}

func TestAWaitHolds(t *testing.T) {
	b := dag.New("join")
	x, y, z := b.Device("x", dag.F32, 64), b.Device("y", dag.F32, 64), b.Device("z", dag.F32, 64)
	b.Cost(b.Task("left", b.Out(x)), 30)
	b.Cost(b.Task("right", b.Out(y)), 10)
	b.Cost(b.Task("join", b.In(x), b.In(y), b.Out(z)), 5)
	g, p := planned(t, b, "list")
	require.Len(t, p.Streams, 2)
	other := map[bool]string{true: "left", false: "right"}
	with := p.Streams[0].Ops[len(p.Streams[0].Ops)-1].Node == 2 // join follows left on the first stream, or right on the second
	r := ran(0, 30, 0.1, 10, 31, 36)
	if with {
		r = ran(0, 10, 0.1, 30, 31, 36)
	}
	text := read(t, g, p, model.Clean(), r, analysis.Run{SubmitUS: 0.1})
	late := other[!with]
	require.Contains(t, text, "join: 31..36 after "+late+" (wait)\n")
	require.Contains(t, text, "waits: 1 of 1 held a stream, 20 us in all; longest: stream ")
	require.Contains(t, text, " waited 20 us for "+late+"\n")
	require.Contains(t, text, "waited 1")

	r = ran(0, 10, 0.1, 30, 31, 36) // now the wait is for the one that was done long before
	if with {
		r = ran(0, 30, 0.1, 10, 31, 36)
	}
	text = read(t, g, p, model.Clean(), r, analysis.Run{SubmitUS: 0.1})
	require.Contains(t, text, "waits: 0 of 1 held a stream\n")
	require.Contains(t, text, "join: 31..36 after "+other[with]+" (stream order)\n")
}

func TestAPageableCopyHoldsTheHost(t *testing.T) {
	g, err := file.Parse([]byte(`version: 1
buffers:
  x: {place: host, dtype: f32, shape: [64], init: zeros, pinned: false}
  d: {place: device, dtype: f32, shape: [64]}
  e: {place: device, dtype: f32, shape: [64]}
nodes:
  - {name: up, memcpy: {from: x, to: d}, stream: 0}
  - {name: set, memset: {to: e, value: 0}, stream: 1}
`), file.Options{})
	require.NoError(t, err)
	p, err := planner.New(context.Background(), g, planner.Options{})
	require.NoError(t, err)
	order := launches(p)
	if order[0] != 0 {
		t.Fatal("the copy is submitted first")
	}
	r := ran(0, 50, 52, 53)
	r.SubmitUS = 54
	require.Contains(t, read(t, g, p, nil, r, analysis.Run{SubmitUS: 54}), "set: 52..53 after up (host)\n")
}

func TestCoresBind(t *testing.T) {
	b := dag.New("independent")
	for i := range 4 {
		b.Cost(b.Task(fmt.Sprintf("t%d", i), b.InOut(b.Device(fmt.Sprintf("d%d", i), dag.F32, 64))), 10)
	}
	g, p := planned(t, b, "list")
	m := *planner.Unit()
	m.Cores = 2
	text := read(t, g, p, &m, ran(0, 10, 0, 12, 10.5, 20, 13, 21), analysis.Run{Machine: &m, HelpedUS: []float64{0, 0, 0, 1}})
	require.Contains(t, text, "t2: 10.5..20 after t0 (engine)\n")
	require.Contains(t, text, "t3: 13..21 after t1 (engine)\n")
	require.Contains(t, text, "bound by the cores: the work needs all cores for 20.25 us of 21 us (96 %); only faster kernels help\n")
}

// Two kernels that fill the device share it; small ones that run together do not bind.
func TestKernelsBindIfTheyFillTheDevice(t *testing.T) {
	read4 := func(elements int) string {
		var declared strings.Builder
		declared.WriteString("version: 1\nbuffers:\n")
		for i := range 4 {
			fmt.Fprintf(&declared, "  d%d: {place: device, dtype: f32, shape: [%d]}\n", i, elements)
		}
		declared.WriteString("nodes:\n")
		for i := range 4 {
			fmt.Fprintf(&declared, "  - {name: set%d, memset: {to: d%d, value: 0}, stream: %d}\n", i, i, i%2)
		}
		g, err := file.Parse([]byte(declared.String()), file.Options{})
		require.NoError(t, err)
		p, err := planner.New(context.Background(), g, planner.Options{})
		require.NoError(t, err)
		return read(t, g, p, nil, ran(0, 50, 1, 52, 50, 100, 52, 104), analysis.Run{SubmitUS: 10})
	}
	require.Contains(t, read4(1<<24), "bound by an engine: kernels fill engine compute for 104 us of 104 us (100 %); only faster kernels help\n")
	require.NotContains(t, read4(1<<8), "kernels fill")
}

func TestTheScheduleBinds(t *testing.T) {
	g, p := planned(t, chainOf("a", "b"), "list")
	text := read(t, g, p, nil, ran(0, 5, 95, 100), analysis.Run{SubmitUS: 4})
	require.Contains(t, text, "bound by the schedule: nothing binds it alone; closest: a chain of 2 nodes takes 10 us of 100 us (10 %): a -> b; the critical path waited 90 us from one node of a stream to the next; more streams or another order may help: compare them with dagrun tune\n")
}

func TestReplaysThatDoNotFitAreRefused(t *testing.T) {
	g, p := planned(t, chainOf("a", "b"), "list")
	for want, r := range map[string]*analysis.Replay{
		"there is no replay to read": nil,
		"a replay with the starts of 1 nodes and the ends of 1, for a graph of 2": ran(0, 1),
		`node "b" ran from -1 to 2 us`:                                            ran(0, 1, -1, 2),
		"a replay that took -1 us to submit":                                      {Start: []float64{0, 1}, End: []float64{1, 2}, SubmitUS: -1},
	} {
		_, err := analysis.Measured(g, p, nil, r)
		require.EqualError(t, err, want)
	}
	_, err := analysis.Of(g, p, nil, analysis.Run{})
	require.EqualError(t, err, "the timeline is not one of this graph")
	other, _ := planned(t, chainOf("a", "b", "c"), "list")
	_, err = analysis.Measured(other, p, nil, ran(0, 1, 1, 2, 2, 3))
	require.Error(t, err)
}

// random makes a random graph of tasks and copies.
func random(t *rapid.T) *dag.Builder {
	b := dag.New("random")
	var buffers, hosts []dag.BufferID
	for k := range rapid.IntRange(2, 6).Draw(t, "buffers") {
		buffers = append(buffers, b.Device(fmt.Sprintf("d%d", k), dag.F32, 1<<12))
		hosts = append(hosts, b.Host(fmt.Sprintf("h%d", k), dag.F32, 1<<12))
	}
	pick := rapid.IntRange(0, len(buffers)-1)
	for i := range rapid.IntRange(1, 25).Draw(t, "nodes") {
		name := fmt.Sprintf("n%d", i)
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			k := pick.Draw(t, "buffer")
			b.Copy(name, b.Whole(buffers[k]), b.Whole(hosts[k]))
		case 1:
			k := pick.Draw(t, "buffer")
			b.Copy(name, b.Whole(hosts[k]), b.Whole(buffers[k]))
		default:
			accesses := []dag.Access{b.InOut(buffers[pick.Draw(t, "buffer")])}
			if k := pick.Draw(t, "other"); buffers[k] != accesses[0].Buffer {
				accesses = append(accesses, b.In(buffers[k]))
			}
			b.Cost(b.Task(name, accesses...), float64(rapid.IntRange(1, 40).Draw(t, "cost")))
		}
	}
	return b
}

// On a machine on which only nodes take time, what a measured run waited for is what the simulator says.
func TestCausesAreThoseOfTheSimulator(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, p := planned(t, random(t), rapid.SampledFrom([]string{"list", "cover", "roundrobin", "serial"}).Draw(t, "strategy"))
		simulated, err := planner.Simulate(g, p, planner.Unit(), nil)
		require.NoError(t, err)
		r := &analysis.Replay{Graph: true}
		for i := range simulated.Nodes {
			r.Start, r.End = append(r.Start, simulated.Nodes[i].Start), append(r.End, simulated.Nodes[i].End)
		}
		measured, err := analysis.Measured(g, p, planner.Unit(), r)
		require.NoError(t, err)
		for i := range simulated.Nodes {
			want, got := &simulated.Nodes[i], &measured.Nodes[i]
			require.Equal(t, want.Cause, got.Cause, g.Nodes[i].Name)
			require.Equal(t, want.By, got.By, g.Nodes[i].Name)
			require.Equal(t, want.Stream, got.Stream, g.Nodes[i].Name)
		}
	})
}

// Whatever was measured, the critical path goes back in time, and running and waiting on it add up to the makespan.
func TestTheCriticalPathAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, p := planned(t, random(t), "list")
		r := &analysis.Replay{Graph: rapid.Bool().Draw(t, "graph"), SubmitUS: rapid.Float64Range(0, 300).Draw(t, "submit")}
		at := rapid.Float64Range(0, 100)
		for range g.Len() {
			start := at.Draw(t, "start")
			r.Start, r.End = append(r.Start, start), append(r.End, start+at.Draw(t, "length")-1)
		}
		m := *planner.H200()
		m.Cores = rapid.IntRange(0, 2).Draw(t, "cores")
		timeline, err := analysis.Measured(g, p, &m, r)
		require.NoError(t, err)
		a, err := analysis.Of(g, p, timeline, analysis.Run{SubmitUS: r.SubmitUS, Machine: &m})
		require.NoError(t, err)
		require.NotEmpty(t, a.Path)
		require.Equal(t, timeline.MakespanUS, a.Path[len(a.Path)-1].End)
		covered, waited := 0.0, 0.0
		for k, s := range a.Path {
			if k > 0 {
				require.LessOrEqual(t, a.Path[k-1].Start, s.Start)
			}
			covered += s.End - s.Start + s.WaitedUS
			waited += s.WaitedUS
		}
		for _, w := range a.Waited {
			waited -= w.US
		}
		require.InDelta(t, 0, waited, 1e-6)
		require.GreaterOrEqual(t, covered, timeline.MakespanUS-1e-6)
		require.NotEmpty(t, a.Lines())
	})
}
