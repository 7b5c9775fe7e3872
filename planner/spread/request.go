// What New and Spill were asked for, with defaults filled in.

package spread

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
)

// request holds the arguments with defaults filled in.
type request struct {
	ctx       context.Context
	g         *dag.Graph
	o         Options
	limited   bool // the user gave Streams
	durations []float64
}

func newRequest(ctx context.Context, g *dag.Graph, o Options) (*request, error) {
	limited := o.Streams > 0
	o.Spread = nil
	resolved, err := planner.Resolve(ctx, g, o.Options)
	if err != nil {
		return nil, err
	}
	o.Options = resolved
	return &request{ctx: ctx, g: g, o: o, limited: limited, durations: model.Durations(g, o.Machine, o.Profile)}, nil
}

// marked tells for each buffer of a graph whether a list names it.
func marked(g *dag.Graph, list []dag.BufferID) ([]bool, error) {
	keep := make([]bool, len(g.Buffers))
	for _, b := range list {
		if b < 0 || int(b) >= len(keep) {
			return nil, fmt.Errorf("Options.Keep names buffer %d, but the graph has only %d buffers: %w", b, len(g.Buffers), place.ErrBadOption)
		}
		keep[b] = true
	}
	return keep, nil
}
