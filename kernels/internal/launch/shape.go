// Launch shapes: how many blocks of how many threads. Chosen from sizes alone, since the same launch must fill a large GPU
// and a laptop's: at most maxBlocks blocks walk the data in strides.

package launch

import "github.com/dagrun/dagrun/dag"

const (
	BlockSize = 256
	// maxBlocks is two full waves of 256-thread blocks on the largest GPU in reach (132 multiprocessors of 2,048 threads), and
	// few enough that per-block work on a small one stays above the cost of starting a block.
	MaxBlocks = 132 * 16
)

// spread gives each block of 256 threads a share of n items, perBlock at least. Nothing to do is a launch of no blocks.
func Spread(info *dag.LaunchInfo, n, perBlock int64) {
	blocks := n / perBlock
	if n%perBlock > 0 {
		blocks++
	}
	info.Grid = [3]uint32{uint32(min(blocks, MaxBlocks)), 1, 1}
	info.Block = [3]uint32{BlockSize, 1, 1}
}
