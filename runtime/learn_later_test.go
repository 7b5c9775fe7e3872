// Tests of learning in later runs: close plans are compared again, what was learned is corrected by the replays that followed, and passes of loops are kept.

package runtime_test

import (
	"bytes"
	"context"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/cache"
	"github.com/dagrun/dagrun/runtime/learn"
)

// later is a run of a graph that replays as a cache says, and learns again from so many replays and extra ones.
func later(t *testing.T, folder *cache.Folder, replays, extra int) (*learn.Recalled, *learn.Learned) {
	t.Helper()
	g := carrying(t)
	platform, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	defer platform.Close()
	o := learn.Options{Replays: replays, Extra: extra, For: time.Hour, Plan: planner.Options{Machine: runtime.MachineOf(platform)}}
	o.Modes = []runtime.Mode{runtime.Captured, runtime.Streams}
	recalled := learn.Recall(g, platform, folder, o, runtime.Arena)
	require.Empty(t, recalled.Warnings)
	o.Known, o.Runs, o.Ways, o.Seen = recalled.Known, recalled.Runs, recalled.Ways, recalled.Seen
	plan, mode := (*planner.Plan)(nil), runtime.Streams
	if best := recalled.Best(replays); best != nil {
		plan, mode = best.Plan, best.Mode
	} else {
		plan, err = planner.New(context.Background(), g, o.Plan)
		require.NoError(t, err)
	}
	p, err := runtime.New(context.Background(), g, plan, platform, runtime.Options{Mode: mode})
	require.NoError(t, err)
	learned, err := p.Learn(context.Background(), o)
	require.NoError(t, err)
	require.EqualValues(t, learned.Replays, p.Replays())
	require.NoError(t, p.Close())
	require.NoError(t, recalled.Keep(context.Background(), learned, false))
	return recalled, learned
}

// learnedBefore returns a cache that knows a graph from one run, and what later runs recall of it.
func learnedBefore(t *testing.T) (folder *cache.Folder, recall func() *learn.Recalled) {
	t.Helper()
	folder = cache.Open(t.TempDir())
	later(t, folder, 300, 0)
	g := carrying(t)
	platform, err := host.Open(host.Options{CheckOrder: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, platform.Close()) })
	o := learn.Options{Replays: 300, Plan: planner.Options{Machine: runtime.MachineOf(platform)}, Modes: []runtime.Mode{runtime.Captured, runtime.Streams}}
	return folder, func() *learn.Recalled {
		r := learn.Recall(g, platform, folder, o, runtime.Arena)
		require.Empty(t, r.Warnings)
		return r
	}
}

func TestLaterRunsCompareCloseWaysAgain(t *testing.T) {
	folder := cache.Open(t.TempDir())
	recalled, learned := later(t, folder, 300, 0)
	require.Zero(t, recalled.Runs)
	require.False(t, recalled.Settled())
	first := len(learned.Ways)
	require.Greater(t, first, 2)
	for run := range 2 {
		recalled, learned = later(t, folder, 300, 0)
		require.Equal(t, run+1, recalled.Runs)
		require.False(t, recalled.Settled())
		require.LessOrEqual(t, len(recalled.Ways), cache.MostWays)
		require.Len(t, learned.Ways, len(recalled.Ways), "where the user asked for every replay, only ways that were close are compared")
		for _, w := range learned.Ways {
			require.Positive(t, w.Each.Count)
		}
	}
	recalled, _ = later(t, folder, 300, 0)
	require.Equal(t, 3, recalled.Runs)
	require.True(t, recalled.Settled())
	require.Equal(t, first, recalled.Tried)
}

