// Where the bytes of buffers are in one replay in flight, and how copies and sets of tiles describe them.

package engine

import (
	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
)

// at returns the address of a range's first byte.
func (in *instance) at(r dag.Range) cudart.Ptr {
	return in.memory.address[r.Buffer] + cudart.Ptr(r.Lo)
}

// deviceOf returns the device that a buffer is on, -1 for the host.
func deviceOf(b *dag.Buffer) int32 {
	if b.Place == dag.Host {
		return -1
	}
	return b.Device
}

func (p *Program) copyRange(in *instance, to, from dag.Range, c *cudart.Command) {
	dst, src := &p.graph.Buffers[to.Buffer], &p.graph.Buffers[from.Buffer]
	c.Kind = cudart.CopyMemory
	c.Dst, c.DstDevice, c.DstPageable = in.at(to), deviceOf(dst), dst.Pageable
	c.Src, c.SrcDevice, c.SrcPageable = in.at(from), deviceOf(src), src.Pageable
	c.Bytes = from.Bytes()
	c.Rows, c.DstPitch, c.SrcPitch = rows(to, from)
}

// rows returns how many rows a copy has, and how far apart they are at both ends. Where one end is a tile, the other may have its rows one
// behind the other.
func rows(dst, src dag.Range) (n, dstPitch, srcPitch int64) {
	toRows, width := dst.Box()
	fromRows, _ := src.Box()
	if n = max(toRows, fromRows); n <= 1 {
		return 0, 0, 0
	}
	if !dst.Tile() {
		width = dst.Bytes() / n
	}
	pitch := func(r dag.Range) int64 {
		if r.Tile() {
			return int64(r.Pitch)
		}
		return width
	}
	return n, pitch(dst), pitch(src)
}
