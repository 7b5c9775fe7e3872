// dagrun FILE, dagrun run FILE: plan a pipeline, run it, check and save its results.

package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/planner"
)

func (a *app) runCommand(c *cobra.Command) {
	var own session.RunFlags
	a.DeviceRunFlags(c)
	a.SaveFlags(c)
	a.ReplayFlags(c)
	a.LearnFlags(c)
	a.RankFlags(c)
	f := c.Flags()
	f.StringVar(&own.Verify, "verify", "", "also run serially on the CPU and compare `what`: results (saved or expected buffers; --verify alone), or nodes (names the first that differs)")
	f.Lookup("verify").NoOptDefVal = verifyResults
	f.BoolVar(&own.AllowRaces, "allow-races", false, "run a hand-made schedule (sync: explicit) even if it has races")
	f.BoolVar(&own.Alone, "node-by-node", false, "run nodes one at a time: slow, but names the node that faults or hangs")
	f.BoolVar(&own.Stats, "memory-stats", false, "show device memory, and which nodes use each buffer")
	f.BoolVar(&own.Follow, "debug-progress", false, "track finished nodes on the device, so that a timeout lists the others; one replay only")
	a.SanitizeFlag(c)
	f.Uint64Var(&a.ValuesOf(c).Steps, "kernel-steps", session.DefaultSteps, "on the CPU device, end a kernel after `N` instructions of all its threads")
	f.StringVar(&own.SavePlan, "save-plan", "", "write the plan as JSON to this `file`")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 && c.Parent() == nil && c.Flags().NFlag() == 0 {
			return c.Help()
		}
		if c.Parent() == nil && len(args) > 1 {
			// The arguments may be a mistyped command instead of one file.
			if _, err := os.Stat(args[0]); err != nil {
				return &cli.MissingFile{Name: args[0], Err: err}
			}
		}
		if err := flags.OneFile(c, args); err != nil {
			return err
		}
		if err := a.CheckFlags(c); err != nil {
			return err
		}
		if recording.RecognizePlanned(args[0]) {
			return a.Exported.RunPlanned(c, args[0])
		}
		if err := flags.OneOf("--verify", own.Verify, verifyResults, verifyNodes); err != nil {
			return err
		}
		if own.Follow && (a.Flags.Iterations != 1 || a.Flags.Warmup != 0 || a.Flags.Inflight != 1) {
			return errors.New("--debug-progress tracks one replay: leave out --iterations, --warmup and --inflight")
		}
		if err := a.FindPlace(); err != nil {
			return err
		}
		a.Progress.Begin()
		ctx, done := a.Limited(c.Context())
		defer done()
		return a.AmongRanks(ctx, func(ctx context.Context) error { return a.runPipeline(ctx, args[0], &own) })
	}
}

func (a *app) runPipeline(ctx context.Context, name string, own *session.RunFlags) (err error) {
	p, err := a.Prepare(ctx, name, own, func(g *dag.Graph) error {
		return a.CheckOutputs(g, []cli.NamedFile{{Role: "--save-plan", Name: own.SavePlan}}, a.SavedFiles(g))
	})
	if err != nil {
		return err
	}
	defer func() { err = a.closingAt("close the device", err, p.Platform) }()
	if own.SavePlan != "" {
		if err := a.SavePlan(ctx, own.SavePlan, p.Plan, p.Graph); err != nil {
			return err
		}
	}
	options := a.ProgramOptions(p.Learning)
	a.PreferGraph(p, &options)
	allowed, err := session.RacesAllowed(p.Name, p.Graph, p.Plan, own.AllowRaces)
	if err != nil {
		return err
	}
	options.Unsafe = len(allowed) > 0
	options.DebugProgress, options.FollowCommunication = own.Follow, a.Followed
	if a.World != nil {
		options.Agree, options.Exchange = a.Agree, a.Exchange
	}
	report, err := a.runOn(ctx, p, options, own)
	if err != nil {
		return a.PinFault(ctx, p, err, own)
	}
	if len(allowed) > 0 {
		report.Allowed = session.RacesOf(p.Graph, allowed)
	}
	if report.onGPU, err = a.streamsOnGPU(ctx, p); err != nil {
		return err
	}
	return a.printRun(report)
}

// mostPlannedTwice is the size of the largest pipeline that is planned for a GPU too, only to say how that would differ.
const mostPlannedTwice = 1000

// streamsOnGPU returns how many streams a plan for a GPU has, after a run on the CPU that planned for itself.
func (a *app) streamsOnGPU(ctx context.Context, p *runs.Prepared) (int, error) {
	f := a.Flags
	if p.Platform.Name() != "cpu" || f.Quiet || f.Plan != "" || f.Machine != "" || a.World != nil || p.Graph.UsedDevices() > 1 || p.Graph.Len() > mostPlannedTwice {
		return 0, nil
	}
	options := p.Options
	options.Machine, options.Profile, options.MemoryCap, options.Spread = planner.H200(), nil, options.Cap(), nil
	plan, err := planner.New(ctx, p.Graph, options)
	if err != nil {
		return 0, err
	}
	return len(plan.Streams), nil
}