// With contents that are restored afterwards, learning may replay more often than it was asked to, and later runs try other plans too.
func TestExtraReplaysAreUsedBeyondThoseAskedFor(t *testing.T) {
	folder := cache.Open(t.TempDir())
	_, few := later(t, folder, 20, 0)
	require.LessOrEqual(t, few.Replays, 20)
	folder = cache.Open(t.TempDir())
	recalled, many := later(t, folder, 20, 100_000)
	require.Empty(t, recalled.Ways)
	require.Greater(t, many.Replays, 20)
	require.Greater(t, len(many.Ways), len(few.Ways))
	recalled, again := later(t, folder, 20, 100_000)
	require.NotEmpty(t, recalled.Ways)
	require.GreaterOrEqual(t, len(again.Ways), len(recalled.Ways))
	same := func(a, b learn.Way) bool {
		return a.Mode == b.Mode && a.Threads == b.Threads && reflect.DeepEqual(a.Plan.Streams, b.Plan.Streams) && reflect.DeepEqual(a.Plan.Order, b.Plan.Order)
	}
	for _, w := range again.Ways {
		kept := slices.ContainsFunc(recalled.Ways, func(other learn.Way) bool { return same(w, other) })
		require.Equal(t, kept, slices.ContainsFunc(many.Ways, func(other learn.Way) bool { return same(w, other) }), "only kept ways are timed twice")
	}
}

// A way that the cache holds may overlap launches, while another one does not: the program loads both forms of the code.
func TestLaterRunsChangeTheFormOfTheCode(t *testing.T) {
	g := overlapChain(t)
	ctx := context.Background()
	plan, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	device := overlappingDevice(t)
	p, err := runtime.New(ctx, g, plan, device, runtime.Options{Overlap: runtime.OverlapOn})
	require.NoError(t, err)
	ways := []learn.Way{{Plan: plan, Threads: 1, Overlap: true}, {Plan: plan, Threads: 1}}
	learned, err := p.Learn(ctx, learn.Options{Replays: 100, Overlap: runtime.OverlapAuto, Ways: ways, Runs: 1, For: time.Hour, Modes: []runtime.Mode{runtime.Streams}})
	require.NoError(t, err)
	forms := map[bool]bool{}
	for _, w := range learned.Ways {
		forms[w.Overlap] = true
	}
	require.Len(t, forms, 2)
	_, on := p.Overlaps()
	require.Equal(t, learned.Ways[0].Overlap, on)
	require.NoError(t, p.Run(ctx, 3))
	require.NoError(t, p.Close())
}

// The figures that replays corrected are kept with the plan, so that later runs predict what the run did that compared plans.
func TestLaterRunsPredictWithTheCorrectedFigures(t *testing.T) {
	folder, ctx := cache.Open(t.TempDir()), context.Background()
	_, learned := later(t, folder, 300, 0)
	g := carrying(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	given := runtime.MachineOf(platform)
	o := learn.Options{Replays: 300, Plan: planner.Options{Machine: given}, Modes: []runtime.Mode{runtime.Captured, runtime.Streams}}
	recall := func() *learn.Recalled { return learn.Recall(g, platform, folder, o, runtime.Arena) }
	require.Nil(t, recall().Machine, "the CPU device's figures are not corrected")

	fitted := *given
	fitted.GraphNodeUS, fitted.LaunchUS, fitted.EventUS = 3*given.GraphNodeUS+1, 2*given.LaunchUS+1, given.EventUS+1
	learned.Machine = &fitted
	require.NoError(t, recall().Keep(ctx, learned, true))
	r := recall()
	require.Empty(t, r.Warnings)
	require.Equal(t, &fitted, r.Machine)
	best := r.Best(300)
	us, err := model.Repeated(g, best.Plan, &fitted, r.Known, best.Mode == runtime.Captured)
	require.NoError(t, err)
	require.Equal(t, us, best.Predicted)

	learned.Machine = given // nothing was corrected this time: what was before is kept
	require.NoError(t, r.Keep(ctx, learned, false))
	require.Equal(t, &fitted, recall().Machine)
	require.NoError(t, r.Keep(ctx, learned, true))
	require.Nil(t, recall().Machine, "learning again forgets it")

	other := fitted
	other.Name = "another"
	learned.Machine = &other
	require.NoError(t, recall().Keep(ctx, learned, true))
	r = recall()
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], `a plan in the cache is ignored: it was predicted with the figures of machine "another"`)
	require.Nil(t, r.Machine)
	require.Empty(t, r.Ways)
}

