// Tests of the order in which ways to replay are timed, while a plan is in the making.

package learn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// spinning is a learner of a pipeline of two nodes that can run side by side, and a plan for each number of streams.
func spinning(t *testing.T) (*learner, func(streams int) *planner.Plan) {
	b := dag.New("spins")
	b.Use(kernels.Library())
	b.Kernel("a", "spin", dag.Args{100.0})
	b.Kernel("b", "spin", dag.Args{100.0})
	g, err := b.Graph()
	require.NoError(t, err)
	m, err := model.MachineByName("h200")
	require.NoError(t, err)
	l := &learner{graph: g, platform: elsewhere{}, log: slog.New(slog.DiscardHandler), began: time.Now()}
	l.o.Plan.Machine, l.o.Modes, l.o.For = m, []engine.Mode{engine.Captured, engine.Streams}, time.Hour
	return l, func(streams int) *planner.Plan {
		plan, err := planner.New(context.Background(), g, planner.Options{Strategy: "list", Streams: streams, Machine: m})
		require.NoError(t, err)
		return plan
	}
}

// planned is an awaited plan that is made.
func planned(plan *planner.Plan, err error) *awaitedPlan {
	a := &awaitedPlan{stop: func() {}, done: make(chan struct{}), result: plan, err: err}
	close(a.done)
	return a
}

func TestAPlanInTheMakingJoinsTheOthers(t *testing.T) {
	l, plan := spinning(t)
	first, slow, fast := plan(1), plan(1), plan(2)
	f := &field{first: 1, awaited: planned(fast, nil), ways: []Way{
		{Plan: first, Mode: engine.Captured, Threads: 1, Predicted: 1000},
		{Plan: slow, Mode: engine.Captured, Threads: 1, Predicted: 900},
		{Plan: slow, Mode: engine.Streams, Threads: 1, Predicted: 901},
	}}
	require.NoError(t, f.join(l))
	require.Nil(t, f.awaited)
	require.NoError(t, f.join(l), "there is nothing to join any more")
	require.Same(t, first, f.next(engine.Captured, nil).Plan, "what earlier runs found best is timed first")
	way := f.next(engine.Captured, nil)
	require.Same(t, fast, way.Plan, "then the fastest")
	require.Less(t, way.Predicted, 900.0)
	require.Same(t, fast, f.next(engine.Streams, nil).Plan)
	f.leave(engine.Captured)
	require.Nil(t, f.next(engine.Captured, nil))
	require.Same(t, slow, f.next(engine.Streams, nil).Plan)
	require.Nil(t, f.next(engine.Streams, nil))
	require.False(t, f.wait(l, 1), "no plan is awaited")
}

// Plans on many streams are predicted to be fastest, and the first of them takes half as long again. The next is on fewer streams.
func TestWaysLikeOneThatWasMispredictedComeLater(t *testing.T) {
	way := func(streams int, predicted, us float64) Way {
		made := &planner.Plan{}
		for s := range streams {
			made.Streams = append(made.Streams, plan.Stream{Ops: []plan.Op{{Kind: plan.Launch, Node: dag.NodeID(s)}}})
			made.Order = append(made.Order, int32(s))
		}
		return Way{Plan: made, Mode: engine.Captured, Threads: 1, Predicted: predicted, Each: engine.Series{Count: 1, Median: us}}
	}
	ways := []Way{way(9, 46, 66), way(8, 47, 64), way(8, 48, 65), way(4, 49, 57), way(2, 61, 66), way(1, 94, 103)}
	f := &field{ways: slices.Clone(ways)}
	var timed []Way
	var order []int
	for {
		w := f.next(engine.Captured, timed)
		if w == nil {
			break
		}
		timed, order = append(timed, *w), append(order, slices.IndexFunc(ways, w.same))
	}
	require.Equal(t, []int{0, 3}, order[:2], "what is predicted fastest, then what is less like it")
	require.ElementsMatch(t, []int{0, 1, 1, 3, 4, 5}, order, "all have their turn")
	require.Equal(t, 5, order[5], "what has no hope comes last")

	f.ways = slices.Clone(ways)
	require.True(t, f.next(engine.Captured, []Way{way(9, 0, 66)}).same(ways[0]), "a way that nobody predicted says nothing")
}

func TestWaysThatAreKnownDoNotJoinAgain(t *testing.T) {
	l, plan := spinning(t)
	known := Way{Plan: plan(2), Mode: engine.Captured, Threads: 1}
	l.learned.Ways = []Way{known}
	l.o.Seen = []string{Way{Plan: known.Plan, Mode: engine.Streams, Threads: 1}.print()}
	f := &field{awaited: planned(plan(2), nil)}
	require.NoError(t, f.join(l))
	require.Empty(t, f.ways)
}

func TestAPlanThatFailsEndsLearning(t *testing.T) {
	l, _ := spinning(t)
	failed := errors.New("no plan")
	f := &field{awaited: planned(nil, failed)}
	require.True(t, f.wait(l, 1))
	require.ErrorIs(t, f.join(l), failed)
}

