// Tests of buses: what copies that share one take, in the simulator, and buses in machine files.

package model_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// move is a copy of some bytes from one device to another; -1 is the host.
type move struct {
	from, to int32
	bytes    int64
}

// movesOf declares copies that do not depend on each other.
func movesOf(t *testing.T, list []move) *dag.Graph {
	t.Helper()
	b := dag.New("moves")
	end := func(name string, d int32, bytes int64) dag.Range {
		buffer := dag.Buffer{Name: name, Place: dag.Device, Device: max(d, 0), DType: dag.U8, Shape: []int64{bytes}}
		if d < 0 {
			buffer.Place = dag.Host
		}
		return dag.Range{Buffer: b.Buffer(buffer), Hi: bytes}
	}
	for k, m := range list {
		b.Copy(fmt.Sprint("c", k), end(fmt.Sprint("to", k), m.to, m.bytes), end(fmt.Sprint("from", k), m.from, m.bytes))
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// bare is a machine on which only copies take time.
func bare() *model.Machine {
	m := model.Clean()
	m.CopyUS, m.HostToDevice, m.DeviceToHost, m.PeerToPeer = 0, 100, 100, 200
	return m
}

// moved returns when each copy starts and ends.
func moved(t *testing.T, g *dag.Graph, m *model.Machine) *plan.Timeline {
	t.Helper()
	p, err := planner.New(t.Context(), g, planner.Options{Machine: m, Strategy: "list"})
	require.NoError(t, err)
	timeline, err := model.Simulate(g, p, m, nil)
	require.NoError(t, err)
	return timeline
}

func TestCopiesShareBuses(t *testing.T) {
	up := []model.Bus{{Name: "switch", Devices: []int32{0, 1}, Carries: model.CarriesHost, Rate: 100}}
	for _, c := range []struct {
		name  string
		buses []model.Bus
		moves []move
		ends  []float64
	}{
		{"no bus", nil, []move{{-1, 0, 1000}, {-1, 1, 1000}}, []float64{10, 10}},
		{"two uploads share", up, []move{{-1, 0, 1000}, {-1, 1, 1000}}, []float64{20, 20}},
		{"one of them is shorter", up, []move{{-1, 0, 1000}, {-1, 1, 500}}, []float64{15, 10}},
		{"the other way is free", up, []move{{-1, 0, 1000}, {1, -1, 1000}}, []float64{10, 10}},
		{"another device is free", up, []move{{-1, 0, 1000}, {-1, 2, 1000}}, []float64{10, 10}},
		{"it carries no copies between devices", up, []move{{-1, 0, 1000}, {2, 1, 2000}}, []float64{10, 10}},
		{"a wider one", []model.Bus{{Name: "switch", Devices: []int32{0, 1}, Rate: 150}}, []move{{-1, 0, 1500}, {-1, 1, 1500}}, []float64{20, 20}},
		{"a copy within the group does not use it", []model.Bus{{Name: "switch", Devices: []int32{0, 1}, Rate: 100}}, []move{{0, 1, 2000}, {-1, 1, 1000}}, []float64{10, 10}},
		{"a slow connection", []model.Bus{{Name: "nodes", Devices: []int32{0, 1}, Carries: model.CarriesPeer, Rate: 50}}, []move{{0, 2, 1000}, {0, 1, 1000}}, []float64{20, 25}},
		{"two devices send to one", nil, []move{{0, 2, 2000}, {1, 2, 2000}}, []float64{20, 20}},
		{"two devices send to two", nil, []move{{0, 2, 2000}, {1, 3, 2000}}, []float64{10, 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := bare()
			m.Buses = c.buses
			require.NoError(t, m.Validate())
			timeline := moved(t, movesOf(t, c.moves), m)
			for k := range c.ends {
				require.InDelta(t, c.ends[k], timeline.Nodes[k].End, 1e-9, "copy %d", k)
			}
		})
	}
}

// Whatever copies share buses, the speeds that follow from who is on them at each moment must add up to what each copy had to do.
func TestCopiesOnBusesDoAllOfTheirWork(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 53))
		m := bare()
		m.BothWays = []float64{0, 0.8}[random.IntN(2)]
		for k := range 1 + random.IntN(3) {
			var group []int32
			for d := range int32(4) {
				if random.IntN(2) == 0 || d == 3 && len(group) == 0 {
					group = append(group, d)
				}
			}
			m.Buses = append(m.Buses, model.Bus{Name: fmt.Sprint("b", k), Devices: group, Carries: model.BusTraffic(random.IntN(3)), Rate: float64(50 + random.IntN(200))})
		}
		var list []move
		for range 3 + random.IntN(10) {
			from := int32(random.IntN(5) - 1)
			to := (from+2+int32(random.IntN(4)))%5 - 1
			list = append(list, move{from, to, int64(100 + random.IntN(3000))})
		}
		g := movesOf(t, list)
		timeline := moved(t, g, m)
		var times []float64
		for _, s := range timeline.Nodes {
			times = append(times, s.Start, s.End)
		}
		slices.Sort(times)
		done := make([]float64, len(list))
		for k := 1; k < len(times); k++ {
			lo, hi := times[k-1], times[k]
			if hi <= lo {
				continue
			}
			var now []int
			for i, s := range timeline.Nodes {
				if s.Start <= lo && s.End >= hi {
					now = append(now, i)
				}
			}
			for _, i := range now {
				done[i] += (hi - lo) * speedOf(m, list, now, i)
			}
		}
		for i, s := range timeline.Nodes {
			require.InDelta(t, s.Alone, done[i], 1e-6, "seed %d, copy %d", seed, i)
		}
	}
}

