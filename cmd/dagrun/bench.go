// dagrun bench FILE: measures every strategy, as streams and as a graph, and prints the fastest command line.

package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime"
)

// benchCounts are the stream counts that bench tries unless --streams names one.
var benchCounts = []int{1, 2, 4, 8}

func (a *app) benchCommand() *cobra.Command {
	var saveProfile string
	c := &cobra.Command{
		Use:   "bench FILE",
		Short: "Measure strategies, stream counts, streams and graphs",
		Long: `Plan with every strategy at 1, 2, 4 and 8 streams, replay each plan as a CUDA graph and as
streams, and show what a replay takes: on the device (by events), on the host (to submit
it), and by wall clock (back to back, nothing in between), beside the prediction.
Identical plans are measured once. The last line is the fastest command line.

Graphs are measured before streams: on some drivers a process that has used several
streams replays graphs more slowly.`,
		Example: `  dagrun bench pipelines/chunks.yaml
  dagrun bench pipelines/chunks.yaml --strategy list --streams 4 --iterations 1000
  dagrun bench pipelines/chunks.yaml --save-profile chunks.profile.json
  dagrun plan pipelines/chunks.yaml --profile chunks.profile.json   plan with what was measured`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFlags(c); err != nil {
				return err
			}
			a.progress.begin()
			ctx, done := a.limited(c.Context())
			defer done()
			return a.bench(ctx, c, args[0], saveProfile)
		},
	}
	a.outputFlags(c)
	a.paramFlags(c)
	a.planFlags(c, "")
	a.deviceFlags(c)
	f, values := c.Flags(), a.values(c)
	f.IntVar(&values.iterations, "iterations", 200, "time `N` replays of each plan, as a graph and as streams")
	f.IntVar(&values.warmup, "warmup", 20, "run `N` warm-up replays before the timed ones")
	f.BoolVar(&values.graph, "graph", false, "measure graphs only")
	f.StringVar(&saveProfile, "save-profile", "", "write the measured node durations of the best plan to this `file`")
	c.Flags().Lookup("streams").DefValue = "1, 2, 4 and 8"
	c.Flags().Lookup("strategy").DefValue = "all"
	return c
}

// benchRow is one plan, replayed one way.
type benchRow struct {
	Strategy  string          `json:"strategy"`
	Asked     int             `json:"asked_streams"`
	Streams   int             `json:"streams"`
	Waits     int             `json:"waits"`
	Replay    string          `json:"replay"` // "streams" or "graph"
	Memory    int64           `json:"peak_device_bytes"`
	Predicted float64         `json:"predicted_us"`
	Timing    *runtime.Timing `json:"timing"`

	plan *planner.Plan
}

// benchReport is what bench says, in the form of its JSON.
type benchReport struct {
	Version    int        `json:"version"`
	Command    string     `json:"command"`
	Name       string     `json:"name"`
	Backend    string     `json:"backend"`
	Device     string     `json:"device"`
	Machine    string     `json:"machine"`
	Nodes      int        `json:"nodes"`
	Iterations int        `json:"iterations"`
	Warmup     int        `json:"warmup"`
	Rows       []benchRow `json:"rows"`
	Refused    []refusal  `json:"refused"`
	Best       int        `json:"best"` // index of the row with the least wall time
	BestLine   string     `json:"best_command"`
	Profile    string     `json:"profile,omitempty"`
}

// refusal is a strategy that found no plan.
type refusal struct {
	Strategy string `json:"strategy"`
	Streams  int    `json:"streams"`
	Reason   string `json:"reason"`
}

func (a *app) bench(ctx context.Context, c *cobra.Command, name, saveProfile string) (err error) {
	if a.flags.iterations < 1 {
		return errors.New("--iterations 0: want 1 or more to measure")
	}
	g, err := a.loadGraph(ctx, name)
	if err != nil {
		return err
	}
	if err := a.checkOutputs(g, []namedFile{{"--save-profile", saveProfile}}, nil); err != nil {
		return err
	}
	platform, err := a.openPlatform(devicesOf(g))
	if err != nil {
		return err
	}
	defer func() { err = closing(err, platform) }()
	options, err := a.planOptions(ctx, runtime.MachineOf(platform))
	if err != nil {
		return err
	}
	report := &benchReport{Version: jsonVersion, Command: "bench", Name: g.Name, Backend: platform.Name(), Device: platform.Devices()[0].Name,
		Machine: options.Machine.Name, Nodes: g.Len(), Iterations: a.flags.iterations, Warmup: a.flags.warmup, Rows: []benchRow{}, Refused: []refusal{}}
	plans, err := a.benchPlans(ctx, c, g, options, report)
	if err != nil {
		return err
	}
	p := &prepared{name: name, graph: g, platform: platform, options: options}
	modes := []runtime.Mode{runtime.Captured, runtime.Streams}
	if a.flags.graph {
		modes = modes[:1]
	}
	for _, mode := range modes {
		for i := range plans {
			row := plans[i]
			a.progress.report(stageMeasure, len(report.Rows), len(plans)*len(modes))
			if err := a.measureRow(ctx, p, &row, mode); err != nil {
				err = fmt.Errorf("%s on %s as %s: %w", row.Strategy, counted(row.Streams, "stream"), mode, err)
				return a.pinFault(ctx, p, err, &runFlags{})
			}
			report.Rows = append(report.Rows, row)
		}
	}
	for i := range report.Rows {
		if best, row := &report.Rows[report.Best], &report.Rows[i]; row.Timing.Wall < best.Timing.Wall {
			report.Best = i
		}
	}
	best := &report.Rows[report.Best]
	report.BestLine = a.benchLine(name, best)
	if saveProfile != "" {
		if err := a.saveProfile(ctx, p, best, saveProfile); err != nil {
			return err
		}
		report.Profile = saveProfile
	}
	if a.flags.output == "json" {
		return a.answer(report)
	}
	return a.printBench(report, platform)
}

