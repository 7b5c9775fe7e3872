// dagrun FILE, dagrun run FILE: plan a pipeline, run it, check and save its results.

package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
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
			return a.runPlanned(c, args[0])
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

// prepare reads a pipeline, opens its device and plans for that device. outputs refuses output files that must not be written, before
// anything runs. own is nil for commands that do not learn.
func (a *app) prepare(ctx context.Context, name string, own *session.RunFlags, outputs func(*dag.Graph) error) (*prepared, error) {
	g, err := a.LoadGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := outputs(g); err != nil {
		return nil, err
	}
	a.Sanitize = a.SanitizeFor(g)
	session.UnpackLibrary(g)
	p := &prepared{name: name, graph: g}
	if a.Flags.Plan != "" {
		if p.graph, err = a.SpreadAsPlanned(ctx, g); err != nil {
			return nil, err
		}
		g = p.graph
		if p.plan, err = a.LoadPlan(ctx, g, planner.Options{}); err != nil {
			return nil, err
		}
	}
	platform, err := a.OpenPlatform(a.DevicesFor(g), a.queuesFor(p, own))
	if err != nil {
		return nil, err
	}
	if err := a.SanitizeOn(platform); err != nil {
		return nil, errors.Join(err, platform.Close())
	}
	p.platform = platform
	if err := a.JoinRanks(ctx, g, platform, own); err != nil {
		return nil, errors.Join(err, platform.Close())
	}
	if p.options, err = a.PlanOptions(ctx, a.machineOf(platform.Platform)); err == nil {
		p.graph, err = a.SpreadOver(ctx, p.graph, &p.options, len(platform.Devices()))
	}
	if err == nil {
		err = a.planPrepared(ctx, p, own)
	}
	if err != nil {
		return nil, errors.Join(err, platform.Close())
	}
	return p, nil
}

// planPrepared plans with what earlier runs learned, or takes the plan that they found best.
func (a *app) planPrepared(ctx context.Context, p *prepared, own *session.RunFlags) (err error) {
	a.MatchProfile(p.graph, p.options.Profile)
	a.recallPasses(p.graph, &p.options)
	if p.learning, err = a.learnTogether(ctx, a.learningOf(p, own)); err != nil || p.plan != nil {
		return err
	}
	if p.learning != nil {
		if way := p.learning.way; way != nil {
			p.plan, a.eachReplay = way.Plan, time.Duration(way.Each.Median*1e3)
			a.Log.Info("took the plan that an earlier run chose", "strategy", way.Plan.Strategy, "streams", len(way.Plan.Streams), "replay", way.Mode.String())
			return nil
		}
		p.options.Profile = runtime.MergeProfiles(p.learning.options.Known, p.options.Profile)
	}
	p.plan, err = a.LoadPlan(ctx, p.graph, p.options)
	return err
}

// programOptions returns the runtime's options from the flags.
func (a *app) programOptions(l *learning) runtime.Options {
	o := runtime.Options{Confined: a.Flags.Confined, Inflight: a.Flags.Inflight, Threads: a.Flags.Threads, Memory: a.memoryMode(), Logger: a.Log, Progress: a.preparing}
	o.Overlap = a.overlap()
	if l != nil && l.way == nil && l.onGPU && !l.bodies {
		o.Recorder = &cupti.Late{}
	}
	switch {
	case l != nil && l.way != nil:
		o.Mode, o.Threads, o.Overlap = l.way.Mode, l.way.Threads, runtime.OverlapOff
		if l.way.Overlap {
			o.Overlap = runtime.OverlapOn
		}
	case a.Flags.Replay == flags.GraphCaptured, a.Flags.Replay == flags.GraphOn:
		o.Mode = runtime.Captured
	case a.Flags.Replay == flags.GraphBuilt:
		o.Mode = runtime.Built
	case a.Flags.Replay == flags.GraphAuto && a.Flags.Chosen && (l == nil || l.bodies || a.Flags.Iterations < runtime.FewestToCompare):
		o.Mode = runtime.Auto // learning does not choose the mode
	}
	return o
}

func (a *app) runPipeline(ctx context.Context, name string, own *session.RunFlags) (err error) {
	p, err := a.prepare(ctx, name, own, func(g *dag.Graph) error {
		return a.CheckOutputs(g, []cli.NamedFile{{Role: "--save-plan", Name: own.SavePlan}}, a.SavedFiles(g))
	})
	if err != nil {
		return err
	}
	defer func() { err = a.closingAt("close the device", err, p.platform) }()
	if own.SavePlan != "" {
		if err := a.SavePlan(ctx, own.SavePlan, p.plan, p.graph); err != nil {
			return err
		}
	}
	options := a.programOptions(p.learning)
	a.preferGraph(p, &options)
	allowed, err := session.RacesAllowed(p.name, p.graph, p.plan, own.AllowRaces)
	if err != nil {
		return err
	}
	options.Unsafe = len(allowed) > 0
	options.DebugProgress, options.FollowCommunication = own.Follow, a.Followed
	if a.World != nil {
		options.Agree, options.Exchange = a.Agree, a.exchange
	}
	report, err := a.runOn(ctx, p, options, own)
	if err != nil {
		return a.pinFault(ctx, p, err, own)
	}
	if len(allowed) > 0 {
		report.Allowed = session.RacesOf(p.graph, allowed)
	}
	if report.onGPU, err = a.streamsOnGPU(ctx, p); err != nil {
		return err
	}
	return a.printRun(report)
}

// mostPlannedTwice is the size of the largest pipeline that is planned for a GPU too, only to say how that would differ.
const mostPlannedTwice = 1000

// streamsOnGPU returns how many streams a plan for a GPU has, after a run on the CPU that planned for itself.
func (a *app) streamsOnGPU(ctx context.Context, p *prepared) (int, error) {
	f := a.Flags
	if p.platform.Name() != "cpu" || f.Quiet || f.Plan != "" || f.Machine != "" || a.World != nil || p.graph.UsedDevices() > 1 || p.graph.Len() > mostPlannedTwice {
		return 0, nil
	}
	options := p.options
	options.Machine, options.Profile, options.MemoryCap, options.Spread = planner.H200(), nil, options.Cap(), nil
	plan, err := planner.New(ctx, p.graph, options)
	if err != nil {
		return 0, err
	}
	return len(plan.Streams), nil
}
