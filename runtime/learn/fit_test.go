// Tests of what is made of measurements: shares of cores that are slower together, and submission by several threads.

package learn

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/internal/measure"
)

// apart is a graph of two independent kernels, a plan with a stream for each, and one with one stream.
func apart(t *testing.T) (g *dag.Graph, two, one *planner.Plan) {
	b := dag.New("apart")
	b.Use(kernels.Library())
	for k := range 2 {
		x := b.Device(fmt.Sprintf("x%d", k), dag.F32, 1<<20)
		b.Kernel(fmt.Sprintf("k%d", k), "square", dag.Args{1 << 20, b.Whole(x), b.Whole(x)})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	two, err = planner.New(context.Background(), g, planner.Options{Machine: cores(2), Strategy: "cover"})
	require.NoError(t, err)
	require.Len(t, two.Streams, 2)
	one, err = planner.New(context.Background(), g, planner.Options{Machine: cores(2), Strategy: "serial"})
	require.NoError(t, err)
	return g, two, one
}

func cores(n int) *planner.Machine {
	m := planner.H200()
	m.LaunchUS, m.EventUS, m.SyncUS, m.GapUS, m.GraphNodeUS, m.GraphIssueUS, m.Cores = 0, 0, 0, 0, 0, 0, n
	return m
}

func TestTheFitFindsHowMuchSlowerCoresAreTogether(t *testing.T) {
	g, two, one := apart(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	way := func(plan *planner.Plan, us float64) Way {
		return Way{Plan: plan, Mode: engine.Streams, Threads: 1, Each: engine.Series{Count: 3, Median: us}}
	}
	for _, c := range []struct{ one, two, share, us float64 }{
		{200, 100, 0.5, 100}, // two cores do twice the work
		{200, 150, 0.75, 100},
		{200, 200, 1, 100},
		{300, 225, 0.75, 150}, // and everything takes longer than was measured node by node
	} {
		l := &learner{graph: g, platform: platform, o: Options{Plan: planner.Options{Machine: cores(2)}}}
		l.learned.Samples = [][]float64{{100}, {100}}
		l.learned.Shares = [][]float64{{0.5}, {0.5}}
		l.learned.Ways = []Way{way(two, c.two), way(two, c.two), way(one, c.one), way(one, c.one)}
		require.NoError(t, l.fit())
		require.InDelta(t, c.share, l.learned.Shares[0][0], 0.03, "%v", c)
		require.InDelta(t, c.us, l.learned.Samples[0][0], 0.05*c.us, "%v", c)
		for _, w := range l.learned.Ways {
			require.InEpsilon(t, w.Each.Median, w.Predicted, 0.05)
		}
	}
}

// timed is the CPU device under a GPU's name.
type timed struct{ *host.Platform }

func (timed) Name() string { return "cuda" }

func TestTheFitFindsWhatEventsAddToDurations(t *testing.T) {
	g, two, one := apart(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	machine := planner.H200()
	for _, c := range []struct{ duration, added float64 }{{10, 1.5}, {2, 0}, {0, 1.5}, {40, 3}} {
		l := &learner{graph: g, platform: timed{platform}, o: Options{Plan: planner.Options{Machine: machine}}}
		l.learned.Samples = [][]float64{{c.duration + c.added}, {c.duration + c.added}}
		truth := &planner.Profile{Nodes: map[string]float64{"k0": c.duration, "k1": c.duration}}
		for _, w := range []engine.Way{{Plan: one, Mode: engine.Captured, Threads: 1}, {Plan: two, Mode: engine.Captured, Threads: 1}, {Plan: one, Mode: engine.Streams, Threads: 1}} {
			us, err := predictEach(g, w, machine, truth)
			require.NoError(t, err)
			l.learned.Ways = append(l.learned.Ways, Way{Plan: w.Plan, Mode: w.Mode, Threads: 1, Each: engine.Series{Count: 3, Median: us}})
		}
		require.NoError(t, l.fit())
		require.Equal(t, [][]float64{{c.duration}, {c.duration}}, l.learned.Samples)
		for _, w := range l.learned.Ways {
			require.InEpsilon(t, w.Each.Median, w.Predicted, 1e-9)
		}
	}
}

// Uploads may take much longer between events than they do otherwise. Where the formula predicts graphs better, it is taken.
func TestTheFitPrefersFormulasThatPredictBetter(t *testing.T) {
	g, two, one := apart(t)
	platform, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer platform.Close()
	machine := planner.H200()
	for _, c := range []struct {
		truth *planner.Profile
		kept  bool
	}{{nil, false}, {&planner.Profile{Nodes: map[string]float64{"k0": 100, "k1": 100}}, true}} {
		l := &learner{graph: g, platform: timed{platform}, o: Options{Plan: planner.Options{Machine: machine}}}
		l.learned.Samples = [][]float64{{100}, {100}}
		for _, w := range []engine.Way{{Plan: one, Mode: engine.Captured, Threads: 1}, {Plan: two, Mode: engine.Captured, Threads: 1}, {Plan: one, Mode: engine.Streams, Threads: 1}} {
			us, err := predictEach(g, w, machine, c.truth)
			require.NoError(t, err)
			l.learned.Ways = append(l.learned.Ways, Way{Plan: w.Plan, Mode: w.Mode, Threads: 1, Each: engine.Series{Count: 3, Median: us}})
		}
		require.NoError(t, l.fit())
		require.Equal(t, c.kept, len(l.learned.Samples[0]) > 0)
		require.Equal(t, machine, l.learned.Machine, "no figure of the machine is to blame")
	}
}

func TestSharesOfCoresThatAreSlowerTogether(t *testing.T) {
	require.Equal(t, [][]float64{{0.5, 1}, nil}, together([][]float64{{0.5, 1}, nil}, 2, 1))
	require.Equal(t, [][]float64{{1, 1}}, together([][]float64{{0.5, 1}}, 2, 2), "together they do as much as one")
	got := together([][]float64{{0.25, 0.5, 1}}, 4, 2)
	require.InDeltaSlice(t, []float64{0.5, 2.0 / 3, 1}, got[0], 1e-9, "four cores do the work of two")
}

func TestSeveralThreadsArePredictedToSubmitFaster(t *testing.T) {
	b := dag.New("wide")
	b.Use(kernels.Library())
	for k := range 64 {
		b.Stream(b.Kernel(fmt.Sprintf("k%d", k), "noop", nil), int32(k%8))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "list", SingleUseEvents: true})
	require.NoError(t, err)
	took := func(threads int, mode engine.Mode) float64 {
		timeline, err := predict(g, engine.Way{Plan: plan, Mode: mode, Threads: threads}, planner.H200(), nil)
		require.NoError(t, err)
		return timeline.MakespanUS
	}
	require.InEpsilon(t, 0.45, took(8, engine.Streams)/took(1, engine.Streams), 0.1)
	require.InEpsilon(t, 0.7, took(2, engine.Streams)/took(1, engine.Streams), 0.1)
	require.Equal(t, took(1, engine.Captured), took(8, engine.Captured), "a graph is launched by one thread")
}

func TestTheCPUDeviceTellsHowManyCoresANodeUses(t *testing.T) {
	platform, err := host.Open(host.Options{Workers: 2})
	require.NoError(t, err)
	defer platform.Close()
	b := dag.New("shares")
	b.Use(kernels.Library())
	x, d := b.Host("x", dag.F32, 4<<20), b.Device("d", dag.F32, 4<<20)
	b.Copy("up", b.Whole(d), b.Whole(x))
	b.Kernel("wait", "spin", dag.Args{3000.0})
	g, err := b.Graph()
	require.NoError(t, err)
	learned, err := Learn(context.Background(), g, platform, Options{Replays: 8, For: time.Minute})
	require.NoError(t, err)
	cores := float64(measure.MachineOf(platform).Cores)
	require.NotEmpty(t, learned.Shares[0])
	for _, share := range append(learned.Shares[0], learned.Shares[1]...) {
		require.LessOrEqual(t, share, 1.0)
		require.GreaterOrEqual(t, share, 1/cores)
	}
	require.InDelta(t, 1/cores, learned.Shares[1][0], 1e-9, "nobody helps with waiting")
	require.Contains(t, learned.Profile.Shares, "up")
}

// What a launch costs falls with the threads that submit, by the most threads of the list that there are. The machine that was given is left alone.
func TestTheHostOfSeveralThreads(t *testing.T) {
	m := planner.H200()
	for threads, part := range map[int]float64{0: 1, 1: 1, 2: 0.7, 3: 0.7, 4: 0.55, 7: 0.55, 8: 0.45, 64: 0.45} {
		got := submittedBy(threads, m)
		want := *m
		want.LaunchUS, want.CopyLaunchUS, want.EventUS = part*m.LaunchUS, part*m.CopyLaunchUS, part*m.EventUS
		require.Equal(t, &want, got, "%d threads", threads)
		require.Nil(t, submittedBy(threads, nil))
	}
	require.Equal(t, planner.H200(), m)
}

// A way predicts what a replay and each of many take; no way predicts nothing.
func TestAWayPredictsItsReplays(t *testing.T) {
	g, plans := lattice(t)
	for _, w := range []Way{{Plan: plans[2], Mode: engine.Streams, Threads: 1}, {Plan: plans[2], Mode: engine.Streams, Threads: 8}, {Plan: plans[2],
		Mode: engine.Captured, Threads: 8}} {
		timeline, err := w.Predict(g, planner.H200(), nil)
		require.NoError(t, err)
		same, err := predict(g, w.way(), planner.H200(), nil)
		require.NoError(t, err)
		require.Equal(t, same.MakespanUS, timeline.MakespanUS)
		us, err := w.PredictEach(g, planner.H200(), nil)
		require.NoError(t, err)
		each, err := predictEach(g, w.way(), planner.H200(), nil)
		require.NoError(t, err)
		require.Equal(t, each, us)
	}
	timeline, err := (*Way)(nil).Predict(g, planner.H200(), nil)
	require.ErrorIs(t, err, errNoWay)
	require.Nil(t, timeline)
	us, err := (*Way)(nil).PredictEach(g, planner.H200(), nil)
	require.ErrorIs(t, err, errNoWay)
	require.Zero(t, us)
}

// Nothing is fitted to few ways, to more than can be simulated in a moment, or where nothing was measured. What records tell is exact, and only
// the machine is at fault then.
func TestWhatIsFitted(t *testing.T) {
	g, two, one := apart(t)
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer cpu.Close()
	for _, c := range []struct {
		what             string
		gpu, recorded    bool
		ways, cores      int
		measured, shared bool
		samples, machine bool // that are changed
	}{
		{"two ways", false, false, 2, 2, true, true, false, false},
		{"three ways", false, false, 3, 2, true, true, true, false},
		{"too many ways", false, false, mostFitted/2 + 1, 2, true, true, false, false},
		{"one core", false, false, 3, 1, true, true, false, false},
		{"no shares", false, false, 3, 2, true, false, false, false},
		{"no samples", false, false, 3, 2, false, true, false, false},
		{"two ways on a GPU", true, false, 2, 0, true, false, false, false},
		{"a GPU with events", true, false, 3, 0, true, false, true, false},
		{"a GPU with records", true, true, 3, 0, true, false, false, true},
		{"a GPU of which all is known", true, false, 3, 0, false, false, false, true},
	} {
		l := &learner{graph: g, platform: cpu, recorded: c.recorded, o: Options{Plan: planner.Options{Machine: cores(c.cores)}}}
		if c.gpu {
			l.platform, l.o.Plan.Machine = timed{cpu}, planner.H200()
		}
		given := *l.o.Plan.Machine
		l.known = &planner.Profile{Nodes: map[string]float64{}}
		l.learned.Samples, l.learned.Shares = make([][]float64, 2), make([][]float64, 2)
		took := 10.0
		if c.machine {
			took = 1
		}
		if c.measured {
			l.learned.Samples = [][]float64{{took}, {took}}
		} else {
			l.known.Nodes = map[string]float64{"k0": took, "k1": took}
		}
		if c.shared {
			l.learned.Shares = [][]float64{{0.5}, {0.5}}
		}
		before := slices.Clone(l.learned.Samples)
		for k := range c.ways {
			plan, us := one, 29.0
			if k == 0 {
				plan, us = two, 15
			}
			if c.gpu { // events added 1 us, or else launches take longer
				truth, node := given, took-1
				if c.machine {
					truth.LaunchUS, node = 3*given.LaunchUS, took
				}
				us, err = predictEach(g, engine.Way{Plan: plan, Mode: engine.Streams, Threads: 1}, &truth,
					&planner.Profile{Nodes: map[string]float64{"k0": node, "k1": node}})
				require.NoError(t, err)
			}
			l.learned.Ways = append(l.learned.Ways, Way{Plan: plan, Mode: engine.Streams, Threads: 1, Each: engine.Series{Count: 3, Median: us}})
		}
		for k := range before {
			before[k] = slices.Clone(before[k])
		}
		require.NoError(t, l.fit())
		require.Equal(t, c.samples, !reflect.DeepEqual(before, l.learned.Samples), "%s: %v", c.what, l.learned.Samples)
		require.Equal(t, c.machine, !reflect.DeepEqual(*l.learned.Machine, given), c.what)
		require.Equal(t, &given, l.o.Plan.Machine)
	}
}

// If replays take more than twice as long as nodes side by side do, or less than half, something else takes the time.
func TestTheFitScalesDurationsByTwoAtMost(t *testing.T) {
	g, two, one := apart(t)
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer cpu.Close()
	for times, want := range map[float64]float64{1: 100, 1.8: 180, 2.5: 200, 9: 200, 0.6: 60, 0.1: 50} {
		l := &learner{graph: g, platform: cpu, o: Options{Plan: planner.Options{Machine: cores(2)}}}
		l.learned.Samples, l.learned.Shares = [][]float64{{100}, {100}}, [][]float64{{0.5}, {0.5}}
		for _, plan := range []*planner.Plan{one, two, one} {
			us := 200 * times
			if plan == two {
				us /= 2
			}
			l.learned.Ways = append(l.learned.Ways, Way{Plan: plan, Mode: engine.Streams, Threads: 1, Each: engine.Series{Count: 3, Median: us}})
		}
		require.NoError(t, l.fit())
		require.InEpsilon(t, want, l.learned.Samples[0][0], 1e-4, "%v times as long", times)
	}
}
