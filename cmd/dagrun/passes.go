// Learned passes on the command line: plans count loops with the passes that they made in the last run.

package main

import (
	"context"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// recallPasses adds to the options of a plan how many passes the loops of a graph made in earlier runs.
func (a *app) recallPasses(g *dag.Graph, o *planner.Options) {
	if a.Flags.Learn == flags.LearnOff || a.Flags.Learn == flags.LearnAgain {
		return
	}
	known, warnings := runtime.KnownPasses(g, a.OpenCache())
	for _, w := range warnings {
		a.Warn("%s", w)
	}
	o.Profile = runtime.MergeProfiles(known, o.Profile)
}

// keepPasses keeps how many passes the loops made in the last replay. A run has done its work if that fails.
func (a *app) keepPasses(ctx context.Context, g *dag.Graph, loops []runtime.Loop) {
	if a.Flags.Learn == flags.LearnOff || a.Place.Ranks > 1 {
		return
	}
	if err := runtime.KeepPasses(ctx, g, a.OpenCache(), loops); err != nil && ctx.Err() == nil {
		a.Warn("what was learned is not kept: %v", err)
	}
}