func TestAPlanIsNotAwaitedForever(t *testing.T) {
	l, _ := spinning(t)
	stopped := false
	a := &awaitedPlan{done: make(chan struct{})}
	a.stop = func() { stopped = true; close(a.done) }
	f := &field{awaited: a}
	l.o.For = time.Millisecond
	require.False(t, f.wait(l, 0.5))
	f.cancel()
	require.True(t, stopped)
}

func TestAModeIsHopelessIfAllItsWaysAreMuchSlower(t *testing.T) {
	ways := func(graph, streams []float64) *field {
		f := &field{}
		for _, us := range graph {
			f.ways = append(f.ways, Way{Mode: engine.Captured, Predicted: us})
		}
		for _, us := range streams {
			f.ways = append(f.ways, Way{Mode: engine.Streams, Predicted: us})
		}
		return f
	}
	require.True(t, ways([]float64{100, 300}, []float64{170, 200}).hopeless(engine.Streams))
	require.False(t, ways([]float64{100}, []float64{400, 150}).hopeless(engine.Streams), "one is not")
	require.True(t, ways([]float64{100}, nil).hopeless(engine.Streams), "there is none")
	require.False(t, ways(nil, []float64{100}).hopeless(engine.Streams), "there is no other mode")
	require.False(t, ways(nil, nil).hopeless(engine.Streams))
}

// Whoever cancels a plan in the making waits until the planner has ended: it still reads the graph. Where no plan is awaited, nothing is to be ended.
func TestCancellingWaitsForThePlanner(t *testing.T) {
	ended := false
	a := &awaitedPlan{done: make(chan struct{})}
	a.stop = func() {
		go func() {
			time.Sleep(5 * time.Millisecond)
			ended = true
			close(a.done)
		}()
	}
	(&field{awaited: a}).cancel()
	require.True(t, ended)
	(&field{}).cancel()
	l, plan := spinning(t)
	(&field{awaited: planned(plan(1), nil)}).cancel()
	awaited := l.await(t.Context(), l.o.Plan)
	f := &field{awaited: awaited}
	require.True(t, f.wait(l, 1))
	require.True(t, awaited.made())
	require.NoError(t, awaited.err)
	require.NoError(t, planner.Verify(l.graph, awaited.result))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	f = &field{awaited: l.await(stopped, l.o.Plan)}
	require.True(t, f.wait(l, 1))
	require.ErrorIs(t, f.join(l), context.Canceled)
}

