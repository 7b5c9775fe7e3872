// Layout by search: best fit in several orders, local search over orders, and exact search for a handful of buffers. For as many
// buffers as a table of all pairs allows.

package layout

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// searchSteps bounds a search over so many buffers. One step looks at one placed buffer while another is being placed, one to two
// nanoseconds; twice as many bring the peak down by less than one percent more.
func searchSteps(buffers int) int { return min(10_000_000, 1_000_000+20_000*buffers) }

// search holds what all tries share.
type search struct {
	l     *lifetimes
	words int
	apart []uint64 // by buffer, a bit for each other that it may share bytes with
	crowd []int64  // by buffer, the bytes of those that cannot share with it, itself included
	least int64    // no layout ends lower

	best   []int64
	peak   int64
	steps  int
	offset []int64 // of the try being made
	placed []int32 // by offset, then by id
}

// searchLayout looks for a layout that ends lower than the given one.
func searchLayout(l *lifetimes, given []int64, least int64) []int64 {
	n := len(l.buffers)
	s := &search{l: l, words: (n + 63) / 64, least: least, best: given, peak: peakOf(l, given), offset: make([]int64, n), placed: make([]int32, 0, n)}
	s.apart = make([]uint64, n*s.words)
	for a := range int32(n) {
		for b := range a {
			if l.apart(a, b) {
				s.apart[int(a)*s.words+int(b>>6)] |= 1 << (b & 63)
				s.apart[int(b)*s.words+int(a>>6)] |= 1 << (a & 63)
			}
		}
	}
	s.crowd = make([]int64, n)
	for a := range int32(n) {
		for b := range int32(n) {
			if !s.free(a, b) {
				s.crowd[a] += l.bytes[b]
			}
		}
	}
	start, startPeak := []int32(nil), int64(0)
	for _, order := range s.orders() {
		for _, tight := range []bool{true, false} {
			peak := s.try(order, tight, 1<<62)
			if start == nil || peak < startPeak {
				start, startPeak = order, peak
			}
			if s.peak == s.least {
				return s.best
			}
		}
	}
	if s.exact() {
		return s.best
	}
	if n <= antichainLimit {
		s.least = 0
		for _, k := range heaviestAntichain(l) {
			s.least += l.bytes[k]
		}
	}
	rng := rand.New(rand.NewPCG(uint64(n), 20))
	steps := searchSteps(n)
	start, startPeak = s.shuffle(start, startPeak, rng, s.steps+steps/2)
	s.climb(start, startPeak, rng, s.steps+steps/2)
	return s.best
}

// free says whether two buffers may share bytes.
func (s *search) free(a, b int32) bool {
	return s.apart[int(a)*s.words+int(b>>6)]&(1<<(b&63)) != 0
}

// orders are the orders in which best fit is tried.
func (s *search) orders() [][]int32 {
	l := s.l
	n := len(l.buffers)
	crowd := s.crowd
	by := func(compare func(a, b int32) int) []int32 {
		order := make([]int32, n)
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, compare)
		return order
	}
	span := func(k int32) float64 { return float64(l.last[k]-l.first[k]+1) * float64(l.bytes[k]) }
	size := func(a, b int32) int { return cmp.Compare(l.bytes[b], l.bytes[a]) }
	return [][]int32{
		by(func(a, b int32) int { return cmp.Or(size(a, b), cmp.Compare(crowd[b], crowd[a])) }),
		by(func(a, b int32) int {
			return cmp.Compare(float64(crowd[b])*float64(l.bytes[b]), float64(crowd[a])*float64(l.bytes[a]))
		}),
		by(func(a, b int32) int { return cmp.Or(cmp.Compare(crowd[b], crowd[a]), size(a, b)) }),
		by(func(a, b int32) int { return cmp.Compare(span(b), span(a)) }),
		by(func(a, b int32) int { return cmp.Or(cmp.Compare(l.first[a], l.first[b]), size(a, b)) }),
		by(func(a, b int32) int { return cmp.Or(cmp.Compare(l.last[b], l.last[a]), size(a, b)) }),
		by(func(a, b int32) int { return cmp.Compare(s.best[a], s.best[b]) }),
	}
}

