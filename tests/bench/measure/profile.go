// A profiled run on one stream, which gives the durations that the suite is planned with.

package main

import (
	"context"
	"errors"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/runtime"
)

// profiledProgram is a program on one stream and the predicted time of its replay.
type profiledProgram struct {
	program   *runtime.Program
	predicted float64
}

// profileOf makes a program that runs a graph on one stream, where nothing overlaps, and times its nodes.
func profileOf(ctx context.Context, g *dag.Graph, p cudart.Platform, machine *planner.Machine) (*profiledProgram, *planner.Profile, error) {
	plan, err := planner.New(ctx, g, planner.Options{Strategy: "serial", Streams: 1, Machine: machine})
	if err != nil {
		return nil, nil, err
	}
	program, err := runtime.New(ctx, g, plan, p, runtime.Options{})
	if err != nil {
		return nil, nil, err
	}
	trace, err := program.Trace(ctx, 3)
	if err != nil {
		return nil, nil, errors.Join(err, program.Close())
	}
	profile := trace.Profile(program)
	us, err := predicted(planner.Simulate(g, plan, machine, profile))
	if err != nil {
		return nil, nil, errors.Join(err, program.Close())
	}
	return &profiledProgram{program, us}, profile, nil
}

func predicted(t *plan.Timeline, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	return t.MakespanUS, nil
}
