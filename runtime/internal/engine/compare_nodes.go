// Two programs of one graph, run in step: the first node whose results differ.

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime/internal/arrays"
)

// Difference is the first node whose results differ between two programs.
type Difference struct {
	Node   string       `json:"node"`
	Replay int          `json:"replay"` // counts from 0
	Check  arrays.Check `json:"check"`
}

// CompareNodes replays two programs of the same graph node by node and returns the first difference between what nodes wrote, or nil.
func CompareNodes(ctx context.Context, got, want *Program, replays int) (found *Difference, err error) {
	if got == nil || want == nil {
		return nil, errors.New("two programs are needed to compare their nodes")
	}
	a, err := got.alone(ctx)
	if err != nil {
		return nil, err
	}
	defer a.close()
	b, err := want.alone(ctx)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if len(a.steps) != len(b.steps) {
		return nil, fmt.Errorf("the programs have %d and %d commands: their plans differ", len(a.steps), len(b.steps))
	}
	for replay := range replays {
		for i := range a.steps {
			node := a.steps[i].command.Node
			if node != b.steps[i].command.Node {
				return nil, fmt.Errorf("the programs run %q and %q in the same place: their plans differ", a.steps[i].command.Label, b.steps[i].command.Label)
			}
			got.report(StageNode+a.steps[i].command.Label, replay, replays)
			if err := errors.Join(a.run(ctx, i, replay), b.run(ctx, i, replay)); err != nil {
				return nil, err
			}
			if i+1 < len(a.steps) && a.steps[i+1].command.Node == node {
				continue
			}
			check, err := got.compareWritten(ctx, want, dag.NodeID(node))
			if err != nil {
				return nil, err
			}
			if check != nil {
				return &Difference{Node: got.graph.Nodes[node].Name, Replay: replay, Check: *check}, nil
			}
		}
	}
	return nil, nil
}

// compareWritten compares what a node has written in two programs; nil: nothing differs.
func (p *Program) compareWritten(ctx context.Context, want *Program, node dag.NodeID) (differs *arrays.Check, err error) {
	for _, access := range p.graph.Accesses(node) {
		b := &p.graph.Buffers[access.Buffer]
		size := b.DType.Size()
		if access.Mode&dag.Write == 0 || b.Scratch || size == 0 {
			continue
		}
		lo, hi := access.Lo/size, (access.Hi+size-1)/size
		elements := access.Bytes() / size
		if !access.Tile() {
			elements = hi - lo
		}
		err := p.contents(ctx, int32(access.Buffer), func(mine []byte) error {
			return want.contents(ctx, int32(access.Buffer), func(theirs []byte) error {
				part := *b
				part.Shape = []int64{elements}
				part.Bytes = elements * size
				rtol, atol := arrays.Tolerance(b)
				if e := b.Expect; e != nil && e.Norm != dag.NoNorm { // that tolerance is for all elements together
					rtol, atol = arrays.ElementTolerance(b.DType)
				}
				c, numbers := arrays.Comparison(&part, want.platform.Name()+" device", rtol, atol)
				p.judgeCalls(&c, b)
				if err := arrays.CompareWith(ctx, &c, numbers, rowsOf(mine[lo*size:hi*size], access.Range), rowsOf(theirs[lo*size:hi*size], access.Range)); err != nil {
					return err
				}
				if !c.OK {
					differs = &c
				}
				return nil
			})
		})
		if err != nil || differs != nil {
			return differs, err
		}
	}
	return nil, nil
}

// rowsOf returns the rows of a tile one behind the other, given the bytes from its first to its last.
func rowsOf(hull []byte, r dag.Range) []byte {
	if !r.Tile() {
		return hull
	}
	_, width := r.Box()
	rows := make([]byte, 0, r.Bytes())
	for at := int64(0); at < int64(len(hull)); at += int64(r.Pitch) {
		rows = append(rows, hull[at:at+width]...)
	}
	return rows
}