// try places buffers in an order, each into the tightest gap or the lowest, and keeps the layout if it is the best so far. It gives up
// where the layout would not end below limit.
func (s *search) try(order []int32, tight bool, limit int64) int64 {
	l := s.l
	s.placed = s.placed[:0]
	peak := int64(0)
	for _, k := range order {
		bytes := l.bytes[k]
		row := s.apart[int(k)*s.words : (int(k)+1)*s.words]
		at, gap := int64(-1), int64(1<<62)
		end := int64(0) // of what is in the way so far
		s.steps += len(s.placed) + 8
		for _, q := range s.placed {
			if row[q>>6]&(1<<(q&63)) != 0 {
				continue
			}
			lo := s.offset[q]
			if room := lo - end; room >= bytes && room < gap {
				at, gap = end, room
				if !tight || room == bytes {
					break
				}
			}
			end = max(end, lo+l.bytes[q])
		}
		if at < 0 {
			at = end
		}
		s.offset[k] = at
		if peak = max(peak, at+bytes); peak >= limit {
			return limit
		}
		i, _ := slices.BinarySearchFunc(s.placed, at, func(q int32, at int64) int { return cmp.Compare(s.offset[q], at) })
		s.placed = slices.Insert(s.placed, i, k)
	}
	s.keep(peak)
	return peak
}

func (s *search) keep(peak int64) {
	if peak < s.peak {
		s.peak = peak
		s.best = slices.Clone(s.offset)
	}
}

// shuffle tries orders by size and crowd that weigh the two differently, with some noise, and returns the best order it knows.
func (s *search) shuffle(order []int32, peak int64, rng *rand.Rand, until int) ([]int32, int64) {
	trial := slices.Clone(order)
	// Whole numbers, for floating-point sums may differ between processors, and the layout must not.
	key := make([]int, len(order))
	for s.steps < until && s.peak > s.least {
		crowd, bytes, noise := 50+rng.IntN(150), 50+rng.IntN(100), 1+rng.IntN(50*logUnit)
		for k := range key {
			key[k] = crowd*log2(s.crowd[k]) + bytes*log2(s.l.bytes[k]) + rng.IntN(noise) + rng.IntN(noise)
		}
		slices.SortStableFunc(trial, func(a, b int32) int { return cmp.Compare(key[b], key[a]) })
		if got := s.try(trial, rng.IntN(3) == 0, peak); got < peak {
			peak = got
			order = slices.Clone(trial)
		}
	}
	return order, peak
}

// logUnit is what log2 counts a doubling as.
const logUnit = 1 << 10

// log2 is the logarithm of a positive number in units of 1/logUnit, straight between powers of two.
func log2(x int64) int {
	whole := bits.Len64(uint64(x)) - 1
	return whole*logUnit + int((uint64(x)<<(63-whole)&(1<<63-1))>>53)
}

// climb changes an order bit by bit and keeps what does not end higher. The generator is seeded alike each time, so that the
// same graph gets the same layout.
func (s *search) climb(order []int32, peak int64, rng *rand.Rand, until int) {
	n := len(order)
	if n < 3 {
		return
	}
	order = slices.Clone(order)
	trial := make([]int32, n)
	for tries := 0; s.steps < until && tries < 2000 && s.peak > s.least; tries++ {
		copy(trial, order)
		tight := rng.IntN(2) == 0
		switch rng.IntN(3) {
		case 0:
			a, b := rng.IntN(n), rng.IntN(n)
			trial[a], trial[b] = trial[b], trial[a]
		default:
			// Whatever lies on top in the best layout might fit lower if it came earlier.
			from := rng.IntN(n)
			if rng.IntN(2) == 0 {
				from = slices.IndexFunc(trial, func(k int32) bool { return s.best[k]+s.l.bytes[k] == s.peak })
			}
			to := rng.IntN(from + 1)
			k := trial[from]
			copy(trial[to+1:from+1], trial[to:from])
			trial[to] = k
		}
		if got := s.try(trial, tight, peak+1); got <= peak {
			order, trial, peak = trial, order, got
		}
	}
}

// exactLimit and exactSteps bound the exact search.
const (
	exactLimit = 12
	exactSteps = 200_000
)

// exact searches all layouts of a few buffers. Pushed down as far as it goes, any layout has each buffer at the bottom or on top
// of one that it may not share with; taken in order of offset, each then lies on the highest of those before it. It says whether
// it has seen them all.
func (s *search) exact() bool {
	l := s.l
	n := len(l.buffers)
	if n > exactLimit {
		return false
	}
	taken := make([]bool, n)
	steps := 0
	var place func(count int, low, peak int64)
	place = func(count int, low, peak int64) {
		if count == n {
			s.keep(peak)
			return
		}
		for k := range int32(n) {
			if taken[k] || steps > exactSteps || s.peak == s.least {
				continue
			}
			steps++
			at := int64(0)
			for q := range int32(n) {
				if taken[q] && !s.free(k, q) {
					at = max(at, s.offset[q]+l.bytes[q])
				}
			}
			if at < low || at+l.bytes[k] >= s.peak {
				continue
			}
			taken[k], s.offset[k] = true, at
			place(count+1, at, max(peak, at+l.bytes[k]))
			taken[k] = false
		}
	}
	place(0, 0, 0)
	return steps <= exactSteps
}
