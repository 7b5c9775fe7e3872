// dagrun dot FILE: the schedule, or the graph as declared, as DOT.

package main

import (
	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/planner"
)

func (a *app) dotCommand() *cobra.Command {
	var before bool
	c := &cobra.Command{
		Use:   "dot FILE",
		Short: "Draw the schedule as DOT",
		Long:  "Draw the schedule as DOT: a cluster per stream, dependencies with their reason, waits dashed.",
		Example: `  dagrun dot pipelines/saxpy.yaml | dot -Tsvg > saxpy.svg
  dagrun dot pipelines/saxpy.yaml --before          the graph as declared`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFlags(c); err != nil {
				return err
			}
			g, err := a.loadGraph(args[0])
			if err != nil {
				return err
			}
			if before {
				return planner.WriteGraphDOT(a.stdout, g)
			}
			options, err := a.planOptions(nil)
			if err != nil {
				return err
			}
			plan, err := a.loadPlan(c.Context(), g, options)
			if err != nil {
				return err
			}
			return plan.WriteDOT(a.stdout, g)
		},
	}
	a.outputFlags(c)
	a.paramFlags(c)
	a.planFlags(c, "h200")
	c.Flags().BoolVar(&before, "before", false, "draw the dependencies as declared, not the schedule")
	return c
}
