// Sets of bytes of buffers. Of a buffer whose columns are sliced they are kept by rows, as bands of rows that have the same columns.

package dag

import (
	"slices"
	"sort"
)

// rangeSet is a set of bytes. The zero value is empty.
type rangeSet struct {
	of map[BufferID]*area
}

// area is the bytes that a set has of one buffer.
type area struct {
	pitch int64  // bytes of a row; 0: no tile was added, and the buffer is a single row
	bands []band // ascending, apart from each other or with different columns
}

// band is rows of which a set has the same columns.
type band struct {
	top, bottom int64
	columns     []byteSpan // ascending, apart from each other
}

type byteSpan struct{ lo, hi int64 }

// add puts the bytes of a range into the set.
func (s *rangeSet) add(r Range) {
	if r.Lo >= r.Hi {
		return
	}
	if s.of == nil {
		s.of = map[BufferID]*area{}
	}
	a := s.of[r.Buffer]
	if a == nil {
		a = &area{}
		s.of[r.Buffer] = a
	}
	*a = a.inRows(int64(r.Pitch))
	for _, x := range a.boxes(r) {
		a.add(x)
	}
}

// boxes are the boxes of a range in the rows of the area.
func (a *area) boxes(r Range) []box {
	if a.pitch == 0 {
		return []box{{0, 1, r.Lo, r.Hi}}
	}
	b := boxesIn(r, a.pitch)
	return b.list[:b.count]
}

// inRows returns an area whose rows have pitch bytes, unless it has rows already.
func (a *area) inRows(pitch int64) area {
	if a.pitch != 0 || pitch == 0 {
		return *a
	}
	cut := area{pitch: pitch}
	for _, b := range a.bands {
		for _, c := range b.columns {
			for _, x := range cut.boxes(Range{Lo: c.lo, Hi: c.hi}) {
				cut.add(x)
			}
		}
	}
	return cut
}

// common is an area of a set in the rows of a range or of another area; the set stays as it is.
func (s *rangeSet) common(id BufferID, pitch int64) area {
	if a := s.of[id]; a != nil {
		return a.inRows(pitch)
	}
	return area{pitch: pitch}
}

// add puts a box into the area.
func (a *area) add(x box) {
	if x.empty() {
		return
	}
	own := byteSpan{x.left, x.right}
	if a.pitch == 0 && len(a.bands) > 0 {
		a.bands[0].columns = join(a.bands[0].columns, own)
		return
	}
	first := sort.Search(len(a.bands), func(k int) bool { return a.bands[k].bottom >= x.top })
	end := sort.Search(len(a.bands), func(k int) bool { return a.bands[k].top > x.bottom })
	var made bands
	at := x.top
	for _, b := range a.bands[first:end] {
		made.put(b.top, min(b.bottom, x.top), b.columns)
		made.put(at, min(b.top, x.bottom), []byteSpan{own})
		lo, hi := max(b.top, x.top), min(b.bottom, x.bottom)
		if lo < hi {
			made.put(lo, hi, join(slices.Clone(b.columns), own))
		}
		at = max(at, min(b.bottom, x.bottom))
		made.put(max(b.top, x.bottom), b.bottom, b.columns)
	}
	made.put(at, x.bottom, []byteSpan{own})
	a.bands = slices.Replace(a.bands, first, end, made...)
}

// bands is a list of bands in the making.
type bands []band

// put appends rows, to the last band if that has the same columns and ends there.
func (l *bands) put(top, bottom int64, columns []byteSpan) {
	if top >= bottom || len(columns) == 0 {
		return
	}
	if n := len(*l); n > 0 && (*l)[n-1].bottom == top && slices.Equal((*l)[n-1].columns, columns) {
		(*l)[n-1].bottom = bottom
		return
	}
	*l = append(*l, band{top, bottom, columns})
}

// join adds a span to spans that are apart from each other.
func join(list []byteSpan, x byteSpan) []byteSpan {
	first := sort.Search(len(list), func(k int) bool { return list[k].hi >= x.lo })
	end := sort.Search(len(list), func(k int) bool { return list[k].lo > x.hi })
	if first < end {
		x = byteSpan{min(x.lo, list[first].lo), max(x.hi, list[end-1].hi)}
	}
	return slices.Replace(list, first, end, x)
}

// except calls visit for the parts of a box that the area does not have.
func (a *area) except(x box, visit func(box)) {
	if x.empty() {
		return
	}
	at := x.top
	for k := sort.Search(len(a.bands), func(k int) bool { return a.bands[k].bottom > x.top }); k < len(a.bands) && a.bands[k].top < x.bottom; k++ {
		b := &a.bands[k]
		visit(box{at, b.top, x.left, x.right})
		top, bottom, left := max(b.top, x.top), min(b.bottom, x.bottom), x.left
		for j := sort.Search(len(b.columns), func(j int) bool { return b.columns[j].hi > x.left }); j < len(b.columns) && b.columns[j].lo < x.right; j++ {
			visit(box{top, bottom, left, b.columns[j].lo})
			left = max(left, b.columns[j].hi)
		}
		visit(box{top, bottom, left, x.right})
		at = bottom
	}
	visit(box{at, x.bottom, x.left, x.right})
}

// addExcept adds the bytes of a range that another set does not have.
func (s *rangeSet) addExcept(r Range, other *rangeSet) {
	if r.Lo >= r.Hi {
		return
	}
	rest := other.common(r.Buffer, int64(r.Pitch))
	for _, x := range rest.boxes(r) {
		rest.except(x, func(left box) {
			if !left.empty() {
				s.add(rangeOf(r.Buffer, rest.pitch, left))
			}
		})
	}
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
		var missing rangeSet
		missing.addExcept(r, other)
		both.addExcept(r, &missing)
	}
	*s = both
}

// Meets reports whether the set has a byte of a range.
func (s *rangeSet) meets(r Range) bool {
	if s.of[r.Buffer] == nil || r.Lo >= r.Hi {
		return false
	}
	a := s.common(r.Buffer, int64(r.Pitch))
	for _, x := range a.boxes(r) {
		for k := sort.Search(len(a.bands), func(k int) bool { return a.bands[k].bottom > x.top }); k < len(a.bands) && a.bands[k].top < x.bottom; k++ {
			list := a.bands[k].columns
			if j := sort.Search(len(list), func(j int) bool { return list[j].hi > x.left }); j < len(list) && list[j].lo < x.right {
				return true
			}
		}
	}
	return false
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
	for _, id := range s.buffers() {
		a := s.of[id]
		for _, b := range a.bands {
			for _, c := range b.columns {
				list = append(list, rangeOf(id, a.pitch, box{b.top, b.bottom, c.lo, c.hi}))
			}
		}
	}
	return list
}

// columns are the columns that the area has of a row.
func (a *area) columns(row int64) []byteSpan {
	k := sort.Search(len(a.bands), func(k int) bool { return a.bands[k].bottom > row })
	if k == len(a.bands) || a.bands[k].top > row {
		return nil
	}
	return a.bands[k].columns
}
