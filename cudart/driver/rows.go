// Copies and sets of tiles: the records that the driver takes for memory of several rows, and graphs whose tiles move.

package driver

import (
	"slices"

	"github.com/dagrun/dagrun/cudart"
)

func hasRows(list []checked) bool {
	return slices.ContainsFunc(list, func(c checked) bool { return c.Rows > 1 })
}

// rebuild makes the graph again from its commands. The driver lets the addresses of a node change only if the node has one row. Launches
// that were submitted run to their end, but launches of the new graph wait for them only on the same stream. g.mu is held.
func (g *graph) rebuild() error {
	next, err := g.p.build(g.commands, g.deps, g.d, g.priority)
	if err != nil {
		return err
	}
	return g.take(next)
}

// replaceBy replaces a captured graph that cannot be updated. g.mu is held.
func (g *graph) replaceBy(template uintptr, d *device) error {
	next := &graph{p: g.p, d: d}
	if err := next.instantiate(template, g.priority); err != nil {
		return err
	}
	return g.take(next)
}

// take exchanges the driver's objects with another graph's and closes that graph.
func (g *graph) take(next *graph) error {
	g.d, next.d = next.d, g.d
	g.exec, next.exec = next.exec, g.exec
	g.template, next.template = next.template, g.template
	g.nodes, next.nodes = next.nodes, g.nodes
	g.memory, next.memory = next.memory, g.memory
	g.launch, next.launch = next.launch, g.launch
	g.count = next.count
	return next.Close()
}

// copy2DWords is how many words CUDA_MEMCPY2D_v2 has. Its members are words of eight bytes, the memory types with four bytes of padding.
const copy2DWords = 16

// copyRows lays out the record of a copy of several rows, which the list keeps.
func (e *encoded) copyRows(c *checked) ([]uint64, error) {
	if c.DstDevice >= 0 && c.SrcDevice >= 0 && c.DstDevice != c.SrcDevice {
		for _, d := range [2]*device{e.p.devices[c.DstDevice], e.p.devices[c.SrcDevice]} {
			if err := e.p.prepare(d); err != nil {
				return nil, err
			}
		}
	}
	words, err := e.memory.words(copy2DWords)
	if err != nil {
		return nil, err
	}
	fillCopyRows(words, &c.Command)
	return words, nil
}

// fillCopyRows writes CUDA_MEMCPY2D_v2: for the source and then for the destination x, y, type, host, device, array and pitch; then the
// width and the height.
func fillCopyRows(words []uint64, c *cudart.Command) {
	source, target := words[0:7], words[7:14]
	fillSide(source, c.Src, c.SrcDevice, c.SrcPitch, c)
	fillSide(target, c.Dst, c.DstDevice, c.DstPitch, c)
	words[14], words[15] = uint64(c.Target().Width()), uint64(c.Rows)
}

func fillSide(side []uint64, p cudart.Ptr, number int32, pitch int64, c *cudart.Command) {
	clear(side)
	side[6] = uint64(pitch)
	switch {
	case number < 0:
		side[2], side[3] = memoryHost, uint64(p)
	case c.DstDevice >= 0 && c.SrcDevice >= 0 && c.DstDevice != c.SrcDevice:
		side[2], side[4] = memoryUnified, uint64(p) // the addresses determine the devices
	default:
		side[2], side[4] = memoryDevice, uint64(p)
	}
}
