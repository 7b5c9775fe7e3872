// Tests of learning with loops: nodes of bodies are measured pass by pass, kept, and corrected by what replays take.

package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/learn"
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
	o := learn.Options{Replays: 12, Plan: planner.Options{Machine: runtime.MachineOf(platform)}, Modes: []runtime.Mode{runtime.Captured, runtime.Streams}}
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

		recalled := learn.Recall(g, platform, folder, o, runtime.Arena)
		require.NoError(t, recalled.Keep(ctx, learned, true))
		recalled = learn.Recall(g, platform, folder, o, runtime.Arena)
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
		before, err := p.Predict(o.Plan.Machine, learn.MergeProfiles(recalled.Known, &planner.Profile{Passes: learned.Profile.Passes}))
		require.NoError(t, err)
		require.NoError(t, recalled.CorrectBodies(ctx, p.Way(), 1.5*before.MakespanUS, loops, o))
		recalled = learn.Recall(g, platform, folder, o, runtime.Arena)
		after, err := p.Predict(o.Plan.Machine, learn.MergeProfiles(recalled.Known, &planner.Profile{Passes: learned.Profile.Passes}))
		require.NoError(t, err)
		require.InEpsilon(t, 1.5*before.MakespanUS, after.MakespanUS, 0.02)
		require.NoError(t, p.Close())
	}
}

// Another pipeline may have had a node like one of a loop's.
func TestNodesOfLoopsAreMeasuredWhereSomeAreKnown(t *testing.T) {
	ctx, g := context.Background(), spinning(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	for known, wanted := range map[string]string{"half": "wait", "wait": "half"} {
		learned, err := learn.Learn(ctx, g, platform, learn.Options{Replays: 12, Known: &planner.Profile{Nodes: map[string]float64{known: 300}}})
		require.NoError(t, err)
		require.Len(t, learned.Inner[wanted], 5)
		require.NotContains(t, learned.Inner, known)
	}
	learned, err := learn.Learn(ctx, g, platform, learn.Options{Replays: 12, Known: &planner.Profile{Nodes: map[string]float64{"start": 1, "half": 1, "wait": 300}}})
	require.NoError(t, err)
	require.Empty(t, learned.Inner, "all are known")
}

func TestNodesOfLoopsWithDeclaredCostsAreNotMeasured(t *testing.T) {
	g := spinning(t)
	g.EachGraph(func(g *dag.Graph, _ []string) {
		for i := range g.Nodes {
			if n := &g.Nodes[i]; n.Control == nil {
				n.CostUS, n.HasCost = 5, true
			}
		}
	})
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	learned, err := learn.Learn(context.Background(), g, platform, learn.Options{Replays: 30})
	require.NoError(t, err)
	require.Zero(t, learned.Replays)
}

func TestFewReplaysOfLoopsAreNotSlowedDown(t *testing.T) {
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	learned, err := learn.Learn(context.Background(), spinning(t), platform, learn.Options{Replays: 3, For: time.Hour})
	require.NoError(t, err)
	require.Zero(t, learned.Replays)
	require.Empty(t, learned.Inner)
}

// gpuLike is the CPU device under another name: what learning does on GPUs only can be tried with it.
type gpuLike struct{ cudart.Platform }

func (gpuLike) Name() string { return "cuda" }

// Plans differ in the bodies of loops, which the program must follow too.
func TestPlansOfLoopsAreComparedOnGPUs(t *testing.T) {
	b := dag.New("sums")
	b.Use(kernels.Library())
	const n = 256
	x, y, left := b.Device("x", dag.F32, n), b.Device("y", dag.F32, n), b.Device("left", dag.F64, 1)
	out := b.Host("out", dag.F32, n)
	b.Memset("start_x", b.Whole(x), 1)
	b.Memset("start_y", b.Whole(y), 1)
	b.Memset("start", b.Whole(left), 64)
	b.Repeat("loop", dag.Loop{Until: "left < 1", Most: 50}, func() {
		b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(left)})
		b.Kernel("double_x", "scale", dag.Args{n, 2, b.Whole(x)})
		b.Kernel("double_y", "scale", dag.Args{n, 2, b.Whole(y)})
		b.Kernel("add", "saxpy", dag.Args{n, 1, b.Whole(y), b.Whole(x)})
	})
	b.Copy("down", b.Whole(out), b.Whole(x))
	g, err := b.Graph()
	require.NoError(t, err)
	device, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	defer device.Close()
	platform, folder, ctx := gpuLike{device}, cache.Open(t.TempDir()), context.Background()
	o := learn.Options{Replays: 300, Plan: planner.Options{Machine: runtime.MachineOf(platform)}, Modes: []runtime.Mode{runtime.Captured, runtime.Streams}}
	plan, err := planner.New(ctx, g, o.Plan)
	require.NoError(t, err)
	for k, mode := range o.Modes {
		p, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
		require.NoError(t, err)
		read := func() []byte {
			require.NoError(t, p.Restore(ctx))
			require.NoError(t, p.Run(ctx, 1))
			memory := make([]byte, 4*n)
			require.NoError(t, p.Read(ctx, dag.BufferID(3), memory))
			return memory
		}
		want := read()
		limited := o
		limited.After, limited.For = 1<<30, time.Duration(k)*time.Hour // learning that was given a time also times the other mode
		learned, err := p.Learn(ctx, limited)
		require.NoError(t, err)
		require.Greater(t, len(learned.Ways), 1)
		require.Equal(t, learned.Ways[0].Plan, p.Plan())
		loop, streams := dag.NodeID(3), map[int]bool{}
		for _, w := range learned.Ways {
			streams[len(w.Plan.BodyOf(loop, 0).Streams)] = true
			require.True(t, k > 0 || w.Mode == mode, "the host would test conditions otherwise")
			require.NoError(t, runtime.Adopt(ctx, p, w))
			require.Equal(t, want, read())
		}
		require.Greater(t, len(streams), 1)
		require.NoError(t, p.Close())

		require.NoError(t, learn.Recall(g, platform, folder, o, runtime.Arena).Keep(ctx, learned, true))
		later := o
		later.Plan.Profile = &planner.Profile{Passes: map[string]int64{"loop": 7}}
		recalled := learn.Recall(g, platform, folder, later, runtime.Arena)
		require.Empty(t, recalled.Warnings)
		require.NotEmpty(t, recalled.Ways, "whatever is known of passes")
	}
}
