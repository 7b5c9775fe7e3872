// Tests of the laws of wait insertion, by the closure of happens-before in bit sets. Uses no vector clocks.

package planner

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/plan"
)

// closure returns happens-before between launches, from the ops in submission order without the skip-th wait (-1: with all).
func closure(tb require.TestingT, made *Plan, nodes, skip int) [][]uint64 {
	words := (nodes + 63) / 64
	before := make([][]uint64, nodes)
	state := make([][]uint64, len(made.Streams)) // the launches that a stream is ordered after
	for k := range state {
		state[k] = make([]uint64, words)
	}
	event := make([][]uint64, made.Events)
	at := make([]int, len(made.Streams))
	recorded := make([]dag.NodeID, made.Events)
	waits := 0
	for _, k := range made.Order {
		op := made.Streams[k].Ops[at[k]]
		at[k]++
		switch op.Kind {
		case plan.Launch:
			require.Nil(tb, before[op.Node], "node %d is launched twice", op.Node)
			before[op.Node] = append([]uint64{}, state[k]...)
			state[k][op.Node/64] |= 1 << (op.Node % 64)
		case plan.Record:
			event[op.Event] = append([]uint64{}, state[k]...)
			recorded[op.Event] = op.Node
		case plan.Wait:
			require.NotNil(tb, event[op.Event], "a wait comes before its record")
			require.Equal(tb, recorded[op.Event], op.Node, "the event was recorded again")
			if waits != skip {
				for w, v := range event[op.Event] {
					state[k][w] |= v
				}
			}
			waits++
		}
	}
	for i := range nodes {
		require.NotNil(tb, before[i], "node %d is never launched", i)
	}
	return before
}

func unenforced(before [][]uint64, g *dag.Graph) int {
	count := 0
	for _, e := range g.Edges() {
		if before[e.To][e.From/64]>>(e.From%64)&1 == 0 {
			count++
		}
	}
	return count
}

func TestEveryHazardIsEnforcedAndNoWaitIsRemovable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plantest.DrawShape(t, 40)
		g := plantest.MustOrder(t, s)
		plan, err := New(context.Background(), g, Options{
			Strategy:        rapid.SampledFrom([]string{"serial", "roundrobin", "cover", "list"}).Draw(t, "strategy"),
			Streams:         rapid.IntRange(1, 6).Draw(t, "streams"),
			Machine:         rapid.SampledFrom([]*Machine{Unit(), H200()}).Draw(t, "machine"),
			SingleUseEvents: rapid.Bool().Draw(t, "single"),
		})
		if errors.Is(err, place.ErrTooManyStreams) {
			return
		}
		require.NoError(t, err)
		require.NoError(t, Verify(g, plan))
		require.Zero(t, unenforced(closure(t, plan, g.Len(), -1), g))
		for k := range plan.Stats.Waits {
			require.NotZero(t, unenforced(closure(t, plan, g.Len(), k), g), "wait %d is not needed", k)
		}
	})
}

// A schedule written by hand is submitted as written, whatever the planner's priorities say.
func TestExplicitSchedulesAreSubmittedAsDeclared(t *testing.T) {
	b := dag.New("explicit")
	x := b.Device("x", dag.U8, 4)
	b.Sync(dag.SyncExplicit)
	for i, us := range []float64{1, 1, 50, 100, 2} {
		id := b.Task(fmt.Sprintf("n%d", i), b.In(x))
		b.At(id).HasCost, b.At(id).CostUS = true, us
		if i < 3 {
			b.Stream(id, int32(i%2))
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	for _, strategy := range strategies {
		made, err := New(context.Background(), g, Options{Strategy: strategy})
		require.NoError(t, err)
		require.Equal(t, []string{"n0", "n1", "n2", "n3", "n4"}, submitted(g, made, plan.Compute), strategy)
	}
}
