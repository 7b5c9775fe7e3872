// Tests of how nodes are measured, and how those with the same work share what was measured of them.

package learn

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/spans"
)

func TestNodesWithTheSameWorkShareSamples(t *testing.T) {
	prints := []string{"a", "b", "a", "a"}
	samples := [][]float64{{1, 2}, {7, 8}, {5, 6}, nil}
	takeFromAlone(samples, []dag.NodeID{0, 1, 3}, prints, []bool{false, true, false, true})
	require.Equal(t, [][]float64{{1, 2}, {7, 8}, {5, 6}, {1, 2}}, samples, "the last ran beside others, the first alone")
	samples[3] = nil
	takeFromSame(samples, []dag.NodeID{0, 1, 3}, prints)
	require.Equal(t, [][]float64{{3, 4}, {7, 8}, {5, 6}, {3, 4}}, samples, "the third is known already and stays as it is")
}

// Every node looks once at its own fingerprint: with each against each, this would take a minute.
func TestManyNodesWithDifferentWorkShareNothing(t *testing.T) {
	const n = 200_000
	nodes, prints, samples := make([]dag.NodeID, n), make([]string, n), make([][]float64, n)
	for i := range n {
		nodes[i], prints[i], samples[i] = dag.NodeID(i), "work "+strconv.Itoa(i), []float64{float64(i)}
	}
	takeFromAlone(samples, nodes, prints, make([]bool, n))
	takeFromSame(samples, nodes, prints)
	for i := range n {
		require.Equal(t, float64(i), samples[i][0])
	}
}

// Where no plan for one stream can be made, nodes are measured as the program replays.
func TestNodesAreMeasuredWithoutAPlanForOneStream(t *testing.T) {
	g, _ := lattice(t)
	l := learnerFrom(t, &written{}, true)
	l.graph, l.o.Plan = g, planner.Options{Machine: planner.H200(), MemoryCap: 1}
	adopted, err := l.adoptSerial(t.Context(), 5)
	require.NoError(t, err)
	require.False(t, adopted)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err = l.adoptSerial(ctx, 5)
	require.ErrorIs(t, err, enough)
}

// A node in a body takes the median of its passes, of which the events took a part. Where only passes were measured, it takes its part of them.
func TestNodesOfBodiesTakeTheirPartOfPasses(t *testing.T) {
	b := dag.New("bodies")
	x := b.Device("x", dag.U8, 4)
	b.Repeat("loop", dag.Loop{Times: 3}, func() {
		b.Cost(b.Task("short", b.InOut(x)), 10)
		b.Cost(b.Task("long", b.InOut(x)), 30)
		b.Cost(b.Task("unwanted", b.InOut(x)), 40)
	})
	g, err := b.Graph()
	require.NoError(t, err)
	take := func(replays ...*spans.TracedReplay) map[string][]float64 {
		l := learnerFrom(t, &written{}, true)
		l.graph, l.o.Plan.Machine, l.learned.Inner = g, planner.Unit(), map[string][]float64{}
		for _, r := range replays {
			l.takePasses(r, map[string]bool{"short": true, "long": true})
		}
		return l.learned.Inner
	}
	nodes := func(begin, short, long float64) spans.TracedPass {
		p := spans.TracedPass{Node: "loop", Body: spans.BodyRepeat, Start: begin, End: begin + 1000}
		p.Nodes = append(p.Nodes, spans.BodySpan{Node: "short", Start: begin, End: begin + short + stampUS},
			spans.BodySpan{Node: "long", Start: begin + 50, End: begin + 50 + long + stampUS})
		return p
	}
	leftOut, none := nodes(0, 500, 500), nodes(0, 500, 500)
	leftOut.LeftOut, none.Body = true, spans.BodyNone
	first := &spans.TracedReplay{Passes: []spans.TracedPass{nodes(100, 7, 20), nodes(200, 9, 10), nodes(300, 8, 40), leftOut, none}}
	second := &spans.TracedReplay{Passes: []spans.TracedPass{nodes(100, -stampUS, 5)}}
	got := take(first, second)
	require.Len(t, got, 2)
	require.InDeltaSlice(t, []float64{8, 0}, got["short"], 1e-9)
	require.InDeltaSlice(t, []float64{20, 5}, got["long"], 1e-9)

	whole := func(begin, us float64) spans.TracedPass {
		return spans.TracedPass{Node: "loop", Body: spans.BodyRepeat, Start: begin, End: begin + us}
	}
	got = take(&spans.TracedReplay{Passes: []spans.TracedPass{whole(100, 160), whole(500, 150), whole(900, 900)}})
	require.InDeltaSlice(t, []float64{20}, got["short"], 1e-9, "an eighth of the median")
	require.InDeltaSlice(t, []float64{60}, got["long"], 1e-9)
	require.Empty(t, take(&spans.TracedReplay{}))
}

// Loops are known by the passes of one run, branches by none.
func TestPassesOfARun(t *testing.T) {
	require.Equal(t, map[string]int64{"once": 5, "thrice": 4, "never any": 0}, passesOf([]spans.Loop{
		{Node: "once", Kind: "repeat", Runs: 1, Passes: 5}, {Node: "thrice", Kind: "repeat", Runs: 3, Passes: 11}, {Node: "never any", Kind: "repeat", Runs: 2},
		{Node: "not run", Kind: "repeat"}, {Node: "branch", Kind: "if", Runs: 2, Passes: 1}}))
}