// benchPlans makes the plans to measure, each different plan once. A plan from a file is the only one.
func (a *app) benchPlans(ctx context.Context, c *cobra.Command, g *dag.Graph, options planner.Options, report *benchReport) ([]benchRow, error) {
	var rows []benchRow
	add := func(strategy string, asked int, plan *planner.Plan) {
		for i := range rows {
			if reflect.DeepEqual(rows[i].plan.Streams, plan.Streams) && reflect.DeepEqual(rows[i].plan.Order, plan.Order) {
				return
			}
		}
		rows = append(rows, benchRow{Strategy: strategy, Asked: asked, Streams: len(plan.Streams), Waits: plan.Stats.Waits, Memory: plan.Stats.PeakDeviceBytes, plan: plan})
	}
	if a.flags.plan != "" {
		plan, err := a.loadPlan(ctx, g, options)
		if err != nil {
			return nil, err
		}
		add(plan.Strategy, len(plan.Streams), plan)
		return rows, nil
	}
	counts, strategies := benchCounts, planner.Strategies()
	if c.Flags().Changed("streams") {
		counts = []int{a.flags.streams}
	}
	if c.Flags().Changed("strategy") {
		strategies = []string{a.flags.strategy}
	}
	var last error
	for _, strategy := range strategies {
		if strategy == "auto" && len(strategies) > 1 {
			continue // it chooses among the others
		}
		for _, streams := range counts {
			options.Strategy, options.Streams = strategy, streams
			plan, err := planner.New(ctx, g, options)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				last = err
				report.Refused = append(report.Refused, refusal{strategy, streams, err.Error()})
				continue
			}
			add(strategy, streams, plan)
		}
	}
	if len(rows) == 0 {
		return nil, last
	}
	return rows, nil
}

func (a *app) measureRow(ctx context.Context, p *prepared, row *benchRow, mode runtime.Mode) (err error) {
	if _, err := racesAllowed(p.name, p.graph, row.plan, false); err != nil {
		return err
	}
	predict, replay := planner.Simulate, "streams"
	if mode != runtime.Streams {
		predict, replay = planner.SimulateGraph, "graph"
	}
	timeline, err := predict(p.graph, row.plan, p.options.Machine, p.options.Profile)
	if err != nil {
		return err
	}
	row.Replay, row.Predicted = replay, timeline.MakespanUS
	program, err := runtime.New(ctx, p.graph, row.plan, p.platform.Platform, runtime.Options{Mode: mode, Logger: a.log})
	if err != nil {
		return err
	}
	defer func() { err = closing(err, program) }()
	row.Timing, err = program.Measure(ctx, a.flags.warmup, a.flags.iterations)
	return err
}

// benchLine is the command line that runs a row's plan.
func (a *app) benchLine(name string, row *benchRow) string {
	line := []string{"dagrun", shellQuoted(name)}
	for _, arg := range a.flags.planned(row.Strategy, row.Asked) {
		line = append(line, shellQuoted(arg))
	}
	if row.Replay == "graph" {
		line = append(line, "--graph")
	}
	return strings.Join(line, " ")
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
	program, err := runtime.New(ctx, p.graph, best.plan, p.platform.Platform, runtime.Options{Logger: a.log})
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

func (a *app) printBench(r *benchReport, platform *opened) error {
	a.progress.clear()
	if !a.flags.quiet {
		fmt.Fprintf(a.stdout, "%s: %s on %s, %s each after %s; microseconds per replay\n\n", r.Name, counted(r.Nodes, "node"), platform.place(), counted(r.Iterations, "replay"), counted(r.Warmup, "warm-up replay"))
	}
	table := newTable("", "strategy", "streams", "waits", "replay", "wall", "device min", "median", "p99", "submit", "predicted", "measured/predicted")
	for i := range r.Rows {
		row := &r.Rows[i]
		star := ""
		if i == r.Best {
			star = "*"
		}
		ratio := "-"
		if row.Predicted > 0 {
			ratio = fmt.Sprintf("%.2f", row.Timing.Device.Median/row.Predicted)
		}
		table.row(star, row.Strategy, strconv.Itoa(row.Streams), strconv.Itoa(row.Waits), row.Replay, fixed(row.Timing.Wall), fixed(row.Timing.Device.Min),
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
	err := a.stdout.printf("\nbest: %s\n", a.paint(a.stdout, bold, r.BestLine))
	return err
}

// fixed prints microseconds for a column: one decimal, two below ten.
func fixed(us float64) string {
	if us < 10 {
		return strconv.FormatFloat(us, 'f', 2, 64)
	}
	return strconv.FormatFloat(us, 'f', 1, 64)
}
