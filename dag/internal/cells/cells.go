// Package cells keeps what is known of the cells of a buffer, the byte ranges into which its accesses cut it: last writers, readers since
// then, and the joins that stand for many writers. It knows no hazards and makes no edges.
package cells

import (
	"math/bits"
	"slices"
	"sort"
)

// Nobody is the writer of cells that no node has written so far.
const Nobody int32 = -1

// Cuts maps the byte positions at which a buffer's accesses begin or end to dense numbers: cell c is the bytes from Bounds[c]
// to Bounds[c+1], and no access begins or ends inside a cell.
type Cuts struct {
	Bounds []int64
	// Where the positions are multiples of a common unit and fill a good part of the multiples (even slices do), they are ranked
	// through a bitmap: with 3 million accesses of one buffer, binary searches would take most of the time.
	unit int64
	mark []uint64
	rank []int32 // positions marked before each word of mark
	all  bool    // every position is a cut
}

// bitmapSpread is how many multiples of the unit there may be for each access before sorting is the leaner way.
const bitmapSpread = 64

// NewCuts numbers the positions. It may reorder them.
func NewCuts(positions []int64) Cuts {
	var unit, last int64
	for _, x := range positions {
		last = max(last, x)
		if unit == 0 || x%unit != 0 {
			unit = gcd(unit, x)
		}
	}
	if unit == 0 || last/unit > bitmapSpread*int64(len(positions)) {
		slices.Sort(positions)
		return Cuts{Bounds: slices.Clone(slices.Compact(positions))}
	}
	c := Cuts{unit: unit, mark: make([]uint64, last/unit/64+1)}
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
	c.Bounds = make([]int64, 0, total)
	for w, m := range c.mark {
		for ; m != 0; m &= m - 1 {
			c.Bounds = append(c.Bounds, int64(w<<6+bits.TrailingZeros64(m))*unit)
		}
	}
	return c
}

// EveryCut is the cuts at each position from 0 to last.
func EveryCut(last int64) Cuts {
	c := Cuts{Bounds: make([]int64, last+1), all: true}
	for k := range c.Bounds {
		c.Bounds[k] = int64(k)
	}
	return c
}

// Cells returns the number of cells.
func (c *Cuts) Cells() int32 { return int32(len(c.Bounds)) - 1 }

// Find returns the number of a position that NewCuts was given.
func (c *Cuts) Find(x int64) int32 {
	if c.all {
		return int32(x)
	}
	if c.unit == 0 {
		return int32(sort.Search(len(c.Bounds), func(i int) bool { return c.Bounds[i] >= x }))
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
