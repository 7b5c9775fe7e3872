// A pipeline that is ready to run, and what run knows of it from its own flags and from earlier runs.

package main

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// prepared is a pipeline with its device and its plan.
type prepared struct {
	name     string
	graph    *dag.Graph
	platform *session.Opened
	options  planner.Options
	plan     *planner.Plan
	learning *learning // nil if nothing is learned
}

// learning is what a run knows from earlier ones, and what it learns itself.
type learning struct {
	options  runtime.LearnOptions
	recalled *runtime.Recalled
	way      *runtime.LearnedWay // from the cache; nil if plans have to be compared
	learned  *runtime.Learned    // nil if nothing was learned
	again    bool
	drift    drift
	onGPU    bool
	ranks    bool // there are several
	bodies   bool // the pipeline has loops or branches
}

// chose reports whether an earlier run has chosen how to replay.
func (l *learning) chose() bool { return l != nil && l.way != nil }
