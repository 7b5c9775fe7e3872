// Arena: which placement had each byte of an arena last.

package proof

import (
	"cmp"
	"slices"
)

// rangesInChunk is the most ranges in one chunk of an arena: few enough to move quickly, enough that there are few chunks.
const rangesInChunk = 256

// arenaRange is a range of bytes and the placement that had it last.
type arenaRange struct {
	lo, hi    int64
	placement int32
}

// arena holds disjoint ranges, ascending, in chunks.
type arena struct {
	chunks [][]arenaRange
}

// take gives bytes lo..hi to a placement and visits those that had any of them, some perhaps more than once.
func (o *arena) take(lo, hi int64, placement int32, visit func(int32)) {
	c, _ := slices.BinarySearchFunc(o.chunks, lo, func(chunk []arenaRange, lo int64) int {
		return cmp.Compare(chunk[len(chunk)-1].hi, lo+1)
	})
	if c == len(o.chunks) {
		if c == 0 {
			o.chunks = append(o.chunks, make([]arenaRange, 0, 8))
		} else {
			c--
		}
	}
	at, _ := slices.BinarySearchFunc(o.chunks[c], lo, func(e arenaRange, lo int64) int { return cmp.Compare(e.hi, lo+1) })

	var pieces [3]arenaRange // the rest of the first range, the new range, the rest of the last range
	count := 1
	next := arenaRange{lo, hi, placement}
	var right arenaRange
	for d, i := c, at; ; d, i = d+1, 0 {
		end := i
		for end < len(o.chunks[d]) && o.chunks[d][end].lo < hi {
			e := o.chunks[d][end]
			visit(e.placement)
			if e.lo < lo {
				pieces[0] = arenaRange{e.lo, lo, e.placement}
				count = 2
			}
			if e.hi > hi {
				right = arenaRange{hi, e.hi, e.placement}
			}
			end++
		}
		more := end == len(o.chunks[d]) && d+1 < len(o.chunks) && o.chunks[d+1][0].lo < hi
		if d > c {
			o.chunks[d] = o.chunks[d][end:]
		} else {
			o.chunks[c] = slices.Delete(o.chunks[c], at, end)
		}
		if !more {
			break
		}
	}
	pieces[count-1] = next
	if right.hi > 0 {
		pieces[count] = right
		count++
	}
	o.chunks[c] = slices.Insert(o.chunks[c], at, pieces[:count]...)
	o.tidy(c)
}

// tidy drops the chunks that the growth of c emptied, and splits c if it is full.
func (o *arena) tidy(c int) {
	last := c + 1
	for last < len(o.chunks) && len(o.chunks[last]) == 0 {
		last++
	}
	if last > c+1 {
		o.chunks = slices.Delete(o.chunks, c+1, last)
	}
	if full := o.chunks[c]; len(full) > rangesInChunk {
		half := len(full) / 2
		o.chunks = slices.Insert(o.chunks, c+1, slices.Clone(full[half:]))
		o.chunks[c] = full[:half]
	}
}
