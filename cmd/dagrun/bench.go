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

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// benchModes are the kinds of replays that bench measures, by --graph.
var benchModes = map[string][]runtime.Mode{
	flags.GraphAuto:     {runtime.Captured, runtime.Streams},
	flags.GraphOn:       {runtime.Captured},
	flags.GraphCaptured: {runtime.Captured},
	flags.GraphBuilt:    {runtime.Built},
	flags.GraphOff:      {runtime.Streams},
}

func (a *app) benchCommand() *cobra.Command {
	var saveProfile string
	c := &cobra.Command{
		Use:   "bench FILE",
		Short: "Measure strategies, stream counts, streams and graphs",
		Long: `Plan with every strategy at 1, 2, 4 and 8 streams, replay each plan as a CUDA graph and as
streams, and show how long a replay takes: on the device (by events), on the host (to
submit it), and by wall clock (one replay after the other), beside the prediction.
Identical plans are measured once. The last line is the fastest command line, or says that
no row is faster than others by more than their replays differ.

Of a recording, it shows predictions for plans of the captured graph that the program passed to
dagrun.replan, beside the graph as captured. Only the program can run it.`,
		Example: `  dagrun bench pipelines/chunks.yaml
  dagrun bench pipelines/chunks.yaml --strategy list --streams 4 --iterations 1000
  dagrun bench pipelines/chunks.yaml --save-profile chunks.profile.json
  dagrun plan pipelines/chunks.yaml --profile chunks.profile.json   plan with what was measured`,
		Args: flags.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.CheckFlags(c); err != nil {
				return err
			}
			if recording.Recognize(args[0]) {
				if err := cli.OnlyFlags(c, args[0], "strategy", "streams", "effort", "machine", "profile", "memory-cap", "confined", "learn", "cache-dir"); err != nil {
					return err
				}
				return a.benchRecording(c.Context(), args[0])
			}
			a.Progress.Begin()
			ctx, done := a.Limited(c.Context())
			defer done()
			return a.benchAll(ctx, args[0], saveProfile)
		},
	}
	a.DeviceRunFlags(c)
	f, values := c.Flags(), a.ValuesOf(c)
	f.IntVar(&values.Iterations, "iterations", 200, "time `N` replays of each plan, as a graph and as streams")
	f.IntVar(&values.Warmup, "warmup", 20, "run `N` warm-up replays before the timed ones")
	a.GraphFlag(c, flags.GraphAuto, "which replays to measure: the `mode` is auto (as a graph and as streams), on (graphs), off (streams), or built (graphs, nodes added one by one); --graph alone means on")
	f.StringVar(&saveProfile, "save-profile", "", "write the measured node durations of the best plan to this `file`")
	c.Flags().Lookup("streams").DefValue = "1, 2, 4 and 8"
	c.Flags().Lookup("strategy").DefValue, values.Strategy = flags.AllStrategies, flags.AllStrategies
	a.LearnFlags(c)
	a.SanitizeFlag(c)
	return c
}

