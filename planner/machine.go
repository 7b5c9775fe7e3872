// The machine: every figure the cost model and the simulator use, the built-in machines, and the file form. Measures nothing.

package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Machine is a model of a host with its devices. All devices are alike. Rates are bytes or operations per microsecond:
// 1 GB/s is 1000 bytes per microsecond.
type Machine struct {
	Name string `json:"name"`

	LaunchUS     float64 `json:"launch_us"`      // host: one launch or copy
	EventUS      float64 `json:"event_us"`       // host: one record or wait
	SyncUS       float64 `json:"sync_us"`        // device: from a record to the streams that wait for it
	GapUS        float64 `json:"gap_us"`         // device: from the end of a node to the start of one that had to follow it
	GraphNodeUS  float64 `json:"graph_node_us"`  // device, in a graph: what GapUS is on a stream
	GraphIssueUS float64 `json:"graph_issue_us"` // device, in a graph: part of GraphNodeUS that is spent on one node at a time
	KernelUS     float64 `json:"kernel_us"`      // device: the least a kernel takes
	CopyUS       float64 `json:"copy_us"`        // device: what a copy takes before its first byte

	HostToDevice   float64 `json:"host_to_device"`   // bytes copied
	DeviceToHost   float64 `json:"device_to_host"`   // bytes copied
	DeviceToDevice float64 `json:"device_to_device"` // bytes copied within a device: half of Memory
	PeerToPeer     float64 `json:"peer_to_peer"`     // bytes copied from one device to another
	HostToHost     float64 `json:"host_to_host"`     // bytes copied by the host
	Memory         float64 `json:"memory"`           // device memory, reads and writes counted
	Flops          float64 `json:"flops"`

	Multiprocessors int `json:"multiprocessors"`
	BlocksPerSM     int `json:"blocks_per_sm"`
	ThreadsPerSM    int `json:"threads_per_sm"`
	SharedPerSM     int `json:"shared_per_sm"`
	BusyThreads     int `json:"busy_threads"` // threads that keep one multiprocessor busy; more hide no more latency
	CopyEngines     int `json:"copy_engines"` // per direction

	DeviceBytes int64 `json:"device_bytes"` // memory of one device; 0: unknown
	Unit        bool  `json:"unit"`         // a node takes its cost or 1 us; no syncs, no submission, no contention
}

// ErrUnknownMachine is what MachineByName returns (wrapped) for a name that it does not have.
var ErrUnknownMachine = errors.New("unknown machine")

// H200 is an NVIDIA H200 as measured from one host thread, each figure the best of several runs.
func H200() *Machine {
	return &Machine{
		Name:     "h200",
		LaunchUS: 2.65,
		EventUS:  0.125,
		SyncUS:   0.1, // 20 us kernels in ping-pong over two streams: 21.7 us a step, 21.6 on one
		GapUS:    1.6, // 20 us kernels one after the other on a stream: 21.6 us a step
		// No-op kernels in a graph: a chain 0.53 us a node, 8 chains side by side 0.19 us a node: issuing is partly serial.
		GraphNodeUS: 0.55, GraphIssueUS: 0.19,
		KernelUS: 0.1, CopyUS: 1.5,
		HostToDevice: 55_000, DeviceToHost: 55_400,
		DeviceToDevice: 2_050_000, Memory: 4_100_000,
		PeerToPeer: 450_000, // 18 NVLink lanes of 25 GB/s, by the data sheet
		HostToHost: 20_000,
		Flops:      67_000_000, // f32 outside the tensor cores, by the data sheet

		Multiprocessors: 132, BlocksPerSM: 32, ThreadsPerSM: 2048, SharedPerSM: 228 << 10,
		BusyThreads: 512, // four warps for each of four schedulers cover the latency of a multiply-add
		CopyEngines: 1,
		DeviceBytes: 139 << 30,
	}
}

// Unit is the machine of textbooks: a node takes its declared cost or 1 us, and nothing else takes time.
func Unit() *Machine { return &Machine{Name: "unit", Unit: true} }

// MachineNames lists the built-in machines, the default first.
func MachineNames() []string { return []string{"h200", "unit"} }

