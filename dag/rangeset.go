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
