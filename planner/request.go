// One request to plan: its options with defaults filled in, and a plan by one strategy.

package planner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/layout"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// mostStreams limits Options.Streams: planning takes memory for each possible stream, and no device runs this many at once.
const mostStreams = 1 << 16

// request holds the arguments of New with defaults filled in.
type request struct {
	ctx       context.Context
	g         *dag.Graph
	o         Options
	limited   bool // the user gave Streams
	durations []float64
	made      []plan.Body // of the graph's loops and branches
}

func newRequest(ctx context.Context, g *dag.Graph, o Options) (*request, error) {
	resolved, err := Resolve(ctx, g, o)
	if err != nil {
		return nil, err
	}
	return &request{ctx: ctx, g: g, o: resolved, limited: o.Streams > 0, durations: model.Durations(g, resolved.Machine, resolved.Profile)}, nil
}

// Resolve checks what [New] is given and fills in defaults: the strategy, the machine with what the profile says of it, the number of streams
// and the memory cap.
func Resolve(ctx context.Context, g *dag.Graph, o Options) (Options, error) {
	if err := g.Check(); err != nil {
		return o, err
	}
	switch {
	case ctx == nil:
		return o, fmt.Errorf("there is no context; context.Background() is one that never ends: %w", place.ErrBadOption)
	case o.Streams < 0:
		return o, fmt.Errorf("%d streams: the number must not be negative: %w", o.Streams, place.ErrBadOption)
	case o.Streams > mostStreams:
		return o, fmt.Errorf("%d streams: there can be at most %d: %w", o.Streams, mostStreams, place.ErrBadOption)
	case o.MemoryCap < 0:
		return o, fmt.Errorf("a memory cap of %d bytes: it must not be negative: %w", o.MemoryCap, place.ErrBadOption)
	case !o.Effort.Valid():
		return o, fmt.Errorf("%v: the efforts are %s: %w", o.Effort, strings.Join(effort.Names(), ", "), place.ErrBadOption)
	case o.Spread != nil && o.Spread.Graph != g:
		return o, fmt.Errorf("Options.Spread made another graph than %q: %w", g.Name, place.ErrBadOption)
	case o.Spread != nil && o.InOrder:
		return o, fmt.Errorf("Options.InOrder: a graph that was spread has nodes that nobody declared: %w", place.ErrBadOption)
	}
	o.MemoryCap = o.Cap()
	if o.Streams == 0 {
		o.Streams = model.DefaultStreams
	}
	if o.Strategy == "" {
		o.Strategy = "auto"
	}
	if !slices.Contains(strategies, o.Strategy) {
		return o, fmt.Errorf("%w %q: the strategies are %s", place.ErrUnknownStrategy, o.Strategy, strings.Join(strategies, ", "))
	}
	if o.Machine == nil {
		o.Machine = H200()
	} else if err := o.Machine.Validate(); err != nil {
		return o, fmt.Errorf("%w: %w", place.ErrBadOption, err)
	}
	o.Machine = o.Machine.With(o.Profile)
	return o, nil
}

func (r *request) problem(streams int) (*place.Problem, error) {
	p, err := place.NewProblem(r.ctx, r.g, r.o.Machine, r.durations, streams)
	if err == nil && r.o.InOrder {
		p.KeepOrder()
	}
	return p, err
}

// candidate is a strategy and its parameters.
type candidate struct {
	strategy string
	streams  int
	inLine   bool // for list: all copies of an engine share a stream
	declared bool // for list: nodes are taken in declared order
}

// planWith plans with one strategy, without memory layout and predictions.
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
		if c.declared {
			a = place.InOrder(p, nil, c.streams)
		} else {
			a, err = place.List(p, c.inLine)
		}
	}
	if err != nil {
		return nil, err
	}
	plan, err := r.schedule(p, a, c.strategy)
	a.Release()
	p.Release()
	return plan, err
}

// schedule makes a plan from an assignment, without memory layout and predictions.
func (r *request) schedule(p *place.Problem, a *place.Assignment, strategy string) (*Plan, error) {
	plan := &Plan{Name: r.g.Name, Strategy: strategy, Requested: r.o.Strategy, Machine: r.o.Machine.Name, Bodies: r.made}
	if err := place.Finish(p, a, r.o.SingleUseEvents, plan); err != nil {
		return nil, err
	}
	return plan, nil
}

// predict lays out a plan's memory and simulates the plan.
func (r *request) predict(plan *Plan) error {
	kept, err := keptBy(r.g, r.o)
	if err != nil {
		return err
	}
	if r.laidOut(plan, kept) {
		return r.simulate(plan)
	}
	if err := layout.Memory(r.ctx, r.g, plan, kept, r.o.Effort); err != nil {
		return err
	}
	return r.simulate(plan)
}

// laidOut places the buffers of a spilled graph where it says, and reports whether they do and that is right for the plan.
func (r *request) laidOut(plan *Plan, kept []bool) bool {
	s := r.o.Spread
	return s != nil && len(s.Offsets) == len(r.g.Buffers) && !r.o.KeepAll && layout.At(r.g, plan, kept, s.Offsets) == nil && Verify(r.g, plan) == nil
}

func (r *request) simulate(plan *Plan) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	timeline, err := model.SimulateWith(r.g, plan, r.o.Machine, r.durations, r.o.InGraph)
	if err != nil {
		return fmt.Errorf("planner: the %s plan cannot be simulated: %w", plan.Strategy, err)
	}
	plan.Stats.MakespanUS = timeline.MakespanUS
	return nil
}

// near is the part of its time that a plan may lose for fewer waits where a program makes the calls itself: each wait costs it a
// call, and it measured its nodes in
// one run, which tells no smaller difference.
const near = 0.01

// leanest returns the plan with the fewest waits among those that are predicted to take about as long as the best.
func leanest(plans []*Plan, best *Plan) *Plan {
	most := best.Stats.MakespanUS * (1 + near)
	for _, p := range plans {
		if p.Stats.MakespanUS <= most && p.Stats.Waits < best.Stats.Waits {
			best = p
		}
	}
	return best
}

// improves tells whether a plan that search found is to be used instead of the one that it began with.
func (r *request) improves(found, from *Plan) bool {
	if r.o.InOrder && found.Stats.Waits > from.Stats.Waits {
		return found.Stats.MakespanUS*(1+near) < from.Stats.MakespanUS
	}
	return betterPlan(found, from)
}

// betterPlan compares plans of one graph by prediction.
func betterPlan(p, other *Plan) bool {
	a, b := &p.Stats, &other.Stats
	if near := 1e-9 * b.MakespanUS; a.MakespanUS < b.MakespanUS-near || a.MakespanUS > b.MakespanUS+near {
		return a.MakespanUS < b.MakespanUS
	}
	if a.Waits != b.Waits {
		return a.Waits < b.Waits
	}
	if a.Streams != b.Streams {
		return a.Streams < b.Streams
	}
	return a.Records < b.Records
}
