// Machines: the parameters of the cost model and the simulator, the built-in machines, and the file format.

// Package model predicts how long nodes and plans take on a machine, and how fast any plan of a graph can be.
package model

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dagrun/dagrun/internal/jsontext"
	"github.com/dagrun/dagrun/internal/words"
)

// DefaultStreams is the default number of compute streams of a device. More do not help on one GPU.
const DefaultStreams = 8

// Machine is a model of a host with its devices. All devices are alike. Rates are bytes or operations per microsecond:
// 1 GB/s is 1000 bytes per microsecond.
type Machine struct {
	Name string

	LaunchUS      float64 // host: one launch, or a copy or set within the device
	CopyLaunchUS  float64 // host: one copy from or to the host; a set takes 0.6 of it; 0 means LaunchUS for both
	EventUS       float64 // host: one record or wait
	SyncUS        float64 // device: from a record to the streams that wait for it
	GapUS         float64 // device: from the end of a node to the start of one that depends on it
	GraphLaunchUS float64 // device, in a graph: from the end of a replay to the first node of the next
	GraphNodeUS   float64 // device, in a graph: like GapUS on a stream
	GraphIssueUS  float64 // device, in a graph: the part of GraphNodeUS that is serial, one node at a time
	GraphEdgeUS   float64 // device, in a graph: each wait of a node for a kernel of another stream
	EngineUS      float64 // device: like GapUS between nodes on different engines: kernels and copies from or to the host, or copies both ways
	KernelUS      float64 // device: the minimum duration of a kernel
	FillUS        float64 // device: what a set or a copy within the device takes besides its bytes; 0 means KernelUS and CopyUS
	StepUS        float64 // device: one of the steps of a kernel's thread that wait for each other
	CopyUS        float64 // device: latency of a copy before its first byte
	CopySwitchUS  float64 // device: from the end of a copy to the start of one that its engine takes from another stream's
	GraphSwitchUS float64 // device, in a graph: like CopySwitchUS, which it does not exceed

	HostToDevice   float64 // bytes copied
	DeviceToHost   float64 // bytes copied
	BothWays       float64 // fraction of either rate while copies run both ways, at most 1; 0 means 1
	DeviceToDevice float64 // bytes copied within a device: half of Memory
	PeerToPeer     float64 // bytes copied from one device to another
	HostToHost     float64 // bytes copied by the host
	Memory         float64 // device memory, reads and writes counted
	MemoryPerSM    float64 // most bytes that one multiprocessor reads and writes; 0: as much of Memory as its threads keep busy
	Flops          float64

	Multiprocessors int
	BlocksPerSM     int
	ThreadsPerSM    int
	SharedPerSM     int
	BusyThreads     int // threads that keep one multiprocessor busy; more do not hide more latency
	CopyEngines     int // per direction

	// Cores is how many processor cores copies and kernels share, the same for all devices; 0 on a device that has engines for copies, and
	// multiprocessors for kernels. With cores, the parameters of engines and multiprocessors are ignored.
	Cores int

	Buses []Bus // what copies share, besides the copy engines of a device and the port for what other devices send it

	DeviceBytes int64 // memory of one device; 0: unknown
	Capability  int   // compute capability, 90 for sm_90; 0: unknown, or no GPU
	Unit        bool  // a node takes its cost or 1 us; no syncs, no submission, no contention

	shares map[string]float64 // by node, from a profile; nil if nothing was measured
}

var (
	// ErrUnknownMachine is returned (wrapped) by MachineByName for an unknown name.
	ErrUnknownMachine = errors.New("unknown machine")
	// ErrBadMachine is returned (wrapped) for a machine with an impossible number, or a file that is not a machine.
	ErrBadMachine = errors.New("bad machine")
)

