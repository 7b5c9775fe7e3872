// Launch shapes that several rows of the table use.

package library

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/launch"
)

// once is one block of one thread.
func once(*libraryKernel, values, *dag.LaunchInfo) {}

// packed spreads n elements in packs of 16 bytes.
func packed(param string) geometry {
	return func(k *libraryKernel, v values, info *dag.LaunchInfo) {
		width := 16 / k.types.T.Size()
		launch.Spread(info, v.of(param), launch.BlockSize*width*2)
	}
}