// At most twelve ways are timed, the most promising first; after the first four, none that is predicted to take more than twice the best. Thorough
// learning times all.
func TestPromisingWays(t *testing.T) {
	for _, c := range []struct {
		us   []float64
		want []float64
	}{
		{nil, nil},
		{[]float64{300, 100, 200}, []float64{100, 200, 300}},
		{[]float64{900, 100, 800, 700, 600}, []float64{100, 600, 700, 800}},
		{[]float64{200, 100, 201, 120, 130, 200, 140}, []float64{100, 120, 130, 140, 200, 200}},
		{[]float64{15, 14, 13, 12, 11, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []float64{1, 2, 3, 4}},
		{[]float64{115, 114, 113, 112, 111, 110, 101, 102, 103, 104, 105, 106, 107, 108, 109}, []float64{101, 102, 103, 104, 105, 106, 107, 108, 109,
			110, 111, 112}},
	} {
		for _, thorough := range []bool{false, true} {
			var ways []Way
			for _, us := range c.us {
				ways = append(ways, Way{Predicted: us})
			}
			l := &learner{o: Options{Thorough: thorough}}
			var got []float64
			for _, w := range l.promising(ways) {
				got = append(got, w.Predicted)
			}
			want := c.want
			if thorough {
				want = slices.Sorted(slices.Values(c.us))
			}
			require.Equal(t, want, got)
		}
	}
}

// Two ways are the same if they submit the same plan as the same and by as many threads, whatever was measured of them.
func TestWaysThatAreTheSame(t *testing.T) {
	l, plan := spinning(t)
	w := Way{Plan: plan(2), Mode: engine.Captured, Threads: 1}
	same, mode, threads, wider := w, w, w, w
	same.Plan, same.Predicted, same.BuildUS = plan(2), 5, 7
	mode.Mode, threads.Threads, wider.Plan = engine.Streams, 2, plan(1)
	require.True(t, w.same(same))
	for _, other := range []Way{mode, threads, wider} {
		require.False(t, w.same(other))
		require.False(t, other.same(w))
	}
	l.learned.Ways = []Way{w}
	require.Equal(t, []Way{mode, wider}, l.unlike([]Way{same, mode, w, wider}))

	with := func(bodies ...*planner.Plan) *planner.Plan {
		p := *w.Plan
		for _, b := range bodies {
			p.Bodies = append(p.Bodies, bodyOf(b))
		}
		return &p
	}
	require.True(t, samePlan(with(plan(1), plan(2)), with(plan(1), plan(2))))
	require.False(t, samePlan(with(plan(1)), with(plan(2))), "they differ in a body")
	require.False(t, samePlan(with(plan(1)), with(plan(1), plan(1))))
	reordered := *w.Plan
	reordered.Order = slices.Clone(w.Plan.Order)
	slices.Reverse(reordered.Order)
	require.False(t, samePlan(w.Plan, &reordered))
}

func bodyOf(p *planner.Plan) plan.Body { return plan.Body{Plan: p} }

// queued is a GPU with so many hardware queues.
type queued struct {
	elsewhere
	queues int
}

func (q queued) Queues() int { return q.queues }

// A plan is tried in each mode; as streams only if they fit into the hardware queues, or all share one, and with several threads if it is wide and long.
func TestWaysOfAPlan(t *testing.T) {
	b := dag.New("wide")
	b.Use(kernels.Library())
	for k := range 64 {
		b.Stream(b.Kernel(fmt.Sprintf("k%d", k), "noop", nil), int32(k%12))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer cpu.Close()
	wide, err := planner.New(t.Context(), g, planner.Options{Strategy: "list", SingleUseEvents: true})
	require.NoError(t, err)
	require.Len(t, wide.Streams, 12)
	both := []engine.Mode{engine.Captured, engine.Streams}
	for _, c := range []struct {
		what     string
		platform cudart.Platform
		modes    []engine.Mode
		threads  int
		streams  []int // threads
		graphs   int
	}{
		{"a GPU", elsewhere{}, both, 0, []int{1, 8}, 1},
		{"streams only", elsewhere{}, both[1:], 0, []int{1, 8}, 0},
		{"graphs only", elsewhere{}, both[:1], 0, nil, 1},
		{"one thread was asked for", elsewhere{}, both, 1, []int{1}, 1},
		{"three threads were asked for", elsewhere{}, both, 3, []int{3}, 1},
		{"the CPU device", cpu, both, 0, []int{1}, 1},
		{"queues for all", queued{elsewhere{}, 12}, both, 0, []int{1, 8}, 1},
		{"too few queues", queued{elsewhere{}, 11}, both, 0, nil, 1},
		{"too few queues, and nothing else was asked for", queued{elsewhere{}, 11}, both[1:], 0, []int{1, 8}, 0},
		{"one queue, in which all are in order", queued{elsewhere{}, 1}, both, 0, []int{1}, 1},
		{"queues that are not known", queued{elsewhere{}, 0}, both, 0, []int{1, 8}, 1},
	} {
		l := &learner{graph: g, platform: c.platform, o: Options{Modes: c.modes, Threads: c.threads, Plan: planner.Options{Machine: planner.H200()}}}
		ways, err := l.waysOf(wide)
		require.NoError(t, err)
		var streams []int
		for _, w := range only(ways, engine.Streams) {
			streams = append(streams, w.Threads)
		}
		require.Equal(t, c.streams, streams, c.what)
		graphs := only(ways, engine.Captured)
		require.Len(t, graphs, c.graphs, c.what)
		for _, w := range ways {
			require.False(t, w.Overlap)
			us, err := predictEach(g, w.way(), planner.H200(), nil)
			require.NoError(t, err)
			require.Equal(t, us, w.Predicted, c.what)
		}
		for _, w := range graphs {
			require.Equal(t, 1, w.Threads, "%s: a graph is launched by one thread", c.what)
		}
		for _, overlap := range []engine.Overlap{engine.OverlapOff, engine.OverlapAuto, engine.OverlapOn} {
			l.was.Overlap, l.o.Overlap = true, overlap
			ways, err := l.waysOf(wide)
			require.NoError(t, err)
			require.Equal(t, overlap != engine.OverlapAuto, ways[0].Overlap, "learning compares both forms itself")
		}
	}
	threads := func(streams, nodes int) int {
		l := &learner{graph: &dag.Graph{Pipeline: &dag.Pipeline{Nodes: make([]dag.Node, nodes)}}, platform: elsewhere{}}
		return l.threads(&planner.Plan{Streams: make([]plan.Stream, streams)})
	}
	for _, c := range [][3]int{{4, 32, 4}, {3, 32, 1}, {4, 31, 1}, {7, 99, 7}, {8, 99, 8}, {9, 99, 8}} {
		require.Equal(t, c[2], threads(c[0], c[1]), "%v", c)
	}
}

// A strategy is asked for plans of 8 streams or as many as the user said, and of half as many, down to one. Cover takes as many as it needs.
func TestPlansOfFewerAndFewerStreams(t *testing.T) {
	type ask struct {
		strategy string
		streams  int
	}
	for given, want := range map[int][]ask{
		0: {{"list", 8}, {"list", 4}, {"list", 2}, {"list", 1}, {"cover", 0}, {"heft", 8}, {"heft", 4}, {"heft", 2}, {"heft", 1}},
		5: {{"list", 5}, {"list", 2}, {"list", 1}, {"cover", 5}, {"heft", 5}, {"heft", 2}, {"heft", 1}},
		1: {{"list", 1}, {"cover", 1}, {"heft", 1}},
	} {
		var got []ask
		for _, o := range limited(planner.Options{Streams: given, MemoryCap: 7}, "list", "cover", "heft") {
			got = append(got, ask{o.Strategy, o.Streams})
			require.EqualValues(t, 7, o.MemoryCap)
		}
		require.Equal(t, want, got)
	}
}
