// Tests of how many hardware queues a run asks for.

package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// wideGraph has independent kernels, each on a stream of its own if bound is set.
func wideGraph(t *testing.T, width int, bound bool) *dag.Graph {
	b := dag.New("wide")
	b.Use(kernels.Library())
	for i := range width {
		id := b.Kernel("k"+string(rune('a'+i)), "noop", nil)
		if bound {
			b.Stream(id, int32(i))
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestMoreQueuesAreAskedForOnlyForMoreStreams(t *testing.T) {
	planned := func(streams int) *planner.Plan { return &planner.Plan{Streams: make([]planner.Stream, streams)} }
	for _, c := range []struct {
		name        string
		graph       *dag.Graph
		plan        *planner.Plan
		flags       flags
		environment string
		want        int
	}{
		{name: "nothing is known", want: 8},
		{name: "8 streams are allowed", flags: flags{limited: true, streams: 8}, want: 8},
		{name: "9 streams are allowed", flags: flags{limited: true, streams: 9}, want: 32},
		{name: "the environment decides", flags: flags{limited: true, streams: 9}, environment: "16"},
		{name: "as a graph", flags: flags{limited: true, streams: 9, replay: graphOn}, want: 8},
		{name: "cover takes as many as it needs", flags: flags{strategy: "cover"}, want: 32},
		{name: "the pipeline binds 9 streams", graph: wideGraph(t, 9, true), want: 32},
		{name: "the pipeline binds 3 streams, 2 replays in flight", graph: wideGraph(t, 3, true), flags: flags{inflight: 2}, want: 8},
		{name: "the pipeline binds 3 streams, 3 replays in flight", graph: wideGraph(t, 3, true), flags: flags{inflight: 3}, want: 32},
		{name: "a plan of 8 streams", plan: planned(8), flags: flags{plan: "p.json"}, want: 8},
		{name: "a plan of 9 streams", plan: planned(9), flags: flags{plan: "p.json"}, want: 32},
		{name: "a plan of 9 streams, of which none is expected", plan: planned(9), flags: flags{plan: "p.json", replay: graphBuilt}, want: 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(queuesVariable, c.environment)
			a := newApp(strings.NewReader(""), io.Discard, io.Discard)
			a.flags = &c.flags
			a.flags.inflight, a.flags.cacheDir = max(1, a.flags.inflight), t.TempDir()
			p := &prepared{graph: c.graph, plan: c.plan}
			if p.graph == nil {
				p.graph = wideGraph(t, 1, false)
			}
			require.Equal(t, c.want, a.queuesFor(p, &runFlags{}))
		})
	}
}

// gpuNamed is the CPU device under another name.
type gpuNamed struct{ *host.Platform }

func (gpuNamed) Name() string { return "cuda" }

func TestARunNotesHowManyStreamsItUsed(t *testing.T) {
	t.Setenv(queuesVariable, "")
	ctx := context.Background()
	a := newApp(strings.NewReader(""), io.Discard, io.Discard)
	a.flags = &flags{inflight: 1, cacheDir: t.TempDir(), learn: learnAuto}
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	g := wideGraph(t, 9, false)
	own := &runFlags{}
	ran := func(streams int, mode runtime.Mode) {
		plan, err := planner.New(ctx, g, planner.Options{Strategy: "roundrobin", Streams: streams})
		require.NoError(t, err)
		require.Len(t, plan.Streams, streams)
		program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
		require.NoError(t, err)
		defer program.Close()
		a.noteQueues(ctx, &prepared{graph: g, plan: plan, platform: &opened{Platform: gpuNamed{platform}}}, own, program)
	}
	queues := func() int { return a.queuesFor(&prepared{graph: g}, own) }
	require.Equal(t, 8, queues())
	ran(9, runtime.Captured)
	require.Equal(t, 8, queues())
	ran(9, runtime.Streams)
	require.Equal(t, 32, queues())
	a.flags.learn = learnOff
	require.Equal(t, 8, queues(), "--learn=off uses nothing from earlier runs")
	a.flags.learn = learnAuto
	ran(3, runtime.Streams)
	require.Equal(t, 8, queues())
	a.flags.limited, a.flags.streams = true, 12
	require.Equal(t, 32, queues())
	ran(3, runtime.Streams)
	require.Equal(t, 8, queues(), "12 were allowed, and 3 used")
}

func TestBenchAsksForTheQueuesThatGraphsRunWith(t *testing.T) {
	for replay, want := range map[string]int{graphAuto: mostQueues, graphOff: mostQueues, graphOn: usualQueues, graphCaptured: usualQueues, graphBuilt: usualQueues} {
		a := newApp(strings.NewReader(""), io.Discard, io.Discard)
		a.flags.replay = replay
		require.Equal(t, want, a.benchQueues(), "--graph=%s", replay)
	}
}
