// Launch shapes: how many blocks of how many threads. They depend only on sizes, because the same launch must be good for a large GPU and for
// a laptop's GPU: at most MaxBlocks blocks go through the data in strides.

package launch

import "github.com/dagrun/dagrun/dag"

const (
	// BlockSize is the number of threads in a block, unless a kernel needs another.
	BlockSize = 256
	// MaxBlocks is two full waves of 256-thread blocks on the largest GPU we measured (132 multiprocessors of 2,048 threads), and
	// few enough that on a small GPU a block's work takes longer than starting it.
	MaxBlocks = 132 * 16
)

// Spread divides n items among blocks of 256 threads, at least perBlock items each. For no items there are no blocks.
func Spread(info *dag.LaunchInfo, n, perBlock int64) {
	blocks := n / perBlock
	if n%perBlock > 0 {
		blocks++
	}
	info.Grid = [3]uint32{uint32(min(blocks, MaxBlocks)), 1, 1}
	info.Block = [3]uint32{BlockSize, 1, 1}
}
