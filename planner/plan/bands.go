// Bands: the streams of a plan, device by device, as pictures draw them.

package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// Band is the streams of one device, in the order of the plan.
type Band struct {
	Device  int32
	Streams []int32
}

// Title names a band in a picture.
func (b *Band) Title() string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf("device %d", b.Device)
}

// Bands returns the streams of each device that the plan uses, devices in ascending order. A plan that uses no device but the first has one
// band, which pictures leave without a title; Banded says so.
func (p *Plan) Bands() []Band {
	if p == nil {
		return nil
	}
	at := map[int32]int{}
	var bands []Band
	for k := range p.Streams {
		device := p.Streams[k].Device
		b, ok := at[device]
		if !ok {
			b = len(bands)
			at[device] = b
			bands = append(bands, Band{Device: device})
		}
		bands[b].Streams = append(bands[b].Streams, int32(k))
	}
	slices.SortFunc(bands, func(a, b Band) int { return cmp.Compare(a.Device, b.Device) })
	return bands
}

// Banded reports whether pictures say to which device each stream belongs: whether any is of another device than the first.
func (p *Plan) Banded() bool {
	return p != nil && slices.ContainsFunc(p.Streams, func(s Stream) bool { return s.Device != 0 })
}
