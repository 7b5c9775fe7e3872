// Learned passes on the command line: plans count loops with the passes that they made in the last run.

package runs

import (
	"context"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

// recallPasses adds to the options of a plan how many passes the loops of a graph made in earlier runs.
func (u *Runs) recallPasses(g *dag.Graph, o *planner.Options) {
	if u.Flags.Learn == flags.LearnOff || u.Flags.Learn == flags.LearnAgain {
		return
	}
	known, warnings := learn.KnownPasses(g, u.OpenCache())
	for _, w := range warnings {
		u.Warn("%s", w)
	}
	o.Profile = learn.MergeProfiles(known, o.Profile)
}

// KeepPasses keeps how many passes the loops made in the last replay. A run has done its work if that fails.
func (u *Runs) KeepPasses(ctx context.Context, g *dag.Graph, loops []runtime.Loop) {
	if u.Flags.Learn == flags.LearnOff || u.Place.Ranks > 1 {
		return
	}
	if err := learn.KeepPasses(ctx, g, u.OpenCache(), loops); err != nil && ctx.Err() == nil {
		u.Warn("what was learned is not kept: %v", err)
	}
}
