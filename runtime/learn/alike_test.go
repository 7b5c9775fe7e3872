// Tests of predictions that are corrected by plans alike, and of fitting again.

package learn

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner"
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
