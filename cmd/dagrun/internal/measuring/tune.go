// dagrun tune FILE: searches for the best plan within a time limit, and keeps it for later runs.

package measuring

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
	"github.com/dagrun/dagrun/runtime/learn"
)

func (u *Commands) TuneCommand() *cobra.Command {
	var long time.Duration
	c := &cobra.Command{
		Use:   "tune FILE",
		Short: "Search for the best plan, and keep it for later runs",
		Long: `Measure how long each node takes, plan with that, and time the plans of all strategies, as
a graph and as streams. The best is kept, and dagrun FILE takes it from then on.

No result is saved or compared. With -p name=1,2,4 each value is tuned. With loops or branches,
the CPU device measures nodes and times replays, but does not compare plans. What was learned until
an interrupt or a timeout is kept, except of loops and branches.`,
		Example: `  dagrun tune pipelines/chunks.yaml
  dagrun tune pipelines/chunks.yaml --for 30s
  dagrun tune pipelines/chunks.yaml -p k=1,2,4,8`,
		Args: flags.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			if long <= 0 {
				return fmt.Errorf("--for %s: the duration must be positive", long)
			}
			if u.Flags.Machine != "" || u.Flags.Plan != "" {
				return errors.New("tune searches for a plan on the device: leave out --machine and --plan")
			}
			if u.Flags.Sanitize == flags.SanitizeFull || u.Flags.Sanitize == flags.SanitizeFast {
				return fmt.Errorf("--sanitize %s: a run that asks for checks takes no plan that was learned; want auto or off", u.Flags.Sanitize)
			}
			u.Progress.Begin()
			ctx, done := u.WithTimeout(c.Context())
			defer done()
			return u.tune(ctx, args[0], long)
		},
	}
	u.DeviceRunFlags(c)
	u.CacheFlag(c)
	u.SanitizeFlag(c)
	c.Flags().Lookup("machine").Hidden, c.Flags().Lookup("plan").Hidden = true, true // refused, with the reason
	c.Flags().DurationVar(&long, "for", 10*time.Second, "search for this long, all values of a sweep together")
	return c
}

// tuned is the result of tune for one combination of params.
type tuned struct {
	Params  []string         `json:"params"` // the params that are swept
	Nodes   int              `json:"nodes"`
	Replays int              `json:"replays"`
	Unquiet string           `json:"unquiet,omitempty"`
	Ways    []runs.WayReport `json:"ways"` // the best first
}

// TuneReport is the JSON document of tune.
type TuneReport struct {
	Version  int     `json:"version"`
	Command  string  `json:"command"`
	Name     string  `json:"name"`
	Backend  string  `json:"backend"`
	Device   string  `json:"device"`
	Points   []tuned `json:"points"`
	Best     int     `json:"best"` // index of the point with the fastest way
	BestLine string  `json:"best_command"`
	Kept     bool    `json:"kept"`

	place   string
	control bool // there are loops or branches, and the CPU device does not compare their plans
}

func (u *Commands) tune(ctx context.Context, name string, long time.Duration) error {
	points, swept, err := sweep(u.Flags.Params)
	if err != nil {
		return err
	}
	if err := u.checkPoints(ctx, name, points, swept); err != nil {
		return err
	}
	began := time.Now()
	report := &TuneReport{Version: cli.JSONVersion, Command: "tune", Kept: u.OpenCache() != nil}
	for k, params := range points {
		u.Flags.Params = params
		left := (long - time.Since(began)) / time.Duration(len(points)-k)
		t, err := u.tunePoint(ctx, name, max(left, time.Millisecond), report)
		if err != nil {
			if len(swept) > 0 {
				err = fmt.Errorf("%s: %w", pointText(sweptOf(params, swept)), err)
			}
			return err
		}
		t.Params = sweptOf(params, swept)
		report.Points = append(report.Points, *t)
		if t.Ways[0].Each.Median < report.Points[report.Best].Ways[0].Each.Median {
			report.Best = k
		}
	}
	u.Flags.Params = points[report.Best]
	report.BestLine = "dagrun " + cli.ShellQuoted(name)
	for _, arg := range u.Flags.Planned(u.Flags.Strategy, u.Limit()) {
		if arg != "" {
			report.BestLine += " " + cli.ShellQuoted(arg)
		}
	}
	report.BestLine = strings.Replace(report.BestLine, " --strategy auto", "", 1)
	if u.Flags.Output == "json" {
		return u.Answer(report)
	}
	return u.printTuned(report)
}

