// Tests of correcting what was learned by the replays that followed.

package runtime_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
)

func TestLaterReplaysCorrectWhatWasLearned(t *testing.T) {
	ctx := context.Background()
	b := dag.New("pair")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F32, 1<<16)
	b.Kernel("measured", "square", dag.Args{1 << 16, b.Whole(x), b.Whole(x)})
	b.Cost(b.Kernel("declared", "square", dag.Args{1 << 15, b.Whole(x), b.Whole(x)}), 50)
	g, err := b.Graph()
	require.NoError(t, err)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	machine := runtime.MachineOf(platform)
	options := runtime.LearnOptions{Replays: 40, Modes: []runtime.Mode{runtime.Captured, runtime.Streams}, Plan: planner.Options{Machine: machine}}
	plan, err := planner.New(ctx, g, options.Plan)
	require.NoError(t, err)
	way := &runtime.LearnedWay{Plan: plan, Mode: runtime.Streams, Threads: 1, Each: runtime.Series{Count: 3, Median: 150}}
	for _, c := range []struct {
		name         string
		us, measured float64 // of a replay, and then of the node that took 100
	}{
		{"slower", 200, 150},
		{"faster", 110, 60},
		{"close enough", 154, 100},
		{"much slower: the declared cost may be wrong", 1000, 100},
		{"much faster: the declared cost may be wrong", 20, 100},
		{"not measured", 0, 100},
		{"nonsense", math.NaN(), 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := cache.Open(t.TempDir())
			recalled := runtime.Recall(g, platform, folder, options, runtime.Arena)
			learned := &runtime.Learned{Samples: [][]float64{{90, 100, 110}, nil}, Ways: []runtime.LearnedWay{*way}}
			require.NoError(t, recalled.Keep(ctx, learned, false))
			require.NoError(t, recalled.Correct(ctx, way, c.us, options))
			again := runtime.Recall(g, platform, folder, options, runtime.Arena)
			require.Empty(t, again.Warnings)
			require.Len(t, again.Known.Nodes, 1, "a declared cost is not replaced")
			require.InEpsilon(t, c.measured, again.Known.Nodes["measured"], 0.05)
			if c.measured != 100 && c.us > 50 && c.us < 1000 {
				require.InEpsilon(t, c.us, again.Best(100).Predicted, 0.01)
			}
		})
	}
	t.Run("without declared costs, by a factor of 2 at most", func(t *testing.T) {
		b := dag.New("single")
		b.Use(kernels.Library())
		x := b.Device("x", dag.F32, 1<<16)
		b.Kernel("measured", "square", dag.Args{1 << 16, b.Whole(x), b.Whole(x)})
		single, err := b.Graph()
		require.NoError(t, err)
		plan, err := planner.New(ctx, single, options.Plan)
		require.NoError(t, err)
		for us, measured := range map[float64]float64{1000: 200, 20: 50} {
			folder := cache.Open(t.TempDir())
			recalled := runtime.Recall(single, platform, folder, options, runtime.Arena)
			require.NoError(t, recalled.Keep(ctx, &runtime.Learned{Samples: [][]float64{{90, 100, 110}}}, false))
			require.NoError(t, recalled.Correct(ctx, &runtime.LearnedWay{Plan: plan, Threads: 1}, us, options))
			require.InEpsilon(t, measured, runtime.Recall(single, platform, folder, options, runtime.Arena).Known.Nodes["measured"], 0.01)
		}
	})
	t.Run("a device with engines is left as measured", func(t *testing.T) {
		folder := cache.Open(t.TempDir())
		gpu := options
		gpu.Plan.Machine = planner.H200()
		recalled := runtime.Recall(g, platform, folder, gpu, runtime.Arena)
		require.NoError(t, recalled.Keep(ctx, &runtime.Learned{Samples: [][]float64{{100, 100, 100}, nil}}, false))
		require.NoError(t, recalled.Correct(ctx, way, 500, gpu))
		require.Equal(t, 100.0, runtime.Recall(g, platform, folder, gpu, runtime.Arena).Known.Nodes["measured"])
	})
	var none *runtime.Recalled
	require.NoError(t, none.Correct(ctx, way, 100, options))
	require.NoError(t, runtime.Recall(g, platform, nil, options, runtime.Arena).Correct(ctx, way, 100, options))
	require.NoError(t, runtime.Recall(g, platform, cache.Open(t.TempDir()), options, runtime.Arena).Correct(ctx, nil, 100, options))
}
