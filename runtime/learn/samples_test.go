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