func (u *Commands) tunePoint(ctx context.Context, name string, long time.Duration, report *TuneReport) (t *tuned, err error) {
	g, err := u.LoadGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	u.Sanitize = u.SanitizeFor(g)
	platform, err := u.OpenPlatform(u.DevicesFor(g), u.BenchQueues(g))
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, platform) }()
	if err := u.SanitizeOn(platform); err != nil {
		return nil, err
	}
	report.Name, report.Backend, report.Device, report.place = g.Name, platform.Name(), platform.Devices()[0].Name, platform.Place()+u.Sanitize.Says()
	options, err := u.PlanOptions(ctx, u.MachineOf(platform.Platform))
	if err != nil {
		return nil, err
	}
	if g, err = u.SpreadOver(ctx, g, &options, len(platform.Devices())); err != nil {
		return nil, err
	}
	p := &runs.Prepared{Name: name, Graph: g, Platform: platform, Options: options}
	u.MatchProfile(g, p.Options.Profile)
	// The same options as those of a run, so that runs find what is kept.
	u.Flags.Replay, u.Flags.Inflight, u.Flags.Threads, u.Flags.Learn, u.Flags.Overlap = flags.GraphAuto, 1, 1, flags.LearnAgain, flags.GraphAuto
	l := u.LearningOf(p, &session.RunFlags{})
	plan, err := planner.New(ctx, g, p.Options)
	if err != nil {
		return nil, err
	}
	if _, err := session.RacesAllowed(name, g, plan, false); err != nil {
		return nil, err
	}
	how := runtime.Options{Confined: u.Flags.Confined, Logger: u.Log, Progress: u.Preparing, Recorder: u.ProgramOptions(l).Recorder}
	u.PreferGraph(p, &how)
	program, err := runtime.New(ctx, g, plan, platform.Platform, how)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, program) }()
	u.Running = program.Running
	stop := u.WatchHang(ctx, p, &session.RunFlags{}, program.Trial)
	learning := l.Options
	learning.Replays, learning.For, learning.Thorough, learning.Wake = tuneReplays, long, true, runs.LeastWarmUp(l.OnGPU, tuneReplays)
	if long >= worthThorough {
		learning.Plan.Effort = planner.Thorough
	}
	learned, err := program.Learn(ctx, learning)
	if err != nil {
		u.keepEarly(ctx, l, learned)
		return nil, err
	}
	stop()
	if err := program.CheckCalls(ctx); err != nil { // a call that fails takes another time
		return nil, err
	}
	if err := l.Recalled.Keep(ctx, learned, true); err != nil {
		u.Warn("what was learned is not kept: %v", err)
		report.Kept = false
	}
	if report.control = g.HasControl() && platform.Name() == "cpu"; report.control {
		way, err := u.timeOnly(ctx, p, program, learned, long)
		if err != nil {
			return nil, err
		}
		learned.Ways = []learn.Way{*way}
	}
	loops, err := program.Loops(ctx)
	if err != nil {
		return nil, err
	}
	u.KeepPasses(ctx, g, loops)
	if len(learned.Ways) == 0 {
		return nil, errors.New("the pipeline has no nodes: there is nothing to tune")
	}
	t = &tuned{Nodes: g.Len(), Replays: learned.Replays, Unquiet: learned.Unquiet}
	for k := range learned.Ways {
		t.Ways = append(t.Ways, runs.ReportWay(&learned.Ways[k]))
	}
	return t, nil
}

// keepTime is how long keeping what was learned may take after an interrupt or a timeout.
const keepTime = time.Second

