// A pipeline that is ready to run, and what run knows of it from its own flags and from earlier runs.

package runs

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/learn"
)

// Prepared is a pipeline with its device and its plan.
type Prepared struct {
	Name     string
	Graph    *dag.Graph
	Platform *session.Opened
	Options  planner.Options
	Plan     *planner.Plan
	Learning *Learning // nil if nothing is learned
}

// Learning is what a run knows from earlier ones, and what it learns itself.
type Learning struct {
	Options  learn.Options
	Recalled *learn.Recalled
	way      *learn.Way     // from the cache; nil if plans have to be compared
	learned  *learn.Learned // nil if nothing was learned
	again    bool
	drift    drift
	OnGPU    bool
	ranks    bool // there are several
	bodies   bool // the pipeline has loops or branches
}

// chose reports whether an earlier run has chosen how to replay.
func (l *Learning) chose() bool { return l != nil && l.way != nil }
