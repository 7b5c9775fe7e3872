// Tests that the list strategy stops a pass early only if the pass cannot win.

package place

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
)

func TestAPassIsGivenUpOnlyWhereItWouldLose(t *testing.T) {
	lost, won := 0, 0
	for family := range len(plantest.Families) + 1 {
		for seed := range uint64(4) {
			for _, streams := range []int{2, 5, 8} {
				for _, m := range []*model.Machine{model.Unit(), model.H200()} {
					n := 40 + int(seed)*60
					g := plantest.MixedGraph(t, seed, n, false)
					if family < len(plantest.Families) {
						g = plantest.RandomShape(family, n, seed+1).Ordered(t)
					}
					p, err := NewProblem(context.Background(), g, m, model.Durations(g, m, nil), streams)
					require.NoError(t, err)
					l := newLister(p, smallWindow, false)
					require.NoError(t, l.run(conservative, nil))
					l.keep()
					for _, preference := range []preference{releasing, newest} {
						require.NoError(t, l.run(preference, nil))
						whole := l.score
						require.NoError(t, l.run(preference, &l.best.score))
						if l.lost {
							require.False(t, whole.better(l.best.score))
							lost++
							continue
						}
						require.Equal(t, whole, l.score)
						won++
					}
				}
			}
		}
	}
	require.Positive(t, lost)
	require.Positive(t, won)
}
