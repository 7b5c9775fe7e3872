// From a graph and options to a proved plan: start reading here.

package planner

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// New plans a graph: streams, waits, memory layout and predicted times. [Verify] has proved the plan. New is safe for concurrent use, and the
// same arguments always give the same plan.
//
// Every strategy respects streams that users numbered, but chooses the order of the nodes on them. Nodes of different devices or priorities
// never share a stream, so a plan has at least one stream for each such pair, whatever Options.Streams says. Streams that only copy are not
// counted.
//
// Under sync: explicit, nodes are submitted in declared order, each after: between streams becomes a wait, and nodes without a stream
// number get streams of their own. New then returns a plan even if it does not enforce every dependency; [Violations] lists those.
//
// Errors match [ErrUnknownStrategy], [ErrBadOption], [ErrTooManyStreams], [ErrGraphTooLarge], [ErrStreamConflict],
// [ErrMemoryCap] or the context's error. With an error there is no plan.
func New(ctx context.Context, g *dag.Graph, o Options) (*plan.Plan, error) {
	r, err := newRequest(ctx, g, o)
	if err != nil {
		return nil, err
	}
	if r.made, err = r.bodies(); err != nil {
		return nil, err
	}
	plan, err := r.plan(r.o.Streams)
	if err != nil {
		return nil, err
	}
	p, err := r.problem(r.o.Streams)
	if err != nil {
		return nil, err
	}
	if plan, err = r.fitMemory(p, plan); err != nil {
		return nil, err
	}
	model.LowerBoundWith(g, r.o.Machine, r.durations, max(r.o.Streams, place.Computing(g, plan)), r.o.InGraph).Note(plan)
	plan.Spread = r.o.Spread
	plan.Graph, plan.GraphHash, plan.Work, plan.Costs = g, g.Hash(), g.WorkHash(), model.CostsOf(g, r.o.Machine, r.o.Profile, r.durations)
	if err := Verify(g, plan); err != nil && !(g.Sync == dag.SyncExplicit && errors.Is(err, proof.ErrRace)) {
		return nil, fmt.Errorf("planner: the %s plan is wrong: %w", plan.Strategy, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return plan, nil
}

// bodies plans every body of the graph like a pipeline of its own, first of all, because the layout of the whole depends on them.
func (r *request) bodies() ([]plan.Body, error) {
	var bodies []plan.Body
	for i := range r.g.Nodes {
		c := r.g.Nodes[i].Control
		if c == nil {
			continue
		}
		for k, body := range c.Bodies {
			o := Options{Strategy: r.o.Strategy, Effort: r.o.Effort, Machine: r.o.Machine, Profile: r.o.Profile, KeepAll: true, SingleUseEvents: r.o.SingleUseEvents}
			if r.limited {
				o.Streams = r.o.Streams
			}
			inner, err := New(r.ctx, body, o)
			if errors.Is(err, place.ErrTooManyStreams) { // cover fits the graph around, but not this body
				o.Strategy = "list"
				inner, err = New(r.ctx, body, o)
			}
			if err != nil {
				return nil, fmt.Errorf("body of %q: %w", r.g.Nodes[i].Name, err)
			}
			inner.Memory, inner.Kept = nil, nil
			inner.Stats.PeakDeviceBytes, inner.Stats.SumDeviceBytes = 0, 0
			bodies = append(bodies, plan.Body{Node: dag.NodeID(i), Body: int32(k), Plan: inner})
		}
	}
	return bodies, nil
}
