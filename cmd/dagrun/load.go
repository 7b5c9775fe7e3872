// Loading: reading, parsing and planning a pipeline file, and printing what is wrong with it.

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// planned plans a graph, or reads its plan, for the machine that the flags name. No device is opened without --learn=auto.
func (a *app) planned(ctx context.Context, g *dag.Graph) (*planner.Plan, planner.Options, error) {
	r, err := a.optionsFor(ctx, g)
	if err != nil {
		return nil, planner.Options{}, err
	}
	a.MatchProfile(g, r.options.Profile)
	kept := r.plan != nil
	if !kept {
		if r.plan, err = a.LoadPlan(ctx, g, r.options); err != nil {
			return nil, r.options, err
		}
	}
	if machine := r.options.Machine; kept || a.Flags.Plan != "" && (r.options.Profile != nil || machine != nil && machine.Name != r.plan.Machine) {
		err = predictAgain(g, r.plan, r.options, a.Flags.Streams)
	}
	return r.plan, r.options, err
}

// predictAgain gives a plan that was made earlier the costs, the prediction and the bound of the durations that are known now.
func predictAgain(g *dag.Graph, plan *planner.Plan, o planner.Options, streams int) error {
	for _, b := range plan.Bodies {
		if err := predictAgain(g.Nodes[b.Node].Control.Bodies[b.Body], b.Plan, o, streams); err != nil {
			return err
		}
	}
	return planner.Predict(g, plan, o.Machine, o.Profile, max(streams, len(plan.Streams)))
}

// onGraph runs a command that needs one pipeline and no device: it checks the flags, loads the pipeline, and calls do.
func (a *app) onGraph(do func(context.Context, *dag.Graph) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := a.CheckFlags(c); err != nil {
			return err
		}
		a.Progress.BeginUntil(a.Stdout)
		if c.Flags().Lookup("ranks") != nil {
			if err := a.AssumeRanks(); err != nil {
				return err
			}
		}
		g, err := a.LoadGraph(c.Context(), args[0])
		if err != nil {
			return err
		}
		if g, err = a.spreadUnseen(c.Context(), g); err != nil {
			return err
		}
		return do(c.Context(), g)
	}
}
