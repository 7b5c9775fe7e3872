// Buses: which copies share a connection, in a machine and in its file.

package model

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/jsontext"
)

// Bus connects a group of devices with everything else: the PCIe switch of two devices, or the port of one. Copies that leave the group share its
// rate, and so do those that reach the group; the two directions do not slow each other. A copy within the group does not use the bus.
type Bus struct {
	Name    string
	Devices []int32
	Carries BusTraffic
	Rate    float64 // bytes per microsecond in each direction
}

// BusTraffic is which copies use a bus.
type BusTraffic uint8

const (
	CarriesAll  BusTraffic = iota
	CarriesHost            // copies between the host and the devices
	CarriesPeer            // copies to and from other devices
)

var busTraffic = []string{"all", "host", "peer"}

// String is the name in a machine file.
func (t BusTraffic) String() string {
	if int(t) >= len(busTraffic) {
		return fmt.Sprintf("traffic %d", uint8(t))
	}
	return busTraffic[t]
}

// mostBuses limits the buses of a machine, as each copy looks at all of them.
const mostBuses = 256

// checkBuses reports what is wrong with the buses of a machine to wrong. No rate may be above most.
func checkBuses(buses []Bus, most float64, wrong func(format string, args ...any)) {
	if len(buses) > mostBuses {
		wrong("it has %d buses: there can be at most %d", len(buses), mostBuses)
		return
	}
	for k := range buses {
		b := &buses[k]
		switch {
		case b.Name == "" || len(b.Name) > jsontext.MaxNameBytes || !utf8.ValidString(b.Name):
			wrong("the name of bus %d must have 1 to %d bytes of UTF-8", k, jsontext.MaxNameBytes)
		case slices.ContainsFunc(buses[:k], func(o Bus) bool { return o.Name == b.Name }):
			wrong("there are two buses %q", b.Name)
		case int(b.Carries) >= len(busTraffic):
			wrong("bus %q carries %v: it must be all, host or peer", b.Name, b.Carries)
		case !(b.Rate > 0 && b.Rate <= most):
			wrong("bus %q: its rate is %v: it must be above 0, and at most %g", b.Name, b.Rate, most)
		case len(b.Devices) == 0:
			wrong("bus %q has no devices", b.Name)
		}
		for i, d := range b.Devices {
			if d < 0 || d >= dag.MostDevices {
				wrong("bus %q: there is no device %d: the devices are 0 to %d", b.Name, d, dag.MostDevices-1)
			} else if slices.Contains(b.Devices[:i], d) {
				wrong("bus %q has device %d twice", b.Name, d)
			}
		}
	}
}

// appendBuses writes the buses of a machine file.
func appendBuses(text []byte, buses []Bus) []byte {
	text = append(text, "[\n"...)
	for k, b := range buses {
		text = jsontext.AppendString(append(text, "    {\"name\": "...), b.Name)
		text = append(text, ", \"devices\": ["...)
		for i, d := range b.Devices {
			if i > 0 {
				text = append(text, ", "...)
			}
			text = strconv.AppendInt(text, int64(d), 10)
		}
		text = jsontext.AppendString(append(text, "], \"carries\": "...), b.Carries.String())
		text = append(jsontext.AppendFloat(append(text, ", \"rate\": "...), b.Rate), '}')
		if k+1 < len(buses) {
			text = append(text, ',')
		}
		text = append(text, '\n')
	}
	return append(text, "  ]"...)
}

// readBuses reads the buses of a machine file. No rate may be above most.
func readBuses(r *jsontext.Reader, most float64) []Bus {
	var list []Bus
	r.List(func(k int) {
		if k == mostBuses {
			r.FailAt(r.At, r.Kind, "there can be at most %d buses", mostBuses)
			return
		}
		var b Bus
		r.Object([]string{"name", "devices", "rate", "carries"}, 1, func(key int) {
			switch key {
			case 0:
				b.Name = r.Label()
			case 1:
				r.List(func(int) { b.Devices = append(b.Devices, int32(r.Int(0, dag.MostDevices-1))) })
			case 2:
				b.Rate = r.Float(most)
			case 3:
				b.Carries = BusTraffic(r.Choice(busTraffic...))
			}
		})
		list = append(list, b)
	})
	return list
}
