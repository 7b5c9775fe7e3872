// Tests of what events add to durations, and of when a formula is more exact than events.

package learn

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

func TestWhatEventsAddDependsOnTheEngineBefore(t *testing.T) {
	b := dag.New("turns")
	b.Use(kernels.Library())
	const n = 64
	in, out := b.Host("in", dag.F32, n), b.Host("out", dag.F32, n)
	x, y := b.Device("x", dag.F32, n), b.Device("y", dag.F32, n)
	b.Copy("first upload", b.Whole(x), b.Whole(in))
	b.Copy("upload", b.Whole(x), b.Whole(in))
	b.Kernel("kernel after upload", "square", dag.Args{n, b.Whole(x), b.Whole(y)})
	b.Kernel("kernel", "square", dag.Args{n, b.Whole(y), b.Whole(y)})
	b.Copy("move", b.Whole(x), b.Whole(y))
	b.Memset("set", b.Whole(y), 1)
	b.Copy("download", b.Whole(out), b.Whole(x))
	g, err := b.Graph()
	require.NoError(t, err)
	m := planner.H200()
	plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "serial", Machine: m})
	require.NoError(t, err)
	gaps := gapsBefore(g, plan, m)
	want := map[string]float64{
		"first upload":        m.GapUS + m.EngineUS,
		"upload":              m.GapUS,
		"kernel after upload": 2*m.GapUS + m.EngineUS,
		"kernel":              2 * m.GapUS,
		"move":                2 * m.GapUS,
		"set":                 2 * m.GapUS,
		"download":            m.GapUS + m.EngineUS,
	}
	for i := range g.Nodes {
		require.Equal(t, want[g.Nodes[i].Name], gaps[i], g.Nodes[i].Name)
	}
}

func TestFormulasThatAgreeWithEventsAreKept(t *testing.T) {
	b := dag.New("formulas")
	b.Use(kernels.Library())
	const n = 64
	x := b.Device("x", dag.F32, n)
	for _, name := range []string{"near", "far", "unmeasured"} {
		b.Kernel(name, "square", dag.Args{n, b.Whole(x), b.Whole(x)})
	}
	b.Cost(b.Kernel("declared", "square", dag.Args{n, b.Whole(x), b.Whole(x)}), 5)
	g, err := b.Graph()
	require.NoError(t, err)
	made, err := planner.New(context.Background(), g, planner.Options{Strategy: "serial", Machine: planner.H200()})
	require.NoError(t, err)
	formula := made.Costs[0].US
	l := &learner{graph: g}
	l.learned.Samples = [][]float64{{formula + 2, formula + 3, formula + 1}, {formula + 3, formula + 3, formula}, nil, {5}}
	l.keepFormulas([]dag.NodeID{0, 1, 2, 3}, made.Costs)
	require.Nil(t, l.learned.Samples[0], "events cannot tell it from its formula")
	require.Len(t, l.learned.Samples[1], 3)
	require.Nil(t, l.learned.Samples[2])
	require.Equal(t, []float64{5}, l.learned.Samples[3], "its cost is not a formula")
	require.False(t, l.worthRecording([]dag.NodeID{0, 1, 2}, made.Costs), "all have formulas")
	made.Costs[1].Source = plan.UnknownCost
	require.True(t, l.worthRecording([]dag.NodeID{0, 1, 2}, made.Costs))
	require.False(t, l.worthRecording([]dag.NodeID{0, 2}, made.Costs))
	l.o.Thorough = true
	require.True(t, l.worthRecording([]dag.NodeID{0, 2}, made.Costs))
}

// On each stream the first node finds no other engine before it, whatever the other streams run. Waits and records between nodes change nothing.
func TestWhatEventsAddIsOfEachStreamAlone(t *testing.T) {
	b := dag.New("beside")
	b.Use(kernels.Library())
	const n = 64
	in := b.Host("in", dag.F32, n)
	x, y := b.Device("x", dag.F32, n), b.Device("y", dag.F32, n)
	b.Stream(b.Copy("upload", b.Whole(x), b.Whole(in)), 0)
	b.Stream(b.Kernel("other", "square", dag.Args{n, b.Whole(y), b.Whole(y)}), 1)
	b.Stream(b.Kernel("joined", "add", dag.Args{n, b.Whole(x), b.Whole(y), b.Whole(y)}), 1)
	b.Stream(b.Copy("again", b.Whole(x), b.Whole(in)), 0)
	g, err := b.Graph()
	require.NoError(t, err)
	m := planner.H200()
	made, err := planner.New(t.Context(), g, planner.Options{Strategy: "list", Machine: m})
	require.NoError(t, err)
	require.Len(t, made.Streams, 2)
	require.Positive(t, made.Events)
	require.InDeltaSlice(t, []float64{m.GapUS + m.EngineUS, 2*m.GapUS + m.EngineUS, 2 * m.GapUS, m.GapUS}, gapsBefore(g, made, m), 1e-12)
	require.Equal(t, []float64{0, recordedLaunchUS, recordedLaunchUS, 0}, []float64{recordedGap(g, 0), recordedGap(g, 1), recordedGap(g, 2), recordedGap(g, 3)})
}

