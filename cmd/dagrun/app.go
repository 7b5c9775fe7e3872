// What all commands share: input and output, the values of their flags, and what is known of the pipeline.

package main

import (
	"time"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// app is the state that every command has: its input and output, and the shared flags.
type app struct {
	*session.Session
	eachReplay time.Duration    // of the latest replays, or else of those that chose the plan; 0: not known
	earlier    *replan.Kept     // what a program found out about that graph; nil if nothing is known
	recalled   *recalled        // with --learn=auto: what plan, dot and check plan with
	recalledOf *dag.Graph       // the graph that this is of
	asked      *planner.Machine // the device of --backend that plan, dot and check plan for; nil: none has been opened for that
}

// recalled is what a command plans with.
type recalled struct {
	options planner.Options
	plan    *planner.Plan // that earlier runs found best; nil if none is known
}
