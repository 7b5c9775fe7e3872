// The walk: follows the contents of buffers through the declared order, and finds the copies that a placement needs.

package spread

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

// walk lists the steps of a placement.
func walk(p *Problem, at []int32) *walker {
	g := p.Graph
	w := &walker{p: p, at: at, homes: homes(p, at), runs: make([]runs, len(g.Buffers)), steps: make([]step, 0, g.Len()+g.Len()/4)}
	for k := range g.Buffers {
		b := dag.BufferID(k)
		if p.stays[b] || g.Buffers[k].Bytes == 0 {
			continue
		}
		holders := uint64(0)
		switch {
		case p.constant(b), planted.Is(planted.Carried) && p.whole(b):
			holders = 1<<p.Devices - 1
			if p.Devices == 64 {
				holders = ^uint64(0)
			}
		case p.whole(b):
			holders = 1 << w.homes[k]
		default:
			continue
		}
		w.runs[k] = runs{{lo: 0, hi: p.spaces[k].size(g.Buffers[k].Bytes), holders: holders}}
	}
	for i := range g.Nodes {
		w.visit(&p.levels[0], dag.NodeID(i))
	}
	w.finish()
	w.plantIn(&w.steps)
	return w
}

// visit lists the copies that a node needs, and the node.
func (w *walker) visit(l *level, i dag.NodeID) {
	node, number := &l.graph.Nodes[i], l.first+int32(i)
	if node.Control != nil {
		w.control(l, i)
		return
	}
	at, accesses := w.at[number], l.graph.Accesses(i)
	own := step{node: i, number: number, source: at}
	w.moved = w.moved[:0]
	if node.Copy != nil {
		own.source = w.source(node, at)
	} else {
		for _, a := range accesses {
			if a.Mode&dag.Read != 0 {
				w.need(a.Range, at, node.Priority)
			}
		}
	}
	w.steps = append(w.steps, w.moved...)
	w.steps = append(w.steps, own)
	for _, a := range accesses {
		if a.Mode&dag.Write != 0 && !w.p.stays[a.Buffer] && a.Lo < a.Hi {
			w.write(a.Range, at)
		}
	}
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

// move adds a copy. Neighbours that come from the same device come together.
func (w *walker) move(s step) {
	for k := len(w.moved) - 1; k >= 0; k-- {
		last := &w.moved[k]
		if last.moved.Buffer != s.moved.Buffer {
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

// finish brings home what the next replay, or whoever reads the results, expects there.
func (w *walker) finish() {
	w.moved = w.moved[:0]
	for k := range w.runs {
		b := dag.BufferID(k)
		if w.runs[k] == nil || w.p.constant(b) || !w.p.early[b] && !w.p.keep[b] {
			continue
		}
		w.need(dag.Range{Buffer: b, Lo: 0, Hi: w.p.Graph.Buffers[k].Bytes}, w.homes[k], dag.Normal)
	}
	w.steps = append(w.steps, w.moved...)
}

// plantAt makes the mistake that a test asks for in copy k of a list of steps. It reports whether there is nothing left to do.
func (w *walker) plantAt(list *[]step, k int) bool {
	s := &(*list)[k]
	switch {
	case planted.Is(planted.Missing):
		*list = append((*list)[:k], (*list)[k+1:]...)
		return true
	case planted.Is(planted.Late) && k+1 < len(*list) && (*list)[k+1].node != plan.Inserted:
		(*list)[k], (*list)[k+1] = (*list)[k+1], (*list)[k]
		return true
	case planted.Is(planted.Source):
		for d := range int32(w.p.Devices) {
			if d != s.from && d != s.to {
				s.from = d
				return true
			}
		}
	}
	return false
}

// homes returns the device of each buffer that holds all of it where that is needed: the one whose nodes use the most of its bytes.
func homes(p *Problem, at []int32) []int32 {
	g := p.Graph
	used := make([]int64, len(g.Buffers)*p.Devices)
	for n := range p.levels {
		l := &p.levels[n]
		for i := range l.graph.Nodes {
			if l.graph.Nodes[i].Control != nil {
				continue
			}
			for _, a := range l.graph.Accesses(dag.NodeID(i)) {
				used[int(a.Buffer)*p.Devices+int(at[l.first+int32(i)])] += a.Range.Bytes()
			}
		}
	}
	list := make([]int32, len(g.Buffers))
	for k := range g.Buffers {
		if p.stays[k] {
			list[k] = g.Buffers[k].Device
			continue
		}
		best := int64(0)
		for d := range p.Devices {
			if n := used[k*p.Devices+d]; n > best {
				best, list[k] = n, int32(d)
			}
		}
	}
	return list
}