// benchAll measures every point of a sweep, or the only one.
func (a *app) benchAll(ctx context.Context, name, saveProfile string) error {
	points, swept, err := sweep(a.Flags.Params)
	if err != nil {
		return err
	}
	if len(swept) > 0 && saveProfile != "" {
		return errors.New("--save-profile is for one pipeline: give one value for each param")
	}
	if err := a.checkPoints(ctx, name, points, swept); err != nil {
		return err
	}
	all := &sweepReport{Version: cli.JSONVersion, Command: "bench"}
	for k, params := range points {
		a.Flags.Params = params
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
		if a.Flags.Output != "json" {
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
	case a.Flags.Output == "json" && len(swept) == 0:
		return a.Answer(all.Points[0])
	case a.Flags.Output == "json":
		return a.Answer(all)
	case len(swept) > 0:
		return a.printSweep(all)
	}
	return nil
}

func (a *app) bench(ctx context.Context, name, saveProfile string) (report *benchReport, err error) {
	if a.Flags.Iterations < 1 {
		return nil, errors.New("--iterations 0: want at least 1 to measure")
	}
	g, err := a.LoadGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := a.CheckOutputs(g, []cli.NamedFile{{Role: "--save-profile", Name: saveProfile}}, nil); err != nil {
		return nil, err
	}
	a.Sanitize = a.SanitizeFor(g)
	platform, err := a.OpenPlatform(a.DevicesFor(g), a.BenchQueues(g))
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, platform) }()
	if err := a.SanitizeOn(platform); err != nil {
		return nil, err
	}
	options, err := a.PlanOptions(ctx, a.MachineOf(platform.Platform))
	if err != nil {
		return nil, err
	}
	if a.Flags.Plan != "" {
		g, err = a.SpreadAsPlanned(ctx, g)
	} else {
		g, err = a.SpreadOver(ctx, g, &options, len(platform.Devices()))
	}
	if err != nil {
		return nil, err
	}
	report = &benchReport{Version: cli.JSONVersion, Command: "bench", Name: g.Name, Backend: platform.Name(), Device: platform.Devices()[0].Name,
		Machine: options.Machine.Name, Nodes: g.Len(), Iterations: a.Flags.Iterations, Warmup: a.Flags.Warmup, Rows: []benchRow{}, Refused: []refusal{}, place: platform.Place() + a.Sanitize.Says()}
	plans, err := a.benchPlans(ctx, g, options, report)
	if err != nil {
		return nil, err
	}
	p := &runs.Prepared{Name: name, Graph: g, Platform: platform, Options: options}
	modes := benchModes[a.Flags.Replay]
	if why := g.NotInGraph(); why != "" && modes[0] != runtime.Streams {
		a.NoteNoGraph(why)
		modes = []runtime.Mode{runtime.Streams}
	}
	for _, mode := range modes {
		for i := range plans {
			row := plans[i]
			a.Progress.Report(cli.StageMeasure, len(report.Rows), len(plans)*len(modes))
			if err := a.measureRow(ctx, p, &row, mode); errors.Is(err, errNotAGraph) {
				break // the device cannot, whatever the plan
			} else if err != nil {
				err = fmt.Errorf("%s on %s as %s: %w", row.Strategy, cli.Counted(row.Streams, "stream"), mode, err)
				return nil, a.PinFault(ctx, p, err, &session.RunFlags{})
			}
			report.Rows = append(report.Rows, row)
		}
	}
	if a.Flags.Plan == "" && a.Flags.Strategy == flags.AllStrategies {
		row, err := a.measureAuto(ctx, p)
		if err != nil {
			return nil, a.PinFault(ctx, p, fmt.Errorf("auto: %w", err), &session.RunFlags{})
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

func (a *app) measureRow(ctx context.Context, p *runs.Prepared, row *benchRow, mode runtime.Mode) (err error) {
	if _, err := session.RacesAllowed(p.Name, p.Graph, row.plan, false); err != nil {
		return err
	}
	replay := "streams"
	if mode != runtime.Streams {
		replay = "graph"
	}
	if row.Predicted, err = planner.Repeated(p.Graph, row.plan, p.Options.Machine, p.Options.Profile, mode != runtime.Streams); err != nil {
		return err
	}
	row.Replay = replay
	program, err := runtime.New(ctx, p.Graph, row.plan, p.Platform.Platform, runtime.Options{Mode: mode, Logger: a.Log, Confined: a.Flags.Confined})
	if err != nil {
		return err
	}
	defer func() { err = cli.Closing(err, program) }()
	if why := program.NoGraph(); why != "" {
		a.NoteNoGraph(why)
		return errNotAGraph
	}
	row.Timing, err = a.measured(ctx, p, program)
	return err
}

// measured warms up as long as runs of a known plan do, so that a row takes as long as they take, and then times replays.
func (a *app) measured(ctx context.Context, p *runs.Prepared, program *runtime.Program) (*runtime.Timing, error) {
	began, least := time.Now(), runs.LeastWarmUp(p.Platform.Name() == "cuda", a.Flags.Warmup)
	for time.Since(began) < least {
		if err := program.Run(ctx, a.Flags.Warmup); err != nil {
			return nil, err
		}
	}
	return program.Measure(ctx, a.Flags.Warmup, a.Flags.Iterations)
}

// measureAuto measures what dagrun FILE does, including learning: from earlier runs or now, with as many replays as are timed.
func (a *app) measureAuto(ctx context.Context, p *runs.Prepared) (row *benchRow, err error) {
	given := *a.Flags
	defer func() { *a.Flags = given }()
	a.Flags.Strategy, a.Flags.Inflight, a.Flags.Threads, a.Flags.Memory, a.Flags.Overlap = "auto", 1, 1, "arena", flags.GraphAuto
	auto := *p
	auto.Options.Strategy = "auto"
	if err := a.PlanPrepared(ctx, &auto, &session.RunFlags{}); err != nil {
		return nil, err
	}
	way := a.ProgramOptions(auto.Learning)
	a.PreferGraph(&auto, &way)
	program, err := runtime.New(ctx, auto.Graph, auto.Plan, auto.Platform.Platform, way)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, program) }()
	if l := auto.Learning; l.Within(given.Iterations, given.Iterations, true) || l.Within(0, given.Iterations, false) {
		if _, err := a.Learn(ctx, &auto, &session.RunFlags{}, program); err != nil {
			return nil, err
		}
	}
	a.Progress.Report(cli.StageMeasure, 0, 0)
	plan := program.Plan()
	row = &benchRow{Strategy: "auto", Asked: a.Limit(), Streams: len(plan.Streams), Waits: plan.Stats.Waits, Memory: plan.Stats.PeakDeviceBytes, plan: plan, Replay: "streams"}
	if program.Mode() != runtime.Streams {
		row.Replay = "graph"
	}
	if row.Predicted, err = a.Predicted(&auto, program); err != nil {
		return nil, err
	}
	row.Timing, err = a.measured(ctx, &auto, program)
	return row, err
}

