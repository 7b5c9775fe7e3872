// Tests of rounds of replays, with replays that were written down: how many are timed, and what ranks agree about.

package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

// written are trials whose replays take what a list says.
type written struct {
	trials
	us      []float64                 // of a replay, by round; the last holds for all others
	byPlan  map[*planner.Plan]float64 // in place of us
	plan    *planner.Plan             // that replays now
	counts  []int                     // of replays, by round
	broken  error                     // of every round
	has     bool
	refused error                   // of adopting
	answer  func(own string) string // of rank 1, in place of others
	others  []string
	loading time.Duration
}

func (w *written) TimeReplays(_ context.Context, n int) (float64, error) {
	w.counts = append(w.counts, n)
	if w.byPlan != nil {
		return w.byPlan[w.plan], w.broken
	}
	return w.us[min(len(w.counts), len(w.us))-1], w.broken
}

func (w *written) Has(engine.Way) bool        { return w.has }
func (w *written) LoadingTook() time.Duration { return w.loading }
func (w *written) Exchange(_ context.Context, own string) ([]string, error) {
	if w.answer != nil {
		return []string{own, w.answer(own)}, w.broken
	}
	return append([]string{own}, w.others...), w.broken
}

func (w *written) Adopt(_ context.Context, way engine.Way) error {
	w.plan = way.Plan
	return w.refused
}

// learnerFrom learns from written trials, on the CPU device or one with a GPU's name.
func learnerFrom(t *testing.T, w *written, gpu bool) *learner {
	t.Helper()
	cpu, err := host.Open(host.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cpu.Close()) })
	l := &learner{trials: w, graph: &dag.Graph{Pipeline: &dag.Pipeline{Ranks: 1}}, platform: cpu, log: slog.New(slog.DiscardHandler), left: 1000, began: time.Now()}
	if gpu {
		l.platform = timed{cpu}
	}
	return l
}

// A way is timed by single replays first, then by rounds of 2 ms by the fastest replay so far, as far as there are replays; one that is
// much slower than the best is not timed to the end.
func TestRoundsOfReplays(t *testing.T) {
	for _, c := range []struct {
		what       string
		us         []float64
		most, left int
		part, best float64
		thorough   bool
		counts     []int
		samples    []float64
	}{
		{"rounds of 2 ms", []float64{100}, 1000, 1000, 1, 0, false, []int{1, 1, 20, 20, 20}, []float64{100, 100, 100}},
		{"a part of them", []float64{100}, 1000, 1000, 0.5, 0, false, []int{1, 1, 10, 10, 10}, []float64{100, 100, 100}},
		{"thorough", []float64{100}, 1000, 1000, 1, 0, true, []int{1, 1, 200, 200, 200}, []float64{100, 100, 100}},
		{"few at once", []float64{100}, 7, 1000, 1, 0, false, []int{1, 1, 7, 7, 7}, []float64{100, 100, 100}},
		{"few that are left", []float64{100}, 1000, 15, 1, 0, false, []int{1, 1, 13}, []float64{100}},
		{"two that are left", []float64{100}, 1000, 2, 1, 0, false, []int{1, 1}, nil},
		{"none that is left", []float64{100}, 1000, 0, 1, 0, false, nil, nil},
		{"none at once", []float64{100}, 0, 1000, 1, 0, false, nil, nil},
		{"a first that is slow", []float64{5000, 100}, 1000, 1000, 1, 0, false, []int{1, 1, 20, 20, 20}, []float64{100, 100, 100}},
		{"ever faster", []float64{400, 200, 100, 50, 25}, 1000, 1000, 1, 0, false, []int{1, 1, 10, 20, 40}, []float64{100, 50, 25}},
		{"longer than a round", []float64{5000}, 1000, 1000, 1, 0, false, []int{1, 1, 1, 1, 1}, []float64{5000, 5000, 5000}},
		{"nothing at all", []float64{0}, 1 << 30, 1 << 30, 1, 0, false, []int{1, 1, 20000, 20000, 20000}, []float64{0, 0, 0}},
		{"twice the best", []float64{100}, 1000, 1000, 1, 50, false, []int{1, 1, 20, 20, 20}, []float64{100, 100, 100}},
		{"more than twice the best", []float64{101}, 1000, 1000, 1, 50, false, []int{1, 1, 19, 19}, []float64{101, 101}},
		{"once more than twice the best", []float64{100, 100, 101, 99, 101}, 1000, 1000, 1, 50, false, []int{1, 1, 20, 20, 20}, []float64{101, 99, 101}},
	} {
		w := &written{us: c.us}
		l := learnerFrom(t, w, false)
		l.left, l.best, l.o.Thorough = c.left, c.best, c.thorough
		samples, err := l.timeRounds(t.Context(), c.most, c.part)
		require.NoError(t, err)
		require.Equal(t, c.counts, w.counts, c.what)
		require.Equal(t, c.samples, samples, c.what)
		used := 0
		for _, n := range c.counts {
			used += n
		}
		require.Equal(t, c.left-used, l.left, c.what)
	}
	broken := errors.New("broken")
	w := &written{us: []float64{1}, broken: broken}
	_, err := learnerFrom(t, w, false).timeRounds(t.Context(), 5, 1)
	require.ErrorIs(t, err, broken)
	require.Len(t, w.counts, 1)
	w = &written{us: []float64{900, 30}}
	us, err := learnerFrom(t, w, false).timeRound(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, 30.0, us, "the first replay after a change does not count")
	require.Equal(t, []int{1, 4}, w.counts)
}

