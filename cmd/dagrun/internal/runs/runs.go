// Package runs makes pipelines ready to run: with a device, a plan, and what earlier runs learned. It also finds what faults or hangs.
package runs

import (
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// Runs is a command that runs a pipeline, or plans it as runs do.
type Runs struct {
	*session.Ranks

	EachReplay time.Duration    // of the latest replays, or else of those that chose the plan; 0: not known
	recalled   *recalled        // with --learn=auto: what plan, dot and check plan with
	recalledOf *dag.Graph       // the graph that this is of
	asked      *planner.Machine // the device of --backend that plan, dot and check plan for; nil: none has been opened for that
}

// recalled is what a command plans with.
type recalled struct {
	Options planner.Options
	plan    *planner.Plan // that earlier runs found best; nil if none is known
}
