// Copies of tiles: the records that the driver takes for memory of several rows.

package driver

import (
	"github.com/dagrun/dagrun/cudart"
)

// copyRows lays out the record of a copy of several rows, in memory that the list keeps.
func (p *Platform) copyRows(memory *arena, c *checked) ([]uint64, error) {
	if c.DstDevice >= 0 && c.SrcDevice >= 0 && c.DstDevice != c.SrcDevice {
		for _, d := range [2]*device{p.devices[c.DstDevice], p.devices[c.SrcDevice]} {
			if err := p.prepare(d); err != nil {
				return nil, err
			}
		}
	}
	words, err := memory.words(copy2DWords)
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
