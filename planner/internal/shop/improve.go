// The whole search for a short schedule, and its local search: moves operations earlier or later, and keeps the order unless it is much worse.

package shop

import (
	"context"
	"slices"
)

// Best searches for a schedule with a small makespan. seeds are orders to start from, at least one; each has all operations and is
// topological. steps limits how many operations are placed, but the seeds and Johnson's rule are always tried. enough is a makespan at
// which the search may stop, such as a lower bound; 0 for none.
func Best(ctx context.Context, w *Work, seeds [][]int32, enough float64, steps int) (Schedule, error) {
	s := newSearch(w, steps)
	s.enough = enough * (1 + near)
	for _, order := range seeds {
		s.offer(order)
	}
	s.measureTails()
	jobs := Jobs(w)
	if jobs.Count >= fewestJobs && !s.done() {
		d := newDispatcher(s, jobs)
		d.construct(ctx)
	}
	if !s.done() {
		s.improve(ctx, jobs)
	}
	return s.schedule(), ctx.Err()
}

// An order may not be worse than the one of some rounds ago (late acceptance). That number of rounds is the total number divided by
// patience, within limits: the longer the search may take, the longer it should accept worse orders.
const (
	patience  = 30
	leastPast = 50
	mostPast  = 20_000
)

// improve changes the best order until the steps are spent.
func (s *search) improve(ctx context.Context, jobs Grouping) {
	w := s.w
	n := w.Len()
	if n < 2 {
		return
	}
	h := &improver{s: s, jobs: jobs, order: slices.Clone(s.best), place: make([]int32, n), marked: make([]bool, n)}
	if jobs.Count >= fewestJobs {
		h.members = jobs.members(s.best)
	}
	h.number(0, n)
	h.current, h.next, h.spots = newMarks(s), newMarks(s), make([]spot, n)
	makespan := h.placeAll()
	h.trace(makespan)
	past := slices.Repeat([]float64{makespan}, max(leastPast, min(mostPast, s.steps/n/patience)))
	for round := 0; s.steps >= n && !s.done(); round++ {
		if round%(checkEvery*checkEvery) == 0 && ctx.Err() != nil {
			return
		}
		// Sums along one path differ in their last bits.
		limit := max(makespan, past[round%len(past)]) * (1 + near)
		if !h.change() {
			s.steps-- // count failed attempts too, so that the search ends
			continue
		}
		if reached, ok := h.try(limit); ok {
			makespan = reached
			h.trace(makespan)
			if makespan < s.makespan {
				s.makespan = makespan
				copy(s.best, h.order)
			}
		} else {
			h.undoChange()
		}
		past[round%len(past)] = min(past[round%len(past)], makespan)
	}
}

// number notes the places of the operations from one place to another.
func (h *improver) number(from, to int) {
	for k := from; k < to; k++ {
		h.place[h.order[k]] = int32(k)
	}
}

// trace collects the operations of the critical path that were delayed only by their lane.
func (h *improver) trace(makespan float64) {
	s := h.s
	h.critical = h.critical[:0]
	at := int32(-1)
	for _, i := range s.latest {
		if i >= 0 && s.spots[i].end == makespan {
			at = i
		}
	}
	for at >= 0 {
		i := at
		at = -1
		if q := s.spots[i].before; q >= 0 && s.spots[q].end == s.spots[i].begin {
			h.critical = append(h.critical, held{i, q})
			at = q
			continue
		}
		for _, q := range s.w.preds(i) {
			if at < 0 || s.spots[q].end > s.spots[at].end {
				at = q
			}
		}
		if at >= 0 && s.w.Issue > 0 && s.spots[at].end+s.w.Lag < s.spots[i].begin {
			at = -1 // it was delayed by the host
		}
	}
}

