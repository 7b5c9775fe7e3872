// dagrun bench FILE, where the file is a recording of a program: every plan of its captured graph side by side, predicted, since only the program can run them.

package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner"
)

func (a *app) benchRecording(ctx context.Context, name string) error {
	known, err := a.Recordings.KnownGraphs(name)
	if err != nil {
		return err
	}
	if err := a.Recordings.ChooseNetwork(ctx, name, known, &recordings.ReplanFlags{}); err != nil {
		return err
	}
	g := a.Network.Graph()
	options, err := a.PlanOptions(ctx, nil)
	if err != nil {
		return err
	}
	report := &benchReport{Version: cli.JSONVersion, Command: "bench", Name: g.Name, Machine: options.Machine.Name, Nodes: g.Len(), Refused: []refusal{}}
	if report.Rows, err = a.benchPlans(ctx, g, options, report); err != nil {
		return err
	}
	for k := range report.Rows {
		row := &report.Rows[k]
		row.Replay = "graph"
		if row.Predicted, err = planner.Repeated(g, row.plan, options.Machine, options.Profile, true); err != nil {
			return err
		}
		if row.Predicted < report.Rows[report.Best].Predicted {
			report.Best = k
		}
	}
	report.BestLine = fmt.Sprintf("dagrun.replan(graph, %q)", name)
	if a.Flags.Output == "json" {
		return a.Answer(report)
	}
	return a.printPredicted(report)
}

func (a *app) printPredicted(r *benchReport) error {
	a.Progress.Clear()
	if !a.Flags.Quiet {
		fmt.Fprintf(a.Stdout, "%s: %s, predicted for machine %s; microseconds per replay\n", r.Name, cli.Counted(r.Nodes, "node"), r.Machine)
		fmt.Fprintf(a.Stdout, "%s\n\n", a.Network.Bounds(a.Network.Durations()).Text())
	}
	columns := []string{"", "strategy", "streams", "waits", "replay", "memory", "predicted"}
	if a.Recordings.Earlier != nil {
		columns = append(columns, "measured")
	}
	table := cli.NewTable(columns...)
	table.Keys = 5
	for k := range r.Rows {
		row := &r.Rows[k]
		cells := []string{starOf(k, r.Best, nil), row.Strategy, strconv.Itoa(row.Streams), strconv.Itoa(row.Waits), row.Replay, words.Bytes(row.Memory),
			cli.Fixed(row.Predicted)}
		if a.Recordings.Earlier != nil {
			cells = append(cells, measuredTime(a.Recordings.Earlier, row))
		}
		table.Row(cells...)
	}
	if err := table.Write(a.Stdout, a.LineWidth()); err != nil {
		return err
	}
	if a.Recordings.Earlier != nil {
		return a.Stdout.Printf("\nmeasured by the program on %s: %s\n", a.Recordings.Earlier.Made.Device, a.Recordings.Earlier.Report)
	}
	return a.Stdout.Printf("\nnothing was measured: in the program, on a GPU, %s tries plans like these and takes the fastest\n", r.BestLine)
}

// measuredTime is what the program measured of a row's plan, if it was one of those that it tried.
func measuredTime(kept *replan.Kept, row *benchRow) string {
	name := replan.PlanName(row.Strategy, row.Asked)
	if row.Strategy == replan.AsCaptured {
		name = replan.TimeAsCaptured
	}
	for _, t := range kept.Times {
		if t.Name == name {
			return cli.Fixed(t.US)
		}
	}
	return ""
}
