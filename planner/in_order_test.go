// Tests of Options.InOrder: a program that makes the calls in its own order gets streams and waits for that order.

package planner

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/plantest"
)

// launched returns the nodes in the order in which a plan submits them.
func launched(p *Plan) []dag.NodeID {
	var nodes []dag.NodeID
	for _, op := range p.Replay(1).Ops {
		if op.Kind == Launch {
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
	_, err := New(context.Background(), g, Options{InOrder: true, Spread: &Spread{Graph: g}})
	require.ErrorIs(t, err, ErrBadOption)
	require.ErrorContains(t, err, "a graph that was spread has nodes that nobody declared")
}
