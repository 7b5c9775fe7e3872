// Planning from end to end: options to a finished plan. Holds no algorithm of its own.

package planner

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/dag"
)

// defaultStreams is how many compute streams a device gets where Options says nothing: more do not help on one GPU.
const defaultStreams = 8

// strategies are the names that Options.Strategy takes.
var strategies = []string{"serial", "roundrobin", "cover", "list", "auto"}

// New plans a graph. It is safe for concurrent use and gives the same plan for the same arguments every time. Errors wrap
// ErrUnknownStrategy, ErrBadOption, ErrTooManyStreams, ErrGraphTooLarge, ErrStreamConflict or the context's error.
func New(ctx context.Context, g *dag.Graph, o Options) (*Plan, error) {
	if o.Streams < 0 {
		return nil, fmt.Errorf("%d streams: %w", o.Streams, ErrBadOption)
	}
	if o.Streams == 0 {
		o.Streams = defaultStreams
	}
	if o.Strategy == "" {
		o.Strategy = "auto"
	}
	if o.Machine == nil {
		o.Machine = H200()
	}
	p, err := newProblem(ctx, g, o.Machine, Durations(g, o.Machine, o.Profile), o.Streams)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Name: g.Name, Strategy: o.Strategy, Requested: o.Strategy, Machine: o.Machine.Name}
	var s *assignment
	switch o.Strategy {
	case "serial":
		s, err = planSerial(p)
	case "roundrobin":
		s, err = planRoundRobin(p)
	case "cover":
		s, err = planCover(p)
	case "list":
		s, err = planList(p)
	case "auto":
		plan.Strategy = "list"
		s, err = planList(p)
	default:
		return nil, fmt.Errorf("%w %q", ErrUnknownStrategy, o.Strategy)
	}
	if err != nil {
		return nil, err
	}
	s.number(p)
	w, err := insertWaits(p, s)
	if err != nil {
		return nil, err
	}
	assemble(p, s, w, o.SingleUseEvents, plan)
	if err := layoutMemory(g, plan, o); err != nil {
		return nil, err
	}
	return plan, nil
}
