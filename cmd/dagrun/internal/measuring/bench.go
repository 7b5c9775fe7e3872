// dagrun bench FILE: measures every strategy, as streams and as a graph, and prints the fastest command line.

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
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/planner/model"
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

func (u *Commands) BenchCommand() *cobra.Command {
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
		Args: flags.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := u.CheckFlags(c); err != nil {
				return err
			}
			if recording.Recognize(args[0]) {
				if err := cli.OnlyFlags(c, args[0], "strategy", "streams", "effort", "machine", "profile", "memory-cap", "confined", "learn", "cache-dir"); err != nil {
					return err
				}
				return u.benchRecording(c.Context(), args[0])
			}
			u.Progress.Begin()
			ctx, done := u.WithTimeout(c.Context())
			defer done()
			return u.benchAll(ctx, args[0], saveProfile)
		},
	}
	u.DeviceRunFlags(c)
	f, values := c.Flags(), u.ValuesOf(c)
	f.IntVar(&values.Iterations, "iterations", 200, "time `N` replays of each plan, as a graph and as streams")
	f.IntVar(&values.Warmup, "warmup", 20, "run `N` warm-up replays before the timed ones")
	u.GraphFlag(c, flags.GraphAuto, "which replays to measure: the `mode` is auto (as a graph and as streams), on (graphs; --graph alone), off (streams), or built (graphs, nodes added one by one)")
	f.StringVar(&saveProfile, "save-profile", "", "write the measured node durations of the best plan to this `file`")
	c.Flags().Lookup("streams").DefValue = "1, 2, 4 and 8"
	c.Flags().Lookup("strategy").DefValue, values.Strategy = flags.AllStrategies, flags.AllStrategies
	u.LearnFlags(c)
	u.SanitizeFlag(c)
	return c
}

