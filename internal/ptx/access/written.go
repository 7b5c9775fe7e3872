// What the threads of a launch that are followed write of one argument.

package access

import "github.com/dagrun/dagrun/internal/ptx"

// Tile is where an argument's bytes lie: rows of a size, apart from each other; Row 0: all bytes follow each other.
type Tile struct{ Row, Pitch int64 }

// coverage is what the threads that were followed have written.
type coverage struct {
	param   int
	written []uint64 // by byte of the argument, in bits
	size    int64
	partly  bool // threads may have written more
	steps   int
}

// enter notes an access that a thread certainly makes: at a distance from what a parameter, counted from 1, points to; 0 if that is not known.
func (c *coverage) enter(in *ptx.Instruction, role ptx.Role, o ptx.Operand, base int, distance uint64) {
	if c == nil || role == ptx.Reads {
		return
	}
	switch {
	case o.Variable() != ptx.NoVariable:
		return // a variable of the module is no argument
	case role != ptx.Writes || o.Kind != ptx.Address || o.Scaled || base == 0:
		c.partly = true
		return
	case base-1 != c.param:
		return
	}
	lo := int64(distance) + o.Value
	size := int64(in.Form.Type().Size() * in.Form.Vector)
	if lo%size != 0 { // a fault, of which the run says more
		c.partly = true
	}
	for at := max(lo, 0); at < min(lo+size, c.size); at++ {
		c.written[at>>6] |= 1 << (at & 63)
	}
}

// perhaps notes an instruction that may write: it is not known whether, or what.
func (c *coverage) perhaps(in *ptx.Instruction) {
	if c == nil || c.partly {
		return
	}
	if space := in.Form.Space(); space == ptx.Shared || space == ptx.Local || space == ptx.Param {
		return
	}
	for _, role := range in.Roles() {
		c.partly = c.partly || role == ptx.Writes || role == ptx.Updates
	}
}

// gap returns the first bytes in a row that were not written, of those that belong to the argument; hi is 0 if all were.
func (c *coverage) gap(tile Tile) (lo, hi int64) {
	belongs := func(at int64) bool { return tile.Row == 0 || at%tile.Pitch < tile.Row }
	missing := func(at int64) bool { return c.written[at>>6]>>(at&63)&1 == 0 }
	for lo = 0; lo < c.size; lo++ {
		if lo&63 == 0 && c.written[lo>>6] == ^uint64(0) {
			lo += 63
			continue
		}
		if belongs(lo) && missing(lo) {
			for hi = lo + 1; hi < c.size && belongs(hi) && missing(hi); hi++ {
			}
			return lo, hi
		}
	}
	return 0, 0
}
