// The state of a walk, and the copies that bring bytes to a device.

package placement

import (
	"math/bits"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
)

// step is a node of the graph that is being made: a node of the original, or a copy between devices.
type step struct {
	node     dag.NodeID // of its level; plan.Inserted for a copy
	number   int32      // of the node
	source   int32      // of a copy of the original: the device that it reads from
	moved    dag.Range  // of a copy
	from, to int32
	priority dag.Priority
	bodies   [][]step // of a loop or branch
}

// walker follows contents.
type walker struct {
	p     *Problem
	at    []int32 // by number of a node
	homes []int32 // by buffer: the device that has all of it
	runs  []runs  // by buffer; nil where they do not matter
	steps []step
	moved []step // the copies for the node that is being visited
	list  []interval
}

func (w *walker) write(r dag.Range, at int32) {
	for _, x := range w.intervals(r) {
		holders := uint64(1) << at
		if planted.Is(planted.Stale) {
			holders |= w.runs[r.Buffer].common(x.lo, x.hi)
		}
		w.runs[r.Buffer].write(x.lo, x.hi, holders)
	}
}

// intervals are those of a range; they are valid until the next call.
func (w *walker) intervals(r dag.Range) []interval {
	w.list = w.p.spaces[r.Buffer].of(r, w.list[:0])
	return w.list
}

// source returns the device that a copy of the original reads from: one that has all of the source, if possible its own.
func (w *walker) source(node *dag.Node, at int32) int32 {
	src := node.Copy.Src
	if w.p.stays[src.Buffer] || src.Lo >= src.Hi {
		return w.p.where(src.Buffer, at)
	}
	holders := ^uint64(0)
	for _, x := range w.intervals(src) {
		holders &= w.runs[src.Buffer].common(x.lo, x.hi)
	}
	switch {
	case holders>>at&1 != 0:
		return at
	case holders != 0 && !node.Fixed:
		return int32(bits.TrailingZeros64(holders))
	}
	w.need(src, at, node.Priority)
	return at
}

// need makes a device hold a range.
func (w *walker) need(r dag.Range, to int32, priority dag.Priority) {
	if w.p.stays[r.Buffer] || r.Lo >= r.Hi {
		return
	}
	for _, x := range w.intervals(r) {
		w.needPlaces(r.Buffer, x, to, priority)
	}
}

// needPlaces makes a device hold an interval of a buffer.
func (w *walker) needPlaces(b dag.BufferID, x interval, to int32, priority dag.Priority) {
	list, s := &w.runs[b], &w.p.spaces[b]
	first, end := list.cut(x.lo, x.hi)
	for k := first; k < end; k++ {
		run := &(*list)[k]
		if run.holders>>to&1 != 0 {
			continue
		}
		from := run.send(to, w.p.Devices)
		if from < 0 {
			continue
		}
		for _, moved := range s.ranges(b, interval{run.lo, run.hi}) {
			w.move(step{node: plan.Inserted, moved: moved, from: from, to: to, priority: priority})
		}
	}
}

// move adds a copy. Neighbours that come from the same device come together, unless a copy in between brings that device what it sends.
func (w *walker) move(s step) {
	for k := len(w.moved) - 1; k >= 0; k-- {
		last := &w.moved[k]
		if last.moved.Buffer != s.moved.Buffer {
			break
		}
		if last.to == s.from && last.moved.Overlaps(s.moved) {
			break
		}
		if last.from != s.from || last.to != s.to {
			continue
		}
		if joined, ok := w.p.spaces[s.moved.Buffer].below(last.moved, s.moved); ok {
			last.moved = joined
			return
		}
	}
	w.moved = append(w.moved, s)
}
