// Tests of how fast the host submits now, and of comparing ways at the same speed.

package learn

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

func TestPredictionsAreForTheHostAsItIsNow(t *testing.T) {
	g, plans := lattice(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	learned := &Learned{Machine: planner.H200()}
	now := func() *Learned {
		now, err := learned.Now(t.Context(), g, platform)
		require.NoError(t, err)
		return now
	}
	predicted := func(l *Learned, mode engine.Mode) float64 {
		us, err := l.PredictEach(g, plans[2], mode)
		require.NoError(t, err)
		return us
	}
	require.Zero(t, now().Host, "nothing was timed")
	for _, k := range []int{0, 3} {
		us, err := predictEach(g, engine.Way{Plan: plans[k], Mode: engine.Streams, Threads: 1}, learned.Machine, nil)
		require.NoError(t, err)
		learned.Ways = append(learned.Ways, Way{Plan: plans[k], Mode: engine.Streams, Threads: 1, Each: engine.Series{Count: 3, Median: us}})
	}
	require.Positive(t, now().Host)
	require.Zero(t, learned.Host, "what was learned is left alone")

	was := learned.Ways
	for _, c := range []struct{ learnedUS, host float64 }{{1e-3, mostNow}, {1e9, 1 / mostNow}} {
		learned.Ways = append([]Way(nil), was...)
		for k := range learned.Ways {
			learned.Ways[k].Each.Median = c.learnedUS
		}
		found := now()
		require.Equal(t, c.host, found.Host, "more is something else than the host")
		found.Ways = was
		learned.Ways = was
		require.Equal(t, predicted(learned, engine.Captured), predicted(found, engine.Captured), "the host does not slow graphs down")
		require.InEpsilon(t, c.host*predicted(learned, engine.Streams), predicted(found, engine.Streams), 0.3, "submission takes most of the time")
	}

	each := engine.Series{Count: 3, Median: 9}
	graphs := &Learned{Machine: planner.H200(), Ways: []Way{{Plan: plans[0], Mode: engine.Captured, Threads: 1, Each: each},
		{Plan: plans[0], Mode: engine.Streams, Threads: 2, Each: each}, {Plan: plans[0], Mode: engine.Streams, Threads: 1, Overlap: true, Each: each}, {Plan: plans[0], Mode: engine.Streams, Threads: 1}}}
	same, err := graphs.Now(t.Context(), g, platform)
	require.NoError(t, err)
	require.Same(t, graphs, same, "no way depends on the host")

	_, err = (*Learned)(nil).Now(t.Context(), g, platform)
	require.ErrorContains(t, err, "nothing was learned")
	_, err = learned.Now(t.Context(), nil, platform)
	require.ErrorContains(t, err, "needs a graph")
	_, err = learned.Now(t.Context(), g, nil)
	require.ErrorContains(t, err, "needs a platform")
}

func TestTurnsAreComparedAtTheSameSpeed(t *testing.T) {
	speeds := []float64{1, 1.3, 1, 1.3, 1.3}
	samples := [][]float64{nil, {10, 10, 10, 10, 10}, {20, 20, 20, 20, 20}, {30, 30, 30, 30}}
	for _, of := range samples {
		for turn := range of {
			of[turn] *= speeds[turn]
		}
	}
	evenTurns(samples)
	first := samples[1][0]
	for k, of := range samples {
		for _, us := range of {
			require.InEpsilon(t, float64(k)*first, us, 1e-9, "ways keep their relation, and turns no longer differ")
		}
	}
	require.InDelta(t, 11.5, first, 1.6, "as fast as in some turn")
}

// With one turn, or one way, there is nothing to compare it with.
func TestOneTurnAloneStaysAsItIs(t *testing.T) {
	for _, samples := range [][][]float64{nil, {nil}, {{5}}, {{5}, nil, {7}}} {
		before := slices.Clone(samples)
		for k := range before {
			before[k] = slices.Clone(before[k])
		}
		evenTurns(samples)
		require.Equal(t, before, samples)
	}
}
