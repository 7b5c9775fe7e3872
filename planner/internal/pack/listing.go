// Layouts by best fit: takes buffers in some order and puts each into the tightest gap, or the lowest.

package pack

import (
	"cmp"
	"slices"
)

// listing holds what all tries share. One step is a look at one placed buffer while another is being placed. It takes one to two
// nanoseconds.
type listing struct {
	p      *Problem
	crowd  []int64 // by buffer, the bytes of the buffers that it excludes, and its own
	enough int64   // a layout that ends here is good enough

	best   []int64
	peak   int64
	offset []int64 // of the current try
	placed []int32 // by offset, then in the order of placement
	steps  int64
}

func newListing(p *Problem, given []int64, enough int64) *listing {
	n := len(p.size)
	l := &listing{p: p, crowd: make([]int64, n), enough: enough, best: given, peak: peakOf(p.size, given), offset: make([]int64, n), placed: make([]int32, 0, n)}
	for k := range int32(n) {
		l.crowd[k] = p.size[k]
		for _, q := range p.others(k) {
			l.crowd[k] += p.size[q]
		}
	}
	return l
}

func (l *listing) done() bool { return l.peak <= l.enough }

// may reports whether another try would end before this many steps are taken, and could improve the result.
func (l *listing) may(until int64) bool {
	n := int64(len(l.p.size))
	return !l.done() && l.steps+n*n/2 <= until
}

// fixed tries the fixed orders, or as many as the steps allow.
func (l *listing) fixed(steps int64) {
	for _, order := range l.orders() {
		for _, tight := range []bool{true, false} {
			l.try(order, tight)
			if !l.may(steps) {
				return
			}
		}
	}
}

// orders returns the orders in which best fit is tried.
func (l *listing) orders() [][]int32 {
	p := l.p
	size := func(a, b int32) int { return cmp.Compare(p.size[b], p.size[a]) }
	crowd := func(a, b int32) int { return cmp.Compare(l.crowd[b], l.crowd[a]) }
	both := func(k int32) int { return log2(l.crowd[k]) + log2(p.size[k]) }
	area := func(k int32) int { return log2(int64(p.last[k]-p.first[k])+1) + log2(p.size[k]) }
	first := func(a, b int32) int { return cmp.Compare(p.first[a], p.first[b]) }
	last := func(a, b int32) int { return cmp.Compare(p.last[b], p.last[a]) }
	return [][]int32{
		p.ranked(func(a, b int32) int { return cmp.Or(size(a, b), crowd(a, b)) }),
		p.ranked(func(a, b int32) int { return cmp.Compare(both(b), both(a)) }),
		p.ranked(func(a, b int32) int { return cmp.Or(crowd(a, b), size(a, b)) }),
		p.ranked(func(a, b int32) int { return cmp.Compare(area(b), area(a)) }),
		p.ranked(func(a, b int32) int { return cmp.Or(first(a, b), size(a, b)) }),
		p.ranked(func(a, b int32) int { return cmp.Or(last(a, b), size(a, b)) }),
		p.ranked(func(a, b int32) int { return cmp.Compare(l.best[a], l.best[b]) }),
	}
}

// try makes a layout and keeps it if it is the best so far. It gives up as soon as the layout would not end lower.
func (l *listing) try(order []int32, tight bool) {
	p := l.p
	l.placed = l.placed[:0]
	peak := int64(0)
	for _, k := range order {
		bytes, row := p.size[k], p.row(k)
		at, gap := int64(-1), int64(1<<62)
		end := int64(0) // of the buffers in the way so far
		l.steps += int64(len(l.placed)) + 8
		for _, q := range l.placed {
			if row[q>>6]&(1<<(q&63)) == 0 {
				continue
			}
			lo := l.offset[q]
			if room := lo - end; room >= bytes && room < gap {
				at, gap = end, room
				if !tight || room == bytes {
					break
				}
			}
			end = max(end, lo+p.size[q])
		}
		if at < 0 {
			at = end
		}
		l.offset[k] = at
		if peak = max(peak, at+bytes); peak >= l.peak {
			return
		}
		i, _ := slices.BinarySearchFunc(l.placed, at, func(q int32, at int64) int { return cmp.Compare(l.offset[q], at) })
		l.placed = slices.Insert(l.placed, i, k)
	}
	l.peak = peak
	l.best = slices.Clone(l.offset)
}
