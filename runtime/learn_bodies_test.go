// Tests of learning with loops: nodes of bodies are measured pass by pass, kept, and corrected by what replays take.

package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
)

// spinning waits for 300 us in each of the passes that halve x from 1000 to below 1.
func spinning(t *testing.T) *dag.Graph {
	t.Helper()
	b := dag.New("spinning")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F64, 1)
	b.Memset("start", b.Whole(x), 1000)
	b.Repeat("loop", dag.Loop{Until: "x < 1", Most: 500}, func() {
		b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(x)})
		b.Kernel("wait", "spin", dag.Args{300.0})
	})
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestNodesOfBodiesAreLearned(t *testing.T) {
	ctx, g, folder := context.Background(), spinning(t), cache.Open(t.TempDir())
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	o := runtime.LearnOptions{Replays: 12, Plan: planner.Options{Machine: runtime.MachineOf(platform)}, Modes: []runtime.Mode{runtime.Captured, runtime.Streams}}
	plan, err := planner.New(ctx, g, o.Plan)
	require.NoError(t, err)
	for _, mode := range []runtime.Mode{runtime.Streams, runtime.Captured} {
		p, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
		require.NoError(t, err)
		learned, err := p.Learn(ctx, o)
		require.NoError(t, err)
		require.Empty(t, learned.Ways, "plans are not compared")
		require.LessOrEqual(t, learned.Replays, 12)
		require.EqualValues(t, learned.Replays, p.Replays())
		require.Len(t, learned.Inner["wait"], 5)
		require.Len(t, learned.Inner["half"], 5)
		require.NotContains(t, learned.Profile.Nodes, "loop", "how long it takes follows from its passes")
		require.Equal(t, int64(10), learned.Profile.Passes["loop"])
		timeline, err := p.Predict(o.Plan.Machine, learned.Profile)
		require.NoError(t, err)
		require.GreaterOrEqual(t, timeline.MakespanUS, 2900.0, "ten passes of 300 us")

		recalled := runtime.Recall(g, platform, folder, o, runtime.Arena)
		require.NoError(t, recalled.Keep(ctx, learned, true))
		recalled = runtime.Recall(g, platform, folder, o, runtime.Arena)
		require.Contains(t, recalled.Known.Nodes, "wait")
		require.Contains(t, recalled.Known.Nodes, "half")
		require.Contains(t, recalled.Known.Nodes, "start")
		again := o
		again.Known = recalled.Known
		second, err := p.Learn(ctx, again)
		require.NoError(t, err)
		require.Empty(t, second.Inner, "what is known is not measured again")
		require.Zero(t, second.Replays)

		// A run that took twice as long as predicted corrects what is kept.
		loops, err := p.Loops(ctx)
		require.NoError(t, err)
		before, err := p.Predict(o.Plan.Machine, runtime.MergeProfiles(recalled.Known, &planner.Profile{Passes: learned.Profile.Passes}))
		require.NoError(t, err)
		require.NoError(t, recalled.CorrectBodies(ctx, p, 1.5*before.MakespanUS, loops, o))
		recalled = runtime.Recall(g, platform, folder, o, runtime.Arena)
		after, err := p.Predict(o.Plan.Machine, runtime.MergeProfiles(recalled.Known, &planner.Profile{Passes: learned.Profile.Passes}))
		require.NoError(t, err)
		require.InEpsilon(t, 1.5*before.MakespanUS, after.MakespanUS, 0.02)
		require.NoError(t, p.Close())
	}
}

func TestFewReplaysOfLoopsAreNotSlowedDown(t *testing.T) {
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	learned, err := runtime.Learn(context.Background(), spinning(t), platform, runtime.LearnOptions{Replays: 3, For: time.Hour})
	require.NoError(t, err)
	require.Zero(t, learned.Replays)
	require.Empty(t, learned.Inner)
}
