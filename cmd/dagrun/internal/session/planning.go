// What planning is for a captured graph of a recording, where it differs from a pipeline's.

package session

import (
	"context"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// NewPlan plans a graph. The values of a captured one are laid out in the memory that the program has for it.
func (u *Session) NewPlan(ctx context.Context, g *dag.Graph, o planner.Options) (*planner.Plan, error) {
	if u.Captured != nil {
		return u.Captured.Plan(ctx, o)
	}
	return planner.New(ctx, g, o)
}

// Strategies are the names that newPlan takes.
func (u *Session) Strategies() []string {
	if u.Captured != nil {
		return append([]string{replan.AsCaptured}, planner.Strategies()...)
	}
	return planner.Strategies()
}

// Simulate predicts how a plan runs that no device runs here. A captured graph stays one.
func (u *Session) Simulate(g *dag.Graph, p *planner.Plan, o planner.Options) (*plan.Timeline, error) {
	if u.Captured != nil {
		return model.SimulateGraph(g, p, o.Machine, o.Profile)
	}
	return planner.Simulate(g, p, o.Machine, o.Profile)
}
