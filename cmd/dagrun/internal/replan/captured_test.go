package replan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestWhatBindsAGraph(t *testing.T) {
	require.Equal(t, "a chain: its critical path is 98% of its time", Bounds{100, 98, 20}.Text())
	require.Equal(t, "its critical path is 60% of its time: no plan is more than 1.67 times as fast as one stream", Bounds{100, 60, 20}.Text())
	require.Equal(t, "its kernels fill the GPU for 80% of its time: no plan is more than 1.25 times as fast as one stream", Bounds{100, 60, 80}.Text())
	require.Equal(t, "a chain: its critical path is 100% of its time", Bounds{100, 103, 20}.Text(), "measured apart, a path may take longer than all nodes")
	require.Equal(t, "nothing in it takes time", Bounds{}.Text())
}

// The streams as captured keep what the planner takes for a conflict, and no plan is predicted to be faster than the bounds.
func TestTheGraphAsCaptured(t *testing.T) {
	for _, name := range []string{"vit", "nasnet"} {
		known, g := learned(t, name)
		n, err := NewCapturedGraph(known, g, Options{})
		require.NoError(t, err)
		o := planner.Options{Machine: planner.H200(), Profile: n.Durations()}
		o.Strategy = AsCaptured
		captured, err := n.Plan(t.Context(), o)
		require.NoError(t, err)
		require.Len(t, captured.Streams, 1, "torch captured one stream")
		require.NoError(t, planner.LayoutMemory(t.Context(), n.Graph(), captured, planner.Options{KeepAll: true}))
		require.NoError(t, planner.Verify(n.Graph(), captured))
		o.Strategy = "auto"
		auto, err := n.Plan(t.Context(), o)
		require.NoError(t, err)
		require.LessOrEqual(t, auto.Stats.MakespanUS, captured.Stats.MakespanUS)
		b := n.Bounds(n.Durations())
		require.GreaterOrEqual(t, auto.Stats.MakespanUS, max(b.CriticalUS, b.FilledUS)-1e-6)
		require.LessOrEqual(t, captured.Stats.MakespanUS, b.ChainUS)
	}
}

// Edges between nodes that were captured on different streams are waits, each for one record.
func TestWaitsAsCaptured(t *testing.T) {
	known, g := learned(t, "vit")
	n, err := NewCapturedGraph(known, g, Options{})
	require.NoError(t, err)
	for k := range known.Nodes {
		known.Nodes[k].Stream = k % 2
	}
	p, err := n.Plan(t.Context(), planner.Options{Strategy: AsCaptured, Machine: planner.H200(), Profile: n.Durations()})
	require.NoError(t, err)
	require.Len(t, p.Streams, 2)
	waits := 0
	for _, s := range p.Streams {
		for _, op := range s.Ops {
			if op.Kind == plan.Wait {
				waits++
			}
		}
	}
	between := slices.DeleteFunc(slices.Clone(g.Edges), func(e [3]int) bool { return e[0]%2 == e[1]%2 })
	require.Equal(t, len(between), waits)
	require.Equal(t, waits, p.Stats.Waits)
	require.NoError(t, planner.LayoutMemory(t.Context(), n.Graph(), p, planner.Options{KeepAll: true}))
	require.NoError(t, planner.Verify(n.Graph(), p))
}
