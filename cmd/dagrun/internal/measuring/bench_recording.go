// dagrun bench FILE, where the file is a recording of a program: every plan of its captured graph side by side, predicted, since only the program can run them.

package measuring

import (
	"context"
	"fmt"
	"strconv"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/replan"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/model"
)

func (u *Commands) benchRecording(ctx context.Context, name string) error {
	known, err := u.Recordings.KnownGraphs(name)
	if err != nil {
		return err
	}
	if err := u.Recordings.ChooseGraph(ctx, name, known, &recordings.ReplanFlags{}); err != nil {
		return err
	}
	g := u.Captured.Graph()
	options, err := u.PlanOptions(ctx, nil)
	if err != nil {
		return err
	}
	report := &BenchReport{Version: cli.JSONVersion, Command: "bench", Name: g.Name, Machine: options.Machine.Name, Nodes: g.Len(), Refused: []refusal{}}
	if report.Rows, err = u.benchPlans(ctx, g, options, report); err != nil {
		return err
	}
	for k := range report.Rows {
		row := &report.Rows[k]
		row.Replay = "graph"
		if row.Predicted, err = model.Repeated(g, row.plan, options.Machine, options.Profile, true); err != nil {
			return err
		}
		if row.Predicted < report.Rows[report.Best].Predicted {
			report.Best = k
		}
	}
	report.BestLine = fmt.Sprintf("dagrun.replan(graph, %q)", name)
	if u.Flags.Output == "json" {
		return u.Answer(report)
	}
	return u.printPredicted(report)
}

func (u *Commands) printPredicted(r *BenchReport) error {
	u.Progress.Clear()
	if !u.Flags.Quiet {
		fmt.Fprintf(u.Stdout, "%s: %s, predicted for machine %s; microseconds per replay\n", r.Name, cli.Counted(r.Nodes, "node"), r.Machine)
		fmt.Fprintf(u.Stdout, "%s\n\n", u.Captured.Bounds(u.Captured.Durations()).Text())
	}
	columns := []string{"", "strategy", "streams", "waits", "replay", "memory", "predicted"}
	if u.Recordings.Earlier != nil {
		columns = append(columns, "measured")
	}
	table := cli.NewTable(columns...)
	table.Keys = 5
	for k := range r.Rows {
		row := &r.Rows[k]
		cells := []string{starOf(k, r.Best, nil), row.Strategy, strconv.Itoa(row.Streams), strconv.Itoa(row.Waits), row.Replay, words.Bytes(row.Memory),
			cli.Fixed(row.Predicted)}
		if u.Recordings.Earlier != nil {
			cells = append(cells, measuredTime(u.Recordings.Earlier, row))
		}
		table.Row(cells...)
	}
	if err := table.Write(u.Stdout, u.LineWidth()); err != nil {
		return err
	}
	if u.Recordings.Earlier != nil {
		return u.Stdout.Printf("\nmeasured by the program on %s: %s\n", u.Recordings.Earlier.Made.Device, u.Recordings.Earlier.Report)
	}
	return u.Stdout.Printf("\nnothing was measured: in the program, on a GPU, %s tries plans like these and takes the fastest\n", r.BestLine)
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
