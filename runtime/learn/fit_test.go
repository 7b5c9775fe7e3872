// Tests of what is made of measurements: shares of cores that are slower together, and submission by several threads.

package learn

import (
	"context"
	"fmt"
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