// The best time so far is that of the fastest way whose rounds were timed; on a GPU, rounds are half as long.
func TestTriesKeepTheBest(t *testing.T) {
	for _, gpu := range []bool{false, true} {
		w := &written{us: []float64{100}}
		l := learnerFrom(t, w, gpu)
		for _, c := range []struct{ us, best float64 }{{100, 100}, {120, 100}, {80, 80}} {
			w.us, w.counts = []float64{c.us}, nil
			way := &Way{Plan: &planner.Plan{}, Mode: engine.Streams}
			require.NoError(t, l.try(t.Context(), way, 1000))
			require.Equal(t, c.best, l.best)
			require.Equal(t, c.us, way.Each.Median)
			require.Equal(t, rounds, way.Each.Count)
			require.Equal(t, int(map[bool]float64{false: 1000, true: 500}[gpu]/c.us), w.counts[2])
		}
		l.left = 0
		way := &Way{Plan: &planner.Plan{}}
		require.NoError(t, l.try(t.Context(), way, 1000))
		require.Zero(t, way.Each.Count)
		require.Equal(t, 80.0, l.best)
		require.Len(t, l.learned.Seen, 4)
	}
}

// A way that a device refuses is not compared; a device that is broken, and a context that is over, end learning. The time to make a graph is
// noted where one was made.
func TestWaysThatAreRefused(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	refused, poisoned := errors.New("no room"), fmt.Errorf("node k: %w", cudart.ErrPoisoned)
	for _, c := range []struct {
		ctx        context.Context
		err        error
		mode       engine.Mode
		has        bool
		others     []string
		ok, failed bool
		built      bool
	}{
		{t.Context(), nil, engine.Captured, false, nil, true, false, true},
		{t.Context(), nil, engine.Captured, true, nil, true, false, false},
		{t.Context(), nil, engine.Streams, false, nil, true, false, false},
		{t.Context(), refused, engine.Captured, false, nil, false, false, false},
		{t.Context(), poisoned, engine.Captured, false, nil, false, true, false},
		{over, refused, engine.Captured, false, nil, false, true, false},
		{t.Context(), nil, engine.Streams, false, []string{"true"}, true, false, false},
		{t.Context(), nil, engine.Streams, false, []string{"false"}, false, false, false},
		{t.Context(), refused, engine.Streams, false, []string{"true"}, false, false, false},
		{t.Context(), nil, engine.Streams, false, []string{"maybe"}, false, true, false},
		{t.Context(), nil, engine.Streams, false, []string{"true", "true"}, false, true, false},
	} {
		l := learnerFrom(t, &written{refused: c.err, has: c.has, others: c.others}, false)
		if c.others != nil {
			l.graph.Ranks = 2
		}
		w := &Way{Plan: &planner.Plan{}, Mode: c.mode}
		ok, err := l.adoptIfPossible(c.ctx, w)
		require.Equal(t, []bool{c.ok, c.failed}, []bool{ok, err != nil}, "%+v: %v", c, err)
		require.Equal(t, c.built, w.BuildUS > 0, "%+v", c)
	}
	w := &Way{Plan: &planner.Plan{}, Mode: engine.Captured, BuildUS: 1e-9}
	require.NoError(t, learnerFrom(t, &written{}, false).adopt(t.Context(), w))
	require.Equal(t, 1e-9, w.BuildUS, "the least of all times")
}

