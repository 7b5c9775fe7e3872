// What loops and branches need besides their nodes: what they may write returns somewhere, and what they only read is brought before them.

package placement

import (
	"math/bits"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// bufferRuns are runs of one buffer.
type bufferRuns struct {
	buffer dag.BufferID
	runs   runs
}

// holder is the first device that holds a run.
func (r *run) holder() int32 { return int32(bits.TrailingZeros64(r.holders)) }

func (r runs) clone() runs {
	list := slices.Clone(r)
	for k := range list {
		list[k].free = slices.Clone(list[k].free)
	}
	return list
}

// remember returns what devices hold of the buffers of some accesses.
func (w *walker) remember(accesses []dag.Access) []bufferRuns {
	var list []bufferRuns
	for _, a := range accesses {
		if !w.p.stays[a.Buffer] && !slices.ContainsFunc(list, func(b bufferRuns) bool { return b.buffer == a.Buffer }) {
			list = append(list, bufferRuns{a.Buffer, w.runs[a.Buffer].clone()})
		}
	}
	return list
}

// returns adds the bytes that the bodies of a loop or branch may write, held by the device of the node that writes them last. Where two bodies of
// a branch write the same, the first decides.
func (w *walker) returns(number int32, list []bufferRuns) []bufferRuns {
	bodies := w.p.inner[number]
	for k := len(bodies) - 1; k >= 0; k-- {
		l := &w.p.levels[bodies[k]]
		for i := range l.graph.Nodes {
			inner := l.first + int32(i)
			if l.graph.Nodes[i].Control != nil {
				list = w.returns(inner, list)
				continue
			}
			for _, a := range l.graph.Accesses(dag.NodeID(i)) {
				if a.Mode&dag.Write == 0 || w.p.stays[a.Buffer] || a.Lo >= a.Hi {
					continue
				}
				at := slices.IndexFunc(list, func(b bufferRuns) bool { return b.buffer == a.Buffer })
				if at < 0 {
					at = len(list)
					list = append(list, bufferRuns{buffer: a.Buffer})
				}
				for _, x := range w.intervals(a.Range) {
					list[at].runs.write(x.lo, x.hi, 1<<w.at[inner])
				}
			}
		}
	}
	return list
}

// carry brings what a loop or branch needs of what it may write to where each pass begins with it.
func (w *walker) carry(returns []bufferRuns, r dag.Range, priority dag.Priority) {
	for _, b := range returns {
		if b.buffer != r.Buffer {
			continue
		}
		for _, x := range w.intervals(r) {
			for k := range b.runs {
				s := &b.runs[k]
				if lo, hi := max(s.lo, x.lo), min(s.hi, x.hi); lo < hi {
					w.needPlaces(b.buffer, interval{lo, hi}, s.holder(), priority)
				}
			}
		}
	}
}

// bring brings what a loop only reads to all devices that read it.
func (w *walker) bring(returns []bufferRuns, number int32, priority dag.Priority) {
	read := func(r dag.Range, to int32) {
		if w.p.stays[r.Buffer] || r.Lo >= r.Hi {
			return
		}
		var written runs
		for _, b := range returns {
			if b.buffer == r.Buffer {
				written = b.runs
			}
		}
		for _, x := range w.intervals(r) {
			for k := range written {
				s := &written[k]
				if s.hi <= x.lo || s.lo >= x.hi {
					continue
				}
				if x.lo < s.lo {
					w.needPlaces(r.Buffer, interval{x.lo, s.lo}, to, priority)
				}
				x.lo = s.hi
			}
			if x.lo < x.hi {
				w.needPlaces(r.Buffer, x, to, priority)
			}
		}
	}
	condition := func(c *dag.Control, to int32) {
		if c.Condition != nil {
			for _, r := range c.Condition.Operands {
				read(r, to)
			}
		}
	}
	own := w.p.levelOf(number)
	condition(own.graph.Nodes[number-own.first].Control, w.at[number])
	w.p.within(number, func(l *level, i dag.NodeID) {
		node, to := &l.graph.Nodes[i], w.at[l.first+int32(i)]
		switch {
		case node.Control != nil:
			condition(node.Control, to)
		case node.Copy != nil: // it can read from any device that has all of it
		default:
			for _, a := range l.graph.Accesses(i) {
				if a.Mode&dag.Read != 0 {
					read(a.Range, to)
				}
			}
		}
	})
}

// eachStep calls visit with every step, those of bodies included, in order.
func eachStep(steps []step, visit func(s *step)) {
	for k := range steps {
		visit(&steps[k])
		for _, body := range steps[k].bodies {
			eachStep(body, visit)
		}
	}
}
