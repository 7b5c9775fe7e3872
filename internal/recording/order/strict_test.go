// A law of --strict: what it names can be left out, all at once, and nothing that was in order is out of order.

package order

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
)

func TestWhatStrictNamesCanBeLeftOut(t *testing.T) {
	programs := 3000
	if testing.Short() {
		programs = 600
	}
	left, clean := 0, 0
	for seed := range programs {
		p, _ := randomProcess(rand.New(rand.NewPCG(uint64(seed), 5)))
		for i := range p.Calls {
			p.Calls[i].Place = uint64(i + 1)
		}
		report, err := Check(p, Options{Strict: true})
		require.NoError(t, err)
		if len(report.Races)+len(report.Possible) > 0 {
			continue
		}
		clean++
		needless := map[*recording.Call]bool{}
		for _, list := range [][]Needless{report.Strict.Waits, report.Strict.Synchronizations} {
			for _, place := range list {
				for _, call := range place.Calls {
					needless[call] = true
				}
			}
		}
		left += len(needless)
		without := &recording.Process{Measured: p.Measured, Accesses: p.Accesses, Functions: p.Functions, Tensors: p.Tensors}
		for i := range p.Calls {
			if !needless[&p.Calls[i]] {
				without.Calls = append(without.Calls, p.Calls[i])
			}
		}
		graphs := slices.Clone(p.Graphs)
		for _, edge := range slices.Backward(report.Strict.Edges) {
			graphs[edge.Graph].Edges = slices.Delete(slices.Clone(graphs[edge.Graph].Edges), edge.Edge, edge.Edge+1)
		}
		without.Graphs = graphs
		again, err := Check(without, Options{})
		require.NoError(t, err)
		require.Empty(t, again.Races, "seed %d", seed)
		require.Empty(t, again.Possible, "seed %d", seed)
	}
	require.Greater(t, clean, programs/50)
	require.Greater(t, left, clean)
}
