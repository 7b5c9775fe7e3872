// Spreading and spilling together: several devices, and more data than all of them have memory for.

package planner

import (
	"context"
	"errors"

	"github.com/dagrun/dagrun/dag"
)

// SpreadGraph makes a graph over Options.Devices devices from one that says which of its buffers and nodes may be on any: those that are not
// Fixed. Each device gets memory for what its nodes use, and copies between devices are inserted. [VerifySpread] has proved that the results are
// the same, bit by bit. Plan and run the Graph of the result like any other.
//
// With the policy auto, several placements are planned and simulated, and the fastest is kept: that of a search, or of any of the policies. All
// work stays on one device if that is fastest. A placement that needs more memory than Options.MemoryCap, or than a device of the machine has,
// is not taken. Where none fits, Options.Spill allows copies to host memory and back; see [SpillGraph].
//
// Errors match ErrCannotSpread, ErrBadOption, ErrMemoryCap or the context's error.
func SpreadGraph(ctx context.Context, g *dag.Graph, o Options) (*Spread, error) {
	s, err := newSpreading(ctx, g, o)
	if err != nil {
		return nil, err
	}
	made, err := s.placed(ctx)
	if !o.Spill || err != nil && !errors.Is(err, ErrMemoryCap) {
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
