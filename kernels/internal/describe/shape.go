// Launch shapes: how many blocks of how many threads. They depend only on sizes, because the same launch must be good for a large GPU and for
// a laptop's GPU. Kernels go through the data in strides, so any number of blocks is right.

package describe

import (
	"math"

	"github.com/dagrun/dagrun/dag"
)

const (
	// BlockSize is the number of threads in a block, unless a kernel needs another.
	BlockSize = 256
	// MaxBlocks is two full waves of 256-thread blocks on the largest GPU we measured (132 multiprocessors of 2,048 threads), and
	// few enough that on a small GPU a block's work takes longer than starting it.
	MaxBlocks = 132 * 16
)

// Divide divides n items among blocks of 256 threads: few items each, and where that makes more than MaxBlocks blocks, up to many items each. Many blocks
// that end one after the other leave no multiprocessor idle in the end, also if another kernel takes some of them. For no items there are no blocks.
func Divide(info *dag.LaunchInfo, n, few, many int64) {
	info.Grid = [3]uint32{uint32(min(ceil(n, few), max(MaxBlocks, ceil(n, many)), math.MaxInt32)), 1, 1}
	info.Block = [3]uint32{BlockSize, 1, 1}
}

// Spread divides n items among at most MaxBlocks blocks of 256 threads, at least perBlock items each. For no items there are no blocks.
func Spread(info *dag.LaunchInfo, n, perBlock int64) {
	info.Grid = [3]uint32{uint32(min(ceil(n, perBlock), MaxBlocks)), 1, 1}
	info.Block = [3]uint32{BlockSize, 1, 1}
}

// ceil divides and rounds up, for any n of at least 0.
func ceil(n, by int64) int64 {
	if n%by > 0 {
		return n/by + 1
	}
	return n / by
}
