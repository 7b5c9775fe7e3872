// Sets of bytes of buffers, kept as disjoint ranges.

package dag

import (
	"slices"
	"sort"
)

// rangeSet is a set of bytes. The zero value is empty.
type rangeSet struct {
	of map[BufferID][]byteSpan // ascending, apart from each other
}

type byteSpan struct{ lo, hi int64 }

// add puts the bytes of a range into the set.
func (s *rangeSet) add(r Range) {
	if r.Lo >= r.Hi {
		return
	}
	if s.of == nil {
		s.of = map[BufferID][]byteSpan{}
	}
	list := s.of[r.Buffer]
	first := sort.Search(len(list), func(k int) bool { return list[k].hi >= r.Lo })
	end := sort.Search(len(list), func(k int) bool { return list[k].lo > r.Hi })
	joined := byteSpan{r.Lo, r.Hi}
	if first < end {
		joined = byteSpan{min(r.Lo, list[first].lo), max(r.Hi, list[end-1].hi)}
	}
	s.of[r.Buffer] = slices.Replace(list, first, end, joined)
}

// addExcept adds the bytes of a range that another set does not have.
func (s *rangeSet) addExcept(r Range, other *rangeSet) {
	at := r.Lo
	list := other.of[r.Buffer]
	for k := sort.Search(len(list), func(k int) bool { return list[k].hi > r.Lo }); k < len(list) && list[k].lo < r.Hi; k++ {
		s.add(Range{Buffer: r.Buffer, Lo: at, Hi: min(list[k].lo, r.Hi)})
		at = max(at, list[k].hi)
	}
	s.add(Range{Buffer: r.Buffer, Lo: at, Hi: r.Hi})
}

// addAll adds another set.
func (s *rangeSet) addAll(other *rangeSet) {
	for _, r := range other.ranges() {
		s.add(r)
	}
}

// intersect leaves the bytes that both sets have.
func (s *rangeSet) intersect(other *rangeSet) {
	var both rangeSet
	for _, r := range s.ranges() {
		list := other.of[r.Buffer]
		for k := sort.Search(len(list), func(k int) bool { return list[k].hi > r.Lo }); k < len(list) && list[k].lo < r.Hi; k++ {
			both.add(Range{Buffer: r.Buffer, Lo: max(r.Lo, list[k].lo), Hi: min(r.Hi, list[k].hi)})
		}
	}
	*s = both
}

// meets reports whether the set has a byte of a range.
func (s *rangeSet) meets(r Range) bool {
	list := s.of[r.Buffer]
	k := sort.Search(len(list), func(k int) bool { return list[k].hi > r.Lo })
	return k < len(list) && list[k].lo < r.Hi
}

// buffers returns the buffers that the set has bytes of, ascending.
func (s *rangeSet) buffers() []BufferID {
	ids := make([]BufferID, 0, len(s.of))
	for b := range s.of {
		ids = append(ids, b)
	}
	slices.Sort(ids)
	return ids
}

// ranges returns the set by buffer, ascending.
func (s *rangeSet) ranges() []Range {
	var list []Range
	for _, b := range s.buffers() {
		for _, p := range s.of[b] {
			list = append(list, Range{Buffer: b, Lo: p.lo, Hi: p.hi})
		}
	}
	return list
}

// cut calls visit for the pieces of a buffer that the effect treats alike, ascending, neighbours that are alike as one.
func (e *effect) cut(b BufferID, visit func(r Range, reads, may, must bool)) {
	var at []int64
	for _, set := range []*rangeSet{&e.reads, &e.may, &e.must} {
		for _, p := range set.of[b] {
			at = append(at, p.lo, p.hi)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	var lo int64
	var reads, may, must bool
	for k := range at {
		r := Range{Buffer: b, Lo: at[k], Hi: at[k]}
		if k+1 < len(at) {
			r.Hi = at[k+1]
		}
		nextReads, nextMay, nextMust := e.reads.meets(r), e.may.meets(r), e.must.meets(r)
		if k > 0 && (r.Hi == r.Lo || nextReads != reads || nextMay != may || nextMust != must) {
			visit(Range{Buffer: b, Lo: lo, Hi: at[k]}, reads, may, must)
			lo = at[k]
		}
		if k == 0 {
			lo = at[0]
		}
		reads, may, must = nextReads, nextMay, nextMust
	}
}
