// Tests of predictions that are corrected by plans alike, and of fitting again.

package learn

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

func TestPlansAlikeCorrectPredictions(t *testing.T) {
	g, plans := lattice(t)
	learned := &Learned{Machine: planner.H200()}
	model := func(plan *planner.Plan, mode engine.Mode) float64 {
		us, err := predictEach(g, engine.Way{Plan: plan, Mode: mode, Threads: 1}, learned.Machine, nil)
		require.NoError(t, err)
		return us
	}
	predicted := func(plan *planner.Plan, mode engine.Mode) float64 {
		us, err := learned.PredictEach(g, plan, mode)
		require.NoError(t, err)
		return us
	}
	require.Equal(t, model(plans[2], engine.Captured), predicted(plans[2], engine.Captured), "nothing was timed")
	for _, k := range []int{0, 1, 3} {
		us := 1.3 * model(plans[k], engine.Captured)
		learned.Ways = append(learned.Ways, Way{Plan: plans[k], Mode: engine.Captured, Threads: 1, Each: engine.Series{Count: 3, Median: us}})
	}
	factor := predicted(plans[2], engine.Captured) / model(plans[2], engine.Captured)
	require.Greater(t, factor, 1.1, "the others took 1.3 times as long as predicted")
	require.Less(t, factor, 1.3)
	require.Greater(t, predicted(plans[3], engine.Captured)/model(plans[3], engine.Captured), factor, "it was timed itself")
	require.Equal(t, model(plans[2], engine.Streams), predicted(plans[2], engine.Streams), "graphs say nothing of streams")

	again := predicted(plans[2], engine.Captured)
	for k := range learned.Ways {
		learned.Ways[k].Predicted = model(learned.Ways[k].Plan, engine.Captured)
	}
	require.Equal(t, again, predicted(plans[2], engine.Captured), "what was predicted before is taken")

	learned.Ways[0].Each.Median *= 1000
	require.Less(t, predicted(plans[2], engine.Captured), math.Exp(mostCorrect)*model(plans[2], engine.Captured), "what was disturbed says little")

	_, err := (*Learned)(nil).PredictEach(g, plans[0], engine.Streams)
	require.ErrorContains(t, err, "nothing was learned")
	_, err = learned.PredictEach(g, nil, engine.Streams)
	require.Error(t, err)
}

// A plan of two streams: the second waits for the first node of the first one, and has the longest path.
func TestPlansAreLikenedByStreamsWaitsAndDepth(t *testing.T) {
	op := func(kind plan.OpKind, node, event int32) plan.Op {
		return plan.Op{Kind: kind, Node: dag.NodeID(node), Event: event}
	}
	plan := &planner.Plan{Events: 1, Order: []int32{0, 0, 1, 0, 1, 1, 1}, Streams: []plan.Stream{
		{Ops: []plan.Op{op(plan.Launch, 0, 0), op(plan.Record, 0, 0), op(plan.Launch, 1, 0)}},
		{Ops: []plan.Op{op(plan.Wait, 0, 0), op(plan.Launch, 2, 0), op(plan.Launch, 3, 0), op(plan.Launch, 4, 0)}}, {}}}
	got := likenessOf(plan, 20)
	for k, want := range (likeness{math.Log(20) / unlikeUS, 1 / unlikeStreams, 1.0 / 5 / unlikeWaits, math.Log(4) / unlikeDepth}) {
		require.InDelta(t, want, got[k], 1e-12, "feature %d", k)
	}
	require.Equal(t, likeness{math.Log(0.01) / unlikeUS, 0, 0, 0}, likenessOf(&planner.Plan{}, 0))
	require.Equal(t, 1.0, got.says(got))
	other := got
	other[1]++
	other[3]--
	require.InDelta(t, math.Exp(-1), got.says(other), 1e-12)
	require.Equal(t, got.says(other), other.says(got))
}

