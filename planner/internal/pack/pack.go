// Package pack places buffers in one arena: it finds offsets within a capacity or proves that there are none, or finds the lowest peak
// that it can. It works on plain values: sizes, and which pairs of buffers exclude each other because they may not share bytes. It does
// not know what a buffer is used for.
//
// The search follows the idea of canonical placements (MiniMalloc, Moffitt, ASPLOS 2023). Every layout can be pushed down until
// each buffer lies at the bottom or on top of one that it may not share bytes with, so only such layouts are looked at. Buffers
// are placed from the bottom up. Each decision is whether the next buffer lies at the lowest offset that is still possible for it. If not,
// it rests on a buffer that is not placed yet, and so lies higher. A section is a set of buffers that all exclude each other. A state is
// ruled out as soon as the unplaced buffers of a section do not fit above the lowest offset where they can start. Parts that exclude no
// buffer of each other any more are solved separately. Lifetimes need not be intervals: this works for every relation of exclusion,
// including that of plans on several streams.
//
// Effort is counted in steps, never in time, so the same problem and budget give the same layout on every machine.
package pack

import (
	"context"
	"slices"
)

// Fit looks for a layout that ends at the capacity or below. It gives up if the context ends.
func Fit(ctx context.Context, p *Problem, capacity, steps int64) Result {
	p.complete()
	r := Result{Bound: p.Bound()}
	if r.Bound > capacity {
		r.Verdict = Impossible
		return r
	}
	s := newSearch(ctx, p)
	r.Verdict = s.fit(capacity, steps)
	r.Steps = s.steps
	switch r.Verdict {
	case Found:
		r.Offsets = s.low
		r.Peak = peakOf(p.size, s.low)
	case Impossible:
		r.Bound = max(r.Bound, capacity+1)
	}
	return r
}

// Budget is how many steps a search may take.
type Budget struct {
	Orders int64 // for trying the usual orders of buffers, one to two nanoseconds each
	Eject  int64 // for each search by ejection, about four nanoseconds each
	Search int64 // for the search that can prove, about eight nanoseconds each

	Searches int // by ejection at a time; 0 is one
}

// Lower looks for a layout that ends lower than the given one, which must be a layout of the problem. It stops at one that ends at enough
// or lower. The verdict is Found if it finds such a layout, or proves that its result is the lowest. If the context ends, the result is
// the best layout so far.
func Lower(ctx context.Context, p *Problem, given []int64, enough int64, budget Budget) Result {
	r := Result{Offsets: given, Peak: peakOf(p.size, given), Bound: p.Bound()}
	l := newListing(p, given, max(enough, r.Bound))
	if l.done() {
		r.Verdict = Found
		return r
	}
	l.fixed(budget.Orders)
	r.take(l.best, l.peak)
	if !l.done() && budget.Search > 0 {
		p.complete()
		r.Bound = p.Bound()
	}
	if r.Peak <= max(enough, r.Bound) {
		r.Verdict = Found
		return r
	}
	var s *search
	if n := int64(len(p.size)); budget.Search > fewestDives*(p.dive()+n*n/4) {
		s = newSearch(ctx, p)
		s.lowest = enough
		// Small problems are solved at once, with proof.
		s.lower(&r, min(budget.Search, smallSearch))
	}
	if r.Peak > max(enough, r.Bound) {
		p.eject(ctx, &r, max(enough, r.Bound), budget.Eject, budget.Searches)
	}
	if s != nil {
		s.lower(&r, budget.Search-s.steps)
		r.Steps = s.steps
	}
	if r.Peak <= max(enough, r.Bound) {
		r.Verdict = Found
	}
	return r
}

const (
	// smallSearch is how many steps a search may take before orders are tried, about a millisecond.
	smallSearch = 100_000
	// fewestDives is how many dives a search must be able to make so that its tables are worth their cost.
	fewestDives = 2
	// firstSlice is how many dives the first search at a capacity may take.
	firstSlice = 4
	// The distance between two capacities is narrowed to this part of a peak: coarsest at first, finest in the end.
	finest   = 512
	coarsest = 32
)

// lower tries capacities below the peak of a result.
func (s *search) lower(r *Result, steps int64) {
	p := s.p
	end := s.steps + steps
	parts := int64(coarsest)
	for slice := firstSlice * p.dive(); s.steps < end && !s.ended; slice *= 4 {
		// The bound first: most problems that have a layout there show it soon. Then halve the distance between the highest capacity
		// at which nothing was found and the lowest at which something was.
		at := p.floor(max(r.Bound, s.lowest))
		missed := at - p.grain
		for s.steps < end && !s.ended {
			if r.Peak <= max(r.Bound, s.lowest) {
				return
			}
			switch s.fit(at, min(slice, end-s.steps)) {
			case Found:
				r.take(slices.Clone(s.low), peakOf(p.size, s.low))
			case Impossible:
				r.Bound = at + p.grain
				missed = at
			case Unknown:
				missed = at
			}
			gap := r.Peak - missed
			if gap <= max(p.grain, r.Peak/parts) {
				break
			}
			at = p.floor(missed + gap/2)
		}
		parts = min(finest, 4*parts)
	}
}
