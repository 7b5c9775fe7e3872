// What planning is for a captured graph of a recording, where it differs from a pipeline's.

package main

import (
	"context"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// newPlan plans a graph. The values of a captured one are laid out in the memory that the program has for it.
func (a *app) newPlan(ctx context.Context, g *dag.Graph, o planner.Options) (*planner.Plan, error) {
	if a.network != nil {
		return a.network.Plan(ctx, o)
	}
	return planner.New(ctx, g, o)
}

// strategies are the names that newPlan takes.
func (a *app) strategies() []string {
	if a.network != nil {
		return append([]string{replan.AsCaptured}, planner.Strategies()...)
	}
	return planner.Strategies()
}

// simulate predicts how a plan runs that no device runs here. A captured graph stays one.
func (a *app) simulate(g *dag.Graph, p *planner.Plan, o planner.Options) (*planner.Timeline, error) {
	if a.network != nil {
		return planner.SimulateGraph(g, p, o.Machine, o.Profile)
	}
	return planner.Simulate(g, p, o.Machine, o.Profile)
}
