// Tests of what ranks that learn together measure and propose.

package learn

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// A communication takes as long as the last rank to come makes it, so the shortest time that any rank has seen counts for all.
func TestTheShortestTimeOfACommunicationCounts(t *testing.T) {
	b := dag.New("ranks")
	b.Ranks(0, 2)
	x := b.Device("x", dag.F32, 4)
	reduce := func(name string) {
		b.Communicate(name, dag.Communication{Verb: dag.AllReduce, Reduction: dag.Sum, From: b.Whole(x), To: b.Whole(x)})
	}
	reduce("late here")
	b.Task("kernel", b.InOut(x))
	reduce("late there")
	reduce("not there")
	g, err := b.Graph()
	require.NoError(t, err)
	w := &written{others: []string{`{"late here": 3, "late there": 50, "only there": 1}`}}
	l := learnerFrom(t, w, true)
	l.graph = g
	samples := map[dag.NodeID][]float64{0: {9, 7, 8}, 1: {1}, 2: {30, 20}, 3: {5}}
	got, err := l.communications(t.Context(), func(i dag.NodeID) []float64 { return samples[i] })
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"late here": 3, "late there": 20, "not there": 5}, got)
	w.broken = errors.New("rank 1 has gone")
	_, err = l.communications(t.Context(), func(i dag.NodeID) []float64 { return samples[i] })
	require.ErrorIs(t, err, w.broken)
}

// Ranks plan with what they were told to, and if that is auto, with strategies that all have, on fewer and fewer streams.
func TestWhatRanksPropose(t *testing.T) {
	for _, c := range []struct {
		given proposal
		want  []proposal
	}{
		{proposal{"list", 3}, []proposal{{"list", 3}}},
		{proposal{"auto", 4}, []proposal{{"auto", 4}, {"list", 4}, {"list", 2}, {"list", 1}, {"heft", 4}, {"roundrobin", 4}, {"heft", 2}, {"roundrobin", 2},
			{"cover", 4}, {"serial", 1}}},
		{proposal{"", 1}, []proposal{{"", 1}, {"list", 1}, {"cover", 1}, {"serial", 1}}},
		{proposal{"auto", 0}, []proposal{{"auto", 0}, {"list", 8}, {"list", 4}, {"list", 2}, {"list", 1}, {"heft", 8}, {"roundrobin", 8}, {"heft", 4},
			{"roundrobin", 4}, {"heft", 2}, {"roundrobin", 2}, {"cover", 0}, {"serial", 1}}},
	} {
		l := learnerFrom(t, &written{}, false)
		l.o.Plan = planner.Options{Strategy: c.given.Strategy, Streams: c.given.Streams}
		require.Equal(t, c.want, l.proposals())
	}
}
