// Tests that the two ways of finding waits agree.

package place

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

// Waits are found either with sets of nodes or with clocks of streams in blocks; both must agree for blocks of any size.
func TestWaitsAreTheSameHoweverTheyAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plantest.DrawShape(t, 60)
		g := plantest.MustOrder(t, s)
		p, err := NewProblem(context.Background(), g, model.Unit(), model.Durations(g, model.Unit(), nil), rapid.IntRange(1, 40).Draw(t, "streams"))
		require.NoError(t, err)
		a, err := RoundRobin(p)
		require.NoError(t, err)
		want, err := reducedWaits(p, a)
		require.NoError(t, err)
		sorted := func(w *waitList) [][]int32 {
			var all [][]int32
			for i := range int32(p.len()) {
				all = append(all, slices.Sorted(slices.Values(w.of(i))))
			}
			return all
		}
		got, err := clockedWaits(p, a, rapid.IntRange(1, 40).Draw(t, "block"))
		require.NoError(t, err)
		require.Equal(t, sorted(want), sorted(got))
	})
}
