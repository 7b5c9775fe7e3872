// Coverage: whether a launch certainly writes every byte of an argument, or certainly leaves some out. Every thread is followed as for witnesses, so
// that is known of small launches whose threads find their way by their numbers.

package access

import (
	"github.com/dagrun/dagrun/internal/ptx"
)

// Limits of what is followed.
const (
	mostCovered      = 1 << 19 // instructions of all threads together
	mostCoveredBytes = 1 << 26 // of an argument
)

// Covered tells what of an argument a launch writes.
type Covered struct {
	Whole  bool  // every byte
	Lo, Hi int64 // bytes of the argument that no thread writes; Hi 0: none are known
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
