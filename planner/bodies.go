// Plans for the bodies of loops and branches.

package planner

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/plan"
)

// bodies plans every body of the graph like a pipeline of its own. Where its buffers lie follows from the plan around it.
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
