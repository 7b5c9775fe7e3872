// dagrun FILE, dagrun run FILE: plan a pipeline, run it, check and save its results.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cudart/cupti"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

func (a *app) runCommand(c *cobra.Command) {
	var own runFlags
	a.deviceRunFlags(c)
	a.saveFlags(c)
	a.replayFlags(c)
	a.learnFlags(c)
	a.rankFlags(c)
	f := c.Flags()
	f.StringVar(&own.verify, "verify", "", "also run serially on the CPU and compare: `what` is results (saved or expected buffers) or nodes (names the first that differs); --verify alone means results")
	f.Lookup("verify").NoOptDefVal = verifyResults
	f.BoolVar(&own.allowRaces, "allow-races", false, "run a hand-made schedule (sync: explicit) even if it has races")
	f.BoolVar(&own.alone, "node-by-node", false, "run nodes one at a time: slow, but names the node that faults or hangs")
	f.BoolVar(&own.stats, "memory-stats", false, "show planned and reserved device memory, and which nodes use each buffer")
	f.BoolVar(&own.follow, "debug-progress", false, "track finished nodes on the device, so that a timeout can list the others; one replay only")
	a.sanitizeFlag(c)
	f.Uint64Var(&a.values(c).steps, "kernel-steps", defaultSteps, "on the CPU device, end a kernel after `N` instructions, counted over all its threads")
	f.StringVar(&own.savePlan, "save-plan", "", "write the plan as JSON to this `file`")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 && c.Parent() == nil && c.Flags().NFlag() == 0 {
			return c.Help()
		}
		if c.Parent() == nil && len(args) > 1 {
			// The arguments may be a mistyped command instead of one file.
			if _, err := os.Stat(args[0]); err != nil {
				return &missingFile{args[0], err}
			}
		}
		if err := oneFile(c, args); err != nil {
			return err
		}
		if err := a.checkFlags(c); err != nil {
			return err
		}
		if err := oneOf("--verify", own.verify, verifyResults, verifyNodes); err != nil {
			return err
		}
		if own.follow && (a.flags.iterations != 1 || a.flags.warmup != 0 || a.flags.inflight != 1) {
			return errors.New("--debug-progress tracks one replay: leave out --iterations, --warmup and --inflight")
		}
		if err := a.findPlace(); err != nil {
			return err
		}
		a.progress.begin()
		ctx, done := a.limited(c.Context())
		defer done()
		return a.amongRanks(ctx, func(ctx context.Context) error { return a.runPipeline(ctx, args[0], &own) })
	}
}