// keepEarly keeps what was learned before the search was stopped.
func (u *Commands) keepEarly(ctx context.Context, l *runs.Learning, learned *learn.Learned) {
	if learned == nil || u.OpenCache() == nil {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer done()
	if err := l.Recalled.Keep(ctx, learned, true); err != nil {
		u.Warn("what was learned is not kept: %v", err)
		return
	}
	u.Progress.Clear()
	kept := "how long " + runs.NodesTake(len(learned.Profile.Nodes))
	if len(learned.Ways) > 0 {
		best := runs.ReportWay(&learned.Ways[0])
		kept += fmt.Sprintf(", and %s, the best of %s so far", best.Text(), cli.Counted(len(learned.Ways), "way"))
	}
	u.Note("what was learned until then is kept: %s", kept)
}

// timeOnly times the replays of a pipeline with loops or branches, whose plans the CPU device does not compare, for a part of a time.
func (u *Commands) timeOnly(ctx context.Context, p *runs.Prepared, program *runtime.Program, learned *learn.Learned,
	long time.Duration) (*learn.Way, error) {
	const rounds, most = 5, 1000
	u.Progress.Report(cli.StageMeasure, 0, 0)
	first, err := program.Measure(ctx, 1, 1)
	if err != nil {
		return nil, err
	}
	each := int(max(1, min(most, float64(long.Microseconds())/rounds/2/max(first.Wall, 1))))
	var samples []float64
	for range rounds {
		timing, err := program.Measure(ctx, 0, each)
		if err != nil {
			return nil, err
		}
		samples = append(samples, timing.Wall)
	}
	plan := program.Plan()
	way := &learn.Way{Plan: plan, Mode: program.Mode(), Threads: 1, Each: runtime.Summarize(samples)}
	way.Predicted, err = program.PredictEach(p.Options.Machine, learned.Profile)
	return way, err
}

// worthThorough is the least time limit with which plans are searched at full effort, which takes seconds.
const worthThorough = 10 * time.Second

// tuneReplays is the most replays that tune uses; the time limit usually ends it sooner.
const tuneReplays = 100_000_000

func (u *Commands) printTuned(r *TuneReport) error {
	u.Progress.Clear()
	if !u.Flags.Quiet {
		for k := range r.Points {
			if err := u.printWays(r, &r.Points[k]); err != nil {
				return err
			}
		}
		if len(r.Points) > 1 {
			if err := u.printPoints(r); err != nil {
				return err
			}
		}
	}
	kept := ""
	if r.Kept {
		kept = " (takes the plan that was found)"
		if r.control {
			kept = " (plans with what was measured)"
		}
	}
	return u.Stdout.Printf("best: %s%s\n", u.Paint(u.Stdout, cli.Bold, r.BestLine), kept)
}

// printWays prints the table of one point.
func (u *Commands) printWays(r *TuneReport, t *tuned) error {
	point := ""
	if len(t.Params) > 0 {
		point = " with " + pointText(t.Params)
	}
	if err := u.Stdout.Printf("%s%s: %s on %s, %s; microseconds per replay\n\n", r.Name, point, cli.Counted(t.Nodes, "node"), r.place,
		cli.Counted(t.Replays, "replay")); err != nil {
		return err
	}
	table := cli.NewTable("", "strategy", "streams", "waits", "replay", "threads", "replay us", "spread", "predicted", "measured/predicted")
	table.Keys = 6
	for k := range t.Ways {
		w := &t.Ways[k]
		star, ratio := "", "-"
		if k == 0 {
			star = "*"
		}
		if w.Predicted > 0 {
			ratio = fmt.Sprintf("%.2f", w.Each.Median/w.Predicted)
		}
		table.Row(star, w.Strategy, strconv.Itoa(w.Streams), strconv.Itoa(w.Waits), w.ReplayText(), strconv.Itoa(w.Threads), cli.Fixed(w.Each.Median),
			cli.Fixed(w.Each.Spread), cli.Fixed(w.Predicted), ratio)
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	if t.Unquiet != "" {
		return u.Stdout.Printf("\nuncertain: %s\n\n", t.Unquiet)
	}
	return u.Stdout.Printf("\n")
}

// printPoints prints the table of a sweep.
func (u *Commands) printPoints(r *TuneReport) error {
	table := cli.NewTable("", "params", "replay us", "best way")
	for k := range r.Points {
		t := &r.Points[k]
		star := ""
		if k == r.Best {
			star = "*"
		}
		table.Row(star, pointText(t.Params), cli.Fixed(t.Ways[0].Each.Median), t.Ways[0].Text())
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	return u.Stdout.Printf("\n")
}
