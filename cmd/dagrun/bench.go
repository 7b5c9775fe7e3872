// dagrun bench FILE: measures every strategy, as streams and as a graph, and prints the fastest command line.

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// benchModes are the kinds of replays that bench measures, by --graph.
var benchModes = map[string][]runtime.Mode{
	graphAuto:     {runtime.Captured, runtime.Streams},
	graphOn:       {runtime.Captured},
	graphCaptured: {runtime.Captured},
	graphBuilt:    {runtime.Built},
	graphOff:      {runtime.Streams},
}

func (a *app) benchCommand() *cobra.Command {
	var saveProfile string
	c := &cobra.Command{
		Use:   "bench FILE",
		Short: "Measure strategies, stream counts, streams and graphs",
		Long: `Plan with every strategy at 1, 2, 4 and 8 streams, replay each plan as a CUDA graph and as
streams, and show how long a replay takes: on the device (by events), on the host (to
submit it), and by wall clock, beside the prediction. The last line is the fastest command
line, or says that no row is faster than others by more than their replays differ.

Of a recording, it shows predictions for plans of the captured graph that the program passed to
dagrun.replan, beside the graph as captured.`,
		Example: `  dagrun bench pipelines/chunks.yaml
  dagrun bench pipelines/chunks.yaml --save-profile chunks.profile.json
  dagrun plan pipelines/chunks.yaml --profile chunks.profile.json   plan with what was measured`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFlags(c); err != nil {
				return err
			}
			if recording.Recognize(args[0]) {
				if err := onlyFlags(c, args[0], "strategy", "streams", "effort", "machine", "profile", "memory-cap", "confined", "learn", "cache-dir"); err != nil {
					return err
				}
				return a.benchRecording(c.Context(), args[0])
			}
			a.progress.begin()
			ctx, done := a.limited(c.Context())
			defer done()
			return a.benchAll(ctx, args[0], saveProfile)
		},
	}
	a.deviceRunFlags(c)
	f, values := c.Flags(), a.values(c)
	f.IntVar(&values.iterations, "iterations", 200, "time `N` replays of each plan, as a graph and as streams")
	f.IntVar(&values.warmup, "warmup", 20, "run `N` warm-up replays before the timed ones")
	a.graphFlag(c, graphAuto, "which replays to measure: the `mode` is auto (as a graph and as streams), on (graphs; --graph alone), off (streams), or built (graphs, nodes added one by one)")
	f.StringVar(&saveProfile, "save-profile", "", "write the measured node durations of the best plan to this `file`")
	c.Flags().Lookup("streams").DefValue = "1, 2, 4 and 8"
	c.Flags().Lookup("strategy").DefValue, values.strategy = allStrategies, allStrategies
	a.learnFlags(c)
	a.sanitizeFlag(c)
	return c
}

// benchAll measures every point of a sweep, or the only one.
func (a *app) benchAll(ctx context.Context, name, saveProfile string) error {
	points, swept, err := sweep(a.flags.params)
	if err != nil {
		return err
	}
	if len(swept) > 0 && saveProfile != "" {
		return errors.New("--save-profile is for one pipeline: give one value for each param")
	}
	if err := a.checkPoints(ctx, name, points, swept); err != nil {
		return err
	}
	all := &sweepReport{Version: jsonVersion, Command: "bench"}
	for k, params := range points {
		a.flags.params = params
		report, err := a.bench(ctx, name, saveProfile)
		if err != nil {
			if len(swept) > 0 {
				err = fmt.Errorf("%s: %w", pointText(sweptOf(params, swept)), err)
			}
			return err
		}
		if len(swept) > 0 {
			report.Params = sweptOf(params, swept)
		}
		if a.flags.output != "json" {
			if err := a.printBench(report, len(swept) == 0); err != nil {
				return err
			}
		}
		all.Points = append(all.Points, report)
		if best := all.Points[all.Best]; report.Rows[report.Best].Timing.Wall < best.Rows[best.Best].Timing.Wall {
			all.Best = k
		}
	}
	all.BestLine = all.Points[all.Best].BestLine
	all.Tied = tiedWith(all.Best, len(all.Points), func(k int) *benchRow { return &all.Points[k].Rows[all.Points[k].Best] })
	switch {
	case a.flags.output == "json" && len(swept) == 0:
		return a.answer(all.Points[0])
	case a.flags.output == "json":
		return a.answer(all)
	case len(swept) > 0:
		return a.printSweep(all)
	}
	return nil
}

