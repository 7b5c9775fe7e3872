// Wait insertion: finds the fewest waits that enforce every dependency of an assignment. Moves no node.

package place

import (
	"slices"

	"github.com/dagrun/dagrun/planner/internal/scratch"
)

// clockWords bounds the memory that vector clocks take. 50,000 nodes on 10,000 streams would need 2 GB at once, so clocks are
// kept for a block of streams at a time.
const clockWords = 16 << 20

// leastBlock is the smallest number of streams in a block, so that large graphs on few streams are walked once.
const leastBlock = 16

// sort fills the list from waits that are known in submission order.
func (w *waitList) sort(order, count, from []int32) {
	w.start, w.from = scratch.Sized(w.start, len(order)+1), scratch.Sized(w.from, len(from))
	w.start[0] = 0
	for i, c := range count {
		w.start[i+1] = w.start[i] + c
	}
	at := int32(0)
	for _, i := range order {
		for k := w.start[i]; k < w.start[i+1]; k++ {
			w.from[k] = from[at]
			at++
		}
	}
}

func (w *waitList) of(i int32) []int32 { return w.from[w.start[i]:w.start[i+1]] }

// insertWaits finds the waits that an assignment needs. Stream order and waits together must give the order that dependencies and stream
// order give. So the waits are the edges between streams that the transitive reduction of that order keeps. This set is unique and the
// smallest.
func insertWaits(p *Problem, s *Assignment) (*waitList, error) {
	n := p.len()
	if s.waits != nil {
		return s.waits, nil
	}
	if p.explicit {
		return declaredWaits(p, s), nil
	}
	p, err := p.resolved(s)
	if err != nil {
		return nil, err
	}
	if len(s.streams) > leastBlock && len(s.streams) > n/64 {
		return reducedWaits(p, s)
	}
	block := leastBlock
	if n > 0 {
		block = max(leastBlock, clockWords/n)
	}
	return clockedWaits(p, s, block)
}

// clockedWaits finds the waits with vector clocks over that many streams at a time.
func clockedWaits(p *Problem, s *Assignment, block int) (*waitList, error) {
	n := p.len()
	position := make([]int32, n) // on its stream, from 1
	length := make([]int32, len(s.streams))
	for _, i := range s.order {
		k := s.stream[i]
		length[k]++
		position[i] = length[k]
	}
	width := min(len(s.streams), block)
	c := reach{p: p, s: s, position: position, width: int32(width)}
	c.clock = make([]int32, n*width)
	c.direct = make([]int32, width)
	c.source = make([]int32, width)
	c.last = make([]int32, len(s.streams))
	start := make([]int32, n+1)
	var to, from []int32
	for lo := 0; lo < len(s.streams); lo += width {
		if err := p.ctx.Err(); err != nil {
			return nil, err
		}
		to, from = c.walk(int32(lo), start, to, from)
	}
	w := &waitList{start: start}
	if width == len(s.streams) && isAscending(s.order) {
		w.from = from
	} else {
		w.from = make([]int32, len(from))
	}
	for i := range n {
		start[i+1] += start[i]
	}
	if len(from) > 0 && &w.from[0] != &from[0] {
		next := slices.Clone(start[:n])
		for k, i := range to {
			w.from[next[i]] = from[k]
			next[i]++
		}
	}
	return w, nil
}

func isAscending(order []int32) bool {
	for k, i := range order {
		if int32(k) != i {
			return false
		}
	}
	return true
}

// reach holds one vector clock per node over a block of streams: the last position of each other stream that comes before the node.
type reach struct {
	p        *Problem
	s        *Assignment
	position []int32
	width    int32
	clock    []int32 // of node i: clock[i*width:(i+1)*width]
	direct   []int32 // position of the latest direct predecessor, by stream of the block
	source   []int32 // that predecessor
	last     []int32 // the last node of each stream so far, plus 1
}