// MachineByName returns a built-in machine. The empty name is the default.
func MachineByName(name string) (*Machine, error) {
	switch name {
	case "", "h200":
		return H200(), nil
	case "unit":
		return Unit(), nil
	}
	return nil, fmt.Errorf("%w %q: the built-in ones are %s", ErrUnknownMachine, name, strings.Join(MachineNames(), ", "))
}

const (
	machineVersion  = 1
	maxMachineBytes = 1 << 20
	maxFigure       = 1e18 // beyond this a figure is a mistake, and sums of them lose all meaning
)

// figures lists every number of a machine with the name it has in the file, in file order.
func (m *Machine) figures() []figure {
	return []figure{
		{"launch_us", m.LaunchUS, false}, {"event_us", m.EventUS, false}, {"sync_us", m.SyncUS, false},
		{"gap_us", m.GapUS, false}, {"graph_node_us", m.GraphNodeUS, false}, {"graph_issue_us", m.GraphIssueUS, false},
		{"kernel_us", m.KernelUS, false}, {"copy_us", m.CopyUS, false},
		{"host_to_device", m.HostToDevice, true}, {"device_to_host", m.DeviceToHost, true},
		{"device_to_device", m.DeviceToDevice, true}, {"peer_to_peer", m.PeerToPeer, true},
		{"host_to_host", m.HostToHost, true}, {"memory", m.Memory, true}, {"flops", m.Flops, true},
		{"multiprocessors", float64(m.Multiprocessors), true}, {"blocks_per_sm", float64(m.BlocksPerSM), true},
		{"threads_per_sm", float64(m.ThreadsPerSM), true}, {"shared_per_sm", float64(m.SharedPerSM), false},
		{"busy_threads", float64(m.BusyThreads), true}, {"copy_engines", float64(m.CopyEngines), true},
		{"device_bytes", float64(m.DeviceBytes), false},
	}
}

type figure struct {
	name     string
	value    float64
	positive bool // needed on every machine but a unit one
}

// Validate says which figure cannot be right, all of them in one go.
func (m *Machine) Validate() error {
	var errs []error
	if m.Name == "" || len(m.Name) > maxNameBytes {
		errs = append(errs, fmt.Errorf("machine: name must have 1 to %d bytes", maxNameBytes))
	}
	for _, f := range m.figures() {
		switch {
		case math.IsNaN(f.value) || f.value < 0 || f.value > maxFigure:
			errs = append(errs, fmt.Errorf("machine %q: %s is %v: it must be from 0 to %g", m.Name, f.name, f.value, maxFigure))
		case f.positive && f.value == 0 && !m.Unit:
			errs = append(errs, fmt.Errorf("machine %q: %s is missing: it must be above 0", m.Name, f.name))
		}
	}
	if m.GraphIssueUS > m.GraphNodeUS {
		errs = append(errs, fmt.Errorf("machine %q: graph_issue_us is %v: it is part of graph_node_us, which is %v", m.Name, m.GraphIssueUS, m.GraphNodeUS))
	}
	return errors.Join(errs...)
}

type machineFile struct {
	Version int `json:"version"`
	*Machine
}

// Encode writes the machine as a file that DecodeMachine reads.
func (m *Machine) Encode(w io.Writer) error {
	if err := m.Validate(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(machineFile{machineVersion, m}, "", "  ")
	if err != nil {
		return fmt.Errorf("machine %q: %w", m.Name, err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// DecodeMachine reads a machine file. Every figure must be there, except on a unit machine.
func DecodeMachine(r io.Reader) (*Machine, error) {
	m := &Machine{}
	if err := decodeStrict(r, "machine", maxMachineBytes, machineVersion, &machineFile{Machine: m}); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// decodeStrict reads one JSON value with a version, refusing unknown fields, trailing text and more than limit bytes.
func decodeStrict(r io.Reader, what string, limit int64, version int, into any) error {
	data, err := readLimited(r, what, limit)
	if err != nil {
		return err
	}
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	switch {
	case head.Version == nil:
		return fmt.Errorf("%s: version is missing; this is version %d", what, version)
	case *head.Version != version:
		return fmt.Errorf("%s: version is %d; only version %d can be read", what, *head.Version, version)
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func readLimited(r io.Reader, what string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", what, limit)
	}
	return data, nil
}