func (a *app) bench(ctx context.Context, name, saveProfile string) (report *benchReport, err error) {
	if a.flags.iterations < 1 {
		return nil, errors.New("--iterations 0: want at least 1 to measure")
	}
	g, err := a.loadGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := a.checkOutputs(g, []namedFile{{role: "--save-profile", name: saveProfile}}, nil); err != nil {
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
	options, err := a.planOptions(ctx, a.machineOf(platform.Platform))
	if err != nil {
		return nil, err
	}
	if a.flags.plan != "" {
		g, err = a.spreadAsPlanned(ctx, g)
	} else {
		g, err = a.spreadOver(ctx, g, &options, len(platform.Devices()))
	}
	if err != nil {
		return nil, err
	}
	report = &benchReport{Version: jsonVersion, Command: "bench", Name: g.Name, Backend: platform.Name(), Device: platform.Devices()[0].Name,
		Machine: options.Machine.Name, Nodes: g.Len(), Iterations: a.flags.iterations, Warmup: a.flags.warmup, Rows: []benchRow{}, Refused: []refusal{}, place: platform.place() + a.sanitize.says()}
	plans, err := a.benchPlans(ctx, g, options, report)
	if err != nil {
		return nil, err
	}
	p := &prepared{name: name, graph: g, platform: platform, options: options}
	modes := benchModes[a.flags.replay]
	if why := g.NotInGraph(); why != "" && modes[0] != runtime.Streams {
		a.noteNoGraph(why)
		modes = []runtime.Mode{runtime.Streams}
	}
	for _, mode := range modes {
		for i := range plans {
			row := plans[i]
			a.progress.report(stageMeasure, len(report.Rows), len(plans)*len(modes))
			if err := a.measureRow(ctx, p, &row, mode); errors.Is(err, errNotAGraph) {
				break // the device cannot, whatever the plan
			} else if err != nil {
				err = fmt.Errorf("%s on %s as %s: %w", row.Strategy, counted(row.Streams, "stream"), mode, err)
				return nil, a.pinFault(ctx, p, err, &runFlags{})
			}
			report.Rows = append(report.Rows, row)
		}
	}
	if a.flags.plan == "" && a.flags.strategy == allStrategies {
		row, err := a.measureAuto(ctx, p)
		if err != nil {
			return nil, a.pinFault(ctx, p, fmt.Errorf("auto: %w", err), &runFlags{})
		}
		report.Rows = append(report.Rows, *row)
	}
	for i := range report.Rows {
		if best, row := &report.Rows[report.Best], &report.Rows[i]; row.Timing.Wall < best.Timing.Wall {
			report.Best = i
		}
	}
	best := &report.Rows[report.Best]
	report.Tied = tiedWith(report.Best, len(report.Rows), func(k int) *benchRow { return &report.Rows[k] })
	report.BestLine = a.benchLine(name, best, g.HasControl())
	if saveProfile != "" {
		if err := a.saveProfile(ctx, p, best, saveProfile); err != nil {
			return nil, err
		}
		report.Profile = saveProfile
	}
	return report, nil
}

// tiedWith returns which of n rows are not slower than the fastest by more than replays differ, without the fastest.
func tiedWith(best, n int, row func(k int) *benchRow) []int {
	var tied []int
	fastest := row(best).Timing
	for k := range n {
		if other := row(k).Timing; k != best && other.Wall-fastest.Wall <= max(fastest.Device.Spread, other.Device.Spread) {
			tied = append(tied, k)
		}
	}
	return tied
}

// errNotAGraph is the error of a row that cannot be measured as a graph. A note has said why.
var errNotAGraph = errors.New("not a graph")

func (a *app) measureRow(ctx context.Context, p *prepared, row *benchRow, mode runtime.Mode) (err error) {
	if _, err := racesAllowed(p.name, p.graph, row.plan, false); err != nil {
		return err
	}
	replay := "streams"
	if mode != runtime.Streams {
		replay = "graph"
	}
	if row.Predicted, err = planner.Repeated(p.graph, row.plan, p.options.Machine, p.options.Profile, mode != runtime.Streams); err != nil {
		return err
	}
	row.Replay = replay
	program, err := runtime.New(ctx, p.graph, row.plan, p.platform.Platform, runtime.Options{Mode: mode, Logger: a.log, Confined: a.flags.confined})
	if err != nil {
		return err
	}
	defer func() { err = closing(err, program) }()
	if why := program.NoGraph(); why != "" {
		a.noteNoGraph(why)
		return errNotAGraph
	}
	row.Timing, err = a.measured(ctx, p, program)
	return err
}

// measured warms up as long as runs of a known plan do, so that a row takes as long as they take, and then times replays.
func (a *app) measured(ctx context.Context, p *prepared, program *runtime.Program) (*runtime.Timing, error) {
	began, least := time.Now(), leastWarmUp(p.platform.Name() == "cuda", a.flags.warmup)
	for time.Since(began) < least {
		if err := program.Run(ctx, a.flags.warmup); err != nil {
			return nil, err
		}
	}
	return program.Measure(ctx, a.flags.warmup, a.flags.iterations)
}

// measureAuto measures what dagrun FILE does, including learning: from earlier runs or now, with as many replays as are timed.
func (a *app) measureAuto(ctx context.Context, p *prepared) (row *benchRow, err error) {
	flags := *a.flags
	defer func() { *a.flags = flags }()
	a.flags.strategy, a.flags.inflight, a.flags.threads, a.flags.memory, a.flags.overlap = "auto", 1, 1, "arena", graphAuto
	auto := *p
	auto.options.Strategy = "auto"
	if err := a.planPrepared(ctx, &auto, &runFlags{}); err != nil {
		return nil, err
	}
	way := a.programOptions(auto.learning)
	a.preferGraph(&auto, &way)
	program, err := runtime.New(ctx, auto.graph, auto.plan, auto.platform.Platform, way)
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(err, program) }()
	if l := auto.learning; l.within(flags.iterations, flags.iterations, true) || l.within(0, flags.iterations, false) {
		if _, err := a.learn(ctx, &auto, &runFlags{}, program); err != nil {
			return nil, err
		}
	}
	a.progress.report(stageMeasure, 0, 0)
	plan := program.Plan()
	row = &benchRow{Strategy: "auto", Asked: a.limit(), Streams: len(plan.Streams), Waits: plan.Stats.Waits, Memory: plan.Stats.PeakDeviceBytes, plan: plan, Replay: "streams"}
	if program.Mode() != runtime.Streams {
		row.Replay = "graph"
	}
	if row.Predicted, err = a.predicted(&auto, program); err != nil {
		return nil, err
	}
	row.Timing, err = a.measured(ctx, &auto, program)
	return row, err
}

