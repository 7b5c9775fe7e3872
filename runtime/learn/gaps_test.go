// Tests of what events add to durations, and of when a formula is more exact than events.

package learn

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
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
