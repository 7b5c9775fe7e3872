// Tests of strategies whose context has ended.

package place

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/planner/internal/plantest"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

func TestStrategiesStopWhenTheContextEnds(t *testing.T) {
	g := plantest.RandomShape(0, 2000, 1).Graph(t)
	ctx, end := context.WithCancel(context.Background())
	p, err := NewProblem(ctx, g, model.Unit(), model.Durations(g, model.Unit(), nil), 4)
	require.NoError(t, err)
	a := InOrder(p, p.order, 4)
	end()
	for _, s := range strategies {
		if s.name == "few bytes alive" {
			continue // it is quick
		}
		_, err := s.make(p)
		require.ErrorIs(t, err, context.Canceled, s.name)
	}
	require.ErrorIs(t, Finish(p, a, false, &plan.Plan{}), context.Canceled)
}
