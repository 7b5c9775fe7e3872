// Launch shapes that several rows of the table use.

package library

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

// once is one block of one thread.
func once(*libraryKernel, scalars, *dag.LaunchInfo) {}

// packed divides n elements in packs of 16 bytes: two for each thread, or four, which the kernels read at once, if there are many.
func packed(param string) geometry {
	return func(k *libraryKernel, v scalars, info *dag.LaunchInfo) {
		width := 16 / k.types.T.Size()
		describe.Divide(info, v.of(param), describe.BlockSize*width*2, describe.BlockSize*width*4)
	}
}

// squares covers a matrix with square tiles, one per block, up to a number of blocks.
func squares(info *dag.LaunchInfo, rows, cols, tile, most int64) {
	high, wide := (rows+tile-1)/tile, (cols+tile-1)/tile
	blocks, ok := product(high, wide)
	if !ok {
		blocks = most
	}
	info.Grid = [3]uint32{uint32(min(blocks, most)), 1, 1}
	info.Block = [3]uint32{describe.BlockSize, 1, 1}
	info.Fixed = true
}

func oneBlock(param string) geometry {
	return func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
		info.Grid = [3]uint32{uint32(min(1, v.of(param))), 1, 1}
		info.Block = [3]uint32{describe.BlockSize, 1, 1}
		info.Fixed = true
	}
}

// perRow gives each row up to a limit a thread, each longer one up to another limit a warp, and each of the others a block. If there are many rows, a
// thread has two, and a warp or a block six.
func perRow(shortRow, warpRow int64) geometry {
	return func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
		each, many := int64(describe.BlockSize), int64(6)
		switch cols := v.of("cols"); {
		case cols > warpRow:
			each = 1
		case cols > shortRow:
			each /= 32
		default:
			many = 2
		}
		describe.Divide(info, v.of("rows"), each, each*many)
		info.Fixed = true
	}
}

// byTiles is one block per tile of a reduction. An empty reduction has a block too, because its result must be written.
func byTiles(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
	info.Grid = [3]uint32{uint32(tileCount(v.of("n"))), 1, 1}
	info.Block = [3]uint32{reduceLanes, 1, 1}
	info.Fixed = true
}

// points gives each thread a few points of a grid, or more if there are many.
func points(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
	n, ok := product(v.of("rows"), v.of("cols"))
	if !ok {
		n = 1 << 62
	}
	describe.Divide(info, n, describe.BlockSize*2, describe.BlockSize*32)
}
