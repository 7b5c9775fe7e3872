// The orders that a search tries in turn: which buffer goes first if several could lie lowest.

package pack

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
)

// The measures of a buffer that orders are made from.
const (
	byCrowding = iota // the heaviest section it is in
	bySpan            // how long it is alive
	bySections        // how many sections it is in
	bySize
	byOthers // how many it excludes
	measures
)

// fixed holds the orders that are tried first, as weights of the logarithms of the measures. If crowding counts a thousand times as much,
// the other measures decide only between buffers that are equally crowded.
var fixed = [][measures]int{
	{byCrowding: 1000, bySpan: 2, bySize: 1},
	{byCrowding: 1000, byOthers: 1},
	{bySpan: 2, bySize: 1},
	{byCrowding: 1000, bySpan: 1, bySize: 1},
	{byCrowding: 1000, bySections: 2, bySize: 1},
	{bySections: 2, bySize: 1},
	{bySections: 1, bySize: 1},
	{bySize: 1},
}

// order returns the rank of each buffer in one of the orders. The first orders are the fixed ones. Later ones weigh the measures at
// random, some of them with noise.
func (s *search) order(try int) []int32 {
	if try < len(s.orders) {
		return s.orders[try]
	}
	rng := rand.New(rand.NewPCG(uint64(len(s.p.size)), uint64(try)))
	var weight [measures]int
	noise := 0
	if try < len(fixed) {
		for i, w := range fixed[try] {
			weight[i] = 100 * w
		}
	} else {
		weight[byCrowding] = [...]int{0, 100, 1000, 100_000}[rng.IntN(4)]
		for i := bySpan; i < measures; i++ {
			if rng.IntN(2) == 0 {
				weight[i] = rng.IntN(200)
			}
		}
		noise = [...]int{0, 0, 10, 50}[rng.IntN(4)]
	}
	p := s.p
	key := make([]int, len(p.size))
	for k := range key {
		crowding := p.size[k]
		for _, i := range p.within[k] {
			crowding = max(crowding, p.load[i])
		}
		// Whole numbers: floating-point sums may differ between processors, and the layout must not.
		for i, x := range [measures]int64{crowding, int64(p.last[k]-p.first[k]) + 1, int64(len(p.within[k])) + 1, p.size[k], int64(len(p.others(int32(k)))) + 1} {
			key[k] += weight[i] * log2(x)
		}
		if noise > 0 {
			key[k] += noise * (rng.IntN(2*logUnit) + rng.IntN(2*logUnit))
		}
	}
	rank := make([]int32, len(key))
	for i, k := range p.ranked(func(a, b int32) int { return cmp.Compare(key[b], key[a]) }) {
		rank[k] = int32(i)
	}
	s.orders = append(s.orders, rank)
	return rank
}

// logUnit is the result of log2 for each doubling.
const logUnit = 1 << 10

// log2 is the logarithm of a positive number in units of 1/logUnit, interpolated linearly between powers of two.
func log2(x int64) int {
	whole := bits.Len64(uint64(x)) - 1
	return whole*logUnit + int((uint64(x)<<(63-whole)&(1<<63-1))>>53)
}
