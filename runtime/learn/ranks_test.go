// Tests of what ranks that learn together measure.

package learn

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
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