// benchLine is the command line that runs a row's plan. On a GPU, a pipeline with loops or branches is a graph unless --graph off is given.
func (a *app) benchLine(name string, row *benchRow, control bool) string {
	line := []string{"dagrun", cli.ShellQuoted(name)}
	for _, arg := range a.Flags.Planned(row.Strategy, row.Asked) {
		line = append(line, cli.ShellQuoted(arg))
	}
	automatic := row.Strategy == "auto" && a.Flags.Strategy == flags.AllStrategies
	switch {
	case a.Flags.Replay == flags.GraphBuilt || a.Flags.Replay == flags.GraphOff:
		line = append(line, "--graph", a.Flags.Replay)
	case row.Replay == "streams" && control && !automatic:
		line = append(line, "--graph", flags.GraphOff)
	case row.Replay == "graph" && !(automatic && a.Flags.Replay == flags.GraphAuto):
		line = append(line, "--graph")
	}
	text := strings.Join(line, " ")
	if automatic {
		text = strings.Replace(text, " --strategy auto", "", 1) // the default
	}
	return text
}

// saveProfile measures the nodes under the best plan, on streams, and writes their durations.
func (a *app) saveProfile(ctx context.Context, p *runs.Prepared, best *benchRow, name string) (err error) {
	a.Progress.Report("measure nodes", 0, 0)
	program, err := runtime.New(ctx, p.Graph, best.plan, p.Platform.Platform, runtime.Options{Logger: a.Log, Confined: a.Flags.Confined})
	if err != nil {
		return err
	}
	defer func() { err = cli.Closing(err, program) }()
	trace, err := program.Trace(ctx, min(50, a.Flags.Iterations))
	if err != nil {
		return err
	}
	return cli.WriteOut(ctx, name, trace.Profile(program).Encode)
}

// printBench prints the table of one point; last is set if there is no other.
func (a *app) printBench(r *benchReport, last bool) error {
	a.Progress.Clear()
	if !a.Flags.Quiet {
		point := ""
		if len(r.Params) > 0 {
			point = " with " + pointText(r.Params)
		}
		fmt.Fprintf(a.Stdout, "%s%s: %s on %s, %s each after %s; microseconds per replay\n\n", r.Name, point, cli.Counted(r.Nodes, "node"), r.place, cli.Counted(r.Iterations, "replay"), cli.Counted(r.Warmup, "warm-up replay"))
	}
	table := cli.NewTable("", "strategy", "streams", "waits", "replay", "wall", "device min", "median", "p99", "submit", "predicted", "measured/predicted")
	table.Keys = 5
	for i := range r.Rows {
		row := &r.Rows[i]
		ratio := "-"
		if row.Predicted > 0 {
			ratio = fmt.Sprintf("%.2f", row.Timing.Device.Median/row.Predicted)
		}
		table.Row(starOf(i, r.Best, r.Tied), row.Strategy, strconv.Itoa(row.Streams), strconv.Itoa(row.Waits), row.Replay, cli.Fixed(row.Timing.Wall), cli.Fixed(row.Timing.Device.Min),
			cli.Fixed(row.Timing.Device.Median), cli.Fixed(row.Timing.Device.P99), cli.Fixed(row.Timing.Submit.Median), cli.Fixed(row.Predicted), ratio)
	}
	if err := table.Write(a.Stdout, a.LineWidth()); err != nil {
		return err
	}
	if a.Flags.Verbose {
		for _, refused := range r.Refused {
			a.Log.Info("no plan", "strategy", refused.Strategy, "streams", refused.Streams, "because", refused.Reason)
		}
	}
	if r.Profile != "" && !a.Flags.Quiet {
		fmt.Fprintf(a.Stdout, "\nwrote %s; plan with it: dagrun plan FILE --profile %s\n", r.Profile, cli.ShellQuoted(r.Profile))
	}
	if !last {
		return a.Stdout.Printf("\n")
	}
	return a.printBest(r.BestLine, len(r.Tied), "rows")
}

// printBest names the winner, if there is one.
func (a *app) printBest(line string, tied int, of string) error {
	if tied > 0 {
		return a.Stdout.Printf("\nno winner: %d %s (=) differ by no more than their replays do; one of them: %s\n", tied+1, of, line)
	}
	return a.Stdout.Printf("\nbest: %s\n", a.Paint(a.Stdout, cli.Bold, line))
}

// printSweep prints the table of a sweep: the best row of each point.
func (a *app) printSweep(r *sweepReport) error {
	table := cli.NewTable("", "params", "wall us", "strategy", "streams", "replay")
	for k, p := range r.Points {
		row := &p.Rows[p.Best]
		table.Row(starOf(k, r.Best, r.Tied), pointText(p.Params), cli.Fixed(row.Timing.Wall), row.Strategy, strconv.Itoa(row.Streams), row.Replay)
	}
	if err := table.Write(a.Stdout, a.LineWidth()); err != nil {
		return err
	}
	return a.printBest(r.BestLine, len(r.Tied), "points")
}
