// dagrun FILE, dagrun run FILE: plan a pipeline, run it, check and save its results.

package running

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

func (u *Commands) RunCommand(c *cobra.Command) {
	var own session.RunFlags
	u.DeviceRunFlags(c)
	u.SaveFlags(c)
	u.ReplayFlags(c)
	u.LearnFlags(c)
	u.RankFlags(c)
	f := c.Flags()
	f.StringVar(&own.Verify, "verify", "", "also run serially on the CPU and compare `what`: results (saved or expected buffers; --verify alone), or nodes (names the first that differs)")
	f.Lookup("verify").NoOptDefVal = VerifyResults
	f.BoolVar(&own.AllowRaces, "allow-races", false, "run a hand-made schedule (sync: explicit) even if it has races")
	f.BoolVar(&own.Alone, "node-by-node", false, "run nodes one at a time: slow, but names the node that faults or hangs")
	f.BoolVar(&own.Stats, "memory-stats", false, "show device memory, and which nodes use each buffer")
	f.BoolVar(&own.Follow, "debug-progress", false, "track finished nodes on the device, so that a timeout lists the others; one replay only")
	u.SanitizeFlag(c)
	f.Uint64Var(&u.ValuesOf(c).Steps, "kernel-steps", session.DefaultSteps, "on the CPU device, end a kernel after `N` instructions of all its threads")
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
		if err := u.CheckFlags(c); err != nil {
			return err
		}
		if recording.RecognizePlanned(args[0]) {
			return u.Exported.RunPlanned(c, args[0])
		}
		if err := flags.OneOf("--verify", own.Verify, VerifyResults, VerifyNodes); err != nil {
			return err
		}
		if own.Follow && (u.Flags.Iterations != 1 || u.Flags.Warmup != 0 || u.Flags.Inflight != 1) {
			return errors.New("--debug-progress tracks one replay: leave out --iterations, --warmup and --inflight")
		}
		if err := u.FindPlace(); err != nil {
			return err
		}
		u.Progress.Begin()
		ctx, done := u.WithTimeout(c.Context())
		defer done()
		return u.AmongRanks(ctx, func(ctx context.Context) error { return u.runPipeline(ctx, args[0], &own) })
	}
}

func (u *Commands) runPipeline(ctx context.Context, name string, own *session.RunFlags) (err error) {
	p, err := u.Prepare(ctx, name, own, func(g *dag.Graph) error {
		return u.CheckOutputs(g, []cli.NamedFile{{Role: "--save-plan", Name: own.SavePlan}}, u.SavedFiles(g))
	})
	if err != nil {
		return err
	}
	defer func() { err = u.closingAt("close the device", err, p.Platform) }()
	if own.SavePlan != "" {
		if err := u.SavePlan(ctx, own.SavePlan, p.Plan, p.Graph); err != nil {
			return err
		}
	}
	options := u.ProgramOptions(p.Learning)
	u.PreferGraph(p, &options)
	allowed, err := session.RacesAllowed(p.Name, p.Graph, p.Plan, own.AllowRaces)
	if err != nil {
		return err
	}
	options.Unsafe = len(allowed) > 0
	options.DebugProgress, options.FollowCommunication = own.Follow, u.Followed
	if u.World != nil {
		options.Agree, options.Exchange = u.Agree, u.Exchange
	}
	report, err := u.runOn(ctx, p, options, own)
	if err != nil {
		return u.PinFault(ctx, p, err, own)
	}
	if len(allowed) > 0 {
		report.Allowed = session.RacesOf(p.Graph, allowed)
	}
	if report.onGPU, err = u.streamsOnGPU(ctx, p); err != nil {
		return err
	}
	return u.printRun(report)
}

// mostPlannedTwice is the size of the largest pipeline that is planned for a GPU too, only to say how that would differ.
const mostPlannedTwice = 1000

// streamsOnGPU returns how many streams a plan for a GPU has, after a run on the CPU that planned for itself.
func (u *Commands) streamsOnGPU(ctx context.Context, p *runs.Prepared) (int, error) {
	f := u.Flags
	if p.Platform.Name() != "cpu" || f.Quiet || f.Plan != "" || f.Machine != "" || u.World != nil || p.Graph.UsedDevices() > 1 ||
		p.Graph.Len() > mostPlannedTwice {
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
