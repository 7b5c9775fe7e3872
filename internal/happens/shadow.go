// Memory: for each byte, the accesses with which a later one can conflict. Neighbouring bytes with the same history are one interval.

package happens

import (
	"slices"
	"sort"
)

// epoch is a node of a step, and where its lane was.
type epoch struct {
	step, node int32
	lane       Lane
	position   uint32
}

type mark struct {
	epoch
	mode Mode
}

type interval struct {
	low, high uint64
	marks     []mark
	fresh     bool   // nothing wrote it since it was said to be unwritten
	passed    []mark // only with Explain: marks that were covered by one that does not conflict with them
}

// part returns a part of an interval.
func (i *interval) part(low, high uint64) interval {
	return interval{low: low, high: high, marks: slices.Clone(i.marks), fresh: i.fresh, passed: slices.Clone(i.passed)}
}

// shadow holds intervals by address, in pages so that inserting moves little.
type shadow struct {
	pages []*page
	lows  []uint64 // of the first interval of each page
	made  []interval
	old   []interval
	full  int // intervals of a page
}

type page struct{ intervals []interval }

// visitor changes what is remembered of an interval.
type visitor interface {
	touch(of *interval, mode Mode)
}

// visit calls touch for intervals that make up the bytes from low to high.
func (s *shadow) visit(low, high uint64, v visitor, mode Mode) {
	at, first := s.find(low)
	if at < len(s.pages) {
		if one := &s.pages[at].intervals[first]; one.low == low && one.high == high {
			v.touch(one, mode)
			return
		}
	}
	s.take(at, first, high)
	s.made = s.made[:0]
	place := low
	for _, one := range s.old {
		if one.low < low {
			s.made = append(s.made, one.part(one.low, low))
			one.low = low
		}
		if place < one.low {
			s.touched(interval{low: place, high: one.low}, v, mode)
		}
		var rest interval
		if one.high > high {
			rest = one.part(high, one.high)
			one.high = high
		}
		place = one.high
		s.touched(one, v, mode)
		if rest.low < rest.high {
			s.made = append(s.made, rest)
		}
	}
	if place < high {
		s.touched(interval{low: place, high: high}, v, mode)
	}
	s.put(at, first)
}

// touched adds an interval after it was touched, to the one before it if they have become alike.
func (s *shadow) touched(one interval, v visitor, mode Mode) {
	v.touch(&one, mode)
	if last := len(s.made) - 1; last >= 0 {
		before := &s.made[last]
		if before.high == one.low && before.fresh == one.fresh && slices.Equal(before.marks, one.marks) && slices.Equal(before.passed, one.passed) {
			before.high = one.high
			return
		}
	}
	s.made = append(s.made, one)
}

// clear forgets what is known of the bytes from low to high, and makes them one fresh interval.
func (s *shadow) clear(low, high uint64) {
	at, first := s.find(low)
	s.take(at, first, high)
	s.made = s.made[:0]
	fresh := interval{low: low, high: high, fresh: true}
	done := false
	for _, one := range s.old {
		if one.low < low {
			s.made = append(s.made, one.part(one.low, low))
		}
		if !done {
			s.made, done = append(s.made, fresh), true
		}
		if one.high > high {
			s.made = append(s.made, one.part(high, one.high))
		}
	}
	if !done {
		s.made = append(s.made, fresh)
	}
	s.put(at, first)
}

// find returns the place of the first interval that ends behind an address: a page, and an index within it. Where there is none, the page is
// the number of pages.
func (s *shadow) find(low uint64) (at, first int) {
	at = sort.Search(len(s.lows), func(i int) bool { return s.lows[i] > low }) - 1
	if at < 0 {
		return 0, 0
	}
	in := s.pages[at].intervals
	first = sort.Search(len(in), func(i int) bool { return in[i].high > low })
	if first == len(in) {
		return at + 1, 0
	}
	return at, first
}

// take removes the intervals from a place on that begin before high, and keeps them in s.old.
func (s *shadow) take(at, first int, high uint64) {
	s.old = s.old[:0]
	for p := at; p < len(s.pages); p++ {
		in := s.pages[p].intervals
		last := first
		for last < len(in) && in[last].low < high {
			last++
		}
		s.old = append(s.old, in[first:last]...)
		s.pages[p].intervals = slices.Delete(in, first, last)
		if last < len(in) {
			break
		}
		first = 0
	}
}

// put inserts s.made at a place, and restores the pages.
func (s *shadow) put(at, first int) {
	if len(s.pages) == 0 {
		s.pages, s.lows = []*page{{}}, []uint64{0}
	}
	if at == len(s.pages) {
		at--
		first = len(s.pages[at].intervals)
	}
	p := s.pages[at]
	p.intervals = slices.Insert(p.intervals, first, s.made...)

	// Pages behind this one may have lost all their intervals, or their first; this one may have become too long.
	end := at + 1
	for end < len(s.pages) && len(s.pages[end].intervals) == 0 {
		end++
	}
	s.pages, s.lows = slices.Delete(s.pages, at+1, end), slices.Delete(s.lows, at+1, end)
	if at+1 < len(s.pages) {
		s.lows[at+1] = s.pages[at+1].intervals[0].low
	}
	if all := p.intervals; len(all) > s.full {
		each := max(s.full*3/4, 1)
		p.intervals = all[:each:each]
		var more []*page
		var lows []uint64
		for rest := all[each:]; len(rest) > 0; rest = rest[min(each, len(rest)):] {
			more = append(more, &page{intervals: slices.Clone(rest[:min(each, len(rest))])})
			lows = append(lows, rest[0].low)
		}
		s.pages, s.lows = slices.Insert(s.pages, at+1, more...), slices.Insert(s.lows, at+1, lows...)
	}
	s.lows[at] = s.pages[at].intervals[0].low
}
