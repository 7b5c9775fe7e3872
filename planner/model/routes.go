// Routes: which buses a copy uses.

package model

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Buses says which buses the copies of a machine use, and how fast they are.
type Buses struct {
	rates []float64 // by bus and direction
	buses []Bus
	ports bool // whether each device has a port for what other devices send it
}

// hostEnd is the number of the host among the ends of a copy.
const hostEnd = -1

// mostEnds limits how many devices have a port.
const mostEnds = 1 << 12

// BusesOf prepares the buses of a machine for a number of devices. Besides those that the machine names, each device has a port of rate PeerToPeer
// for what other devices send it; it matters where two of them can. It returns nil where no copies share anything.
func BusesOf(m *Machine, devices int) *Buses {
	m, devices = m.orDefault(), min(max(devices, 0), mostEnds)
	if len(m.Buses) == 0 && devices <= 2 {
		return nil
	}
	b := &Buses{buses: m.Buses, ports: devices > 2}
	for k := range m.Buses {
		b.rates = append(b.rates, m.Buses[k].Rate, m.Buses[k].Rate)
	}
	if b.ports {
		for range devices {
			b.rates = append(b.rates, m.PeerToPeer)
		}
	}
	return b
}

// Rates returns the rate of each direction of each bus, in bytes per microsecond.
func (b *Buses) Rates() []float64 {
	if b == nil {
		return nil
	}
	return b.rates
}

// Between lists the directions of buses that a copy uses, as indices into Rates. The host is device -1.
func (b *Buses) Between(from, to int32, list []int32) []int32 {
	if b == nil || from == to {
		return list
	}
	peer := from != hostEnd && to != hostEnd
	for k := range b.buses {
		bus := &b.buses[k]
		if bus.Carries == CarriesHost && peer || bus.Carries == CarriesPeer && !peer {
			continue
		}
		leaves, reaches := slices.Contains(bus.Devices, from), slices.Contains(bus.Devices, to)
		switch {
		case leaves && !reaches:
			list = append(list, int32(2*k))
		case reaches && !leaves:
			list = append(list, int32(2*k+1))
		}
	}
	if port := 2*len(b.buses) + int(to); peer && b.ports && to >= 0 && port < len(b.rates) {
		list = append(list, int32(port))
	}
	return list
}

// ends returns between which devices a copy moves data; -1 is the host.
func ends(g *dag.Graph, i dag.NodeID) (from, to int32) {
	end := func(id dag.BufferID) int32 {
		if g.Buffers[id].Place == dag.Host {
			return hostEnd
		}
		return g.Buffers[id].Device
	}
	c := g.Nodes[i].Copy
	return end(c.Src.Buffer), end(c.Dst.Buffer)
}

// rateOf is the rate of a copy that has its connection to itself.
func (m *Machine) rateOf(e plan.Engine) float64 {
	switch e {
	case plan.Upload:
		return m.HostToDevice
	case plan.Download:
		return m.DeviceToHost
	}
	return m.PeerToPeer
}
