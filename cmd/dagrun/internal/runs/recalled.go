// What earlier runs learned, for the commands that run nothing: plan, dot and check read it only if --learn=auto says so, and say what they
// took. Without it, their output is the same everywhere.

package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime/learn"
)

// SpreadUnseen spreads a graph for a command that opens no device.
func (u *Runs) SpreadUnseen(ctx context.Context, g *dag.Graph) (*dag.Graph, error) {
	if u.Flags.Plan != "" {
		return u.SpreadAsPlanned(ctx, g)
	}
	if f := u.Flags; f.Learn == flags.LearnAuto && !f.MachineSaid && (g.Devices > 1 || g.Devices == dag.AllDevices || f.MemoryCap != "") {
		return u.spreadAsRuns(ctx, g)
	}
	options, err := u.unseenOptions(ctx, g)
	if err != nil {
		return nil, err
	}
	return u.SpreadOver(ctx, g, &options, session.AssumedDevices)
}

// unseenOptions returns the options to plan with, for the machine of --machine, or for the device of --backend if only that was given.
func (u *Runs) unseenOptions(ctx context.Context, g *dag.Graph) (o planner.Options, err error) {
	if u.Flags.MachineSaid || u.Flags.Backend == "auto" || u.Flags.Plan != "" {
		return u.PlanOptions(ctx, nil)
	}
	if u.asked == nil {
		platform, err := u.OpenPlatform(u.DevicesFor(g), usualQueues)
		if err != nil {
			return o, err
		}
		u.asked = u.MachineOf(platform.Platform)
		if err := platform.Close(); err != nil {
			return o, err
		}
	}
	u.Flags.Machine = ""
	return u.PlanOptions(ctx, u.asked)
}

// spreadAsRuns spreads a graph over the devices that are there, as runs do, so that what they learned is found.
func (u *Runs) spreadAsRuns(ctx context.Context, g *dag.Graph) (spread *dag.Graph, err error) {
	platform, err := u.OpenPlatform(u.DevicesFor(g), usualQueues)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, platform) }()
	u.Flags.Machine = ""
	options, err := u.PlanOptions(ctx, u.MachineOf(platform.Platform))
	if err != nil {
		return nil, err
	}
	spread, err = u.SpreadOver(ctx, g, &options, len(platform.Devices()))
	u.MemoryInfo = nil
	return spread, err
}

// ReplaysOfRuns is for how many replays the plan is taken that earlier runs found best.
const ReplaysOfRuns = 100

// OptionsFor returns the options that a command plans with, and the plan if earlier runs have chosen one. No device is opened
// without --learn=auto or --backend.
func (u *Runs) OptionsFor(ctx context.Context, g *dag.Graph) (*recalled, error) {
	switch {
	case u.Captured != nil: // which has the durations that a program measured
		options, err := u.PlanOptions(ctx, nil)
		return &recalled{Options: options}, err
	case u.Flags.Learn == flags.LearnAgain:
		return nil, errors.New("--learn=again: nothing runs here, so nothing can be learned again; want auto or off")
	case u.Flags.Learn != flags.LearnAuto:
		options, err := u.unseenOptions(ctx, g)
		return &recalled{Options: options}, err
	case u.Flags.Plan != "" || u.Flags.MachineSaid:
		return nil, errors.New("--learn=auto plans for the device that earlier runs measured: leave out --machine and --plan")
	}
	if u.recalled == nil || u.recalledOf != g {
		r, err := u.recall(ctx, g)
		if err != nil {
			return nil, err
		}
		u.recalled, u.recalledOf = r, g
	}
	copied := *u.recalled
	return &copied, nil
}

// recall looks up what a run of the pipeline would use, and says so.
func (u *Runs) recall(ctx context.Context, g *dag.Graph) (r *recalled, err error) {
	f := u.Flags
	// The same options as those of a run, so that what runs keep is found.
	f.Sanitize = flags.SanitizeAuto
	f.Machine = "" // the device is planned for
	f.Replay, f.Inflight, f.Threads, f.Iterations, f.Warmup, f.Overlap = flags.GraphAuto, 1, 1, ReplaysOfRuns, 0, flags.GraphAuto
	u.Sanitize = u.SanitizeFor(g)
	platform, err := u.OpenPlatform(u.DevicesFor(g), u.queuesFor(&Prepared{Graph: g}, &session.RunFlags{}))
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, platform) }()
	if err := u.SanitizeOn(platform); err != nil {
		return nil, err
	}
	r = &recalled{}
	if r.Options, err = u.PlanOptions(ctx, u.MachineOf(platform.Platform)); err != nil {
		return nil, err
	}
	folder := u.OpenCache()
	var taken []string
	own := r.Options.Profile
	p := &Prepared{Graph: g, Platform: platform, Options: r.Options}
	if l := u.LearningOf(p, &session.RunFlags{}); l != nil {
		if known := l.Options.Known; known != nil {
			taken = append(taken, "how long "+NodesTake(len(known.Nodes)))
			r.Options.Profile = learn.MergeProfiles(known, own)
		}
		if l.way != nil {
			r.plan, r.Options.Machine = l.way.Plan, l.machineOf(p)
			way := ReportWay(l.way)
			taken = append(taken, fmt.Sprintf("the plan, %s, the best of %s, predicted to take %s a replay", way.Text(), cli.Counted(l.Recalled.Tried, "way"),
				cli.Duration(way.Predicted)))
		}
	}
	passes, warnings := learn.KnownPasses(g, folder)
	for _, w := range warnings {
		u.Warn("%s", w)
	}
	if passes != nil {
		var names []string
		for name := range passes.Passes {
			names = append(names, name)
		}
		slices.Sort(names)
		taken = append(taken, "the passes of "+cli.SomeOf(names))
		r.Options.Profile = learn.MergeProfiles(passes, r.Options.Profile)
	}
	if kept, err := learn.KeptMachine(platform.Platform, folder); kept != nil && err == nil {
		taken = append(taken, "the figures of the device")
	}
	switch {
	case folder == nil && u.NoCache: // which has been said
	case folder == nil:
		u.Note("there is no cache to take anything from: --cache-dir is off")
	case len(taken) == 0:
		u.Note("%s holds nothing about this pipeline on %s; dagrun FILE --iterations 200 learns", folder.Path(), platform.Place())
	default:
		u.Note("taken from %s, as earlier runs on %s learned it: %s", folder.Path(), platform.Place(), strings.Join(taken, "; "))
	}
	return r, nil
}

// RecallHint says how to plan with what earlier runs learned, after a plan that would profit from it.
func (u *Runs) RecallHint(made *planner.Plan) error {
	guessed := slices.ContainsFunc(made.Costs, func(c plan.Cost) bool {
		return c.Source == plan.UnknownCost || c.Passes.Source.String() == "most"
	})
	if !guessed || u.Flags.Learn == flags.LearnAuto || u.Flags.Plan != "" {
		return nil
	}
	return u.Stdout.Printf("to plan with what earlier runs learned: --learn=auto\n")
}
