// Memory layout and graph edges for plans that were made by hand or read from a file.

package planner

import (
	"context"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/layout"
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// LayoutMemory places every device buffer of a plan anew and fills in Memory, Kept, Stats.PeakDeviceBytes and Stats.SumDeviceBytes. Use it
// for schedules made by hand; plans from [New] have a layout. Of the options, only KeepAll, Keep and Effort are used.
//
// Two buffers share bytes only if the plan orders every access to one before every access to the other. A buffer keeps bytes of its own for
// the whole program if it has an init, a save or an expect, if any of its bytes is read before it is written, or if the options ask for it.
//
// With more effort than Quick this can take seconds. If the context ends, so does the search: the memory is then the best layout so
// far, and the error is the context's.
func LayoutMemory(ctx context.Context, g *dag.Graph, p *Plan, o Options) error {
	if ctx == nil {
		return fmt.Errorf("there is no context; context.Background() is one that never ends: %w", place.ErrBadOption)
	}
	if err := proof.CheckOps(g, p); err != nil {
		return err
	}
	kept, err := keptBy(g, o)
	if err != nil {
		return err
	}
	if err := layout.Memory(ctx, g, p, kept, o.Effort); err != nil {
		return err
	}
	return ctx.Err()
}

// keptBy tells for each buffer whether it must keep bytes of its own, because of the graph or the options.
func keptBy(g *dag.Graph, o Options) ([]bool, error) {
	kept := layout.Kept(g)
	for _, b := range o.Keep {
		if b < 0 || int(b) >= len(g.Buffers) {
			return nil, fmt.Errorf("Options.Keep names buffer %d, but the graph has only %d buffers: %w", b, len(g.Buffers), place.ErrBadOption)
		}
		kept[b] = true
	}
	for i := range kept {
		kept[i] = kept[i] || o.KeepAll
	}
	return kept, nil
}

// PeakBuffers returns, for each device with buffers, those that can be alive at the same time and have the most bytes, the largest first.
// The error is a *Violation if the plan is not a schedule of the graph.
func PeakBuffers(g *dag.Graph, p *Plan) ([]plan.Peak, error) {
	if err := proof.CheckOps(g, p); err != nil {
		return nil, err
	}
	if err := proof.CheckPlaced(g, p); err != nil {
		return nil, err
	}
	kept, err := keptBy(g, Options{Keep: p.Kept})
	if err != nil {
		return nil, err
	}
	return layout.PeakBuffers(g, p, kept)
}

// GraphEdges returns the edges that a CUDA graph of a plan needs: the transitive reduction of what happens before what in the
// plan, stream order included, because buffers that share bytes rely on it. They come in submission order of To, so that a
// graph can be built by walking the list, and by From among those with the same To. If several nodes have no predecessor, each of them
// gets an edge from GraphRoot.
//
// The plan must have passed [Verify]. GraphEdges itself checks only what would make the walk unsafe.
func GraphEdges(g *dag.Graph, p *Plan) ([]plan.GraphEdge, error) {
	if err := proof.CheckOps(g, p); err != nil {
		return nil, err
	}
	return layout.Edges(p, g.Len()), nil
}
