// Node ids as plain numbers, for algorithms that work on arrays of numbers.

package place

import (
	"unsafe"

	"github.com/dagrun/dagrun/dag"
)

// Numbers returns the same ids as numbers. It does not copy them, because a graph's arrays may have millions. Callers must not change
// them.
func Numbers(ids []dag.NodeID) []int32 {
	return unsafe.Slice((*int32)(unsafe.SliceData(ids)), len(ids))
}
