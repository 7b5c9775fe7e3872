// Tests that learning changes only plans between replays: results are the same bits with it, without it, with a plan from the cache, and among ranks, which take the same way.

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/world"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/learn"
)

// carrying is a graph whose result depends on the number of its replays: four sums in a device buffer that nothing refills, each with
// its own chain of kernels that adds to it, and buffers in between that may share bytes.
func carrying(t testing.TB) *dag.Graph {
	t.Helper()
	b := dag.New("carrying")
	b.Use(kernels.Library())
	const n = 1000
	for k := range 4 {
		name := func(what string) string { return fmt.Sprintf("%s.%d", what, k) }
		x, result := b.Host(name("x"), dag.F32, n), b.Host(name("result"), dag.F32, n)
		b.Init(x, dag.Init{Kind: dag.InitUniform, A: 0, B: 1, Seed: uint64(k)})
		d, squared, sum := b.Device(name("d"), dag.F32, n), b.Device(name("squared"), dag.F32, n), b.Device(name("sum"), dag.F32, n)
		b.Copy(name("up"), b.Whole(d), b.Whole(x))
		b.Kernel(name("square"), "square", dag.Args{n, b.Whole(d), b.Whole(squared)})
		b.Kernel(name("add"), "add", dag.Args{n, b.Whole(sum), b.Whole(squared), b.Whole(sum)})
		b.Copy(name("down"), b.Whole(result), b.Whole(sum))
		b.Save(result, filepath.Join(t.TempDir(), "result.npy"))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	require.NotEmpty(t, g.Carried())
	return g
}

// sums replays the given number of times and returns the checksums of the results. learn is nil for no learning.
func sums(t testing.TB, g *dag.Graph, platform *host.Platform, replays int, o runtime.Options, learning *learn.Options, way *learn.Way) ([]runtime.Checksum, *learn.Learned) {
	t.Helper()
	ctx := context.Background()
	plan, err := planner.New(ctx, g, planner.Options{Machine: runtime.MachineOf(platform), Streams: 3})
	require.NoError(t, err)
	if way != nil {
		plan, o.Mode = way.Plan, way.Mode
	}
	p, err := runtime.New(ctx, g, plan, platform, o)
	require.NoError(t, err)
	var learned *learn.Learned
	used := 0
	if learning != nil {
		learning.Replays = replays
		learned, err = p.Learn(ctx, *learning)
		require.NoError(t, err)
		used = learned.Replays
		require.LessOrEqual(t, used, replays)
	}
	require.NoError(t, p.Run(ctx, replays-used))
	require.EqualValues(t, replays, p.Replays(), "replays that learn count")
	results, err := p.Finish(ctx)
	require.NoError(t, err)
	require.NoError(t, p.Close())
	require.Len(t, results.Checksums, 4)
	return results.Checksums, learned
}

func TestResultsAreEqualHoweverMuchIsLearned(t *testing.T) {
	g := carrying(t)
	platform, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	defer platform.Close()
	folder := cache.Open(t.TempDir())
	for _, memory := range []runtime.MemoryMode{runtime.Arena, runtime.Separate} {
		for _, replays := range []int{1, 2, 7, 20, 150} {
			want, _ := sums(t, g, platform, replays, runtime.Options{Memory: memory}, nil, nil)
			options := learn.Options{Replays: replays, Plan: planner.Options{KeepAll: memory == runtime.Separate}, For: time.Hour}
			options.Plan.Machine = runtime.MachineOf(platform)
			options.Modes = []runtime.Mode{runtime.Captured, runtime.Streams}
			recalled := learn.Recall(g, platform, folder, options, memory)
			require.Empty(t, recalled.Warnings)
			for _, again := range []bool{false, true} {
				got, learned := sums(t, g, platform, replays, runtime.Options{Memory: memory}, &options, nil)
				require.Equal(t, want, got, "%d replays, again: %v", replays, again)
				if replays >= 20 {
					require.NotEmpty(t, learned.Ways)
				}
				require.NoError(t, recalled.Keep(context.Background(), learned, again))
			}
			recalled = learn.Recall(g, platform, folder, options, memory)
			require.Empty(t, recalled.Warnings)
			if replays >= 20 {
				require.NotNil(t, recalled.Known)
				require.Len(t, recalled.Known.Nodes, g.Len())
				for k := range recalled.Ways {
					got, _ := sums(t, g, platform, replays, runtime.Options{Memory: memory}, nil, &recalled.Ways[k])
					require.Equal(t, want, got, "%d replays of a plan from the cache", replays)
				}
				require.NotEmpty(t, recalled.Ways)
			}
		}
	}
}

func TestLearnReturnsAProfileToPlanWith(t *testing.T) {
	ctx := context.Background()
	b := dag.New("spins")
	b.Use(kernels.Library())
	b.Kernel("short", "spin", dag.Args{300.0})
	b.Kernel("long", "spin", dag.Args{900.0})
	b.Cost(b.Kernel("declared", "noop", nil), 5)
	g, err := b.Graph()
	require.NoError(t, err)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	learned, err := learn.Learn(ctx, g, platform, learn.Options{Replays: 12})
	require.NoError(t, err)
	require.Equal(t, 12, max(12, learned.Replays))
	require.GreaterOrEqual(t, learned.Profile.Nodes["short"], 300.0)
	require.GreaterOrEqual(t, learned.Profile.Nodes["long"], 900.0)
	require.NotContains(t, learned.Profile.Nodes, "declared", "a declared cost is not measured")
	made, err := planner.New(ctx, g, planner.Options{Profile: learned.Profile, Machine: runtime.MachineOf(platform)})
	require.NoError(t, err)
	require.Equal(t, "1 declared, 2 measured", plan.CostText(g, made.Costs))
	require.Zero(t, platform.Live().Memory)
}

func TestWhatCannotLearnSaysWhy(t *testing.T) {
	ctx := context.Background()
	b := dag.New("noop")
	b.Use(kernels.Library())
	b.Kernel("noop", "noop", nil)
	g, err := b.Graph()
	require.NoError(t, err)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	for message, o := range map[string]runtime.Options{
		"several replays in flight":         {Inflight: 2},
		"progress is tracked for debugging": {DebugProgress: true},
		"the graph is built node by node":   {Mode: runtime.Built},
		"the plan leaves hazards unenforced, so that plans may differ in their results": {Unsafe: true},
	} {
		p, err := runtime.New(ctx, g, plan, platform, o)
		require.NoError(t, err)
		require.EqualError(t, p.CanLearn(), message)
		_, err = p.Learn(ctx, learn.Options{Replays: 20})
		require.EqualError(t, err, message)
		require.NoError(t, p.Close())
	}
	p, err := runtime.New(ctx, g, plan, platform, runtime.Options{})
	require.NoError(t, err)
	_, err = p.Learn(ctx, learn.Options{})
	require.EqualError(t, err, "learn from 0 replays: the number must be at least 1")
	_, err = p.Learn(ctx, learn.Options{Replays: 9, Modes: []runtime.Mode{runtime.Built}})
	require.EqualError(t, err, "learn with mode built graph: only streams and graph can be chosen from")
	_, err = p.Learn(ctx, learn.Options{Replays: 9, Extra: -1})
	require.EqualError(t, err, "learn with Extra = -1: the number must be 0 to 1099511627776")
	_, err = p.Learn(ctx, learn.Options{Replays: 9, Wake: -1})
	require.EqualError(t, err, "learn with Threads = 0, For = 0s, Wake = -1ns: none can be less than 0")
	_, err = p.Learn(ctx, learn.Options{Replays: 9, Ways: []learn.Way{{}}})
	require.EqualError(t, err, "learn with way 0: it needs a plan, and to be replayed as streams or as a graph")
	require.NoError(t, p.Close())
	require.ErrorIs(t, p.CanLearn(), runtime.ErrClosed)
	_, err = learn.Learn(ctx, nil, platform, learn.Options{})
	require.EqualError(t, err, "learning needs a graph")
	_, err = learn.Learn(ctx, g, nil, learn.Options{})
	require.EqualError(t, err, "learning needs a platform to run on")
}

// A file that someone else put into the cache makes a warning at most.
func TestHostileCacheChangesNothing(t *testing.T) {
	ctx := context.Background()
	g := carrying(t)
	platform, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	defer platform.Close()
	dir := t.TempDir()
	folder := cache.Open(dir)
	options := learn.Options{Replays: 30, Modes: []runtime.Mode{runtime.Captured, runtime.Streams}, Plan: planner.Options{Machine: runtime.MachineOf(platform)}}
	_, learned := sums(t, g, platform, 30, runtime.Options{}, &options, nil)
	recalled := learn.Recall(g, platform, folder, options, runtime.Arena)
	require.NoError(t, recalled.Keep(ctx, learned, false))
	choices, err := filepath.Glob(filepath.Join(dir, "choices", "*"))
	require.NoError(t, err)
	require.Len(t, choices, 1)
	whole, err := os.ReadFile(choices[0])
	require.NoError(t, err)
	for cut := 0; cut < len(whole); cut += 997 {
		require.NoError(t, os.WriteFile(choices[0], whole[:cut], 0o600))
		again := learn.Recall(g, platform, folder, options, runtime.Arena)
		require.Len(t, again.Warnings, 1, "cut at %d", cut)
		require.Empty(t, again.Ways)
		changed := append([]byte{}, whole...)
		changed[cut] ^= 1
		require.NoError(t, os.WriteFile(choices[0], changed, 0o600))
		again = learn.Recall(g, platform, folder, options, runtime.Arena)
		require.Len(t, again.Warnings, 1, "changed at %d", cut)
		require.Empty(t, again.Ways)
	}
	// Another graph's plan under this graph's key, with a correct checksum.
	other := carrying(t)
	require.Equal(t, g.Hash(), other.Hash())
	serial, err := planner.New(ctx, g, planner.Options{Strategy: "serial"})
	require.NoError(t, err)
	broken := *serial
	broken.Streams = []plan.Stream{{Ops: append([]plan.Op{}, serial.Streams[0].Ops...)}}
	ops := broken.Streams[0].Ops
	ops[0], ops[len(ops)-1] = ops[len(ops)-1], ops[0]
	wrong := &learn.Learned{Ways: []learn.Way{{Plan: &broken, Threads: 1, Each: runtime.Series{Count: 1, Median: 1}}}}
	require.NoError(t, recalled.Keep(ctx, wrong, false))
	again := learn.Recall(g, platform, folder, options, runtime.Arena)
	require.Len(t, again.Warnings, 1)
	require.Contains(t, again.Warnings[0], "a plan in the cache is ignored: ")
	require.Empty(t, again.Ways)
	require.NotNil(t, again.Known, "durations are of use all the same")
	// A plan that is right for the graph, but says that it was made for nodes that do other work.
	elsewhere := *serial
	elsewhere.Work, elsewhere.WorkDone = strings.Replace(serial.Work, ":", ":0", 1)[:len(serial.Work)], nil
	wrong.Ways[0].Plan = &elsewhere
	require.NoError(t, recalled.Keep(ctx, wrong, false))
	again = learn.Recall(g, platform, folder, options, runtime.Arena)
	require.Len(t, again.Warnings, 1)
	require.Contains(t, again.Warnings[0], "a plan in the cache is ignored: plan of another graph")
	require.Empty(t, again.Ways)
}

// Times measured under checks must not be used without checks.
func TestDeviceKeysTellConditionsApart(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range []host.Options{{}, {CheckOrder: true}, {PTX: true}, {Workers: 7}, {Devices: 2}} {
		platform, err := host.Open(o)
		require.NoError(t, err)
		key := learn.DeviceKey(platform)
		require.False(t, seen[key], "%+v has the key of another: %s", o, key)
		seen[key] = true
		require.NoError(t, platform.Close())
	}
}

// queued is a CPU device that says that it has so many hardware queues.
type queued struct {
	*host.Platform
	queues int
}

func (p *queued) Queues() int { return p.queues }

func TestPlansWiderThanTheQueuesAreTriedAsGraphsOnly(t *testing.T) {
	g := carrying(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	widest := func(queues int, modes ...runtime.Mode) map[runtime.Mode]int {
		learned, err := learn.Learn(context.Background(), g, &queued{platform, queues}, learn.Options{Plan: planner.Options{Streams: 4}, Replays: 2000, For: 10 * time.Minute, Thorough: true, Modes: modes})
		require.NoError(t, err)
		widest := map[runtime.Mode]int{}
		for _, w := range learned.Ways {
			widest[w.Mode] = max(widest[w.Mode], len(w.Plan.Streams))
		}
		return widest
	}
	free := widest(32)
	require.Greater(t, free[runtime.Streams], 1)
	require.Equal(t, free[runtime.Captured], free[runtime.Streams])
	require.Greater(t, free[runtime.Streams], 2)
	require.Equal(t, free[runtime.Captured], widest(2)[runtime.Captured])
	require.Equal(t, 2, widest(2)[runtime.Streams])
	require.Equal(t, map[runtime.Mode]int{runtime.Streams: free[runtime.Streams]}, widest(2, runtime.Streams), "where no graph is allowed, there is no other way")
	require.Equal(t, free, widest(1), "all share the only queue, in the order in which they are submitted")
}

func TestRecallTakesTheDefaultsOfLearn(t *testing.T) {
	ctx := context.Background()
	g := carrying(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	options := learn.Options{Replays: 60, For: time.Hour}
	learned, err := learn.Learn(ctx, g, platform, options)
	require.NoError(t, err)
	folder := cache.Open(t.TempDir())
	require.NoError(t, learn.Recall(g, platform, folder, options, runtime.Arena).Keep(ctx, learned, false))
	recalled := learn.Recall(g, platform, folder, options, runtime.Arena)
	require.Empty(t, recalled.Warnings)
	require.NotNil(t, recalled.Known)
	require.NotEmpty(t, recalled.Ways)
	for _, o := range []learn.Options{{Replays: 9, Threads: -1}, {Replays: 9, For: -time.Second}} {
		_, err := learn.Learn(ctx, g, platform, o)
		require.ErrorContains(t, err, "less than 0")
	}
}

func TestWhatWasLearnedUntilTheContextEndsIsReturned(t *testing.T) {
	g := carrying(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	compared := 0
	options := learn.Options{Replays: 1_000_000, For: time.Hour, Thorough: true, Progress: func(stage string, _, _ int) {
		if stage == runtime.StageLearn {
			if compared++; compared == 12 { // the first six measure nodes
				stop()
			}
		}
	}}
	learned, err := learn.Learn(ctx, g, platform, options)
	require.ErrorIs(t, err, context.Canceled)
	require.NotNil(t, learned)
	require.NotEmpty(t, learned.Ways)
	require.Len(t, learned.Profile.Nodes, g.Len())
	require.False(t, learned.Settled)
}

// A program whose learning ended early goes on where it was: the replays that it has made are those that learning says.
func TestReplaysAreCountedWhereTheContextEnds(t *testing.T) {
	g, platform := carrying(t), cpu(t)
	plan, err := planner.New(t.Context(), g, planner.Options{})
	require.NoError(t, err)
	for at := 12; at < 15; at++ { // the first six measure nodes
		program, err := runtime.New(t.Context(), g, plan, platform, runtime.Options{})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		reports := 0
		learned, err := program.Learn(ctx, learn.Options{Replays: 5000, For: time.Hour, Thorough: true, Progress: func(stage string, _, _ int) {
			if stage == runtime.StageLearn {
				if reports++; reports == at {
					stop()
				}
			}
		}})
		require.ErrorIs(t, err, context.Canceled)
		require.NotNil(t, learned)
		require.EqualValues(t, program.Replays(), learned.Replays)
		require.NoError(t, program.Run(t.Context(), 1))
		require.NoError(t, program.Close())
	}
}

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
		options := learn.Options{
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
			recalled := learn.Recall(g, platform, folder, options, memory)
			require.Empty(t, recalled.Warnings)
			options.Known, options.Ways, options.Runs, options.Seen = recalled.Known, nil, recalled.Runs, recalled.Seen
			how := runtime.Options{Memory: memory, Threads: options.Threads}
			var plan *planner.Plan
			if way := recalled.Best(replays); way != nil {
				plan, how.Mode, how.Threads, options.Ways = way.Plan, way.Mode, way.Threads, []learn.Way{*way}
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

func TestRanksLearnTheSameWay(t *testing.T) {
	var mu sync.Mutex
	ways := map[int][]string{}
	replays := map[int]uint64{}
	onRanks(t, runtime.Options{}, func(rank int, p *runtime.Program, w *world.World) error {
		learned, err := p.Learn(t.Context(), learn.Options{Plan: planner.Options{}, Replays: 120})
		if err != nil {
			return err
		}
		mu.Lock()
		for _, way := range learned.Ways {
			ways[rank] = append(ways[rank], fmt.Sprintf("%s %d %v %v", way.Plan.Strategy, len(way.Plan.Streams), way.Mode, way.Each))
		}
		replays[rank] = p.Replays()
		mu.Unlock()
		require.Equal(t, p.Mode(), learned.Ways[0].Mode)
		require.Equal(t, learned.Ways[0].Plan, p.Plan())
		return p.Run(t.Context(), 120-learned.Replays)
	})
	require.NotEmpty(t, ways[0])
	require.Equal(t, ways[0], ways[1])
	require.Equal(t, replays[0], replays[1])
}

func TestARankThatFailsWhileLearningEndsTheOther(t *testing.T) {
	over := errors.New("over")
	ends := make([]error, 2)
	endsOfRanks(t, runtime.Options{}, false, func(rank int, p *runtime.Program, w *world.World) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		count := 0
		_, err := p.Learn(ctx, learn.Options{Replays: 120, Progress: func(stage string, done, total int) {
			if count++; rank == 1 && count == 9 {
				cancel(over)
			}
		}})
		ends[rank] = err
		return w.Leave(err)
	})
	require.Error(t, ends[0])
	require.ErrorContains(t, ends[0], "rank 1 of 2")
	require.ErrorContains(t, ends[0], "over")
	require.Error(t, ends[1])
}

func TestSeveralRanksNeedAnExchangeToLearn(t *testing.T) {
	require.Equal(t, []error{nil, nil}, endsOfRanks(t, runtime.Options{}, true, func(_ int, p *runtime.Program, _ *world.World) error {
		require.EqualError(t, p.CanLearn(), "several ranks learn together, and Options.Exchange is not set")
		return p.Run(t.Context(), 1)
	}))
}