// H200 is an NVIDIA H200 as measured from one host thread. Each number is the best of several runs unless noted otherwise.
func H200() *Machine {
	return &Machine{
		Name:     "h200",
		LaunchUS: 2.65,
		EventUS:  0.125,
		SyncUS:   0.1, // 20 us kernels in ping-pong over two streams: 21.7 us a step, 21.6 on one
		GapUS:    1.6, // 20 us kernels one after the other on a stream: 21.6 us a step
		// No-op kernels in a graph: a chain 0.53 us a node, 8 chains side by side 0.19 us a node: issuing is partly serial.
		GraphNodeUS: 0.55, GraphIssueUS: 0.19,
		GraphEdgeUS: 0.5, // stencils, factorisations and wavefronts on two to ten streams; waits for empty kernels take 0.075 us
		// Copies and kernels of 5 and 20 us in turn lose 4 to 5 us at each change, as a graph and on streams; empty kernels lose 2.5.
		EngineUS:      4,
		KernelUS:      0.1,
		FillUS:        0.4, // sets and copies of up to 256 KB, one after the other in a graph
		StepUS:        0.1, // by which the library's kernels count their steps: small launches as CUPTI timed them
		CopyUS:        1.8, // copies of 64 bytes to 16 KB, one after the other: up 2, down 1.2
		CopySwitchUS:  3,   // 160 uploads of 1 MB that change between 3 streams: 1.5 us each more than on one, where GapUS lies between them
		GraphSwitchUS: 1.5, // uploads of 4 KB on 2, 4 and 8 streams of a graph with kernels between them
		HostToDevice:  55_000, DeviceToHost: 55_400,
		BothWays:       0.917, // 800 MB up and 800 MB down at the same time: 15.73 ms; either alone: 14.42
		DeviceToDevice: 2_050_000, Memory: 4_100_000,
		MemoryPerSM: 127_000,    // 64 bytes a clock: maps of one to four blocks
		PeerToPeer:  450_000,    // 18 NVLink lanes of 25 GB/s, by the data sheet
		HostToHost:  12_000,     // of what a copy has just brought there, by the host itself; 15,500 to 17,000 of what is in its caches
		Flops:       67_000_000, // f32 outside the tensor cores, by the data sheet

		Multiprocessors: 132, BlocksPerSM: 32, ThreadsPerSM: 2048, SharedPerSM: 228 << 10,
		BusyThreads: 512, // four warps for each of four schedulers cover the latency of a multiply-add
		CopyEngines: 1,
		DeviceBytes: 139 << 30, Capability: 90,
	}
}

// Clean is the H200 without overheads: launches, events, waits, gaps and switches take no time, and copies both ways do not slow each
// other. Only the durations of nodes and their engines count, so that orders can be compared with results of scheduling theory.
func Clean() *Machine {
	m := H200()
	m.Name = "clean"
	m.LaunchUS, m.CopyLaunchUS, m.EventUS, m.SyncUS, m.GapUS, m.CopySwitchUS = 0, 0, 0, 0, 0, 0
	m.GraphLaunchUS, m.GraphNodeUS, m.GraphIssueUS, m.GraphEdgeUS, m.GraphSwitchUS, m.EngineUS = 0, 0, 0, 0, 0, 0
	m.BothWays = 1
	return m
}

// Unit is the machine of scheduling theory: each node takes its declared cost or 1 us, and nothing else takes time.
func Unit() *Machine { return &Machine{Name: "unit", Unit: true} }

// MachineNames lists the built-in machines, the default first.
func MachineNames() []string { return []string{"h200", "clean", "unit"} }

// MachineByName returns a built-in machine. The empty name is the default.
func MachineByName(name string) (*Machine, error) {
	switch name {
	case "", "h200":
		return H200(), nil
	case "clean":
		return Clean(), nil
	case "unit":
		return Unit(), nil
	}
	return nil, fmt.Errorf("%w %q: the built-in ones are %s", ErrUnknownMachine, name, strings.Join(MachineNames(), ", "))
}

const (
	machineVersion  = 1
	maxMachineBytes = 1 << 20
	maxFigure       = 1e15 // a larger figure is a mistake, and sums of such figures are useless
)

// figure is one parameter of a machine with its name in the file.
type figure struct {
	name     string
	value    any  // *float64, *int or *int64
	positive bool // required except on a unit machine
}

