// Layouts by best fit: takes buffers in some order and puts each into the tightest gap, or the lowest. Searches for a good order.

package pack

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// mostClimbs limits the changes that are tried on one order. More changes lower the peak by less than one percent.
const mostClimbs = 2000

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

// fixed tries the fixed orders, or as many as the steps allow, and returns the best of them.
func (l *listing) fixed(steps int64) (order []int32, peak int64) {
	for _, trial := range l.orders() {
		for _, tight := range []bool{true, false} {
			if got := l.try(trial, tight, 1<<62); order == nil || got < peak {
				order, peak = trial, got
			}
			if !l.may(steps) {
				return order, peak
			}
		}
	}
	return order, peak
}

// improve searches orders around a good one.
func (l *listing) improve(order []int32, peak, steps int64) {
	// The seed is always the same, so that the same problem gets the same layout.
	rng := rand.New(rand.NewPCG(uint64(len(l.p.size)), 20))
	order, peak = l.shuffle(order, peak, rng, l.steps+steps/2)
	l.climb(order, peak, rng, l.steps+steps/2)
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

// try makes a layout and keeps it if it is the best so far. It gives up as soon as the layout would not end below the limit.
func (l *listing) try(order []int32, tight bool, limit int64) int64 {
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
		if peak = max(peak, at+bytes); peak >= limit {
			return limit
		}
		i, _ := slices.BinarySearchFunc(l.placed, at, func(q int32, at int64) int { return cmp.Compare(l.offset[q], at) })
		l.placed = slices.Insert(l.placed, i, k)
	}
	if peak < l.peak {
		l.peak = peak
		l.best = slices.Clone(l.offset)
	}
	return peak
}

// shuffle tries orders that weigh size and crowd differently, with some noise, and returns the best order known.
func (l *listing) shuffle(order []int32, peak int64, rng *rand.Rand, until int64) ([]int32, int64) {
	trial := slices.Clone(order)
	key := make([]int, len(order))
	for l.may(until) {
		crowd, bytes, noise := 50+rng.IntN(150), 50+rng.IntN(100), 1+rng.IntN(50*logUnit)
		for k := range key {
			key[k] = crowd*log2(l.crowd[k]) + bytes*log2(l.p.size[k]) + rng.IntN(noise) + rng.IntN(noise)
		}
		slices.SortStableFunc(trial, func(a, b int32) int { return cmp.Compare(key[b], key[a]) })
		if got := l.try(trial, rng.IntN(3) == 0, peak); got < peak {
			peak = got
			order = slices.Clone(trial)
		}
	}
	return order, peak
}

// climb makes small changes to an order and keeps those after which the layout does not end higher.
func (l *listing) climb(order []int32, peak int64, rng *rand.Rand, until int64) {
	n := len(order)
	if n < 3 {
		return
	}
	order = slices.Clone(order)
	trial := make([]int32, n)
	for tries := 0; tries < mostClimbs && l.may(until); tries++ {
		copy(trial, order)
		tight := rng.IntN(2) == 0
		switch rng.IntN(3) {
		case 0:
			a, b := rng.IntN(n), rng.IntN(n)
			trial[a], trial[b] = trial[b], trial[a]
		default:
			// The buffers on top of the best layout might fit lower if they came earlier.
			from := rng.IntN(n)
			if rng.IntN(2) == 0 {
				from = slices.IndexFunc(trial, func(k int32) bool { return l.best[k]+l.p.size[k] == l.peak })
			}
			to := rng.IntN(from + 1)
			k := trial[from]
			copy(trial[to+1:from+1], trial[to:from])
			trial[to] = k
		}
		if got := l.try(trial, tight, peak+1); got <= peak {
			order, trial, peak = trial, order, got
		}
	}
}
