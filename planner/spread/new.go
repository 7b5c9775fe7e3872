// From a graph and options to a graph over several devices: start reading here.

// Package spread changes a graph before it is planned: it puts the nodes on several devices and inserts the copies between them, and where data
// does not fit in device memory, copies to host memory and back. The planner then plans what comes of it like any other graph.
package spread

import (
	"context"
	"errors"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/plan"
)

// New makes a graph over Options.Devices devices from one that says which of its buffers and nodes may be on any: those that are not
// Fixed. Each device gets memory for what its nodes use, and copies between devices are inserted. The proof in planner/proof/spread has shown that
// the results are the same, bit by bit. Plan and run the Graph of the result like any other, with the result as planner.Options.Spread.
//
// With the policy auto, several placements are planned and simulated, and the fastest is kept: that of a search, or of any of the policies. All
// work stays on one device if that is fastest. A placement that needs more memory than Options.MemoryCap, or than a device of the machine has,
// is not taken. Where none fits, Options.Spill allows copies to host memory and back; see [Spill].
//
// Errors match ErrCannot, planner.ErrBadOption, planner.ErrMemoryCap or the context's error.
func New(ctx context.Context, g *dag.Graph, o Options) (*plan.Spread, error) {
	s, err := newSpreading(ctx, g, o)
	if err != nil {
		return nil, err
	}
	made, err := s.placed(ctx)
	if !o.Spill || err != nil && !errors.Is(err, planner.ErrMemoryCap) {
		return made, err
	}
	if err != nil { // no placement fits: the most promising one is spilled
		if made, err = s.take(&s.candidates[0]); err != nil {
			return nil, err
		}
	}
	w, err := newSpilling(s.r, made)
	if err != nil || w.limit == 0 {
		return made, err
	}
	spilled, err := w.made()
	if spilled != nil {
		made = spilled
	}
	return made, err
}