// figures lists every parameter, in file order.
func (m *Machine) figures() []figure {
	return []figure{
		{"launch_us", &m.LaunchUS, false}, {"copy_launch_us", &m.CopyLaunchUS, false}, {"event_us", &m.EventUS, false}, {"sync_us", &m.SyncUS, false},
		{"gap_us", &m.GapUS, false}, {"graph_launch_us", &m.GraphLaunchUS, false}, {"graph_node_us", &m.GraphNodeUS, false}, {"graph_issue_us",
			&m.GraphIssueUS, false}, {"graph_edge_us", &m.GraphEdgeUS, false},
		{"engine_us", &m.EngineUS, false}, {"kernel_us", &m.KernelUS, false}, {"step_us", &m.StepUS, false}, {"copy_us", &m.CopyUS, false}, {"fill_us",
			&m.FillUS, false},
		{"copy_switch_us", &m.CopySwitchUS, false}, {"graph_switch_us", &m.GraphSwitchUS, false},
		{"host_to_device", &m.HostToDevice, true}, {"device_to_host", &m.DeviceToHost, true}, {"both_ways", &m.BothWays, false},
		{"device_to_device", &m.DeviceToDevice, true}, {"peer_to_peer", &m.PeerToPeer, true},
		{"host_to_host", &m.HostToHost, true}, {"memory", &m.Memory, true}, {"memory_per_sm", &m.MemoryPerSM, false}, {"flops", &m.Flops, true},
		{"multiprocessors", &m.Multiprocessors, true}, {"blocks_per_sm", &m.BlocksPerSM, true},
		{"threads_per_sm", &m.ThreadsPerSM, true}, {"shared_per_sm", &m.SharedPerSM, false},
		{"busy_threads", &m.BusyThreads, true}, {"copy_engines", &m.CopyEngines, true},
		{"cores", &m.Cores, false}, {"device_bytes", &m.DeviceBytes, false}, {"capability", &m.Capability, false},
	}
}

func (f *figure) get() float64 {
	switch v := f.value.(type) {
	case *float64:
		return *v
	case *int:
		return float64(*v)
	}
	return float64(*f.value.(*int64))
}

// Validate reports every impossible number. Errors match ErrBadMachine.
func (m *Machine) Validate() error {
	if m == nil {
		return fmt.Errorf("%w: there is none", ErrBadMachine)
	}
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w %q: %s", ErrBadMachine, m.Name, fmt.Sprintf(format, args...)))
	}
	if m.Name == "" || len(m.Name) > jsontext.MaxNameBytes || !utf8.ValidString(m.Name) {
		wrong("its name must have 1 to %d bytes of UTF-8", jsontext.MaxNameBytes)
	}
	for _, f := range m.figures() {
		switch v := f.get(); {
		case math.IsNaN(v) || v < 0 || v > maxFigure:
			wrong("%s is %v: it must be from 0 to %g", f.name, v, maxFigure)
		case f.positive && v == 0 && !m.Unit:
			wrong("%s is 0: it must be above 0", f.name)
		}
	}
	if m.BothWays > 1 {
		wrong("both_ways is %v: it is a fraction of the copy rates, at most 1", m.BothWays)
	}
	if m.GraphIssueUS > m.GraphNodeUS {
		wrong("graph_issue_us is %v: it is part of graph_node_us, which is %v", m.GraphIssueUS, m.GraphNodeUS)
	}
	if len(m.Buses) > 0 && (m.Unit || m.Cores > 0) {
		wrong("it has buses, but copies on it use none: leave out buses, or unit and cores")
	}
	checkBuses(m.Buses, maxFigure, wrong)
	return errors.Join(errs...)
}

// ValidateMeasured checks the figures as Validate does, and that a device may have been measured to have them: nothing that takes the same time each time
// takes more than a second, and no rate is below a byte or an operation per microsecond. Predictions stay finite then.
func (m *Machine) ValidateMeasured() error {
	if err := m.Validate(); err != nil || m.Unit {
		return err
	}
	const mostUS, least, leastPart = 1e6, 1, 1e-3
	for _, f := range m.figures() {
		v, timeOrRate := f.value.(*float64)
		switch {
		case !timeOrRate || *v == 0:
		case strings.HasSuffix(f.name, "_us"):
			if *v > mostUS {
				return fmt.Errorf("%w %q: %s is %v: no device takes more than %g", ErrBadMachine, m.Name, f.name, *v, mostUS)
			}
		case v == &m.BothWays && *v < leastPart, v != &m.BothWays && *v < least:
			return fmt.Errorf("%w %q: %s is %v: no device is so slow", ErrBadMachine, m.Name, f.name, *v)
		}
	}
	for k := range m.Buses {
		if b := &m.Buses[k]; b.Rate < least {
			return fmt.Errorf("%w %q: the rate of bus %q is %v: no bus is so slow", ErrBadMachine, m.Name, b.Name, b.Rate)
		}
	}
	return nil
}

