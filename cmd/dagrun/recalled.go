// What earlier runs learned, for the commands that run nothing: plan, dot and check read it only if --learn=auto says so, and say what they
// took. Without it, their output is the same everywhere.

package main

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
	"github.com/dagrun/dagrun/runtime"
)

// spreadUnseen spreads a graph for a command that opens no device.
func (a *app) spreadUnseen(ctx context.Context, g *dag.Graph) (*dag.Graph, error) {
	if a.Flags.Plan != "" {
		return a.SpreadAsPlanned(ctx, g)
	}
	if f := a.Flags; f.Learn == flags.LearnAuto && !f.MachineSaid && (g.Devices > 1 || g.Devices == dag.AllDevices || f.MemoryCap != "") {
		return a.spreadAsRuns(ctx, g)
	}
	options, err := a.unseenOptions(ctx, g)
	if err != nil {
		return nil, err
	}
	return a.SpreadOver(ctx, g, &options, session.AssumedDevices)
}

// unseenOptions returns the options to plan with, for the machine of --machine, or for the device of --backend if only that was given.
func (a *app) unseenOptions(ctx context.Context, g *dag.Graph) (o planner.Options, err error) {
	if a.Flags.MachineSaid || a.Flags.Backend == "auto" || a.Flags.Plan != "" {
		return a.PlanOptions(ctx, nil)
	}
	if a.asked == nil {
		platform, err := a.OpenPlatform(a.DevicesFor(g), usualQueues)
		if err != nil {
			return o, err
		}
		a.asked = a.machineOf(platform.Platform)
		if err := platform.Close(); err != nil {
			return o, err
		}
	}
	a.Flags.Machine = ""
	return a.PlanOptions(ctx, a.asked)
}

// spreadAsRuns spreads a graph over the devices that are there, as runs do, so that what they learned is found.
func (a *app) spreadAsRuns(ctx context.Context, g *dag.Graph) (spread *dag.Graph, err error) {
	platform, err := a.OpenPlatform(a.DevicesFor(g), usualQueues)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, platform) }()
	a.Flags.Machine = ""
	options, err := a.PlanOptions(ctx, a.machineOf(platform.Platform))
	if err != nil {
		return nil, err
	}
	spread, err = a.SpreadOver(ctx, g, &options, len(platform.Devices()))
	a.MemoryInfo = nil
	return spread, err
}

// replaysOfRuns is for how many replays the plan is taken that earlier runs found best.
const replaysOfRuns = 100

// optionsFor returns the options that a command plans with, and the plan if earlier runs have chosen one. No device is opened without --learn=auto or --backend.
func (a *app) optionsFor(ctx context.Context, g *dag.Graph) (*recalled, error) {
	switch {
	case a.Network != nil: // which has the durations that a program measured
		options, err := a.PlanOptions(ctx, nil)
		return &recalled{options: options}, err
	case a.Flags.Learn == flags.LearnAgain:
		return nil, errors.New("--learn=again: nothing runs here, so nothing can be learned again; want auto or off")
	case a.Flags.Learn != flags.LearnAuto:
		options, err := a.unseenOptions(ctx, g)
		return &recalled{options: options}, err
	case a.Flags.Plan != "" || a.Flags.MachineSaid:
		return nil, errors.New("--learn=auto plans for the device that earlier runs measured: leave out --machine and --plan")
	}
	if a.recalled == nil || a.recalledOf != g {
		r, err := a.recall(ctx, g)
		if err != nil {
			return nil, err
		}
		a.recalled, a.recalledOf = r, g
	}
	copied := *a.recalled
	return &copied, nil
}

// recall looks up what a run of the pipeline would use, and says so.
func (a *app) recall(ctx context.Context, g *dag.Graph) (r *recalled, err error) {
	f := a.Flags
	// The same options as those of a run, so that what runs keep is found.
	f.Sanitize = flags.SanitizeAuto
	f.Machine = "" // the device is planned for
	f.Replay, f.Inflight, f.Threads, f.Iterations, f.Warmup, f.Overlap = flags.GraphAuto, 1, 1, replaysOfRuns, 0, flags.GraphAuto
	a.Sanitize = a.SanitizeFor(g)
	platform, err := a.OpenPlatform(a.DevicesFor(g), a.queuesFor(&prepared{graph: g}, &session.RunFlags{}))
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, platform) }()
	if err := a.SanitizeOn(platform); err != nil {
		return nil, err
	}
	r = &recalled{}
	if r.options, err = a.PlanOptions(ctx, a.machineOf(platform.Platform)); err != nil {
		return nil, err
	}
	folder := a.OpenCache()
	var taken []string
	own := r.options.Profile
	p := &prepared{graph: g, platform: platform, options: r.options}
	if l := a.learningOf(p, &session.RunFlags{}); l != nil {
		if known := l.options.Known; known != nil {
			taken = append(taken, "how long "+nodesTake(len(known.Nodes)))
			r.options.Profile = runtime.MergeProfiles(known, own)
		}
		if l.way != nil {
			r.plan, r.options.Machine = l.way.Plan, l.machineOf(p)
			way := reportWay(l.way)
			taken = append(taken, fmt.Sprintf("the plan, %s, the best of %s, predicted to take %s a replay", way.text(), cli.Counted(l.recalled.Tried, "way"), cli.Duration(way.Predicted)))
		}
	}
	passes, warnings := runtime.KnownPasses(g, folder)
	for _, w := range warnings {
		a.Warn("%s", w)
	}
	if passes != nil {
		var names []string
		for name := range passes.Passes {
			names = append(names, name)
		}
		slices.Sort(names)
		taken = append(taken, "the passes of "+cli.SomeOf(names))
		r.options.Profile = runtime.MergeProfiles(passes, r.options.Profile)
	}
	if kept, err := runtime.KeptMachine(platform.Platform, folder); kept != nil && err == nil {
		taken = append(taken, "the figures of the device")
	}
	switch {
	case folder == nil && a.NoCache: // which has been said
	case folder == nil:
		a.Note("there is no cache to take anything from: --cache-dir is off")
	case len(taken) == 0:
		a.Note("%s holds nothing about this pipeline on %s; dagrun FILE --iterations 200 learns", folder.Path(), platform.Place())
	default:
		a.Note("taken from %s, as earlier runs on %s learned it: %s", folder.Path(), platform.Place(), strings.Join(taken, "; "))
	}
	return r, nil
}

// recallHint says how to plan with what earlier runs learned, after a plan that would profit from it.
func (a *app) recallHint(plan *planner.Plan) error {
	guessed := slices.ContainsFunc(plan.Costs, func(c planner.Cost) bool {
		return c.Source == planner.UnknownCost || c.Passes.Source.String() == "most"
	})
	if !guessed || a.Flags.Learn == flags.LearnAuto || a.Flags.Plan != "" {
		return nil
	}
	return a.Stdout.Printf("to plan with what earlier runs learned: --learn=auto\n")
}