func TestBestWayOfFewAndManyReplays(t *testing.T) {
	way := func(mode runtime.Mode, build, each float64) learn.Way {
		return learn.Way{Mode: mode, BuildUS: build, Each: runtime.Series{Median: each}}
	}
	r := &learn.Recalled{Ways: []learn.Way{way(runtime.Streams, 0, 50), way(runtime.Captured, 90_000, 43), way(runtime.Captured, 2000, 44)}}
	for replays, each := range map[int]float64{1: 50, 99: 50, 100: 43, 220: 43, 20_000: 43} {
		require.Equal(t, each, r.Best(replays).Each.Median, "%d replays", replays)
	}
	slow := &learn.Recalled{Ways: []learn.Way{way(runtime.Streams, 0, 50), way(runtime.Captured, 90_000, 40)}}
	for replays, each := range map[int]float64{1: 50, 220: 50, 20_000: 40} {
		require.Equal(t, each, slow.Best(replays).Each.Median, "%d replays", replays)
	}
}

// A choice is forgotten after two runs in a row that took another time. A run that agrees clears the count, and one too short to tell does
// not change it.
func TestTwoRunsInARowForgetAChoice(t *testing.T) {
	ctx := context.Background()
	_, recall := learnedBefore(t)
	const many = 100_000_000
	for _, run := range []struct {
		differs bool
		replays int
		runs    int
		again   bool
	}{{true, many, 1, false}, {false, many, 0, false}, {true, 1, 0, false}, {true, many, 1, false}, {false, 1, 0, false}, {true, many, 2, true}} {
		r, rank := recall(), recall() // that of another rank, which shares the cache
		require.NotEmpty(t, r.Ways)
		best := r.Best(300)
		best.Each.Median, best.Each.Spread = 100, 1 // one replay is too short, however busy this machine was
		took := best.Each.Median
		if run.differs {
			took = 10 * (took + best.Each.Spread + 1)
		}
		for _, r := range []*learn.Recalled{r, rank} {
			runs, again, err := r.Confirm(ctx, best, took, run.replays)
			require.NoError(t, err)
			require.Equal(t, run.runs, runs, "%+v", run)
			require.Equal(t, run.again, again)
		}
		require.Equal(t, run.again, len(recall().Ways) == 0)
	}
}

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
	options := learn.Options{Replays: 40, Modes: []runtime.Mode{runtime.Captured, runtime.Streams}, Plan: planner.Options{Machine: machine}}
	plan, err := planner.New(ctx, g, options.Plan)
	require.NoError(t, err)
	way := &learn.Way{Plan: plan, Mode: runtime.Streams, Threads: 1, Each: runtime.Series{Count: 3, Median: 150}}
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
			recalled := learn.Recall(g, platform, folder, options, runtime.Arena)
			learned := &learn.Learned{Samples: [][]float64{{90, 100, 110}, nil}, Ways: []learn.Way{*way}}
			require.NoError(t, recalled.Keep(ctx, learned, false))
			require.NoError(t, recalled.Correct(ctx, way, c.us, options))
			again := learn.Recall(g, platform, folder, options, runtime.Arena)
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
			recalled := learn.Recall(single, platform, folder, options, runtime.Arena)
			require.NoError(t, recalled.Keep(ctx, &learn.Learned{Samples: [][]float64{{90, 100, 110}}}, false))
			require.NoError(t, recalled.Correct(ctx, &learn.Way{Plan: plan, Threads: 1}, us, options))
			require.InEpsilon(t, measured, learn.Recall(single, platform, folder, options, runtime.Arena).Known.Nodes["measured"], 0.01)
		}
	})
	t.Run("a device with engines is left as measured", func(t *testing.T) {
		folder := cache.Open(t.TempDir())
		gpu := options
		gpu.Plan.Machine = planner.H200()
		recalled := learn.Recall(g, platform, folder, gpu, runtime.Arena)
		require.NoError(t, recalled.Keep(ctx, &learn.Learned{Samples: [][]float64{{100, 100, 100}, nil}}, false))
		require.NoError(t, recalled.Correct(ctx, way, 500, gpu))
		require.Equal(t, 100.0, learn.Recall(g, platform, folder, gpu, runtime.Arena).Known.Nodes["measured"])
	})
	var none *learn.Recalled
	require.NoError(t, none.Correct(ctx, way, 100, options))
	require.NoError(t, learn.Recall(g, platform, nil, options, runtime.Arena).Correct(ctx, way, 100, options))
	require.NoError(t, learn.Recall(g, platform, cache.Open(t.TempDir()), options, runtime.Arena).Correct(ctx, nil, 100, options))
}