// Ranks count the slowest of them, do what rank 0 decides, and notice who says something else.
func TestRanksAgree(t *testing.T) {
	w := &written{us: []float64{5}, others: []string{"9", "7"}}
	l := learnerFrom(t, w, false)
	l.graph.Ranks = 3
	us, err := l.time(t.Context(), 4)
	require.NoError(t, err)
	require.Equal(t, 9.0, us)
	require.Equal(t, 996, l.left)
	w.others = []string{`{"Replays":1}`, `{"Over":true}`}
	own := turn{Replays: 6}
	decided, err := l.decides(t.Context(), own)
	require.NoError(t, err)
	require.Equal(t, own, decided)
	w.others = []string{"9", "x"}
	_, err = l.time(t.Context(), 4)
	require.ErrorContains(t, err, "what rank 2 has learned cannot be read")
	w.others = []string{"9"}
	_, err = l.time(t.Context(), 4)
	require.ErrorContains(t, err, "2 ranks have learned, and there are 3")
	w.broken = errors.New("broken")
	_, err = l.decides(t.Context(), own)
	require.ErrorIs(t, err, w.broken)
	l.graph.Ranks = 1
	decided, err = l.decides(t.Context(), own)
	require.NoError(t, err)
	require.Equal(t, own, decided, "one rank asks nobody")
}

// Learning may take a time that it is given, or a fifth of the replays that were asked for, and a while however short the run is.
func TestLearningEndsInTime(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		gpu     bool
		loading time.Duration
		want    time.Duration
	}{{false, 0, 100 * ms}, {false, 60 * ms, 100 * ms}, {true, 0, 75 * ms}, {true, 10 * ms, 65 * ms}, {true, 30 * ms, 45 * ms}, {true, 60 * ms, 45 * ms}} {
		require.Equal(t, c.want, learnerFrom(t, &written{loading: c.loading}, c.gpu).least())
	}
	const hour = time.Hour
	for k, c := range []struct {
		ago, once, given time.Duration // since learning began, what is done once, and what learning was given
		replays, left    int
		after, runs      int
		best, part       float64 // microseconds of a replay
		over             bool
	}{
		{hour, 0, 3 * hour, 10, 10, 0, 0, 0, 1, false},
		{hour, 0, 3 * hour, 10, 10, 0, 0, 0, 0.25, true},
		{hour, 0, 0, 10, 10, 0, 0, 1, 1, true},
		{hour, hour, 0, 10, 10, 0, 0, 1, 1, false},
		{hour, 0, 0, 10, 0, 0, 0, 6 * 60e6, 1, false},   // the replays took all of it
		{hour, 0, 0, 10, 10, 0, 0, 60 * 60e6, 1, false}, // a fifth of ten hours
		{hour, 0, 0, 10, 10, 0, 0, 60 * 60e6, 0.25, true},
		{hour, 0, 0, 10, 10, 30, 0, 20 * 60e6, 1, false}, // a fifth of 13 hours
		{hour, 0, 0, 10, 10, 30, 0, 20 * 60e6, 0.3, true},
		{hour, 0, 0, 10, 10, 0, 1, 60 * 60e6, 1, true}, // a quarter of that, where runs before have learned
		{hour, 0, 0, 10, 10, 0, 1, 125 * 60e6, 1, false},
	} {
		l := learnerFrom(t, &written{}, false)
		l.began, l.once, l.left, l.best = time.Now().Add(-c.ago), c.once, c.left, c.best
		l.o = Options{For: c.given, Replays: c.replays, After: c.after, Runs: c.runs}
		require.Equal(t, c.over, l.over(c.part), strconv.Itoa(k))
	}
}