// loops has nodes in loops and branches, those that every replay runs and others.
func loops(t *testing.T) *dag.Graph {
	b := dag.New("loops")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F64, 1)
	half := func(name string) { b.Kernel(name, "scale", dag.Args{1, 0.5, b.Whole(x)}) }
	half("outside")
	b.Repeat("counted", dag.Loop{Times: 3}, func() {
		half("always")
		b.Repeat("tested after", dag.Loop{Until: "x < 1", Most: 5}, func() { half("always too") })
		b.Repeat("tested before", dag.Loop{While: "x > 1", Most: 5}, func() { half("perhaps") })
		b.If("branch", "x > 1", func() { half("then") }, func() { half("else") })
	})
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// Every replay runs the nodes of loops that make a pass before they test; those of branches and of loops that test first it may leave out.
func TestNodesThatEveryReplayRuns(t *testing.T) {
	var names []string
	eachInPasses(loops(t), func(n *dag.Node) { names = append(names, n.Name) })
	require.ElementsMatch(t, []string{"always", "always too"}, names)
}

// Of a node in a body the median of its passes counts, less what taking the times costs. Where only whole passes were measured, each node has its part of
// them by what is known of it.
func TestWhatPassesTellOfNodes(t *testing.T) {
	g := loops(t)
	span := func(node string, us float64) spans.BodySpan {
		return spans.BodySpan{Node: node, Start: 5, End: 5 + us + stampUS}
	}
	wanted := map[string]bool{"always": true, "always too": true, "then": true, "perhaps": true}
	l := &learner{graph: g, o: Options{Plan: planner.Options{Machine: cores(2)}}}
	l.learned.Inner = map[string][]float64{"always": {1}}
	l.takePasses(&spans.TracedReplay{Passes: []spans.TracedPass{
		{Node: "counted", Body: spans.BodyRepeat, Start: 0, End: 90, Nodes: []spans.BodySpan{span("always", 10)}},
		{Node: "counted", Body: spans.BodyRepeat, Start: 0, End: 90, Nodes: []spans.BodySpan{span("always", 30)}},
		{Node: "counted", Body: spans.BodyRepeat, Start: 0, End: 90, Nodes: []spans.BodySpan{span("always", 20)}},
		{Node: "counted", Body: spans.BodyRepeat, Start: 0, End: 90, LeftOut: true, Nodes: []spans.BodySpan{span("always", 9000)}},
		{Node: "tested after", Body: spans.BodyRepeat, Start: 100, End: 140},
		{Node: "tested after", Body: spans.BodyRepeat, Start: 200, End: 260},
		{Node: "tested after", Body: spans.BodyRepeat, Start: 300, End: 320},
		{Node: "tested after", Body: spans.BodyRepeat, Start: 300, End: 9999, LeftOut: true},
		{Node: "branch", Body: spans.BodyNone, Start: 300, End: 301},
		{Node: "branch", Body: "else", Nodes: []spans.BodySpan{span("else", 5)}},
		{Node: "branch", Body: "then", Nodes: []spans.BodySpan{span("then", -stampUS)}},
	}}, wanted)
	got := l.learned.Inner
	require.Len(t, got, 3, "one is not wanted, and of one nothing is known: %v", got)
	require.InDeltaSlice(t, []float64{1, 20}, got["always"], 1e-9)
	require.InDeltaSlice(t, []float64{0}, got["then"], 1e-9, "no node takes less than nothing")
	require.Len(t, got["always too"], 1)
	body := g.Nodes[1].Control.Bodies[0]
	at := slices.IndexFunc(body.Nodes, func(n dag.Node) bool { return n.Name == "tested after" })
	inner := body.Nodes[at].Control.Bodies[0]
	part := model.Durations(inner, cores(2), nil)[0] / model.LowerBound(inner, cores(2), nil, 0).US()
	require.InDelta(t, 40*part, got["always too"][0], 1e-9, "its part of the pass in the middle")
}

// Costs of another graph tell nothing of which nodes have formulas.
func TestCostsOfAnotherGraphAreNotUsed(t *testing.T) {
	g, plans := lattice(t)
	l := &learner{graph: g}
	l.learned.Samples = make([][]float64, g.Len())
	costs := plans[0].Costs
	l.learned.Samples[0] = []float64{costs[0].US}
	l.keepFormulas([]dag.NodeID{0}, costs[:g.Len()-1])
	require.NotNil(t, l.learned.Samples[0])
	require.True(t, l.worthRecording(nil, costs[:g.Len()-1]))
	require.False(t, l.worthRecording(nil, costs))
	l.keepFormulas([]dag.NodeID{1}, costs)
	require.NotNil(t, l.learned.Samples[0], "it was not measured now")
	l.learned.Samples[0] = []float64{costs[0].US - resolvedUS - 0.01}
	l.keepFormulas([]dag.NodeID{0}, costs)
	require.NotNil(t, l.learned.Samples[0], "events tell that it is faster")
	l.learned.Samples[0] = []float64{costs[0].US - resolvedUS + 0.01}
	l.keepFormulas([]dag.NodeID{0}, costs)
	require.Nil(t, l.learned.Samples[0])
}