// inRange returns an error if a number is unusable in computations. Zeros are allowed.
func (m *Machine) inRange() error {
	for _, f := range m.figures() {
		if v := f.get(); math.IsNaN(v) || v < 0 || v > maxFigure {
			return fmt.Errorf("%w %q: %s is %v: it must be from 0 to %g", ErrBadMachine, m.Name, f.name, v, maxFigure)
		}
	}
	var err error
	checkBuses(m.Buses, maxFigure, func(format string, args ...any) {
		if err == nil {
			err = fmt.Errorf("%w %q: %s", ErrBadMachine, m.Name, fmt.Sprintf(format, args...))
		}
	})
	return err
}

// Encode writes the machine as a file that DecodeMachine reads.
func (m *Machine) Encode(w io.Writer) error {
	if w == nil {
		return words.ErrNoWriter
	}
	if err := m.Validate(); err != nil {
		return err
	}
	text := strconv.AppendInt([]byte("{\n  \"version\": "), machineVersion, 10)
	text = jsontext.AppendString(append(text, ",\n  \"name\": "...), m.Name)
	text = strconv.AppendBool(append(text, ",\n  \"unit\": "...), m.Unit)
	for _, f := range m.figures() {
		text = append(jsontext.AppendString(append(text, ",\n  "...), f.name), ": "...)
		switch v := f.value.(type) {
		case *float64:
			text = jsontext.AppendFloat(text, *v)
		case *int:
			text = strconv.AppendInt(text, int64(*v), 10)
		case *int64:
			text = strconv.AppendInt(text, *v, 10)
		}
	}
	if len(m.Buses) > 0 {
		text = appendBuses(append(text, ",\n  \"buses\": "...), m.Buses)
	}
	_, err := w.Write(append(text, "\n}\n"...))
	return err
}

// newer reports whether older files may lack a parameter. Without it, its effect is not simulated.
func newer(figure string) bool {
	switch figure {
	case "both_ways", "copy_switch_us", "cores", "step_us", "buses", "graph_edge_us", "engine_us", "fill_us", "graph_switch_us", "memory_per_sm", "capability",
		"copy_launch_us", "graph_launch_us":
		return true
	}
	return false
}

// DecodeMachine reads a machine file. Every number is required except those that older files lack. A unit machine uses no numbers and needs
// none. Errors match ErrBadMachine; those with a position in the file are a *FileError.
func DecodeMachine(r io.Reader) (*Machine, error) {
	data, err := jsontext.ReadLimited(r, "machine", maxMachineBytes)
	if err != nil {
		return nil, err
	}
	m := &Machine{}
	figures := m.figures()
	keys := []string{"version", "name", "unit"}
	for _, f := range figures {
		keys = append(keys, f.name)
	}
	keys = append(keys, "buses")
	there := make([]bool, len(keys))
	reader := jsontext.Reader{Data: data, Kind: ErrBadMachine}
	reader.Object(keys, len(keys)-2, func(key int) {
		there[key] = true
		switch keys[key] {
		case "version":
			reader.Version(machineVersion)
		case "name":
			m.Name = reader.Label()
		case "unit":
			m.Unit = reader.Bool()
		case "buses":
			m.Buses = readBuses(&reader, maxFigure)
		default:
			switch v := figures[key-3].value.(type) {
			case *float64:
				*v = reader.Float(maxFigure)
			case *int:
				*v = int(reader.Int(0, math.MaxInt32))
			case *int64:
				*v = reader.Int(0, maxFigure)
			}
		}
	})
	if reader.Err == nil {
		reader.End()
	}
	for key := range keys {
		if key > 2 && !there[key] && !m.Unit && !newer(keys[key]) {
			reader.FailAt(0, ErrBadMachine, "key %q is missing", keys[key])
		}
	}
	if reader.Err != nil {
		return nil, fmt.Errorf("machine: %w", reader.Err)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}