// speedOf is how fast copy i runs beside others, by the words of the manual.
func speedOf(m *model.Machine, list []move, now []int, i int) float64 {
	rate := func(c move) float64 {
		if c.from < 0 || c.to < 0 {
			return 100
		}
		return 200
	}
	speed, c := 1.0, list[i]
	share := func(capacity float64, uses func(c move) bool) {
		if !uses(c) {
			return
		}
		sum := 0.0
		for _, k := range now {
			if uses(list[k]) {
				sum += rate(list[k])
			}
		}
		speed = min(speed, capacity/sum)
	}
	for _, b := range m.Buses {
		in := func(d int32) bool { return slices.Contains(b.Devices, d) }
		carries := func(c move) bool {
			host := c.from < 0 || c.to < 0
			return b.Carries == model.CarriesAll || host == (b.Carries == model.CarriesHost)
		}
		share(b.Rate, func(c move) bool { return carries(c) && in(c.from) && !in(c.to) })
		share(b.Rate, func(c move) bool { return carries(c) && !in(c.from) && in(c.to) })
	}
	if c.from >= 0 && c.to >= 0 {
		share(m.PeerToPeer, func(o move) bool { return o.from >= 0 && o.to == c.to })
	}
	if up := c.from < 0; (up || c.to < 0) && m.BothWays > 0 {
		device := max(c.from, c.to)
		for _, k := range now {
			if o := list[k]; max(o.from, o.to) == device && (up && o.to < 0 || !up && o.from < 0) {
				speed = min(speed, m.BothWays)
			}
		}
	}
	return speed
}

func TestBusesInMachineFiles(t *testing.T) {
	m := model.H200()
	m.Buses = []model.Bus{{Name: "switch 0", Devices: []int32{0, 1}, Carries: model.CarriesHost, Rate: 55_000}, {Name: "socket", Devices: []int32{0, 1, 2, 3}, Rate: 80_000.5}}
	var b bytes.Buffer
	require.NoError(t, m.Encode(&b))
	text := b.String()
	require.Contains(t, text, `  "buses": [
    {"name": "switch 0", "devices": [0, 1], "carries": "host", "rate": 55000},
    {"name": "socket", "devices": [0, 1, 2, 3], "carries": "all", "rate": 80000.5}
  ]
}
`)
	back, err := model.DecodeMachine(&b)
	require.NoError(t, err)
	require.Equal(t, m, back)
	for _, c := range []struct{ want, old, new string }{
		{`machine: 40:56: buses[0].carries: unknown "disk"; it must be one of all, host, peer`, `"host"`, `"disk"`},
		{`machine: 40:38: buses[0].devices[0]: 64 is out of range: it must be from 0 to 63`, "[0, 1]", "[64, 1]"},
		{`machine: 40:5: buses[0]: key "rate" is missing`, `, "rate": 55000`, ""},
		{`machine: 40:6: buses[0]: unknown key "label"; the keys are name, devices, rate, carries`, `"name": "switch 0"`, `"label": "switch 0"`},
		{`bad machine "h200": bus "switch 0": its rate is 0: it must be above 0, and at most 1e+15`, "55000}", "0}"},
		{`bad machine "h200": bus "switch 0" has no devices`, "[0, 1]", "[]"},
		{`bad machine "h200": bus "switch 0" has device 1 twice`, "[0, 1]", "[1, 1]"},
		{`bad machine "h200": there are two buses "socket"`, `"switch 0"`, `"socket"`},
		{`bad machine "h200": the name of bus 0 must have 1 to 4096 bytes of UTF-8`, `"switch 0"`, `""`},
		{`bad machine "h200": it has buses, but copies on it use none: leave out buses, or unit and cores`, `"unit": false`, `"unit": true`},
	} {
		changed := strings.Replace(text, c.old, c.new, 1)
		require.NotEqual(t, text, changed)
		_, err := model.DecodeMachine(strings.NewReader(changed))
		require.EqualError(t, err, c.want)
		require.ErrorIs(t, err, model.ErrBadMachine)
	}
	m.Buses = slices.Repeat(m.Buses[:1], 257)
	require.EqualError(t, m.Validate(), `bad machine "h200": it has 257 buses: there can be at most 256`)
	m.Buses = []model.Bus{{Name: "x", Devices: []int32{-1}, Carries: 9, Rate: 1}}
	require.EqualError(t, m.Validate(), "bad machine \"h200\": bus \"x\" carries traffic 9: it must be all, host or peer\nbad machine \"h200\": bus \"x\": there is no device -1: the devices are 0 to 63")
}
