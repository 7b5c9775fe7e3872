// Contents of a unit: which of its bytes have been written, so that only those are copied out and back. A copy of bytes that nobody has written
// would count as a read of what the last replay left there.

package placement

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// contents are the bytes of a unit that have been written: all that are ever used, or a list of ranges.
type contents struct {
	all  bool
	list []dag.Range
}

// write adds what a node writes, as far as it lies in the unit.
func (c *contents) write(r dag.Range, u *unit) {
	if c.all {
		return
	}
	r = clip(r, u)
	if r.Lo >= r.Hi {
		return
	}
	for k := 0; k < len(c.list); k++ {
		old := c.list[k]
		switch {
		case old == r:
			return
		case old.Pitch == 0 && old.Lo <= r.Lo && r.Hi <= old.Hi:
			return
		case old.Pitch == 0 && r.Pitch == 0 && r.Lo <= old.Hi && old.Lo <= r.Hi:
			r.Lo, r.Hi = min(r.Lo, old.Lo), max(r.Hi, old.Hi)
			c.list = slices.Delete(c.list, k, k+1)
			k = -1
		}
	}
	c.list = append(c.list, r)
	sum := int64(0)
	for k, a := range c.list {
		sum += a.Bytes()
		for _, b := range c.list[:k] {
			if a.Overlaps(b) { // the sum says nothing
				return
			}
		}
	}
	c.all = sum >= u.usedHi-u.usedLo
}

// each visits the bytes to copy.
func (c *contents) each(u *unit, visit func(dag.Range)) {
	if c.all {
		visit(dag.Range{Buffer: u.buffer, Lo: u.usedLo, Hi: u.usedHi})
		return
	}
	for _, r := range c.list {
		visit(r)
	}
}

// clip leaves what a unit has of a range. Units of buffers that are used in tiles have whole rows.
func clip(r dag.Range, u *unit) dag.Range {
	if r.Pitch == 0 {
		r.Lo, r.Hi = max(r.Lo, u.lo), min(r.Hi, u.hi)
		return r
	}
	pitch := int64(r.Pitch)
	left, right := r.Lo%pitch, (r.Hi-1)%pitch+1
	top, bottom := max(r.Lo/pitch, u.lo/pitch), min((r.Hi-1)/pitch+1, u.hi/pitch)
	if top >= bottom {
		return dag.Range{Buffer: r.Buffer}
	}
	r.Lo, r.Hi = top*pitch+left, (bottom-1)*pitch+right
	if bottom-top == 1 {
		r.Pitch = 0
	}
	return r
}
