// Where a plan needs the most memory.

package plan

import "github.com/dagrun/dagrun/dag"

// LiveBuffer is a buffer that is alive at a peak.
type LiveBuffer struct {
	Buffer dag.BufferID
	Name   string
	Bytes  int64
	Kept   bool // shares its bytes with no other buffer for the whole program
}

// Peak is where a plan needs the most memory of one device.
type Peak struct {
	Device  int32
	Arena   int64      // bytes that the plan's layout takes
	Live    int64      // bytes of Buffers, each rounded up to 256: no layout of this plan takes less
	Node    dag.NodeID // the node at which the last of them comes alive; -1 if all are kept
	Buffers []LiveBuffer
}
