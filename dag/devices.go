// Over how many devices a pipeline may be spread, and what may be moved there.

package dag

// AllDevices is the value of Pipeline.Devices for as many devices as there are.
const AllDevices = -1

// MostDevices is over how many devices a pipeline can be spread.
const MostDevices = 64

// UsedDevices returns one more than the highest number of a device that a buffer or node is on.
func (p *Pipeline) UsedDevices() int {
	if p == nil {
		return 0
	}
	last := int32(0)
	for k := range p.Buffers {
		last = max(last, p.Buffers[k].Device)
	}
	for i := range p.Nodes {
		last = max(last, p.Nodes[i].Device)
	}
	return int(last) + 1
}

// Roams reports whether a buffer may be placed on any device.
func (p *Pipeline) Roams(id BufferID) bool {
	b := p.buffer(id)
	return b != nil && p.Devices != 0 && b.Place == Device && !b.Fixed && b.Symbol == ""
}
