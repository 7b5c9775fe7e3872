// Coverage: whether a launch certainly writes every byte of an argument, or certainly leaves some out. Every thread is followed as for witnesses, so
// that is known of small launches whose threads find their way by their numbers.

package access

import (
	"github.com/dagrun/dagrun/kernels/ptx"
)

// Limits of what is followed.
const (
	mostCovered      = 1 << 19 // instructions of all threads together
	mostCoveredBytes = 1 << 26 // of an argument
)

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

// Covered tells what of an argument a launch writes.
type Covered struct {
	Whole  bool  // every byte
	Lo, Hi int64 // bytes that no thread writes, from where the argument points to; Hi 0: none are known
}

// Covers follows the threads of a launch and tells what they write of what a parameter points to. bytes has the sizes of what pointers point to, by
// parameter; alone says that no other pointer leads to this one's bytes.
func Covers(m *ptx.Module, entry ptx.FunctionID, launch Launch, bytes map[int]int64, param int, tile Tile, alone bool) Covered {
	size, ok := bytes[param]
	threads := int64(1)
	for axis := range 3 {
		threads *= min(int64(max(launch.Grid[axis], 1))*int64(max(launch.Block[axis], 1)), mostCovered+1)
		if threads > mostCovered {
			return Covered{}
		}
	}
	if !ok || size <= 0 || size > mostCoveredBytes || launch.Grid[0] == 0 || launch.Block[0] == 0 {
		return Covered{}
	}
	c := &coverage{param: param, written: make([]uint64, (size+63)/64), size: size, partly: !alone, steps: mostCovered}
	registers := make([]datum, len(m.Functions[entry].Registers))
	each(launch.Grid, func(block [3]uint32) {
		each(launch.Block, func(thread [3]uint32) {
			clear(registers)
			w := &walk{m: m, f: &m.Functions[entry], launch: launch, bytes: bytes, thread: thread, block: block, registers: registers, cover: c}
			outside := w.run()
			c.partly = c.partly || w.lost || outside
		})
	})
	lo, hi := c.gap(tile)
	switch {
	case hi == 0:
		return Covered{Whole: true}
	case c.partly:
		return Covered{}
	}
	return Covered{Lo: lo, Hi: hi}
}

// each visits the places of a grid.
func each(size [3]uint32, visit func(at [3]uint32)) {
	for z := range max(size[2], 1) {
		for y := range max(size[1], 1) {
			for x := range max(size[0], 1) {
				visit([3]uint32{x, y, z})
			}
		}
	}
}

// enter notes a store of which the thread certainly makes.
func (c *coverage) enter(w *walk, in *ptx.Instruction, role ptx.Role, o ptx.Operand) {
	if c == nil || role == ptx.Reads {
		return
	}
	r := o.Register()
	switch {
	case o.Variable() != ptx.NoVariable:
		return // a variable of the module is no argument
	case role != ptx.Writes || o.Kind != ptx.Address || r == ptx.NoRegister || o.Scaled || !w.registers[r].known || w.registers[r].base == 0:
		c.partly = true
		return
	case w.registers[r].base-1 != c.param:
		return
	}
	lo := int64(w.registers[r].bits) + o.Value
	for at := max(lo, 0); at < min(lo+int64(in.Form.Type().Size()*in.Form.Vector), c.size); at++ {
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
