// The walk: follows the contents of buffers through the declared order, and finds the copies that a placement needs.

package placement

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
)

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
		if a.Mode&dag.Write != 0 && !w.p.stays[a.Buffer] {
			w.write(a.Range, at)
		}
	}
}

// control lists the steps of a loop or branch.
//
// Every byte that its bodies may write has a place of return: the device of the node that writes it last. A pass begins with it there, if it needs
// it at all, and ends with it there, so passes can follow each other, and bodies take each other's place. Elsewhere it counts as unknown when a
// pass begins. Bytes that a loop only reads are brought to its nodes once, before the loop.
func (w *walker) control(l *level, i dag.NodeID) {
	number := l.first + int32(i)
	node, at := &l.graph.Nodes[i], w.at[number]
	c, loop := node.Control, node.Kind == dag.Repeat
	returns := w.returns(number, nil)
	tested := func() {
		if c.Condition != nil {
			for _, r := range c.Condition.Operands {
				w.need(r, at, node.Priority)
			}
		}
	}
	w.moved = w.moved[:0]
	if !loop || c.While {
		tested()
	}
	for _, a := range l.graph.Accesses(i) {
		if a.Mode&dag.Read != 0 || w.p.keep[a.Buffer] && c.MayOnly(a.Range) {
			w.carry(returns, a.Range, node.Priority)
		}
	}
	if loop {
		w.bring(returns, number, node.Priority)
	}
	own := step{node: i, number: number, source: at, bodies: make([][]step, 0, len(c.Bodies))}
	around := append(w.steps, w.moved...)
	for _, b := range returns {
		for _, r := range b.runs {
			w.runs[b.buffer].write(r.lo, r.hi, r.holders)
		}
	}
	begin := w.remember(l.graph.Accesses(i))
	for _, k := range w.p.inner[number] {
		body := &w.p.levels[k]
		w.steps = nil
		for j := range body.graph.Nodes {
			w.visit(body, dag.NodeID(j))
		}
		w.moved = w.moved[:0]
		for _, b := range returns {
			for j := range b.runs {
				r := &b.runs[j]
				w.needPlaces(b.buffer, interval{r.lo, r.hi}, r.holder(), node.Priority)
			}
		}
		if loop {
			tested()
		}
		own.bodies = append(own.bodies, append(w.steps, w.moved...))
		for _, b := range begin {
			w.runs[b.buffer] = b.runs.clone()
		}
	}
	w.steps = append(around, own)
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

// plantIn makes the mistake that a test asks for in the last copy of a list of steps or of bodies in it. It reports whether there was one.
func (w *walker) plantIn(list *[]step) bool {
	for k := len(*list) - 1; k >= 0; k-- {
		s := &(*list)[k]
		for j := len(s.bodies) - 1; j >= 0; j-- {
			if w.plantIn(&s.bodies[j]) {
				return true
			}
		}
		if s.node == plan.Inserted && w.plantAt(list, k) {
			return true
		}
	}
	return false
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