// The ways that are about as fast as the best, by their best rounds, are timed again in turn, and those times count; a spread that is large
// is told.
func TestFinals(t *testing.T) {
	type timing struct{ least, median float64 }
	for _, c := range []struct {
		what    string
		ways    []timing
		again   []float64 // what the ways take in turn
		left    int
		others  int
		spent   time.Duration // since learning began, which has an hour
		want    []float64     // their medians then, sorted by their best rounds
		unquiet string
	}{
		{"none", nil, nil, 1 << 20, 0, 0, nil, ""},
		{"one", []timing{{100, 100}}, []float64{90}, 1 << 20, 0, 0, []float64{100}, ""},
		{"one that is disturbed", []timing{{70, 100}}, []float64{90}, 1 << 20, 0, 0, []float64{100}, "replays of one plan differ by 30%: something else uses the device, or its clock rates change"},
		{"one that is hardly disturbed", []timing{{80, 100}}, []float64{90}, 1 << 20, 0, 0, []float64{100}, ""},
		{"two", []timing{{110, 115}, {100, 120}}, []float64{91, 92}, 1 << 20, 0, 0, []float64{92, 91}, ""},
		{"one that is too slow", []timing{{100, 100}, {126, 126}}, []float64{90, 91}, 1 << 20, 0, 0, []float64{100, 126}, ""},
		{"one that is not", []timing{{100, 100}, {125, 126}}, []float64{90, 91}, 1 << 20, 0, 0, []float64{90, 91}, ""},
		{"more than four", []timing{{100, 100}, {101, 101}, {102, 102}, {103, 103}, {104, 104}}, []float64{95, 94, 93, 92, 91}, 1 << 20, 0, 0, []float64{95, 94, 93, 92, 104}, ""},
		{"no replays", []timing{{100, 100}, {110, 110}}, []float64{90, 91}, 0, 0, 0, []float64{100, 110}, ""},
		{"replays for others", []timing{{100, 100}, {110, 110}}, []float64{90, 91}, 1000, 1000, 0, []float64{100, 110}, ""},
		{"no time", []timing{{100, 100}, {110, 110}}, []float64{90, 91}, 1 << 20, 0, 2 * time.Hour, []float64{100, 110}, ""},
	} {
		w := &written{byPlan: map[*planner.Plan]float64{}}
		l := learnerFrom(t, w, false)
		l.left, l.o.For, l.began = c.left, time.Hour, time.Now().Add(-c.spent)
		for k, way := range c.ways {
			plan := &planner.Plan{}
			w.byPlan[plan] = c.again[k]
			l.learned.Ways = append(l.learned.Ways, Way{Plan: plan, Mode: engine.Streams, Each: engine.Series{Count: 3, Min: way.least, Median: way.median}})
		}
		require.NoError(t, l.finals(t.Context(), c.others, 1))
		var got []float64
		for _, way := range l.learned.Ways {
			got = append(got, way.Each.Median)
		}
		require.Equal(t, c.want, got, c.what)
		require.Equal(t, c.unquiet, l.learned.Unquiet, c.what)
		require.GreaterOrEqual(t, l.left, min(c.left, c.others), c.what)
	}
}

// A way that was surprisingly slow keeps the better of its times.
func TestSurprisesKeepTheBetterTime(t *testing.T) {
	for again, want := range map[float64]float64{60: 60, 81: 81, 82: 82, 83: 82, 200: 82} {
		l := learnerFrom(t, &written{us: []float64{again}}, false)
		l.o.For = time.Hour
		l.learned.Ways = timedAt([2]float64{50, 50}, [2]float64{51, 82}, [2]float64{60, 59})
		for k := range l.learned.Ways {
			l.learned.Ways[k].Plan = &planner.Plan{}
		}
		require.NoError(t, l.timeSurprises(t.Context(), 20, 0, 1))
		require.Equal(t, []float64{50, want, 59}, []float64{l.learned.Ways[0].Each.Median, l.learned.Ways[1].Each.Median, l.learned.Ways[2].Each.Median})
	}
}