// change makes one change that can be undone. It returns false if the change that it tried is not possible.
func (h *improver) change() bool {
	s := h.s
	n := len(h.order)
	if len(h.critical) > 0 && s.random.Below(3) > 0 {
		// Move an operation of a block before another one of it, or the other one after it.
		first := s.random.Below(len(h.critical))
		last := first
		for last+1 < len(h.critical) && h.critical[last+1].op == h.critical[last].before && s.random.Below(3) > 0 {
			last++
		}
		i, j := h.critical[first].op, h.critical[last].before
		if s.random.Below(2) == 0 {
			return h.earlier(int(h.place[i]), int(h.place[j]))
		}
		return h.later(int(h.place[j]), int(h.place[i]))
	}
	if h.members != nil && s.random.Below(2) == 0 {
		return h.beforeJob(int32(s.random.Below(h.jobs.Count)), int32(s.random.Below(h.jobs.Count)))
	}
	from := s.random.Below(n)
	reach := 1 + s.random.Below(n)
	if s.random.Below(2) == 0 {
		reach = 1 + s.random.Below(min(n, 8))
	}
	if s.random.Below(2) == 0 {
		return h.earlier(from, max(0, from-reach))
	}
	return h.later(from, min(n-1, from+reach))
}

// earlier moves the operation at a place to an earlier place, together with what it depends on in between.
func (h *improver) earlier(from, to int) bool {
	if from <= to {
		return false
	}
	h.keep(to, from+1)
	h.moved, h.rest = h.moved[:0], h.rest[:0]
	h.marked[h.order[from]] = true
	for k := from; k >= to; k-- {
		i := h.order[k]
		if !h.marked[i] {
			h.rest = append(h.rest, i)
			continue
		}
		h.moved = append(h.moved, i)
		h.marked[i] = false
		for _, q := range h.s.w.preds(i) {
			if int(h.place[q]) >= to {
				h.marked[q] = true
			}
		}
	}
	if len(h.rest) == 0 {
		return false
	}
	k := to
	for at := len(h.moved) - 1; at >= 0; at-- {
		h.order[k] = h.moved[at]
		k++
	}
	for at := len(h.rest) - 1; at >= 0; at-- {
		h.order[k] = h.rest[at]
		k++
	}
	h.number(to, from+1)
	return true
}

// later moves the operation at a place to a later place, together with what depends on it in between.
func (h *improver) later(from, to int) bool {
	if from >= to {
		return false
	}
	h.keep(from, to+1)
	h.moved, h.rest = h.moved[:0], h.rest[:0]
	h.marked[h.order[from]] = true
	for k := from; k <= to; k++ {
		i := h.order[k]
		if !h.marked[i] {
			h.rest = append(h.rest, i)
			continue
		}
		h.moved = append(h.moved, i)
		h.marked[i] = false
		for _, next := range h.s.succs.of(i) {
			if int(h.place[next]) <= to {
				h.marked[next] = true
			}
		}
	}
	if len(h.rest) == 0 {
		return false
	}
	k := from + copy(h.order[from:], h.rest)
	copy(h.order[k:], h.moved)
	h.number(from, to+1)
	return true
}

// beforeJob moves all operations of a job so that it comes right before another job on each machine.
func (h *improver) beforeJob(a, b int32) bool {
	if a == b {
		return false
	}
	h.keep(0, len(h.order))
	mine := h.members[a]
	k := 0
	put := func(i int32) {
		h.order[k] = i
		k++
	}
	for _, i := range h.undo {
		switch h.jobs.Of[i] {
		case a:
			continue
		case b:
			last := -1
			for at, own := range mine {
				if h.s.w.Machine[own] == h.s.w.Machine[i] {
					last = at
				}
			}
			for _, own := range mine[:last+1] {
				put(own)
			}
			mine = mine[last+1:]
		}
		put(i)
	}
	for _, own := range mine {
		put(own)
	}
	h.number(0, len(h.order))
	for _, i := range h.members[a] {
		for _, q := range h.s.w.preds(i) {
			if h.place[q] > h.place[i] {
				h.undoChange()
				return false
			}
		}
		for _, next := range h.s.succs.of(i) {
			if h.place[next] < h.place[i] {
				h.undoChange()
				return false
			}
		}
	}
	return true
}

// keep stores a part of the order, to undo the next change.
func (h *improver) keep(from, to int) {
	h.undoFrom = from
	h.undo = append(h.undo[:0], h.order[from:to]...)
}

// undoChange undoes the last change.
func (h *improver) undoChange() {
	copy(h.order[h.undoFrom:], h.undo)
	h.number(h.undoFrom, h.undoFrom+len(h.undo))
}
