// Learning: replays that measure how long nodes take and which plan is fastest. All of them replay proved plans, which give equal results,
// so they count as normal replays.

// Package learn finds out, by replaying a program, how long its nodes take and which plan and which way to replay it are fastest, and keeps that
// for later runs. Package runtime is its front.
package learn

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/runtime/internal/engine"
)

// Learn makes a program of a graph, learns from its replays, and closes it.
func Learn(ctx context.Context, g *dag.Graph, platform cudart.Platform, o Options) (learned *Learned, err error) {
	switch {
	case g == nil:
		return nil, errors.New("learning needs a graph")
	case platform == nil:
		return nil, errors.New("learning needs a platform to run on")
	}
	o = o.orDefault(platform)
	o.Plan.Profile = MergeProfiles(o.Known, o.Plan.Profile)
	plan, err := planner.New(ctx, g, o.Plan)
	if err != nil {
		return nil, err
	}
	p, err := engine.New(ctx, g, plan, platform, planner.GraphEdges, engine.Options{Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return From(ctx, p, o)
}

// From learns from a program, and leaves it with the best plan.
func From(ctx context.Context, p *engine.Program, o Options) (learned *Learned, err error) {
	if err := p.CanLearn(); err != nil {
		return nil, err
	}
	if err := p.CheckReplays(ctx, "learn from", o.Replays, 1); err != nil {
		return nil, err
	}
	o = o.orDefault(p.Platform())
	for _, m := range o.Modes {
		if m != engine.Streams && m != engine.Captured {
			return nil, fmt.Errorf("learn with mode %s: only streams and graph can be chosen from", m)
		}
	}
	if err := o.checkNumbers(); err != nil {
		return nil, err
	}
	l := newLearner(p, o)
	end := l.trials.Begin()
	defer func() { err = errors.Join(err, end()) }()
	before := p.Replays()
	err = l.run(ctx)
	l.learned.Replays, l.learned.Settled = int(p.Replays()-before), o.Thorough && err == nil
	if err != nil {
		l.trials.KeepRunning()
		if ctx.Err() == nil || l.learned.Profile == nil || l.graph.HasControl() || l.graph.Ranks > 1 {
			return nil, err
		}
	}
	return &l.learned, err
}

func (l *learner) run(ctx context.Context) error {
	if l.graph.Ranks > 1 {
		return l.together(ctx)
	}
	if l.graph.HasControl() {
		if err := l.measureBodies(ctx); err != nil {
			return err
		}
		return l.compareBodies(ctx)
	}
	if l.o.Runs == 0 { // those that compared plans before measured the same nodes
		if err := l.measureNodes(ctx); err != nil {
			return err
		}
	}
	l.step("measured nodes")
	l.learned.Profile = l.profile()
	if l.left >= FewestToCompare && l.graph.Len() > 0 {
		if err := l.compare(ctx); err != nil {
			return err
		}
	}
	if len(l.learned.Ways) > 0 {
		return l.trials.Adopt(ctx, l.learned.Ways[0].way())
	}
	if l.left > 0 && l.p.Plan() != l.was.Plan {
		return l.trials.Adopt(ctx, l.was)
	}
	return nil
}

// compareBodies compares plans of a program with loops or branches on a GPU, if there are enough replays, in the mode that it has: as streams, the
// host waits before each test.
func (l *learner) compareBodies(ctx context.Context) error {
	if l.platform.Name() == "cpu" || l.left < FewestToCompare {
		return nil
	}
	if err := l.wake(ctx); err != nil {
		return err
	}
	timed := l.learned.Ways
	l.o.Modes = []engine.Mode{l.p.Mode()}
	if err := l.compare(ctx); err != nil {
		return err
	}
	l.learned.Ways = append(l.learned.Ways, l.unlike(timed)...)
	if l.sort(); len(l.learned.Ways) == 0 {
		return nil
	}
	return l.trials.Adopt(ctx, l.learned.Ways[0].way())
}