// halvings halves x until it is below 1, three times over. The inner loop makes 10 passes, of at most most.
func halvings(t *testing.T, most int64) *dag.Graph {
	t.Helper()
	b := dag.New("halvings")
	b.Use(kernels.Library())
	x := b.Device("x", dag.F64, 1)
	b.Repeat("outer", dag.Loop{Times: 3}, func() {
		b.Memset("start", b.Whole(x), 1000)
		b.Repeat("inner", dag.Loop{Until: "x < 1", Most: most}, func() { b.Kernel("half", "scale", dag.Args{1, 0.5, b.Whole(x)}) })
	})
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

func TestPlansCountWithThePassesOfTheLastRun(t *testing.T) {
	ctx, folder := t.Context(), cache.Open(t.TempDir())
	g := halvings(t, 500)
	known, warnings := learn.KnownPasses(g, folder)
	require.Nil(t, known)
	require.Empty(t, warnings)
	before, err := planner.New(ctx, g, planner.Options{})
	require.NoError(t, err)
	require.Equal(t, plan.Passes{}, before.Costs[0].Passes, "three passes are not learned")
	require.Equal(t, "at most 500 passes", before.Bodies[0].Plan.Costs[1].Passes.Text())

	loops, _ := loopsOf(t, g)
	require.NoError(t, learn.KeepPasses(ctx, g, folder, loops))
	known, warnings = learn.KnownPasses(g, folder)
	require.Empty(t, warnings)
	require.Equal(t, map[string]int64{"inner": 10}, known.Passes)
	after, err := planner.New(ctx, g, planner.Options{Profile: known})
	require.NoError(t, err)
	require.Equal(t, "learned 10 passes", after.Bodies[0].Plan.Costs[1].Passes.Text())
	require.Less(t, after.Stats.MakespanUS, before.Stats.MakespanUS/20)

	var text bytes.Buffer
	require.NoError(t, after.EncodeJSON(&text, g))
	read, err := planner.DecodePlan(&text, g)
	require.NoError(t, err)
	require.Equal(t, after.Bodies[0].Plan.Costs, read.Bodies[0].Plan.Costs)
	text.Reset()
	require.NoError(t, after.WriteText(&text, g, nil))
	require.Contains(t, text.String(), "\nloops: inner learned 10 passes\n")

	other := halvings(t, 499)
	known, _ = learn.KnownPasses(other, folder)
	require.Nil(t, known, "it is another loop")
	known = &planner.Profile{Passes: map[string]int64{"inner": 500}}
	wrong, err := planner.New(ctx, other, planner.Options{Profile: known})
	require.NoError(t, err)
	require.Equal(t, "at most 499 passes", wrong.Bodies[0].Plan.Costs[1].Passes.Text(), "it cannot make 500")
}