// A node ran beside others if another one did during more than a tenth of its time.
func TestNodesBesideOthers(t *testing.T) {
	for _, c := range []struct {
		spans []spans.Span
		want  []bool
	}{
		{nil, []bool{}},
		{[]spans.Span{{Start: 0, End: 10}}, []bool{false}},
		{[]spans.Span{{Start: 0, End: 10}, {Start: 10, End: 20}}, []bool{false, false}},
		{[]spans.Span{{Start: 10, End: 20}, {Start: 0, End: 10}}, []bool{false, false}},
		{[]spans.Span{{Start: 0, End: 10}, {Start: 9, End: 19}}, []bool{false, false}},
		{[]spans.Span{{Start: 0, End: 10}, {Start: 8, End: 18}}, []bool{true, true}},
		{[]spans.Span{{Start: 0, End: 100}, {Start: 95, End: 105}}, []bool{false, true}},
		{[]spans.Span{{Start: 0, End: 100}, {Start: 10, End: 15}, {Start: 50, End: 60}}, []bool{false, true, true}},
		{[]spans.Span{{Start: 0, End: 100}, {Start: 10, End: 12}, {Start: 80, End: 120}, {Start: 110, End: 112}}, []bool{true, true, true, true}},
		{[]spans.Span{{Start: 0, End: 10}, {Start: 0, End: 10}, {Start: 0, End: 1}}, []bool{true, true, true}},
	} {
		require.Equal(t, c.want, besideOthers(c.spans), "%v", c.spans)
	}
}

// Ranks plan with the same strategies, one that was asked for or some that differ.
func TestRanksProposeTheSame(t *testing.T) {
	count := func(strategy string, streams int) (n int) {
		l := learnerFrom(t, &written{}, false)
		l.o.Plan.Strategy, l.o.Plan.Streams = strategy, streams
		all := l.proposals()
		require.Equal(t, proposal{strategy, streams}, all[0])
		return len(all)
	}
	require.Equal(t, 1, count("list", 0))
	require.Equal(t, 1, count("serial", 4))
	require.Equal(t, 1+4+2*3+2, count("auto", 0))
	require.Equal(t, 1+4+2*3+2, count("", 8))
	require.Equal(t, 1+3+2*2+2, count("", 4))
	require.Equal(t, 1+1+2, count("auto", 1))
	l := learnerFrom(t, &written{}, false)
	l.graph.Nodes = make([]dag.Node, largestTried+1)
	require.Len(t, l.proposals(), 1, "a large graph")
}

// Ways are those that all ranks can plan, each once, by the longest time that any rank predicts; what is hopeless is left out.
func TestWaysOfRanksTogether(t *testing.T) {
	together := func(change func(k int, o *offer)) ([]Way, error) {
		l, _ := spinning(t)
		l.graph.Ranks, l.left = 2, 1000
		l.o.Plan.Streams, l.o.Plan.Strategy = 2, "auto"
		l.trials = &written{answer: func(own string) string {
			var offers []offer
			require.NoError(t, json.Unmarshal([]byte(own), &offers))
			for k := range offers {
				if change != nil {
					change(k, &offers[k])
				}
			}
			text, err := json.Marshal(offers)
			require.NoError(t, err)
			return string(text)
		}}
		return l.waysTogether(t.Context())
	}
	ways, err := together(nil)
	require.NoError(t, err)
	require.NotEmpty(t, ways)
	for k := range ways {
		require.LessOrEqual(t, ways[k].Predicted, hopeless*ways[0].Predicted)
		if k > 0 {
			require.GreaterOrEqual(t, ways[k].Predicted, ways[k-1].Predicted)
		}
		for j := range k {
			require.False(t, ways[j].Mode == ways[k].Mode && samePlan(ways[j].Plan, ways[k].Plan), "each plan once")
		}
	}
	slower, err := together(func(_ int, o *offer) {
		for m := range o.US {
			o.US[m] *= 3
		}
	})
	require.NoError(t, err)
	require.Len(t, slower, len(ways))
	for k := range ways {
		require.InEpsilon(t, 3*ways[k].Predicted, slower[k].Predicted, 1e-9, "the slowest rank counts")
	}
	faster, err := together(func(_ int, o *offer) {
		for m := range o.US {
			o.US[m] /= 3
		}
	})
	require.NoError(t, err)
	require.Equal(t, ways[0].Predicted, faster[0].Predicted)
	none, err := together(func(_ int, o *offer) { o.US = nil })
	require.NoError(t, err)
	require.Empty(t, none, "the other rank can plan nothing")
	more, err := together(func(k int, o *offer) { o.Same = k })
	require.NoError(t, err)
	require.Greater(t, len(more), len(ways), "plans that are the same here may differ there")
	_, err = together(func(_ int, o *offer) { o.US = []float64{1} })
	require.ErrorContains(t, err, "the ranks do not learn with the same options")
}
