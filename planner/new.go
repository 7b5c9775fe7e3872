// Planning from options to a finished plan.

package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/layout"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
)

// mostStreams bounds Options.Streams: planning takes memory for each stream that there may be, and no device runs as many at once.
const mostStreams = 1 << 16

// strategies are the names that Options.Strategy takes.
var strategies = []string{"serial", "roundrobin", "heft", "cover", "list", "auto"}

// New plans a graph: streams, waits, memory and what the machine model predicts, proved right by [Verify]. It is safe for
// concurrent use and gives the same plan for the same arguments every time.
//
// Streams that users numbered bind under every strategy, and their nodes are ordered among themselves as the strategy likes.
// Nodes of different devices or priorities never share a stream, so that a plan has at least one stream for each such pair
// whatever Options.Streams says. Streams that only copy are not counted. Under sync: explicit nodes are submitted in
// declared order, each after: between streams becomes a wait as it was written, and other nodes get streams of their own;
// dependencies that the plan does not enforce are then listed by [Violations] and are no error of New.
//
// Errors match [ErrUnknownStrategy], [ErrBadOption], [ErrTooManyStreams], [ErrGraphTooLarge], [ErrStreamConflict],
// [ErrMemoryCap] or the context's error.
func New(ctx context.Context, g *dag.Graph, o Options) (*Plan, error) {
	r, err := newRequest(ctx, g, o)
	if err != nil {
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
	model.LowerBoundWith(g, r.o.Machine, r.durations, max(r.o.Streams, computing(g, plan)), false).Note(plan)
	plan.Graph, plan.Work, plan.Costs = g.Hash(), g.WorkHash(), r.costs
	if err := Verify(g, plan); err != nil && !(g.Sync == dag.SyncExplicit && errors.Is(err, ErrRace)) {
		return nil, fmt.Errorf("planner: the %s plan is wrong: %w", plan.Strategy, err)
	}
	return plan, ctx.Err()
}

// mostCoverStreams is how many compute streams of a device cover takes where nobody set a limit.
const mostCoverStreams = 128

// request holds the arguments of New with defaults filled in.
type request struct {
	ctx       context.Context
	g         *dag.Graph
	o         Options
	limited   bool // the user gave Streams
	costs     []Cost
	durations []float64 // the times of costs
}

func newRequest(ctx context.Context, g *dag.Graph, o Options) (*request, error) {
	switch {
	case o.Streams < 0:
		return nil, fmt.Errorf("%d streams: the number must not be negative: %w", o.Streams, place.ErrBadOption)
	case o.Streams > mostStreams:
		return nil, fmt.Errorf("%d streams: there can be at most %d: %w", o.Streams, mostStreams, place.ErrBadOption)
	case o.MemoryCap < 0:
		return nil, fmt.Errorf("a memory cap of %d bytes: it must not be negative: %w", o.MemoryCap, place.ErrBadOption)
	case !o.Effort.Valid():
		return nil, fmt.Errorf("%v: there are %s: %w", o.Effort, strings.Join(Efforts(), ", "), place.ErrBadOption)
	}
	limited := o.Streams > 0
	if !limited {
		o.Streams = model.DefaultStreams
	}
	if o.Strategy == "" {
		o.Strategy = "auto"
	}
	known := false
	for _, s := range strategies {
		known = known || s == o.Strategy
	}
	if !known {
		return nil, fmt.Errorf("%w %q: there are %s", place.ErrUnknownStrategy, o.Strategy, strings.Join(strategies, ", "))
	}
	if o.Machine == nil {
		o.Machine = H200()
	} else if err := o.Machine.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", place.ErrBadOption, err)
	}
	costs := model.Costs(g, o.Machine, o.Profile)
	return &request{ctx: ctx, g: g, o: o, limited: limited, costs: costs, durations: model.TimesOf(costs)}, nil
}

// computing is how many streams of one device and priority a plan has that run kernels, where it has most.
func computing(g *dag.Graph, p *Plan) int {
	type home struct {
		device   int32
		priority dag.Priority
	}
	count, most := map[home]int{}, 0
	for k := range p.Streams {
		s := &p.Streams[k]
		for _, op := range s.Ops {
			if op.Kind == Launch && EngineOf(g, op.Node) == Compute {
				at := home{s.Device, s.Priority}
				count[at]++
				most = max(most, count[at])
				break
			}
		}
	}
	return most
}

func (r *request) problem(streams int) (*place.Problem, error) {
	return place.NewProblem(r.ctx, r.g, r.o.Machine, r.durations, streams)
}

// plan plans with so many streams, memory and predictions included.
func (r *request) plan(streams int) (*Plan, error) {
	var plan *Plan
	var err error
	if r.o.Strategy == "auto" {
		plan, err = r.auto(streams)
	} else {
		if r.o.Strategy == "cover" && !r.limited && streams == r.o.Streams {
			streams = mostCoverStreams
		}
		plan, err = r.planWith(candidate{strategy: r.o.Strategy, streams: streams})
	}
	if err != nil {
		return nil, err
	}
	return plan, r.predict(plan)
}

// candidate is a way to plan.
type candidate struct {
	strategy string
	streams  int
	inLine   bool // of list: all copies of an engine share a stream
}

// planWith plans with one strategy; memory and predictions are left open.
func (r *request) planWith(c candidate) (*Plan, error) {
	p, err := r.problem(c.streams)
	if err != nil {
		return nil, err
	}
	var a *place.Assignment
	switch c.strategy {
	case "serial":
		a, err = place.Serial(p)
	case "roundrobin":
		a, err = place.RoundRobin(p)
	case "heft":
		a, err = place.Heft(p)
	case "cover":
		a, err = place.Cover(p)
	default:
		a, err = place.List(p, c.inLine)
	}
	if err != nil {
		return nil, err
	}
	plan, err := r.schedule(p, a, c.strategy)
	a.Release()
	p.Release()
	return plan, err
}

// schedule makes a plan of an assignment; memory and predictions are left open.
func (r *request) schedule(p *place.Problem, a *place.Assignment, strategy string) (*Plan, error) {
	plan := &Plan{Name: r.g.Name, Strategy: strategy, Requested: r.o.Strategy, Machine: r.o.Machine.Name}
	if err := place.Finish(p, a, r.o.SingleUseEvents, plan); err != nil {
		return nil, err
	}
	return plan, nil
}

// predict lays a plan's memory out and simulates it.
func (r *request) predict(plan *Plan) error {
	kept, err := keptBy(r.g, r.o)
	if err != nil {
		return err
	}
	if err := layout.Memory(r.ctx, r.g, plan, kept, r.o.Effort); err != nil {
		return err
	}
	return r.simulate(plan)
}

func (r *request) simulate(plan *Plan) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	timeline, err := model.SimulateWith(r.g, plan, r.o.Machine, r.durations, false)
	if err != nil {
		return fmt.Errorf("planner: the %s plan cannot be simulated: %w", plan.Strategy, err)
	}
	plan.Stats.MakespanUS = timeline.MakespanUS
	return nil
}