// walk finds the waits on the streams lo to lo+width-1.
func (c *reach) walk(lo int32, count, to, from []int32) ([]int32, []int32) {
	width, stream, position := c.width, c.s.stream, c.position
	hi := min(lo+width, int32(len(c.s.streams)))
	touched := make([]int32, 0, width)
	clear(c.last)
	for _, i := range c.s.order {
		own := stream[i]
		mine := c.clock[i*width : (i+1)*width]
		if q := c.last[own]; q > 0 {
			copy(mine, c.clock[(q-1)*width:q*width])
		} else {
			clear(mine)
		}
		c.last[own] = i + 1
		// Later predecessors imply more of the others, so they come first.
		preds := c.p.preds(i)
		for k := len(preds) - 1; k >= 0; k-- {
			q := preds[k]
			t := stream[q]
			if t == own {
				continue
			}
			if t >= lo && t < hi {
				if position[q] <= mine[t-lo] {
					continue // and so is everything before q
				}
				switch d := c.direct[t-lo]; {
				case d == 0:
					touched = append(touched, t-lo)
				case d > position[q]:
					continue
				}
				c.direct[t-lo] = position[q]
				c.source[t-lo] = q
			}
			theirs := c.clock[q*width : (q+1)*width]
			for b, v := range theirs[:len(mine)] {
				mine[b] = max(mine[b], v)
			}
		}
		if len(touched) > 1 {
			slices.Sort(touched)
		}
		for _, b := range touched {
			if c.direct[b] > mine[b] {
				mine[b] = c.direct[b]
				count[i+1]++
				to = append(to, i)
				from = append(from, c.source[b])
			}
			c.direct[b] = 0
		}
		touched = touched[:0]
	}
	return to, from
}

// reducedWaits finds the same waits by sets of nodes rather than clocks of streams. It is faster where there is more than one
// stream for each word of such a set.
func reducedWaits(p *Problem, s *Assignment) (*waitList, error) {
	n := p.len()
	before := make([]int32, n)
	last := make([]int32, len(s.streams))
	for _, i := range s.order {
		before[i] = last[s.stream[i]] - 1
		last[s.stream[i]] = i + 1
	}
	keep, first, err := reduce(p, s.order, before)
	if err != nil {
		return nil, err
	}
	w := &waitList{start: make([]int32, n+1)}
	for i := range int32(n) {
		for k, q := range p.preds(i) {
			if keep[first[i]+int32(k)] && s.stream[q] != s.stream[i] {
				w.from = append(w.from, q)
			}
		}
		w.start[i+1] = int32(len(w.from))
	}
	return w, nil
}

// declaredWaits returns the waits of a pipeline with sync: explicit: every after: between two streams, as it was written.
func declaredWaits(p *Problem, s *Assignment) *waitList {
	w := &waitList{start: make([]int32, p.len()+1)}
	for i := range p.g.Nodes {
		first := len(w.from)
		for _, q := range Numbers(p.g.Nodes[i].After) {
			if s.stream[q] != s.stream[i] && !slices.Contains(w.from[first:], q) {
				w.from = append(w.from, q)
			}
		}
		w.start[i+1] = int32(len(w.from))
	}
	return w
}

// resolved returns the problem without joins for an assignment, in which nodes depend on the last node of each stream only.
func (p *Problem) resolved(s *Assignment) (*Problem, error) {
	if !p.joined() {
		return p, nil
	}
	place := make([]int32, p.len())
	for k, i := range s.order {
		place[i] = int32(k)
	}
	r := p.newResolver(len(s.streams), func(i int32) int32 { return s.stream[i] }, func(a, b int32) bool { return place[a] > place[b] })
	count := make([]int32, p.len()+1)
	pred := make([]int32, 0, len(p.pred))
	for _, i := range s.order {
		before := r.before(i)
		count[i+1] = int32(len(before))
		pred = append(pred, before...)
		if err := p.tooMany(len(pred)+len(r.nodes), len(s.streams)); err != nil {
			return nil, err
		}
	}
	q := *p
	q.adjacency = adjacency{predStart: count, pred: make([]int32, len(pred))}
	for i := range p.len() {
		count[i+1] += count[i]
	}
	for _, i := range s.order {
		at := count[i]
		pred = pred[copy(q.pred[at:count[i+1]], pred):]
	}
	return &q, nil
}
