// Tests of timing ways to replay that are not chosen.

package learn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

func TestLearningThatWasGivenATimeAlsoTimesOtherWays(t *testing.T) {
	g, _ := lattice(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	count := func(o Options) (graphs, streams int) {
		learned, err := Learn(t.Context(), g, timed{platform}, o)
		require.NoError(t, err)
		for _, w := range learned.Ways {
			require.Positive(t, w.Each.Count, "only ways that were timed are kept")
			if w.Mode == engine.Captured {
				graphs++
			} else {
				streams++
			}
		}
		return graphs, streams
	}
	graphs, streams := count(Options{Replays: 400})
	moreGraphs, moreStreams := count(Options{Replays: 100_000, For: time.Minute})
	require.Greater(t, moreGraphs+moreStreams, graphs+streams)
	require.GreaterOrEqual(t, min(moreGraphs, moreStreams), 4)
}

func TestLoopsAreTimedInBothModes(t *testing.T) {
	b := dag.New("halving")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F64, 1)
	b.Memset("start", b.Whole(x), 1000)
	b.Repeat("loop", dag.Loop{Until: "x < 1", Most: 500}, func() { b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(x)}) })
	g, err := b.Graph()
	require.NoError(t, err)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	learned, err := Learn(t.Context(), g, timed{platform}, Options{Replays: 200, For: time.Minute})
	require.NoError(t, err)
	require.Len(t, learned.Ways, 2)
	again, err := Refit(g, learned.Given, learned.Ways)
	require.NoError(t, err)
	for _, w := range learned.Ways {
		for _, l := range []*Learned{learned, again} {
			us, err := l.PredictEach(g, w.Plan, w.Mode)
			require.NoError(t, err)
			require.InEpsilon(t, w.Each.Median, us, 1e-6)
		}
	}
}
