// Machines whose copies and kernels share cores: what runs side by side, and what only seems to.

package model_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
)

// sideBySide predicts two independent nodes on two streams of a machine with two cores and no other costs.
func sideBySide(t *testing.T, us float64, first, second dag.Work) float64 {
	t.Helper()
	m := model.Clean()
	m.Cores = 2
	b := dag.New("cores")
	for k, work := range []dag.Work{first, second} {
		d := b.Device(string(rune('a'+k)), dag.F32, 4)
		id := b.Node(dag.Node{Name: string(rune('x' + k)), Kind: dag.Kernel, Work: work, HasCost: true, CostUS: us}, b.InOut(d))
		b.Stream(id, int32(k))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(context.Background(), g, planner.Options{Machine: m, Strategy: "list"})
	require.NoError(t, err)
	require.Len(t, plan.Streams, 2)
	require.LessOrEqual(t, plan.Stats.LowerBoundUS, plan.Stats.MakespanUS)
	return plan.Stats.MakespanUS
}

func TestNodesShareCores(t *testing.T) {
	one, many := dag.Work{Blocks: 1}, dag.Work{Blocks: 64}
	require.InDelta(t, 100, sideBySide(t, 100, one, one), 1e-9, "each has a core of its own")
	require.InDelta(t, 200, sideBySide(t, 100, many, many), 1e-9, "either uses both cores alone")
	require.InDelta(t, 150, sideBySide(t, 100, one, many), 1e-9, "three halves of the cores are wanted, by both in proportion")
	require.InDelta(t, 25, sideBySide(t, 25, many, many), 1e-9, "short work stays on one core")
	require.InDelta(t, 20, sideBySide(t, 10, one, one), 1e-9, "waking a second core takes as long")
	sleeping := dag.Work{Blocks: 1, US: 5000}
	require.InDelta(t, 5000, sideBySide(t, 5000, sleeping, sleeping), 1e-9, "waiting takes no core")
}

func TestMeasuredSharesOfCoresCount(t *testing.T) {
	m := model.Clean()
	m.Cores = 2
	b := dag.New("cores")
	for k := range 2 {
		d := b.Device(string(rune('a'+k)), dag.F32, 4)
		id := b.Node(dag.Node{Name: string(rune('x' + k)), Kind: dag.Kernel, Work: dag.Work{Blocks: 64}}, b.InOut(d))
		b.Stream(id, int32(k))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	together := func(x, y, us float64) float64 {
		profile := &planner.Profile{Nodes: map[string]float64{"x": us, "y": us}, Shares: map[string]float64{"x": x, "y": y}}
		plan, err := planner.New(context.Background(), g, planner.Options{Machine: m, Strategy: "list", Profile: profile})
		require.NoError(t, err)
		timeline, err := planner.Simulate(g, plan, m, profile)
		require.NoError(t, err)
		require.Equal(t, plan.Stats.MakespanUS, timeline.MakespanUS)
		require.LessOrEqual(t, plan.Stats.LowerBoundUS, plan.Stats.MakespanUS)
		return timeline.MakespanUS
	}
	require.InDelta(t, 100, together(0.5, 0.5, 100), 1e-9, "each stays on its core, however many blocks it has")
	require.InDelta(t, 200, together(1, 1, 100), 1e-9)
	require.InDelta(t, 140, together(0.7, 0.7, 100), 1e-9, "two cores together do the work of 1.43")
	require.InDelta(t, 100, together(0.1, 0.1, 100), 1e-9, "a node takes at least one core")
	require.InDelta(t, 20, together(0.5, 0.5, 10), 1e-9, "short work gains nothing from another core")
	require.Same(t, m, m.With(nil))
	require.Same(t, m, m.With(&planner.Profile{Nodes: map[string]float64{"x": 1}}))
	gpu := model.H200()
	require.Same(t, gpu, gpu.With(&planner.Profile{Shares: map[string]float64{"x": 1}}), "a GPU's shares follow from its blocks")
}

func TestCopiesShareCoresWithKernels(t *testing.T) {
	m := model.Clean()
	m.Cores, m.HostToDevice, m.CopyUS = 2, 10_000, 0
	b := dag.New("copies")
	for k := range 2 {
		name := string(rune('a' + k))
		x, d := b.Host("x"+name, dag.F32, 1<<20), b.Device("d"+name, dag.F32, 1<<20)
		b.Stream(b.Copy("up"+name, b.Whole(d), b.Whole(x)), int32(k))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(context.Background(), g, planner.Options{Machine: m, Strategy: "list"})
	require.NoError(t, err)
	alone := float64(4<<20) / 10_000
	require.InDelta(t, 2*alone, plan.Stats.MakespanUS, 1e-6, "copies of 4 MiB use both cores")
	require.LessOrEqual(t, plan.Stats.LowerBoundUS, plan.Stats.MakespanUS*(1+1e-9))
}
