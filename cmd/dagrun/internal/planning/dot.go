// dagrun dot FILE: the schedule, or the graph as declared, as a picture.

package planning

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/planner/picture"
)

func (u *Commands) DotCommand() *cobra.Command {
	var own pictures.Flags
	c := &cobra.Command{
		Use:   "dot FILE",
		Short: "Draw the schedule: DOT, SVG, PNG, PDF or Mermaid",
		Long: `Draw the schedule, as DOT unless --format or -o says otherwise. SVG, PNG and PDF are
laid out by Graphviz if its command dot is installed: a cluster for each stream, waits dashed.

dagrun's own SVG has streams as lanes, time from left to right, and waits as arrows with the data
that caused them. It is drawn with --own, where Graphviz is missing or would take long (above some
150 nodes and dependencies), and for --axis, --boxes, --compare, and --before with --after.

A recording (dagrun record) is drawn as it ran, as SVG: a row for each stream, waits as arrows
(grey where no conflict needs them), races in red. --compare and --strategy draw the captured graph
that it passed to dagrun.replan instead: recorded is as it was captured.`,
		Example: `  dagrun dot pipelines/saxpy.yaml -o saxpy.svg
  dagrun dot pipelines/chunks.yaml -o chunks.svg --own
  dagrun dot pipelines/chunks.yaml -o two.svg --compare list,roundrobin
  dagrun dot pipelines/saxpy.yaml -o both.svg --before --after
  dagrun dot pipelines/saxpy.yaml --format mermaid       for Markdown
  dagrun dot infer.rec -o infer.svg                      a recording of dagrun record
  dagrun dot net.rec -o two.svg --compare recorded,auto  a captured graph, planned again
  dagrun dot net.rec#1 -o first.svg                      the first of several`,
		Args: flags.OneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if recording.Recognize(args[0]) {
				if err := u.CheckFlags(c); err != nil {
					return err
				}
				allowed := []string{"out", "boxes", "format", "own", "confined", "before", "after", "compare", "axis"}
				if _, graph := recording.CutGraph(args[0]); graph > 0 || own.Compare != "" || c.Flags().Changed("strategy") {
					if err := cli.OnlyFlags(c, args[0], append(allowed, "strategy", "streams", "effort", "machine", "profile", "memory-cap", "dependencies", "learn",
						"cache-dir")...); err != nil {
						return err
					}
					return u.drawCaptured(c.Context(), args[0], &own)
				}
				if err := cli.OnlyFlags(c, args[0], allowed...); err != nil {
					return err
				}
				return u.drawRecording(c.Context(), args[0], &own)
			}
			if recording.RecognizePlanned(args[0]) {
				return u.Exported.DrawPlanned(c, args[0], &own)
			}
			u.Compilers = nil // pictures do not depend on what kernels do
			return u.OnGraph(func(ctx context.Context, g *dag.Graph) error { return u.Draw(ctx, g, &own) })(c, args)
		},
	}
	u.OutputFlags(c)
	u.ParamFlags(c)
	u.LoadFlags(c)
	u.SaveFlags(c)
	u.PlanFlags(c, "h200")
	u.RecallFlags(c)
	f := c.Flags()
	f.BoolVar(&own.Before, "before", false, "draw the dependencies as declared, not the schedule")
	f.BoolVar(&own.After, "after", false, "draw the schedule (the default); with --before both on one sheet")
	f.BoolVar(&own.Dependencies, "dependencies", false, "in DOT, draw every dependency beside the waits")
	f.StringVar(&own.Compare, "compare", "", "draw the schedules of these `strategies` on one sheet, such as list,roundrobin")
	f.StringVarP(&own.Out, "out", "o", "", "write to this `file`; its extension decides the format: .dot, .mmd, .svg, .png or .pdf")
	f.StringVar(&own.Format, "format", "", "output `format`: dot, mermaid, svg, png or pdf")
	f.BoolVar(&own.Own, "own", false, "draw dagrun's own SVG even if Graphviz is installed")
	f.StringVar(&own.Axis, "axis", "", "horizontal axis of dagrun's own SVG: `time` or level")
	f.IntVar(&own.Most, "boxes", 0, "draw at most about `N` boxes in dagrun's own SVG, merging neighbours")
	f.Lookup("boxes").DefValue = strconv.Itoa(picture.DefaultLimit)
	return c
}
