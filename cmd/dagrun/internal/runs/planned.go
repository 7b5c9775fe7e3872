// Plans of commands that run nothing.

package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
)

// Planned plans a graph, or reads its plan, for the machine that the flags name. No device is opened without --learn=auto.
func (u *Runs) Planned(ctx context.Context, g *dag.Graph) (*planner.Plan, planner.Options, error) {
	r, err := u.OptionsFor(ctx, g)
	if err != nil {
		return nil, planner.Options{}, err
	}
	u.MatchProfile(g, r.Options.Profile)
	kept := r.plan != nil
	if !kept {
		if r.plan, err = u.LoadPlan(ctx, g, r.Options); err != nil {
			return nil, r.Options, err
		}
	}
	if machine := r.Options.Machine; kept || u.Flags.Plan != "" && (r.Options.Profile != nil || machine != nil && machine.Name != r.plan.Machine) {
		err = PredictAgain(g, r.plan, r.Options, u.Flags.Streams)
	}
	return r.plan, r.Options, err
}

// PredictAgain gives a plan that was made earlier the costs, the prediction and the bound of the durations that are known now.
func PredictAgain(g *dag.Graph, plan *planner.Plan, o planner.Options, streams int) error {
	for _, b := range plan.Bodies {
		if err := PredictAgain(g.Nodes[b.Node].Control.Bodies[b.Body], b.Plan, o, streams); err != nil {
			return err
		}
	}
	return model.Predict(g, plan, o.Machine, o.Profile, max(streams, len(plan.Streams)))
}

// OnGraph runs a command that needs one pipeline and no device: it checks the flags, loads the pipeline, and calls do.
func (u *Runs) OnGraph(do func(context.Context, *dag.Graph) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := u.CheckFlags(c); err != nil {
			return err
		}
		u.Progress.BeginUntil(u.Stdout)
		if c.Flags().Lookup("ranks") != nil {
			if err := u.AssumeRanks(); err != nil {
				return err
			}
		}
		g, err := u.LoadGraph(c.Context(), args[0])
		if err != nil {
			return err
		}
		if g, err = u.SpreadUnseen(c.Context(), g); err != nil {
			return err
		}
		return do(c.Context(), g)
	}
}
