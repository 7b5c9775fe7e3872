// Tests of Options.InOrder: a program that makes the calls in its own order gets streams and waits for that order.

package planner

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// launched returns the nodes in the order in which a plan submits them.
func launched(p *Plan) []dag.NodeID {
	var nodes []dag.NodeID
	for _, op := range p.Replay(1).Ops {
		if op.Kind == plan.Launch {
			nodes = append(nodes, op.Node)
		}
	}
	return nodes
}

// Whatever the strategy, nodes are submitted as they are declared, every dependency is enforced (New has proved that), and every wait is needed.
func TestInOrderKeepsTheDeclaredOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := plantest.DrawShape(rt, 60).Graph(t)
		o := Options{InOrder: true, Strategy: rapid.SampledFrom(Strategies()).Draw(rt, "strategy"), Streams: rapid.IntRange(1, 6).Draw(rt, "streams"), Effort: Normal}
		if o.Strategy == "cover" {
			o.Streams = 0
		}
		p, err := New(context.Background(), g, o)
		require.NoError(rt, err)
		for i, node := range launched(p) {
			require.Equal(rt, dag.NodeID(i), node)
		}
		require.Len(rt, launched(p), g.Len())
		for skip := range p.Stats.Waits {
			require.NotZero(rt, unenforced(closure(rt, p, g.Len(), skip), g), "wait %d is needed", skip)
		}
	})
}

// In its own order, the plan of the automatic strategy is predicted no later than one stream, and it overlaps what can overlap.
func TestInOrderOverlaps(t *testing.T) {
	chains := plantest.Chains(3, 4) // declared chain by chain
	chains.Cost = slices.Repeat([]float64{50}, 12)
	g := chains.Graph(t)
	o := Options{InOrder: true, Streams: 3}
	p, err := New(context.Background(), g, o)
	require.NoError(t, err)
	require.Len(t, p.Streams, 3)
	o.Strategy = "serial"
	one, err := New(context.Background(), g, o)
	require.NoError(t, err)
	require.Less(t, p.Stats.MakespanUS, one.Stats.MakespanUS)
}

func TestInOrderIsNotForSpreadGraphs(t *testing.T) {
	g := plantest.Chains(1, 2).Graph(t)
	_, err := New(context.Background(), g, Options{InOrder: true, Spread: &plan.Spread{Graph: g}})
	require.ErrorIs(t, err, ErrBadOption)
	require.ErrorContains(t, err, "a graph that was spread has nodes that nobody declared")
}

// A stencil whose tasks take about as long as each other: what placing them by their differences could gain is less than what was measured tells, and each wait is
// a call of the program. So columns stay on their streams, whose waits are all that the stencil needs.
func TestInOrderSavesWaitsWhereTimesAreNear(t *testing.T) {
	const wide, steps = 8, 40
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(40, seed))
		stencil := plantest.TaskBench("stencil", wide, steps, 0)
		for range wide * steps {
			stencil.Cost = append(stencil.Cost, 49+3*random.NormFloat64())
		}
		g := stencil.Graph(t)
		o := Options{InOrder: true, Streams: wide, Effort: Normal}
		p, err := New(context.Background(), g, o)
		require.NoError(t, err)
		require.Equal(t, (steps-1)*(2*wide-2), p.Stats.Waits)
		o.InOrder = false
		fastest, err := New(context.Background(), g, o)
		require.NoError(t, err)
		require.Greater(t, fastest.Stats.Waits, p.Stats.Waits)
		require.LessOrEqual(t, p.Stats.MakespanUS, 1.01*fastest.Stats.MakespanUS)
	}
}

// Whatever strategies find, the automatic one takes at most 1% longer, and nothing within that needs fewer waits.
func TestInOrderIsNear(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shape := plantest.DrawShape(rt, 40)
		shape.Cost = rapid.SliceOfN(rapid.Float64Range(1, 100), len(shape.Preds), len(shape.Preds)).Draw(rt, "costs")
		g := shape.Graph(t)
		o := Options{InOrder: true, Streams: rapid.IntRange(1, 6).Draw(rt, "streams")}
		auto, err := New(context.Background(), g, o)
		require.NoError(rt, err)
		for _, o.Strategy = range []string{"serial", "list"} {
			other, err := New(context.Background(), g, o)
			require.NoError(rt, err)
			require.LessOrEqual(rt, auto.Stats.MakespanUS, 1.0100001*other.Stats.MakespanUS, o.Strategy)
			if other.Stats.MakespanUS <= auto.Stats.MakespanUS {
				require.LessOrEqual(rt, auto.Stats.Waits, other.Stats.Waits, o.Strategy)
			}
		}
	})
}

// In a graph, waits cost less than on streams, so short tasks are spread where they would stay together.
func TestInGraphSpreadsShortTasks(t *testing.T) {
	const wide, steps = 8, 40
	stencil := plantest.TaskBench("stencil", wide, steps, 0)
	stencil.Cost = slices.Repeat([]float64{2}, wide*steps)
	g := stencil.Graph(t)
	o := Options{InOrder: true, Streams: wide}
	together, err := New(context.Background(), g, o)
	require.NoError(t, err)
	require.Less(t, together.Stats.Streams, wide)
	o.InGraph = true
	spread, err := New(context.Background(), g, o)
	require.NoError(t, err)
	require.Equal(t, wide, spread.Stats.Streams)
	require.Equal(t, (steps-1)*(2*wide-2), spread.Stats.Waits)
	one, err := model.SimulateGraph(g, together, o.Machine, nil)
	require.NoError(t, err)
	other, err := model.SimulateGraph(g, spread, o.Machine, nil)
	require.NoError(t, err)
	require.Equal(t, other.MakespanUS, spread.Stats.MakespanUS)
	require.Less(t, other.MakespanUS, one.MakespanUS)
}