// benchLine is the command line that runs a row's plan. On a GPU, a pipeline with loops or branches is a graph unless --graph off is given.
func (a *app) benchLine(name string, row *benchRow, control bool) string {
	line := []string{"dagrun", shellQuoted(name)}
	for _, arg := range a.flags.planned(row.Strategy, row.Asked) {
		line = append(line, shellQuoted(arg))
	}
	automatic := row.Strategy == "auto" && a.flags.strategy == allStrategies
	switch {
	case a.flags.replay == graphBuilt || a.flags.replay == graphOff:
		line = append(line, "--graph", a.flags.replay)
	case row.Replay == "streams" && control && !automatic:
		line = append(line, "--graph", graphOff)
	case row.Replay == "graph" && !(automatic && a.flags.replay == graphAuto):
		line = append(line, "--graph")
	}
	text := strings.Join(line, " ")
	if automatic {
		text = strings.Replace(text, " --strategy auto", "", 1) // the default
	}
	return text
}

// shellQuoted makes text one word of a shell.
func shellQuoted(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=,:+@%", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// saveProfile measures the nodes under the best plan, on streams, and writes their durations.
func (a *app) saveProfile(ctx context.Context, p *prepared, best *benchRow, name string) (err error) {
	a.progress.report("measure nodes", 0, 0)
	program, err := runtime.New(ctx, p.graph, best.plan, p.platform.Platform, runtime.Options{Logger: a.log, Confined: a.flags.confined})
	if err != nil {
		return err
	}
	defer func() { err = closing(err, program) }()
	trace, err := program.Trace(ctx, min(50, a.flags.iterations))
	if err != nil {
		return err
	}
	return writeOut(ctx, name, trace.Profile(program).Encode)
}

// printBench prints the table of one point; last is set if there is no other.
func (a *app) printBench(r *benchReport, last bool) error {
	a.progress.clear()
	if !a.flags.quiet {
		point := ""
		if len(r.Params) > 0 {
			point = " with " + pointText(r.Params)
		}
		fmt.Fprintf(a.stdout, "%s%s: %s on %s, %s each after %s; microseconds per replay\n\n", r.Name, point, counted(r.Nodes, "node"), r.place, counted(r.Iterations, "replay"), counted(r.Warmup, "warm-up replay"))
	}
	table := newTable("", "strategy", "streams", "waits", "replay", "wall", "device min", "median", "p99", "submit", "predicted", "measured/predicted")
	table.keys = 5
	for i := range r.Rows {
		row := &r.Rows[i]
		ratio := "-"
		if row.Predicted > 0 {
			ratio = fmt.Sprintf("%.2f", row.Timing.Device.Median/row.Predicted)
		}
		table.row(starOf(i, r.Best, r.Tied), row.Strategy, strconv.Itoa(row.Streams), strconv.Itoa(row.Waits), row.Replay, fixed(row.Timing.Wall), fixed(row.Timing.Device.Min),
			fixed(row.Timing.Device.Median), fixed(row.Timing.Device.P99), fixed(row.Timing.Submit.Median), fixed(row.Predicted), ratio)
	}
	if err := table.write(a.stdout, a.lineWidth()); err != nil {
		return err
	}
	if a.flags.verbose {
		for _, refused := range r.Refused {
			a.log.Info("no plan", "strategy", refused.Strategy, "streams", refused.Streams, "because", refused.Reason)
		}
	}
	if r.Profile != "" && !a.flags.quiet {
		fmt.Fprintf(a.stdout, "\nwrote %s; plan with it: dagrun plan FILE --profile %s\n", r.Profile, shellQuoted(r.Profile))
	}
	if !last {
		return a.stdout.printf("\n")
	}
	return a.printBest(r.BestLine, len(r.Tied), "rows")
}

// printBest names the winner, if there is one.
func (a *app) printBest(line string, tied int, of string) error {
	if tied > 0 {
		return a.stdout.printf("\nno winner: %d %s (=) differ by no more than their replays do; one of them: %s\n", tied+1, of, line)
	}
	return a.stdout.printf("\nbest: %s\n", a.paint(a.stdout, bold, line))
}

// printSweep prints the table of a sweep: the best row of each point.
func (a *app) printSweep(r *sweepReport) error {
	table := newTable("", "params", "wall us", "strategy", "streams", "replay")
	for k, p := range r.Points {
		row := &p.Rows[p.Best]
		table.row(starOf(k, r.Best, r.Tied), pointText(p.Params), fixed(row.Timing.Wall), row.Strategy, strconv.Itoa(row.Streams), row.Replay)
	}
	if err := table.write(a.stdout, a.lineWidth()); err != nil {
		return err
	}
	return a.printBest(r.BestLine, len(r.Tied), "points")
}

// limit returns how many streams the user allowed; 0 if unspecified.
func (a *app) limit() int {
	if a.flags.limited {
		return a.flags.streams
	}
	return 0
}