// prepare reads a pipeline, opens its device and plans for that device. outputs refuses output files that must not be written, before
// anything runs. own is nil for commands that do not learn.
func (a *app) prepare(ctx context.Context, name string, own *runFlags, outputs func(*dag.Graph) error) (*prepared, error) {
	g, err := a.loadGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := outputs(g); err != nil {
		return nil, err
	}
	a.sanitize = a.sanitizeFor(g)
	unpackLibrary(g)
	p := &prepared{name: name, graph: g}
	if a.flags.plan != "" {
		if p.graph, err = a.spreadAsPlanned(ctx, g); err != nil {
			return nil, err
		}
		g = p.graph
		if p.plan, err = a.loadPlan(ctx, g, planner.Options{}); err != nil {
			return nil, err
		}
	}
	platform, err := a.openPlatform(a.devicesFor(g), a.queuesFor(p, own))
	if err != nil {
		return nil, err
	}
	if err := a.sanitizeOn(platform); err != nil {
		return nil, errors.Join(err, platform.Close())
	}
	p.platform = platform
	if err := a.joinRanks(ctx, g, platform, own); err != nil {
		return nil, errors.Join(err, platform.Close())
	}
	if p.options, err = a.planOptions(ctx, a.machineOf(platform.Platform)); err == nil {
		p.graph, err = a.spreadOver(ctx, p.graph, &p.options, len(platform.Devices()))
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
func (a *app) planPrepared(ctx context.Context, p *prepared, own *runFlags) (err error) {
	a.matchProfile(p.graph, p.options.Profile)
	a.recallPasses(p.graph, &p.options)
	if p.learning, err = a.learnTogether(ctx, a.learningOf(p, own)); err != nil || p.plan != nil {
		return err
	}
	if p.learning != nil {
		if way := p.learning.way; way != nil {
			p.plan, a.eachReplay = way.Plan, time.Duration(way.Each.Median*1e3)
			a.log.Info("took the plan that an earlier run chose", "strategy", way.Plan.Strategy, "streams", len(way.Plan.Streams), "replay", way.Mode.String())
			return nil
		}
		p.options.Profile = runtime.MergeProfiles(p.learning.options.Known, p.options.Profile)
	}
	p.plan, err = a.loadPlan(ctx, p.graph, p.options)
	return err
}

// programOptions returns the runtime's options from the flags.
func (a *app) programOptions(l *learning) runtime.Options {
	o := runtime.Options{Confined: a.flags.confined, Inflight: a.flags.inflight, Threads: a.flags.threads, Memory: a.memoryMode(), Logger: a.log, Progress: a.preparing}
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
	case a.flags.replay == graphCaptured, a.flags.replay == graphOn:
		o.Mode = runtime.Captured
	case a.flags.replay == graphBuilt:
		o.Mode = runtime.Built
	case a.flags.replay == graphAuto && a.flags.chosen && (l == nil || l.bodies || a.flags.iterations < runtime.FewestToCompare):
		o.Mode = runtime.Auto // learning does not choose the mode
	}
	return o
}

func (a *app) runPipeline(ctx context.Context, name string, own *runFlags) (err error) {
	p, err := a.prepare(ctx, name, own, func(g *dag.Graph) error {
		return a.checkOutputs(g, []namedFile{{role: "--save-plan", name: own.savePlan}}, a.savedFiles(g))
	})
	if err != nil {
		return err
	}
	defer func() { err = a.closingAt("close the device", err, p.platform) }()
	if own.savePlan != "" {
		if err := a.savePlan(ctx, own.savePlan, p.plan, p.graph); err != nil {
			return err
		}
	}
	options := a.programOptions(p.learning)
	a.preferGraph(p, &options)
	allowed, err := racesAllowed(p.name, p.graph, p.plan, own.allowRaces)
	if err != nil {
		return err
	}
	options.Unsafe = len(allowed) > 0
	options.DebugProgress, options.FollowCommunication = own.follow, a.followed
	if a.world != nil {
		options.Agree, options.Exchange = a.agree, a.exchange
	}
	report, err := a.runOn(ctx, p, options, own)
	if err != nil {
		return a.pinFault(ctx, p, err, own)
	}
	if len(allowed) > 0 {
		report.Allowed = racesOf(p.graph, allowed)
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
	f := a.flags
	if p.platform.Name() != "cpu" || f.quiet || f.plan != "" || f.machine != "" || a.world != nil || p.graph.UsedDevices() > 1 || p.graph.Len() > mostPlannedTwice {
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

// closingAt is closing as a stage of its own. After a failure the stage stays what it was, for the error's text.
func (a *app) closingAt(stage string, err error, c interface{ Close() error }) error {
	if err == nil {
		a.progress.report(stage, 0, 0)
	}
	return closing(err, c)
}

// predicted returns the model's prediction for the program as it replays now.
func (a *app) predicted(p *prepared, program *runtime.Program) (float64, error) {
	machine, profile := p.options.Machine, p.options.Profile
	if l := p.learning; l != nil && l.learned != nil {
		machine, profile = l.learned.Machine, l.learned.Profile
	} else if l != nil {
		machine, profile = l.machineOf(p), runtime.MergeProfiles(l.options.Known, profile)
	}
	return program.PredictEach(machine, profile)
}

// preparing reports the stages before the first replay. Replays are counted when they have finished, not when they are submitted.
func (a *app) preparing(stage string, done, total int) {
	if stage != stageReplay {
		a.progress.report(stage, done, total)
	}
}

// lead is how far the host may run ahead of the device: short enough to stop soon and to report progress, long enough that waiting
// at its end costs nothing.
const lead = 100 * time.Millisecond

// replay continues from the replays that are done up to replay number n, in batches of about lead each. The first batch is a single
// replay if no replay has been timed yet, by this run or an earlier one, because predictions can be far off.
func (a *app) replay(ctx context.Context, program *runtime.Program, done, n int) error {
	stretch := 1
	if a.eachReplay > 0 {
		stretch = int(lead / max(a.eachReplay, time.Microsecond))
	}
	for done < n {
		a.progress.report(stageReplay, done, n)
		stretch = max(1, min(stretch, n-done))
		start := time.Now()
		if err := program.Run(ctx, stretch); err != nil {
			return err
		}
		done += stretch
		a.eachReplay = time.Since(start) / time.Duration(stretch)
		stretch = min(8*stretch, int(lead/max(a.eachReplay, 1)))
	}
	a.progress.report(stageReplay, n, n)
	return nil
}

func (a *app) printRun(r *runReport) error {
	if a.flags.output == "json" {
		if err := a.answer(r); err != nil {
			return err
		}
	} else {
		a.printRunText(r)
		if r.Memory != nil {
			if err := a.printMemory(r.Memory); err != nil {
				return err
			}
		}
	}
	if !r.OK {
		return &reported{status: statusExpectation}
	}
	return nil
}

// tookText says how long replays took. Those that were used to learn, most of which took longer, are counted apart.
func (r *runReport) tookText() string {
	switch {
	case r.Iterations == 0:
		return "no replay"
	case r.learned > 0:
		left := r.Iterations - r.learned
		return fmt.Sprintf("%s per replay (%d in %s; %d before them for learning)", duration(r.RestUS), left, duration(r.RestUS*float64(left)), r.learned)
	case r.Iterations > 1:
		return fmt.Sprintf("%s per replay (%d in %s)", duration(r.EachUS), r.Iterations, duration(r.TookUS))
	}
	return duration(r.TookUS)
}

func (a *app) printRunText(r *runReport) {
	a.progress.clear()
	if !a.flags.quiet {
		took := r.tookText()
		if r.Rank != nil {
			r.place = fmt.Sprintf("rank %d of %d, %s", r.Rank.Rank, r.Rank.Ranks, r.place)
		}
		mode := ""
		if r.Replay != runtime.Streams.String() {
			mode = ", as a " + r.Replay
		}
		if r.Early > 0 {
			mode += fmt.Sprintf(", %d of its launches begin early", r.Early)
		}
		_ = a.stdout.printf("%s: %s on %s%s; %s, %s, %s\n", r.Name, a.paint(a.stdout, bold, took), r.place, mode,
			counted(r.Nodes, "node"), counted(r.Streams, "stream"), counted(r.Waits, "wait"))
		if r.onGPU > 0 && r.onGPU != r.Streams {
			_ = a.stdout.printf("%s\n", a.paint(a.stdout, dim, fmt.Sprintf("  %s here; %d on an H200", counted(r.Streams, "stream"), r.onGPU)))
		}
		a.printAllowed(r.Allowed)
	}
	a.printLoops(r.Loops)
	a.printChecks(r.Checks, "matches")
	a.printChecks(r.Verified, "agrees with")
	switch {
	case r.Differs != nil:
		_ = a.stdout.printf("%s node %q (replay %d) is the first that differs:\n", a.paint(a.stdout, red, "  WRONG"), r.Differs.Node, r.Differs.Replay+1)
		a.printChecks([]runtime.Check{r.Differs.Check}, "agrees with")
	case r.eachNode:
		_ = a.stdout.printf("%s every node agrees with a serial run on the CPU\n", a.paint(a.stdout, green, "  ok   "))
	}
	if a.flags.quiet {
		return
	}
	width := 0
	for _, s := range r.Saved {
		width = max(width, words.Width(words.Line(s.Buffer)))
	}
	for _, s := range r.Saved {
		fmt.Fprintf(a.stdout, "  saved %s  %s, %s\n", words.Pad(words.Line(s.Buffer), width), words.Line(s.File), words.Bytes(s.Bytes))
	}
	if text := r.Learning.text(); text != "" {
		_ = a.stdout.printf("%s\n", a.paint(a.stdout, dim, "  "+text))
	}
	if len(r.Checks)+len(r.Verified)+len(r.Saved) == 0 {
		_ = a.stdout.printf("%s\n", a.paint(a.stdout, dim, "  no buffer has expect or save: no result was checked"))
	}
}

func (a *app) printChecks(checks []runtime.Check, matches string) {
	width := 0
	for _, c := range checks {
		width = max(width, words.Width(words.Line(c.Buffer)))
	}
	for _, c := range checks {
		against := strings.TrimPrefix(c.Against, "value ")
		switch {
		case !c.OK:
			text := fmt.Sprintf("%s; %d of %s %s from %s", c.First, c.Wrong, counted(int(c.Elements), "element"), verb(int(c.Wrong), "differs", "differ"), against)
			switch {
			case strings.HasPrefix(c.Against, "sum "):
				text = c.First
			case c.Norm != "":
				text = fmt.Sprintf("%s (against %s)", c.First, against)
			case c.Allowed > 0:
				text += fmt.Sprintf(", and %d may", c.Allowed)
			}
			_ = a.stdout.printf("  %s  %s  %s%s\n", a.paint(a.stdout, red, "FAIL"), words.Pad(words.Line(c.Buffer), width), text, tolerance(c))
		case !a.flags.quiet:
			worst := "exactly"
			if c.Worst > 0 {
				worst = fmt.Sprintf("worst error %.3g", c.Worst)
			}
			if c.Wrong > 0 {
				worst += fmt.Sprintf(", %d outside the tolerance, and %d may be", c.Wrong, c.Allowed)
			}
			if c.Norm != "" && c.Distance > 0 {
				worst += fmt.Sprintf(", %s norm of the difference %.3g", c.Norm, c.Distance)
				if c.WantNorm > 0 {
					worst += fmt.Sprintf(", %.3g of what is expected", c.Distance/c.WantNorm)
				}
			}
			_ = a.stdout.printf("  %s    %s  %s %s, %s, %s\n", a.paint(a.stdout, green, "ok"), words.Pad(words.Line(c.Buffer), width), matches, against, counted(int(c.Elements), "element"), worst)
		}
	}
}

// tolerance returns the tolerance of a failed check, as text.
func tolerance(c runtime.Check) string {
	if c.RTol == 0 && c.ATol == 0 {
		return ""
	}
	if math.IsNaN(c.Worst) {
		return fmt.Sprintf(" (rtol %.3g, atol %.3g)", c.RTol, c.ATol)
	}
	return fmt.Sprintf(" (rtol %.3g, atol %.3g; worst error %.3g)", c.RTol, c.ATol, c.Worst)
}

// printMemory prints a program's memory as machine learning frameworks do: planned, reserved, and each buffer's lifetime.
func (a *app) printMemory(m *runtime.MemoryStats) error {
	_ = a.stdout.printf("device memory: %s reserved, %s for each of %s in flight; %s without sharing; host memory %s\n",
		a.paint(a.stdout, bold, words.Bytes(m.Reserved)), words.Bytes(m.Planned), counted(m.Instances, "replay"), words.Bytes(m.Buffers), words.Bytes(m.Host))
	if len(m.PerBuffer) == 0 {
		return nil
	}
	table := newTable("  buffer", "device", "offset", "bytes", "size", "first used by", "last used by", "own bytes")
	for i := range m.PerBuffer {
		b := &m.PerBuffer[i]
		own := "yes"
		if b.Shares {
			own = "shared"
		}
		table.row("  "+b.Name, strconv.Itoa(int(b.Device)), strconv.FormatInt(b.Offset, 10), strconv.FormatInt(b.Bytes, 10), words.Bytes(b.Bytes), dash(b.First), dash(b.Last), own)
	}
	return table.write(a.stdout, a.lineWidth())
}