// What plans say together explains, with the part that is due to chance, exactly how far each is off.
func TestSharesExplainWhatPlansAreOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(t, "plans")
		of, off := make([]likeness, n), make([]float64, n)
		for i := range of {
			for k := range of[i] {
				of[i][k] = rapid.Float64Range(-2, 2).Draw(t, "feature")
			}
			off[i] = rapid.Float64Range(-mostCorrect, mostCorrect).Draw(t, "off")
		}
		weights := shares(of, off)
		require.Len(t, weights, n)
		for i := range of {
			require.InDelta(t, off[i], of[i].expects(of, off)+byChance*weights[i], 1e-9)
			doubt := of[i].doubt(of)
			require.True(t, doubt > 0 && doubt < byChance/(1+byChance)+1e-9, "only chance is left of what a plan that was timed itself leaves open, and others make it less: %g", doubt)
		}
	})
}

// How far all ways are off in the mean is left out, and what is left is bounded.
func TestMispredictionsAreAgainstTheMean(t *testing.T) {
	plan := &planner.Plan{}
	way := func(predicted, took float64) Way {
		return Way{Plan: plan, Predicted: predicted, Each: engine.Series{Count: 3, Median: took}}
	}
	m := mispredictionsSoFar([]Way{way(10, 20), way(0, 5), way(10, 0), way(10, 40)})
	require.Len(t, m.of, 2)
	require.InDelta(t, -math.Log(2)/2, m.off[0], 1e-12)
	require.InDelta(t, math.Log(2)/2, m.off[1], 1e-12)
	m = mispredictionsSoFar([]Way{way(10, 1), way(10, 1000)})
	require.Equal(t, []float64{-mostCorrect, mostCorrect}, m.off)
	require.Empty(t, mispredictionsSoFar(nil).off)
	unknown := way(10, 0)
	require.InDelta(t, 10*math.Exp(-0.2), mispredictionsSoFar(nil).hope(&unknown), 1e-12, "of what nobody has timed anything like, a fifth less")
}

func TestFittingAgainFindsWhatLearningFound(t *testing.T) {
	g, plans := lattice(t)
	given := planner.H200()
	truth := *given
	truth.GraphEdgeUS *= 2
	var ways []Way
	for _, plan := range plans {
		us, err := predictEach(g, engine.Way{Plan: plan, Mode: engine.Captured, Threads: 1}, &truth, nil)
		require.NoError(t, err)
		ways = append(ways, Way{Plan: plan, Mode: engine.Captured, Threads: 1, Each: engine.Series{Count: 3, Median: us}})
	}
	unfitted := &Unfitted{Machine: given, Samples: make([][]float64, g.Len())}
	learned, err := Refit(g, unfitted, ways)
	require.NoError(t, err)
	require.Equal(t, planner.H200(), given, "it is left alone")
	require.NotEqual(t, given, learned.Machine)
	for _, w := range learned.Ways {
		require.InEpsilon(t, w.Each.Median, w.Predicted, 0.1)
		require.Zero(t, ways[0].Predicted, "the ways that were given are left alone")
	}
	_, err = Refit(g, &Unfitted{Machine: given}, ways)
	require.ErrorContains(t, err, "the samples of each node")
}

// Of ways that have not been timed, the one of which those that have say least is timed next, the first of several.
func TestTheWayThatIsLeastKnownIsTimedNext(t *testing.T) {
	_, plans := lattice(t)
	way := func(k, threads int) Way {
		return Way{Plan: plans[k], Mode: engine.Captured, Predicted: float64(100 - 10*k), Threads: threads}
	}
	l := &learner{learned: Learned{Ways: []Way{way(0, 1)}}}
	l.addSome([]Way{way(0, 1), way(1, 1), way(3, 2), way(3, 1), way(3, 1), way(2, 1)})
	require.Same(t, plans[3], l.learned.Ways[1].Plan, "the most streams differ most from one")
	for _, w := range l.learned.Ways {
		require.Equal(t, 1, w.Threads, "submission by several threads says nothing of the device")
	}
	untimed := []Way{way(3, 1), way(3, 1)}
	untimed[1].Mode = engine.Streams
	l = &learner{learned: Learned{Ways: []Way{way(0, 1)}}}
	l.addSome(untimed)
	require.Equal(t, engine.Captured, l.learned.Ways[1].Mode)
}
