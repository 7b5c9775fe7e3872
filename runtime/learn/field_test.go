// Tests of the order in which ways to replay are timed, while a plan is in the making.

package learn

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// spinning is a learner of a pipeline of two nodes that can run side by side, and a plan for each number of streams.
func spinning(t *testing.T) (*learner, func(streams int) *planner.Plan) {
	b := dag.New("spins")
	b.Use(kernels.Library())
	b.Kernel("a", "spin", dag.Args{100.0})
	b.Kernel("b", "spin", dag.Args{100.0})
	g, err := b.Graph()
	require.NoError(t, err)
	m, err := model.MachineByName("h200")
	require.NoError(t, err)
	l := &learner{graph: g, platform: elsewhere{}, log: slog.New(slog.DiscardHandler), began: time.Now()}
	l.o.Plan.Machine, l.o.Modes, l.o.For = m, []engine.Mode{engine.Captured, engine.Streams}, time.Hour
	return l, func(streams int) *planner.Plan {
		plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "list", Streams: streams, Machine: m})
		require.NoError(t, err)
		return plan
	}
}

// planned is an awaited plan that is made.
func planned(plan *planner.Plan, err error) *awaitedPlan {
	a := &awaitedPlan{stop: func() {}, done: make(chan struct{}), result: plan, err: err}
	close(a.done)
	return a
}

func TestAPlanInTheMakingJoinsTheOthers(t *testing.T) {
	l, plan := spinning(t)
	first, slow, fast := plan(1), plan(1), plan(2)
	f := &field{first: 1, awaited: planned(fast, nil), ways: []Way{
		{Plan: first, Mode: engine.Captured, Threads: 1, Predicted: 1000},
		{Plan: slow, Mode: engine.Captured, Threads: 1, Predicted: 900},
		{Plan: slow, Mode: engine.Streams, Threads: 1, Predicted: 901},
	}}
	require.NoError(t, f.join(l))
	require.Nil(t, f.awaited)
	require.NoError(t, f.join(l), "there is nothing to join any more")
	require.Same(t, first, f.next(engine.Captured, nil).Plan, "what earlier runs found best is timed first")
	way := f.next(engine.Captured, nil)
	require.Same(t, fast, way.Plan, "then the fastest")
	require.Less(t, way.Predicted, 900.0)
	require.Same(t, fast, f.next(engine.Streams, nil).Plan)
	f.leave(engine.Captured)
	require.Nil(t, f.next(engine.Captured, nil))
	require.Same(t, slow, f.next(engine.Streams, nil).Plan)
	require.Nil(t, f.next(engine.Streams, nil))
	require.False(t, f.wait(l, 1), "no plan is awaited")
}

// Plans on many streams are predicted to be fastest, and the first of them takes half as long again. The next is on fewer streams.
func TestWaysLikeOneThatWasMispredictedComeLater(t *testing.T) {
	way := func(streams int, predicted, us float64) Way {
		made := &planner.Plan{}
		for s := range streams {
			made.Streams = append(made.Streams, plan.Stream{Ops: []plan.Op{{Kind: plan.Launch, Node: dag.NodeID(s)}}})
			made.Order = append(made.Order, int32(s))
		}
		return Way{Plan: made, Mode: engine.Captured, Threads: 1, Predicted: predicted, Each: engine.Series{Count: 1, Median: us}}
	}
	ways := []Way{way(9, 46, 66), way(8, 47, 64), way(8, 48, 65), way(4, 49, 57), way(2, 61, 66), way(1, 94, 103)}
	f := &field{ways: slices.Clone(ways)}
	var timed []Way
	var order []int
	for {
		w := f.next(engine.Captured, timed)
		if w == nil {
			break
		}
		timed, order = append(timed, *w), append(order, slices.IndexFunc(ways, w.same))
	}
	require.Equal(t, []int{0, 3}, order[:2], "what is predicted fastest, then what is less like it")
	require.ElementsMatch(t, []int{0, 1, 1, 3, 4, 5}, order, "all have their turn")
	require.Equal(t, 5, order[5], "what has no hope comes last")

	f.ways = slices.Clone(ways)
	require.True(t, f.next(engine.Captured, []Way{way(9, 0, 66)}).same(ways[0]), "a way that nobody predicted says nothing")
}

func TestWaysThatAreKnownDoNotJoinAgain(t *testing.T) {
	l, plan := spinning(t)
	known := Way{Plan: plan(2), Mode: engine.Captured, Threads: 1}
	l.learned.Ways = []Way{known}
	l.o.Seen = []string{Way{Plan: known.Plan, Mode: engine.Streams, Threads: 1}.print()}
	f := &field{awaited: planned(plan(2), nil)}
	require.NoError(t, f.join(l))
	require.Empty(t, f.ways)
}

func TestAPlanThatFailsEndsLearning(t *testing.T) {
	l, _ := spinning(t)
	failed := errors.New("no plan")
	f := &field{awaited: planned(nil, failed)}
	require.True(t, f.wait(l, 1))
	require.ErrorIs(t, f.join(l), failed)
}

func TestAPlanIsNotAwaitedForever(t *testing.T) {
	l, _ := spinning(t)
	stopped := false
	a := &awaitedPlan{done: make(chan struct{})}
	a.stop = func() { stopped = true; close(a.done) }
	f := &field{awaited: a}
	l.o.For = time.Millisecond
	require.False(t, f.wait(l, 0.5))
	f.cancel()
	require.True(t, stopped)
}

func TestAModeIsHopelessIfAllItsWaysAreMuchSlower(t *testing.T) {
	ways := func(graph, streams []float64) *field {
		f := &field{}
		for _, us := range graph {
			f.ways = append(f.ways, Way{Mode: engine.Captured, Predicted: us})
		}
		for _, us := range streams {
			f.ways = append(f.ways, Way{Mode: engine.Streams, Predicted: us})
		}
		return f
	}
	require.True(t, ways([]float64{100, 300}, []float64{170, 200}).hopeless(engine.Streams))
	require.False(t, ways([]float64{100}, []float64{400, 150}).hopeless(engine.Streams), "one is not")
	require.True(t, ways([]float64{100}, nil).hopeless(engine.Streams), "there is none")
	require.False(t, ways(nil, []float64{100}).hopeless(engine.Streams), "there is no other mode")
	require.False(t, ways(nil, nil).hopeless(engine.Streams))
}
