// Package pack places buffers in one arena: it finds offsets within a capacity, or the lowest peak that it can, or proves that
// there are none. It works on plain values: sizes, and which pairs of buffers need bytes of their own. What a buffer is used for,
// and when, stays with the caller.
//
// The search follows the idea of canonical placements (MiniMalloc, Moffitt, ASPLOS 2023). Every layout can be pushed down until
// each buffer lies at the bottom or on top of one that it may not share bytes with, so only such layouts are looked at. Buffers
// are placed from the bottom up. Each decision is whether the next buffer lies at the lowest offset that is left to it; if not, it
// rests on one that is not placed yet, which raises it. A section, a set of buffers that all exclude each other, rules a state out
// as soon as what is left of it does not fit above where it can start. Parts that no longer touch each other are solved apart.
// None of this needs lifetimes to be intervals: it holds for every relation of exclusion, that of plans on several streams too.
//
// Effort is counted in steps, never in time, so the same problem and budget give the same layout on every machine.
package pack

import (
	"context"
	"slices"
)

// Verdict says what a search came to.
type Verdict uint8

const (
	// Unknown: nothing was found within the steps, and nothing was proved.
	Unknown Verdict = iota
	// Found: a layout within the capacity was found.
	Found
	// Impossible: no layout fits the capacity.
	Impossible
)

// Result is what a search found.
type Result struct {
	Verdict Verdict
	Offsets []int64 // by buffer; nil where Fit found none
	Peak    int64   // where the layout ends
	Bound   int64   // proved: no layout ends lower
	Steps   int64   // taken
}

// Fit looks for a layout that ends at the capacity or below. It gives up where the context ends.
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
	Orders int64 // of trying orders of buffers, one to two nanoseconds each
	Search int64 // of the search that can prove, about eight nanoseconds each
}

// Lower looks for a layout that ends lower than the given one, which must be a layout of the problem. It is content with one that ends
// at enough. The verdict is Found where the result ends there or lower, or is proved to be the lowest.
// Where the context ends, the best layout so far is the result.
func Lower(ctx context.Context, p *Problem, given []int64, enough int64, budget Budget) Result {
	r := Result{Offsets: given, Peak: peakOf(p.size, given), Bound: p.Bound()}
	l := newListing(p, given, max(enough, r.Bound))
	if l.done() {
		r.Verdict = Found
		return r
	}
	order, peak := l.fixed(budget.Orders / 2)
	r.take(l.best, l.peak)
	if !l.done() {
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
		// Small problems are solved at once, and proved to be.
		s.lower(&r, min(budget.Search, smallSearch))
	}
	if r.Peak > max(enough, r.Bound) && budget.Orders > 0 {
		l.best, l.peak, l.enough = r.Offsets, r.Peak, max(enough, r.Bound)
		l.improve(order, peak, budget.Orders-l.steps)
		r.take(l.best, l.peak)
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

// take keeps a layout that ends lower than the one so far.
func (r *Result) take(offsets []int64, peak int64) {
	if peak < r.Peak {
		r.Offsets, r.Peak = offsets, peak
	}
}

const (
	// smallSearch is how many steps a search takes before orders are tried, a millisecond.
	smallSearch = 100_000
	// fewestDives is how many dives a search must be able to make to be worth its tables.
	fewestDives = 2
	// firstSlice is how many dives the first look at a capacity may take.
	firstSlice = 4
	// finest is the part of a peak to which the distance between two capacities is narrowed in the end, coarsest at first.
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
