// What a memory layout starts from: the arena of a device, and which buffers are used, kept or shared.

// Package layout decides where buffers lie and which edges a CUDA graph of a plan needs.
package layout

import (
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// arena is the memory of one device. Buffers that keep their bytes lie below the shared bytes, so that they do not split them.
type arena struct {
	device   int32
	base     int64   // where the shared bytes start
	least    int64   // bytes above base for the largest buffer without accesses
	sharing  []int32 // buffers that may share bytes
	textured []bool  // by buffer: it is read as a texture; nil: none is
}

// readArena sets the offsets of buffers that share no bytes, and of buffers without accesses, which may lie anywhere.
func readArena(g *dag.Graph, device int32, kept, used []bool, offset []int64) *arena {
	textured := g.Textured()
	a := &arena{device: device, textured: textured}
	var unused []int32
	for i := range g.Buffers {
		b := &g.Buffers[i]
		switch {
		case !b.InArena() || b.Device != device:
		case kept[i]:
			offset[i] = a.base
			if textured != nil && textured[i] {
				offset[i] = alignedTo(a.base, plan.TextureAlign)
			}
			a.base = offset[i] + plan.AlignUp(b.Bytes)
		case used[i]:
			a.sharing = append(a.sharing, int32(i))
		default:
			unused = append(unused, int32(i))
		}
	}
	if textured != nil { // so that an offset above base is as aligned as their sum
		a.base = alignedTo(a.base, plan.TextureAlign)
	}
	for _, i := range unused {
		offset[i] = a.base
		a.least = max(a.least, plan.AlignUp(g.Buffers[i].Bytes))
	}
	return a
}

// setShared sets the offsets of buffers that share bytes.
func (a *arena) setShared(offsets, offset []int64) {
	for k, b := range a.sharing {
		offset[b] = a.base + offsets[k]
		if a.textured != nil && a.textured[b] {
			offset[b] = alignedTo(offset[b], plan.TextureAlign) // its bytes have room for that
		}
	}
}

// arenaSizes returns the devices that have buffers, ascending, and how many bytes all device buffers take without sharing.
func arenaSizes(g *dag.Graph) (devices []int32, sum int64, err error) {
	seen, textured := map[int32]bool{}, g.Textured()
	for i := range g.Buffers {
		b := &g.Buffers[i]
		if !b.InArena() {
			continue
		}
		if !seen[b.Device] {
			seen[b.Device] = true
			if textured != nil {
				sum += plan.ArenaAlign // before the shared bytes
			}
			devices = append(devices, b.Device)
		}
		if b.Bytes > math.MaxInt64-plan.ArenaAlign-sum {
			return nil, 0, fmt.Errorf("the device buffers up to %q together need more than 2^63 - 1 bytes: %w", plan.BufferName(g, dag.BufferID(i)), plan.ErrMemory)
		}
		sum += plan.AlignUp(b.Bytes) + textureRoom(textured, i)
	}
	slices.Sort(devices)
	return devices, sum, nil
}

// usedBuffers tells for each buffer whether any node accesses it.
func usedBuffers(g *dag.Graph) []bool {
	used := make([]bool, len(g.Buffers))
	for i := range int32(g.Len()) {
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if a.Lo < a.Hi {
				used[a.Buffer] = true
			}
		}
	}
	return used
}

// peakOf is where a layout ends.
func peakOf(l *lifetimes, offsets []int64) int64 {
	peak := int64(0)
	for k, lo := range offsets {
		peak = max(peak, lo+l.bytes[k])
	}
	return peak
}
