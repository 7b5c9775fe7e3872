// Exports unexported functions for tests outside the package.

package runtime

import (
	"context"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// HostNeed is hostNeed.
var HostNeed = hostNeed

// Adopt makes a program replay a way that learning timed.
func Adopt(ctx context.Context, p *Program, w LearnedWay) error { return p.adopt(ctx, w.way()) }

// BodyPlan is the plan that a program replays the first body of a loop by.
func BodyPlan(p *Program, loop dag.NodeID) *planner.Plan { return p.bodies[loop][0].plan }
