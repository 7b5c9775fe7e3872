// dagrun tune FILE: searches for the best plan within a time limit, and keeps it for later runs.

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

func (a *app) tuneCommand() *cobra.Command {
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
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFlags(c); err != nil {
				return err
			}
			if long <= 0 {
				return fmt.Errorf("--for %s: the duration must be positive", long)
			}
			if a.flags.machine != "" || a.flags.plan != "" {
				return errors.New("tune searches for a plan on the device: leave out --machine and --plan")
			}
			if a.flags.sanitize == sanitizeFull || a.flags.sanitize == sanitizeFast {
				return fmt.Errorf("--sanitize %s: a run that asks for checks takes no plan that was learned; want auto or off", a.flags.sanitize)
			}
			a.progress.begin()
			ctx, done := a.limited(c.Context())
			defer done()
			return a.tune(ctx, args[0], long)
		},
	}
	a.deviceRunFlags(c)
	a.cacheFlag(c)
	a.sanitizeFlag(c)
	c.Flags().Lookup("machine").Hidden, c.Flags().Lookup("plan").Hidden = true, true // refused, with the reason
	c.Flags().DurationVar(&long, "for", 10*time.Second, "search for this long, all values of a sweep together")
	return c
}

// tuned is the result of tune for one combination of params.
type tuned struct {
	Params  []string    `json:"params"` // the params that are swept
	Nodes   int         `json:"nodes"`
	Replays int         `json:"replays"`
	Unquiet string      `json:"unquiet,omitempty"`
	Ways    []wayReport `json:"ways"` // the best first
}

// tuneReport is the JSON document of tune.
type tuneReport struct {
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

func (a *app) tune(ctx context.Context, name string, long time.Duration) error {
	points, swept, err := sweep(a.flags.params)
	if err != nil {
		return err
	}
	if err := a.checkPoints(ctx, name, points, swept); err != nil {
		return err
	}
	began := time.Now()
	report := &tuneReport{Version: jsonVersion, Command: "tune", Kept: a.openCache() != nil}
	for k, params := range points {
		a.flags.params = params
		left := (long - time.Since(began)) / time.Duration(len(points)-k)
		t, err := a.tunePoint(ctx, name, max(left, time.Millisecond), report)
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
	a.flags.params = points[report.Best]
	report.BestLine = "dagrun " + shellQuoted(name)
	for _, arg := range a.flags.planned(a.flags.strategy, a.limit()) {
		if arg != "" {
			report.BestLine += " " + shellQuoted(arg)
		}
	}
	report.BestLine = strings.Replace(report.BestLine, " --strategy auto", "", 1)
	if a.flags.output == "json" {
		return a.answer(report)
	}
	return a.printTuned(report)
}

func (a *app) tunePoint(ctx context.Context, name string, long time.Duration, report *tuneReport) (t *tuned, err error) {
	g, err := a.loadGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	a.sanitize = a.sanitizeFor(g)
	platform, err := a.openPlatform(a.devicesFor(g), a.benchQueues(g))
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(err, platform) }()
	if err := a.sanitizeOn(platform); err != nil {
		return nil, err
	}
	report.Name, report.Backend, report.Device, report.place = g.Name, platform.Name(), platform.Devices()[0].Name, platform.place()+a.sanitize.says()
	options, err := a.planOptions(ctx, a.machineOf(platform.Platform))
	if err != nil {
		return nil, err
	}
	if g, err = a.spreadOver(ctx, g, &options, len(platform.Devices())); err != nil {
		return nil, err
	}
	p := &prepared{name: name, graph: g, platform: platform, options: options}
	a.matchProfile(g, p.options.Profile)
	// The same options as those of a run, so that runs find what is kept.
	a.flags.replay, a.flags.inflight, a.flags.threads, a.flags.learn, a.flags.overlap = graphAuto, 1, 1, learnAgain, graphAuto
	l := a.learningOf(p, &runFlags{})
	plan, err := planner.New(ctx, g, p.options)
	if err != nil {
		return nil, err
	}
	if _, err := racesAllowed(name, g, plan, false); err != nil {
		return nil, err
	}
	how := runtime.Options{Confined: a.flags.confined, Logger: a.log, Progress: a.preparing, Recorder: a.programOptions(l).Recorder}
	a.preferGraph(p, &how)
	program, err := runtime.New(ctx, g, plan, platform.Platform, how)
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(err, program) }()
	a.running = program.Running
	stop := a.watchHang(ctx, p, &runFlags{}, program.Trial)
	learn := l.options
	learn.Replays, learn.For, learn.Thorough, learn.Wake = tuneReplays, long, true, leastWarmUp(l.onGPU, tuneReplays)
	if long >= worthThorough {
		learn.Plan.Effort = planner.Thorough
	}
	learned, err := program.Learn(ctx, learn)
	if err != nil {
		a.keepEarly(ctx, l, learned)
		return nil, err
	}
	stop()
	if err := program.CheckCalls(ctx); err != nil { // a call that fails takes another time
		return nil, err
	}
	if err := l.recalled.Keep(ctx, learned, true); err != nil {
		a.warn("what was learned is not kept: %v", err)
		report.Kept = false
	}
	if report.control = g.HasControl() && platform.Name() == "cpu"; report.control {
		way, err := a.timeOnly(ctx, p, program, learned, long)
		if err != nil {
			return nil, err
		}
		learned.Ways = []runtime.LearnedWay{*way}
	}
	loops, err := program.Loops(ctx)
	if err != nil {
		return nil, err
	}
	a.keepPasses(ctx, g, loops)
	if len(learned.Ways) == 0 {
		return nil, errors.New("the pipeline has no nodes: there is nothing to tune")
	}
	t = &tuned{Nodes: g.Len(), Replays: learned.Replays, Unquiet: learned.Unquiet}
	for k := range learned.Ways {
		t.Ways = append(t.Ways, reportWay(&learned.Ways[k]))
	}
	return t, nil
}

