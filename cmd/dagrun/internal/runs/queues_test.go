// Tests of how many hardware queues a run asks for.

package runs

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
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
	planned := func(streams int) *planner.Plan { return &planner.Plan{Streams: make([]plan.Stream, streams)} }
	for _, c := range []struct {
		name        string
		graph       *dag.Graph
		plan        *planner.Plan
		flags       flags.Values
		environment string
		want        int
	}{
		{name: "nothing is known", want: 1},
		{name: "9 streams are allowed", flags: flags.Values{Limited: true, Streams: 9}, want: 1},
		{name: "as a graph", flags: flags.Values{Limited: true, Streams: 9, Replay: flags.GraphOn}, want: 1},
		{name: "as streams", flags: flags.Values{Replay: flags.GraphOff}, want: 8},
		{name: "8 streams are allowed", flags: flags.Values{Replay: flags.GraphOff, Limited: true, Streams: 8}, want: 8},
		{name: "9 streams are allowed, as streams", flags: flags.Values{Replay: flags.GraphOff, Limited: true, Streams: 9}, want: 32},
		{name: "the environment decides", flags: flags.Values{Replay: flags.GraphOff, Limited: true, Streams: 9}, environment: "16"},
		{name: "the environment decides about graphs", flags: flags.Values{Replay: flags.GraphOn}, environment: "16"},
		{name: "cover takes as many as it needs", flags: flags.Values{Replay: flags.GraphOff, Strategy: "cover"}, want: 32},
		{name: "several threads submit", flags: flags.Values{Threads: 4}, want: 8},
		{name: "several ranks", graph: rankGraph(t), want: 8},
		{name: "several devices", graph: secondDeviceGraph(t), want: 8},
		{name: "the pipeline binds 9 streams", graph: wideGraph(t, 9, true), flags: flags.Values{Replay: flags.GraphOff}, want: 32},
		{name: "the pipeline binds 3 streams, 2 replays in flight", graph: wideGraph(t, 3, true), flags: flags.Values{Inflight: 2}, want: 8},
		{name: "the pipeline binds 3 streams, 3 replays in flight", graph: wideGraph(t, 3, true), flags: flags.Values{Inflight: 3}, want: 32},
		{name: "a plan of 9 streams", plan: planned(9), flags: flags.Values{Plan: "p.json"}, want: 1},
		{name: "a plan of 8 streams, as streams", plan: planned(8), flags: flags.Values{Plan: "p.json", Replay: flags.GraphOff}, want: 8},
		{name: "a plan of 9 streams, as streams", plan: planned(9), flags: flags.Values{Plan: "p.json", Replay: flags.GraphOff}, want: 32},
		{name: "a plan of 9 streams, of which none is expected", plan: planned(9), flags: flags.Values{Plan: "p.json", Replay: flags.GraphBuilt}, want: 1},
		{name: "a plan of 9 streams as a graph, 2 replays in flight", plan: planned(9), flags: flags.Values{Plan: "p.json", Replay: flags.GraphOn, Inflight: 2}, want: 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(session.QueuesVariable, c.environment)
			a := silent()
			a.Flags = &c.flags
			a.Flags.Inflight, a.Flags.CacheDir = max(1, a.Flags.Inflight), t.TempDir()
			p := &Prepared{Graph: c.graph, Plan: c.plan}
			if p.Graph == nil {
				p.Graph = wideGraph(t, 1, false)
			}
			require.Equal(t, c.want, a.queuesFor(p, &session.RunFlags{}))
		})
	}
}

// gpuNamed is the CPU device under another name.
type gpuNamed struct{ *host.Platform }

func (gpuNamed) Name() string { return "cuda" }

// noting is a command that learns, with a cache of its own, and the CPU device.
func noting(t *testing.T, f flags.Values) (*Runs, *host.Platform) {
	a := silent()
	f.Inflight, f.CacheDir, f.Learn = 1, t.TempDir(), flags.LearnAuto
	a.Flags = &f
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, platform.Close()) })
	return a, platform
}

func TestARunNotesHowManyStreamsItUsed(t *testing.T) {
	t.Setenv(session.QueuesVariable, "")
	ctx := context.Background()
	a, platform := noting(t, flags.Values{Replay: flags.GraphOff})
	g := wideGraph(t, 9, false)
	own := &session.RunFlags{}
	ran := func(streams int, mode runtime.Mode) {
		plan, err := planner.New(ctx, g, planner.Options{Strategy: "roundrobin", Streams: streams})
		require.NoError(t, err)
		require.Len(t, plan.Streams, streams)
		program, err := runtime.New(ctx, g, plan, platform, runtime.Options{Mode: mode})
		require.NoError(t, err)
		defer program.Close()
		a.NoteQueues(ctx, &Prepared{Graph: g, Plan: plan, Platform: &session.Opened{Platform: gpuNamed{platform}}}, own, program, 100, time.Second)
	}
	queues := func() int { return a.queuesFor(&Prepared{Graph: g}, own) }
	require.Equal(t, 8, queues())
	ran(9, runtime.Captured)
	require.Equal(t, 8, queues())
	ran(9, runtime.Streams)
	require.Equal(t, 32, queues())
	a.Flags.Learn = flags.LearnOff
	require.Equal(t, 8, queues(), "--learn=off uses nothing from earlier runs")
	a.Flags.Learn = flags.LearnAuto
	ran(3, runtime.Streams)
	require.Equal(t, 8, queues())
	a.Flags.Limited, a.Flags.Streams = true, 12
	require.Equal(t, 32, queues())
	ran(3, runtime.Streams)
	require.Equal(t, 8, queues(), "12 were allowed, and 3 used")
}

