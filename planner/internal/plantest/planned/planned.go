// Makes plans with the list strategy for tests of the steps after planning. Measures and proves nothing.

// Package planned makes plans for tests of the steps after planning.
package planned

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// ListPlan plans with the list strategy for an H200, without memory layout and predictions.
func ListPlan(tb require.TestingT, g *dag.Graph, streams int) *plan.Plan {
	p, err := place.NewProblem(context.Background(), g, model.H200(), model.Durations(g, model.H200(), nil), streams)
	require.NoError(tb, err)
	a, err := place.List(p, false)
	require.NoError(tb, err)
	made := &plan.Plan{Name: g.Name, Strategy: "list"}
	require.NoError(tb, place.Finish(p, a, false, made))
	return made
}