// keepTime is how long keeping what was learned may take after an interrupt or a timeout.
const keepTime = time.Second

// keepEarly keeps what was learned before the search was stopped.
func (a *app) keepEarly(ctx context.Context, l *learning, learned *runtime.Learned) {
	if learned == nil || a.openCache() == nil {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer done()
	if err := l.recalled.Keep(ctx, learned, true); err != nil {
		a.warn("what was learned is not kept: %v", err)
		return
	}
	a.progress.clear()
	kept := "how long " + nodesTake(len(learned.Profile.Nodes))
	if len(learned.Ways) > 0 {
		best := reportWay(&learned.Ways[0])
		kept += fmt.Sprintf(", and %s, the best of %s so far", best.text(), counted(len(learned.Ways), "way"))
	}
	a.note("what was learned until then is kept: %s", kept)
}

// timeOnly times the replays of a pipeline with loops or branches, whose plans the CPU device does not compare, for a part of a time.
func (a *app) timeOnly(ctx context.Context, p *prepared, program *runtime.Program, learned *runtime.Learned, long time.Duration) (*runtime.LearnedWay, error) {
	const rounds, most = 5, 1000
	a.progress.report(stageMeasure, 0, 0)
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
	way := &runtime.LearnedWay{Plan: plan, Mode: program.Mode(), Threads: 1, Each: runtime.Summarize(samples)}
	way.Predicted, err = program.PredictEach(p.options.Machine, learned.Profile)
	return way, err
}

// worthThorough is the least time limit with which plans are searched at full effort, which takes seconds.
const worthThorough = 10 * time.Second

// tuneReplays is the most replays that tune uses; the time limit usually ends it sooner.
const tuneReplays = 100_000_000

func (a *app) printTuned(r *tuneReport) error {
	a.progress.clear()
	if !a.flags.quiet {
		for k := range r.Points {
			if err := a.printWays(r, &r.Points[k]); err != nil {
				return err
			}
		}
		if len(r.Points) > 1 {
			if err := a.printPoints(r); err != nil {
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
	return a.stdout.printf("best: %s%s\n", a.paint(a.stdout, bold, r.BestLine), kept)
}

// printWays prints the table of one point.
func (a *app) printWays(r *tuneReport, t *tuned) error {
	point := ""
	if len(t.Params) > 0 {
		point = " with " + pointText(t.Params)
	}
	if err := a.stdout.printf("%s%s: %s on %s, %s; microseconds per replay\n\n", r.Name, point, counted(t.Nodes, "node"), r.place, counted(t.Replays, "replay")); err != nil {
		return err
	}
	table := newTable("", "strategy", "streams", "waits", "replay", "threads", "replay us", "spread", "predicted", "measured/predicted")
	table.keys = 6
	for k := range t.Ways {
		w := &t.Ways[k]
		star, ratio := "", "-"
		if k == 0 {
			star = "*"
		}
		if w.Predicted > 0 {
			ratio = fmt.Sprintf("%.2f", w.Each.Median/w.Predicted)
		}
		table.row(star, w.Strategy, strconv.Itoa(w.Streams), strconv.Itoa(w.Waits), w.replayText(), strconv.Itoa(w.Threads), fixed(w.Each.Median), fixed(w.Each.Spread), fixed(w.Predicted), ratio)
	}
	if err := table.write(a.stdout, a.lineWidth()); err != nil {
		return err
	}
	if t.Unquiet != "" {
		return a.stdout.printf("\nuncertain: %s\n\n", t.Unquiet)
	}
	return a.stdout.printf("\n")
}

// printPoints prints the table of a sweep.
func (a *app) printPoints(r *tuneReport) error {
	table := newTable("", "params", "replay us", "best way")
	for k := range r.Points {
		t := &r.Points[k]
		star := ""
		if k == r.Best {
			star = "*"
		}
		table.row(star, pointText(t.Params), fixed(t.Ways[0].Each.Median), t.Ways[0].text())
	}
	if err := table.write(a.stdout, a.lineWidth()); err != nil {
		return err
	}
	return a.stdout.printf("\n")
}