func TestBenchAsksForTheQueuesThatRunsHave(t *testing.T) {
	one, several := wideGraph(t, 1, false), rankGraph(t)
	for replay, want := range map[string][2]int{flags.GraphAuto: {fewQueues, MostQueues}, flags.GraphOff: {MostQueues, MostQueues}, flags.GraphOn: {fewQueues, usualQueues}, flags.GraphCaptured: {fewQueues, usualQueues}, flags.GraphBuilt: {fewQueues, usualQueues}} {
		a := silent()
		a.Flags.Replay = replay
		require.Equal(t, want, [2]int{a.BenchQueues(one), a.BenchQueues(several)}, "--graph=%s", replay)
	}
}

// rankGraph is the pipeline of one rank of two.
func rankGraph(t *testing.T) *dag.Graph {
	b := dag.New("rank")
	b.Ranks(0, 2)
	b.Host("h", dag.F32, 4)
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// secondDeviceGraph runs a kernel on the second device.
func secondDeviceGraph(t *testing.T) *dag.Graph {
	g, err := file.Parse([]byte("version: 1\nname: second\nnodes: [{name: a, kernel: noop, device: 1}]\n"), file.Options{Library: kernels.Library()})
	require.NoError(t, err)
	return g
}

func TestMoreQueuesAreTriedForLongRunsAndUsedWhereTheyPay(t *testing.T) {
	for _, c := range []struct {
		name       string
		few, usual float64
		replays    int
		want       int
	}{
		{"nothing is known", 0, 0, 1e9, 1},
		{"a short run", 100, 0, 10_000, 1},
		{"a long run", 100, 0, 40_000, 8},
		{"the usual ones are slower", 100, 101, 1e9, 1},
		{"the usual ones are as fast", 100, 99, 1e9, 1},
		{"the usual ones are faster, in a short run", 100, 80, 5_000, 1},
		{"the usual ones are faster, in a long run", 100, 80, 10_000, 8},
		{"nobody has tried few", 0, 80, 1e9, 1},
		{"more than a duration can hold", 1e300, 1e200, math.MaxInt, 1},
	} {
		require.Equal(t, c.want, queuesTried{Few: c.few, Usual: c.usual}.best(c.replays), c.name)
	}
}

func TestLongRunsNoteWhatTheyTakeWithTheirQueues(t *testing.T) {
	t.Setenv(session.QueuesVariable, "")
	ctx := context.Background()
	a, platform := noting(t, flags.Values{Iterations: 1_000_000})
	g, own := wideGraph(t, 2, false), &session.RunFlags{}
	queues := func() int { return a.queuesFor(&Prepared{Graph: g}, own) }
	ran := func(queues, replays int, each time.Duration) {
		a.NoteQueues(ctx, &Prepared{Graph: g, Platform: &session.Opened{Platform: queuedGPU{gpuNamed{platform}, queues}}}, own, nil, replays, time.Duration(replays)*each)
	}
	notes := func() int {
		contents, err := a.OpenCache().Contents()
		require.NoError(t, err)
		return contents.Notes
	}
	require.Equal(t, 1, queues())
	ran(1, 10_000, 100*time.Microsecond)
	require.Zero(t, notes(), "a second of replays is short")
	ran(1, 3, 10*time.Second)
	require.Zero(t, notes(), "three replays tell little")
	ran(1, 100_000, 100*time.Microsecond)
	require.Equal(t, 1, notes())
	require.Equal(t, 8, queues(), "tried")
	a.Flags.Iterations = 100
	require.Equal(t, 1, queues(), "a short run")
	a.Flags.Iterations = 1_000_000
	ran(8, 1000, 70*time.Microsecond)
	require.Equal(t, 8, queues(), "faster")
	ran(8, 1000, 200*time.Microsecond)
	require.Equal(t, 1, queues(), "slower in the mean of two runs")
	require.NoError(t, a.OpenCache().KeepNote(ctx, a.queuesKey(g, own), []byte(`{"few_us": -1, "usual_us": 1}`)))
	require.Equal(t, 1, queues(), "a note that cannot be")
}

// queuedGPU is the CPU device under another name, with so many hardware queues.
type queuedGPU struct {
	gpuNamed
	queues int
}

func (q queuedGPU) Queues() int { return q.queues }

func TestNoQueuesAreNotedForTheCPU(t *testing.T) {
	a, platform := noting(t, flags.Values{Iterations: 1_000_000})
	g, own := wideGraph(t, 2, false), &session.RunFlags{}
	a.NoteQueues(context.Background(), &Prepared{Graph: g, Platform: &session.Opened{Platform: platform}}, own, nil, 100_000, 100*time.Second)
	require.Empty(t, a.queueNote(a.queuesKey(g, own)))
}
