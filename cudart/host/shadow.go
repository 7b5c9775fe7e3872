// The history of an allocation's bytes: which command last wrote each range, and which have read it since.

package host

import (
	"slices"
	"sort"
)

const leafSpans = 256

// access records an access to [lo, hi) and returns the first conflict with an earlier one; with.by is nil if there is none.
func (s *shadow) access(lo, hi int64, e epoch, write bool, o *order, now clock) conflict {
	var found conflict
	first, begin := s.find(lo)
	leaf, i := first, begin
	fresh := make([]span, 0, 3)
	var right []span
	at := lo
	for {
		if i == len(s.leaves[leaf]) {
			if leaf+1 == len(s.leaves) {
				break
			}
			leaf, i = leaf+1, 0
		}
		x := &s.leaves[leaf][i]
		if x.lo >= hi {
			break
		}
		a, b := max(x.lo, lo), min(x.hi, hi)
		if found.with.by == nil {
			found = conflict{x.unordered(e, write, o, now), a, b}
		}
		if x.lo == lo && x.hi == hi {
			// The usual case of a replay: the same range as before.
			x.enter(e, write, o, now)
			return found
		}
		if x.lo < lo {
			fresh = append(fresh, x.cut(x.lo, lo))
		}
		if x.hi > hi {
			right = append(right, x.cut(hi, x.hi))
		}
		if !write {
			if at < a {
				fresh = append(fresh, span{lo: at, hi: a, reads: []epoch{e}})
			}
			part := x.cut(a, b)
			part.enter(e, false, o, now)
			fresh = append(fresh, part)
		}
		at = b
		i++
	}
	switch {
	case write:
		fresh = append(fresh, span{lo: lo, hi: hi, write: e})
	case at < hi:
		fresh = append(fresh, span{lo: at, hi: hi, reads: []epoch{e}})
	}
	s.replace(first, begin, leaf, i, append(fresh, right...))
	return found
}

// find returns the place of the first span that ends after lo, or where it would be.
func (s *shadow) find(lo int64) (leaf, i int) {
	if len(s.leaves) == 0 {
		s.leaves = [][]span{nil}
		return 0, 0
	}
	leaf = sort.Search(len(s.leaves)-1, func(i int) bool { return s.leaves[i][len(s.leaves[i])-1].hi > lo })
	spans := s.leaves[leaf]
	return leaf, sort.Search(len(spans), func(i int) bool { return spans[i].hi > lo })
}

// replace replaces the spans from (first, begin) up to (last, end) and keeps leaves small.
func (s *shadow) replace(first, begin, last, end int, fresh []span) {
	if first == last && len(s.leaves[first])+len(fresh)-(end-begin) <= leafSpans {
		s.leaves[first] = slices.Replace(s.leaves[first], begin, end, fresh...)
		return
	}
	spans := slices.Concat(s.leaves[first][:begin], fresh, s.leaves[last][end:])
	var parts [][]span
	for part := range slices.Chunk(spans, leafSpans/2) {
		parts = append(parts, slices.Clone(part))
	}
	s.leaves = slices.Replace(s.leaves, first, last+1, parts...)
}

// cut returns a part of a span with the same history.
func (x *span) cut(lo, hi int64) span { return span{lo, hi, x.write, slices.Clone(x.reads)} }

// unordered returns an access of the span that conflicts with e and did not happen before it.
func (x *span) unordered(e epoch, write bool, o *order, now clock) epoch {
	if !o.before(x.write, e, now) {
		return x.write
	}
	if write {
		for _, r := range x.reads {
			if !o.before(r, e, now) {
				return r
			}
		}
	}
	return epoch{}
}

// enter records an access to the whole span. Earlier reads that happened before a new read are dropped: whatever is ordered after the new
// one is ordered after them too.
func (x *span) enter(e epoch, write bool, o *order, now clock) {
	if write {
		x.write, x.reads = e, x.reads[:0]
		return
	}
	x.reads = slices.DeleteFunc(x.reads, func(r epoch) bool { return o.before(r, e, now) })
	x.reads = append(x.reads, e)
}
