// Tests of the law of learning: whatever is learned, kept and taken from the cache, results are those of the same replays without it.

package runtime_test

import (
	"context"
	"time"

	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
)

func TestLearningChangesNoResult(t *testing.T) {
	folders := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		seed := rapid.Uint64().Draw(t, "graph")
		g := random(t, seed, rapid.IntRange(1, 30).Draw(t, "nodes"))
		replays := rapid.IntRange(1, 60).Draw(t, "replays")
		memory := rapid.SampledFrom([]runtime.MemoryMode{runtime.Arena, runtime.Separate}).Draw(t, "memory")
		separate := memory == runtime.Separate
		want := outcome(t, g, planner.Options{Strategy: "serial", KeepAll: true}, host.Options{}, runtime.Options{}, replays)
		platform, err := host.Open(host.Options{CheckOrder: true, Perturb: rapid.Uint64Range(0, 1<<40).Draw(t, "perturb")})
		require.NoError(t, err)
		defer func() { require.NoError(t, platform.Close()) }()
		options := runtime.LearnOptions{
			Replays:  replays,
			Plan:     planner.Options{Machine: runtime.MachineOf(platform), KeepAll: separate, Streams: rapid.IntRange(0, 5).Draw(t, "streams")},
			Modes:    rapid.SampledFrom([][]runtime.Mode{nil, {runtime.Streams}, {runtime.Captured}, {runtime.Streams, runtime.Captured}}).Draw(t, "modes"),
			Threads:  rapid.IntRange(0, 3).Draw(t, "threads"),
			For:      time.Duration(rapid.IntRange(0, 20).Draw(t, "milliseconds")) * time.Millisecond,
			Thorough: rapid.Bool().Draw(t, "thorough"),
		}
		options.Plan.SingleUseEvents = options.Threads > 1
		folder := cache.Open(folders)
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			recalled := runtime.Recall(g, platform, folder, options, memory)
			require.Empty(t, recalled.Warnings)
			options.Known, options.Ways, options.Runs, options.Seen = recalled.Known, nil, recalled.Runs, recalled.Seen
			how := runtime.Options{Memory: memory, Threads: options.Threads}
			var plan *planner.Plan
			if way := recalled.Best(replays); way != nil {
				plan, how.Mode, how.Threads, options.Ways = way.Plan, way.Mode, way.Threads, []runtime.LearnedWay{*way}
			} else if plan, err = planner.New(ctx, g, options.Plan); err != nil {
				require.NoError(t, err)
			}
			program, err := runtime.New(ctx, g, plan, platform, how)
			require.NoError(t, err)
			learned, err := program.Learn(ctx, options)
			require.NoError(t, err)
			require.NoError(t, program.Run(ctx, replays-learned.Replays))
			id, _ := program.Buffer("out")
			got := make([]byte, g.Buffers[id].Bytes)
			require.NoError(t, program.Read(ctx, id, got))
			require.NoError(t, program.Close())
			require.Equal(t, want, got)
			require.NoError(t, recalled.Keep(ctx, learned, false))
			require.NoError(t, recalled.Correct(ctx, recalled.Best(replays), rapid.Float64Range(0, 1000).Draw(t, "us"), options))
		}
	})
}