// benchAll measures every point of a sweep, or the only one.
func (u *Commands) benchAll(ctx context.Context, name, saveProfile string) error {
	points, swept, err := sweep(u.Flags.Params)
	if err != nil {
		return err
	}
	if len(swept) > 0 && saveProfile != "" {
		return errors.New("--save-profile is for one pipeline: give one value for each param")
	}
	if err := u.checkPoints(ctx, name, points, swept); err != nil {
		return err
	}
	all := &SweepReport{Version: cli.JSONVersion, Command: "bench"}
	for k, params := range points {
		u.Flags.Params = params
		report, err := u.bench(ctx, name, saveProfile)
		if err != nil {
			if len(swept) > 0 {
				err = fmt.Errorf("%s: %w", pointText(sweptOf(params, swept)), err)
			}
			return err
		}
		if len(swept) > 0 {
			report.Params = sweptOf(params, swept)
		}
		if u.Flags.Output != "json" {
			if err := u.printBench(report, len(swept) == 0); err != nil {
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
	case u.Flags.Output == "json" && len(swept) == 0:
		return u.Answer(all.Points[0])
	case u.Flags.Output == "json":
		return u.Answer(all)
	case len(swept) > 0:
		return u.printSweep(all)
	}
	return nil
}

func (u *Commands) bench(ctx context.Context, name, saveProfile string) (report *BenchReport, err error) {
	if u.Flags.Iterations < 1 {
		return nil, errors.New("--iterations 0: want at least 1 to measure")
	}
	g, err := u.LoadGraph(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := u.CheckOutputs(g, []cli.NamedFile{{Role: "--save-profile", Name: saveProfile}}, nil); err != nil {
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
	options, err := u.PlanOptions(ctx, u.MachineOf(platform.Platform))
	if err != nil {
		return nil, err
	}
	if u.Flags.Plan != "" {
		g, err = u.SpreadAsPlanned(ctx, g)
	} else {
		g, err = u.SpreadOver(ctx, g, &options, len(platform.Devices()))
	}
	if err != nil {
		return nil, err
	}
	report = &BenchReport{Version: cli.JSONVersion, Command: "bench", Name: g.Name, Backend: platform.Name(), Device: platform.Devices()[0].Name,
		Machine: options.Machine.Name, Nodes: g.Len(), Iterations: u.Flags.Iterations, Warmup: u.Flags.Warmup, Rows: []benchRow{}, Refused: []refusal{},
		place: platform.Place() + u.Sanitize.Says()}
	plans, err := u.benchPlans(ctx, g, options, report)
	if err != nil {
		return nil, err
	}
	p := &runs.Prepared{Name: name, Graph: g, Platform: platform, Options: options}
	modes := benchModes[u.Flags.Replay]
	if why := g.NotInGraph(); why != "" && modes[0] != runtime.Streams {
		u.NoteNoGraph(why)
		modes = []runtime.Mode{runtime.Streams}
	}
	for _, mode := range modes {
		for i := range plans {
			row := plans[i]
			u.Progress.Report(cli.StageMeasure, len(report.Rows), len(plans)*len(modes))
			if err := u.measureRow(ctx, p, &row, mode); errors.Is(err, errNotAGraph) {
				break // the device cannot, whatever the plan
			} else if err != nil {
				err = fmt.Errorf("%s on %s as %s: %w", row.Strategy, cli.Counted(row.Streams, "stream"), mode, err)
				return nil, u.PinFault(ctx, p, err, &session.RunFlags{})
			}
			report.Rows = append(report.Rows, row)
		}
	}
	if u.Flags.Plan == "" && u.Flags.Strategy == flags.AllStrategies {
		row, err := u.measureAuto(ctx, p)
		if err != nil {
			return nil, u.PinFault(ctx, p, fmt.Errorf("auto: %w", err), &session.RunFlags{})
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
	report.BestLine = u.benchLine(name, best, g.HasControl())
	if saveProfile != "" {
		if err := u.saveProfile(ctx, p, best, saveProfile); err != nil {
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

func (u *Commands) measureRow(ctx context.Context, p *runs.Prepared, row *benchRow, mode runtime.Mode) (err error) {
	if _, err := session.RacesAllowed(p.Name, p.Graph, row.plan, false); err != nil {
		return err
	}
	replay := "streams"
	if mode != runtime.Streams {
		replay = "graph"
	}
	if row.Predicted, err = model.Repeated(p.Graph, row.plan, p.Options.Machine, p.Options.Profile, mode != runtime.Streams); err != nil {
		return err
	}
	row.Replay = replay
	program, err := runtime.New(ctx, p.Graph, row.plan, p.Platform.Platform, runtime.Options{Mode: mode, Logger: u.Log, Confined: u.Flags.Confined})
	if err != nil {
		return err
	}
	defer func() { err = cli.Closing(err, program) }()
	if why := program.NoGraph(); why != "" {
		u.NoteNoGraph(why)
		return errNotAGraph
	}
	row.Timing, err = u.measured(ctx, p, program)
	return err
}

// measured warms up as long as runs of a known plan do, so that a row takes as long as they take, and then times replays.
func (u *Commands) measured(ctx context.Context, p *runs.Prepared, program *runtime.Program) (*runtime.Timing, error) {
	began, least := time.Now(), runs.LeastWarmUp(p.Platform.Name() == "cuda", u.Flags.Warmup)
	for time.Since(began) < least {
		if err := program.Run(ctx, u.Flags.Warmup); err != nil {
			return nil, err
		}
	}
	return program.Measure(ctx, u.Flags.Warmup, u.Flags.Iterations)
}

// measureAuto measures what dagrun FILE does, including learning: from earlier runs or now, with as many replays as are timed.
func (u *Commands) measureAuto(ctx context.Context, p *runs.Prepared) (row *benchRow, err error) {
	given := *u.Flags
	defer func() { *u.Flags = given }()
	u.Flags.Strategy, u.Flags.Inflight, u.Flags.Threads, u.Flags.Memory, u.Flags.Overlap = "auto", 1, 1, "arena", flags.GraphAuto
	auto := *p
	auto.Options.Strategy = "auto"
	if err := u.PlanPrepared(ctx, &auto, &session.RunFlags{}); err != nil {
		return nil, err
	}
	way := u.ProgramOptions(auto.Learning)
	u.PreferGraph(&auto, &way)
	program, err := runtime.New(ctx, auto.Graph, auto.Plan, auto.Platform.Platform, way)
	if err != nil {
		return nil, err
	}
	defer func() { err = cli.Closing(err, program) }()
	if l := auto.Learning; l.Within(given.Iterations, given.Iterations, true) || l.Within(0, given.Iterations, false) {
		if _, err := u.Learn(ctx, &auto, &session.RunFlags{}, program); err != nil {
			return nil, err
		}
	}
	u.Progress.Report(cli.StageMeasure, 0, 0)
	plan := program.Plan()
	row = &benchRow{Strategy: "auto", Asked: u.Limit(), Streams: len(plan.Streams), Waits: plan.Stats.Waits, Memory: plan.Stats.PeakDeviceBytes,
		plan: plan, Replay: "streams"}
	if program.Mode() != runtime.Streams {
		row.Replay = "graph"
	}
	if row.Predicted, err = u.Predicted(&auto, program); err != nil {
		return nil, err
	}
	row.Timing, err = u.measured(ctx, &auto, program)
	return row, err
}

// benchLine is the command line that runs a row's plan. On a GPU, a pipeline with loops or branches is a graph unless --graph off is given.
func (u *Commands) benchLine(name string, row *benchRow, control bool) string {
	line := []string{"dagrun", cli.ShellQuoted(name)}
	for _, arg := range u.Flags.Planned(row.Strategy, row.Asked) {
		line = append(line, cli.ShellQuoted(arg))
	}
	automatic := row.Strategy == "auto" && u.Flags.Strategy == flags.AllStrategies
	switch {
	case u.Flags.Replay == flags.GraphBuilt || u.Flags.Replay == flags.GraphOff:
		line = append(line, "--graph", u.Flags.Replay)
	case row.Replay == "streams" && control && !automatic:
		line = append(line, "--graph", flags.GraphOff)
	case row.Replay == "graph" && !(automatic && u.Flags.Replay == flags.GraphAuto):
		line = append(line, "--graph")
	}
	text := strings.Join(line, " ")
	if automatic {
		text = strings.Replace(text, " --strategy auto", "", 1) // the default
	}
	return text
}

// saveProfile measures the nodes under the best plan, on streams, and writes their durations.
func (u *Commands) saveProfile(ctx context.Context, p *runs.Prepared, best *benchRow, name string) (err error) {
	u.Progress.Report("measure nodes", 0, 0)
	program, err := runtime.New(ctx, p.Graph, best.plan, p.Platform.Platform, runtime.Options{Logger: u.Log, Confined: u.Flags.Confined})
	if err != nil {
		return err
	}
	defer func() { err = cli.Closing(err, program) }()
	trace, err := program.Trace(ctx, min(50, u.Flags.Iterations))
	if err != nil {
		return err
	}
	return cli.WriteOut(ctx, name, trace.Profile(program).Encode)
}

// printBench prints the table of one point; last is set if there is no other.
func (u *Commands) printBench(r *BenchReport, last bool) error {
	u.Progress.Clear()
	if !u.Flags.Quiet {
		point := ""
		if len(r.Params) > 0 {
			point = " with " + pointText(r.Params)
		}
		fmt.Fprintf(u.Stdout, "%s%s: %s on %s, %s each after %s; microseconds per replay\n\n", r.Name, point, cli.Counted(r.Nodes, "node"), r.place,
			cli.Counted(r.Iterations, "replay"), cli.Counted(r.Warmup, "warm-up replay"))
	}
	table := cli.NewTable("", "strategy", "streams", "waits", "replay", "wall", "device min", "median", "p99", "submit", "predicted", "measured/predicted")
	table.Keys = 5
	for i := range r.Rows {
		row := &r.Rows[i]
		ratio := "-"
		if row.Predicted > 0 {
			ratio = fmt.Sprintf("%.2f", row.Timing.Device.Median/row.Predicted)
		}
		table.Row(starOf(i, r.Best, r.Tied), row.Strategy, strconv.Itoa(row.Streams), strconv.Itoa(row.Waits), row.Replay, cli.Fixed(row.Timing.Wall),
			cli.Fixed(row.Timing.Device.Min), cli.Fixed(row.Timing.Device.Median), cli.Fixed(row.Timing.Device.P99), cli.Fixed(row.Timing.Submit.Median),
			cli.Fixed(row.Predicted), ratio)
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	if u.Flags.Verbose {
		for _, refused := range r.Refused {
			u.Log.Info("no plan", "strategy", refused.Strategy, "streams", refused.Streams, "because", refused.Reason)
		}
	}
	if r.Profile != "" && !u.Flags.Quiet {
		fmt.Fprintf(u.Stdout, "\nwrote %s; plan with it: dagrun plan FILE --profile %s\n", r.Profile, cli.ShellQuoted(r.Profile))
	}
	if !last {
		return u.Stdout.Printf("\n")
	}
	return u.printBest(r.BestLine, len(r.Tied), "rows")
}

// printBest names the winner, if there is one.
func (u *Commands) printBest(line string, tied int, of string) error {
	if tied > 0 {
		return u.Stdout.Printf("\nno winner: %d %s (=) differ by no more than their replays do; one of them: %s\n", tied+1, of, line)
	}
	return u.Stdout.Printf("\nbest: %s\n", u.Paint(u.Stdout, cli.Bold, line))
}

// printSweep prints the table of a sweep: the best row of each point.
func (u *Commands) printSweep(r *SweepReport) error {
	table := cli.NewTable("", "params", "wall us", "strategy", "streams", "replay")
	for k, p := range r.Points {
		row := &p.Rows[p.Best]
		table.Row(starOf(k, r.Best, r.Tied), pointText(p.Params), cli.Fixed(row.Timing.Wall), row.Strategy, strconv.Itoa(row.Streams), row.Replay)
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	return u.printBest(r.BestLine, len(r.Tied), "points")
}
