// The cells of a buffer: which byte ranges its accesses cut it into. Knows no nodes and no hazards.

package dag

import (
	"math/bits"
	"slices"
	"sort"
)

const nobody int32 = -1 // no writer so far

// cuts maps the byte positions at which a buffer's accesses begin or end to dense numbers: cell c is the bytes from bounds[c]
// to bounds[c+1], and no access begins or ends inside a cell.
type cuts struct {
	bounds []int64
	// Where the positions are multiples of a common unit and fill a good part of the multiples (even slices do), they are ranked
	// through a bitmap: with 3 million accesses of one buffer, binary searches would take most of the time.
	unit int64
	mark []uint64
	rank []int32 // positions marked before each word of mark
	all  bool    // every position is a cut
}

// bitmapSpread is how many multiples of the unit there may be for each access before sorting is the leaner way.
const bitmapSpread = 64

// newCuts numbers the positions. It may reorder them.
func newCuts(positions []int64) cuts {
	var unit, last int64
	for _, x := range positions {
		last = max(last, x)
		if unit == 0 || x%unit != 0 {
			unit = gcd(unit, x)
		}
	}
	if unit == 0 || last/unit > bitmapSpread*int64(len(positions)) {
		slices.Sort(positions)
		return cuts{bounds: slices.Clone(slices.Compact(positions))}
	}
	c := cuts{unit: unit, mark: make([]uint64, last/unit/64+1)}
	for _, x := range positions {
		k := x / unit
		c.mark[k>>6] |= 1 << (k & 63)
	}
	c.rank = make([]int32, len(c.mark))
	total := int32(0)
	for w, m := range c.mark {
		c.rank[w] = total
		total += int32(bits.OnesCount64(m))
	}
	c.bounds = make([]int64, 0, total)
	for w, m := range c.mark {
		for ; m != 0; m &= m - 1 {
			c.bounds = append(c.bounds, int64(w<<6+bits.TrailingZeros64(m))*unit)
		}
	}
	return c
}

// everyCut is the cuts at each position from 0 to last.
func everyCut(last int64) cuts {
	c := cuts{bounds: make([]int64, last+1), all: true}
	for k := range c.bounds {
		c.bounds[k] = int64(k)
	}
	return c
}

// cells returns the number of cells.
func (c *cuts) cells() int32 { return int32(len(c.bounds)) - 1 }

// find returns the number of a position that newCuts was given.
func (c *cuts) find(x int64) int32 {
	if c.all {
		return int32(x)
	}
	if c.unit == 0 {
		return int32(sort.Search(len(c.bounds), func(i int) bool { return c.bounds[i] >= x }))
	}
	k := x / c.unit
	return c.rank[k>>6] + int32(bits.OnesCount64(c.mark[k>>6]&(1<<(k&63)-1)))
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
