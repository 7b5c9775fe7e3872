// A device that runs nothing: it keeps the code that is loaded, what memory is filled with, and the graph that is built.

package graphfile

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Target says which GPUs a file is for.
type Target struct {
	Capability   [2]int
	Exact        bool   // machine code for that capability, where there is some; otherwise PTX, for it and later ones
	Architecture string // its name
	Compiler     launch.Compiler
	Confined     bool // as runtime.Options has it
}

// device is the platform to which the engine lowers a plan that is to be written to a file. Addresses of the device are numbers; host memory is there.
type device struct {
	target   Target
	next     cudart.Ptr // of the next allocation
	host     map[cudart.Ptr][]byte
	filled   map[cudart.Ptr][]byte // by address on the device: what was copied there before the graph was built
	modules  [][]byte
	commands []cudart.Command
	deps     [][]int32
	ranked   bool // priorities of nodes matter
}

const apart = 1 << 16 // bytes of address space between allocations, at least

func newDevice(t Target) *device {
	return &device{target: t, next: 1 << 40, host: map[cudart.Ptr][]byte{}, filled: map[cudart.Ptr][]byte{}}
}

func unsupported(what string) error {
	return fmt.Errorf("%s: a file cannot hold that yet: %w", what, cudart.ErrUnsupported)
}

func (d *device) Name() string { return "file" }

func (d *device) Devices() []cudart.Info {
	return []cudart.Info{{Name: "file", Capability: d.target.Capability, Peers: []bool{false}}}
}

func (d *device) MemoryInfo(int32) (free, total int64, err error) { return 1 << 60, 1 << 60, nil }

func (d *device) take(bytes int64) cudart.Ptr {
	at := d.next
	d.next += cudart.Ptr((bytes/apart + 1) * apart)
	return at
}

func (d *device) Alloc(_ int32, bytes int64) (cudart.Ptr, error) { return d.take(bytes), nil }

func (d *device) AllocHost(bytes int64, _ bool) (cudart.Ptr, error) {
	at := d.take(bytes)
	d.host[at] = make([]byte, bytes)
	return at, nil
}

func (d *device) RegisterHost([]byte) (cudart.Ptr, error) {
	return 0, unsupported("memory of the caller")
}
func (d *device) UnregisterHost(cudart.Ptr) error { return nil }

func (d *device) Free(p cudart.Ptr) error {
	delete(d.host, p)
	return nil
}

func (d *device) HostBytes(p cudart.Ptr, bytes int64) []byte {
	if b, ok := d.host[p]; ok && int64(len(b)) >= bytes {
		return b[:bytes]
	}
	return nil
}

func (d *device) EnablePeer(int32, int32) error { return unsupported("a second device") }

type stream struct{}

func (stream) Device() int32                     { return 0 }
func (stream) Handle() uintptr                   { return 0 }
func (stream) Synchronize(context.Context) error { return nil }
func (stream) Query() (bool, error)              { return true, nil }
func (stream) Close() error                      { return nil }

type event struct{}

func (event) Query() (bool, error)                { return true, nil }
func (event) Synchronize(context.Context) error   { return nil }
func (event) Since(cudart.Event) (float64, error) { return 0, nil }
func (event) Close() error                        { return nil }

func (d *device) NewStream(int32, dag.Priority) (cudart.Stream, error) { return stream{}, nil }
func (d *device) AdoptStream(uintptr) (cudart.Stream, error)           { return stream{}, nil }
func (d *device) NewEvent(int32, bool) (cudart.Event, error)           { return event{}, nil }
func (d *device) TakesDeciders() bool                                  { return false }
func (d *device) Synchronize(context.Context, int32) error             { return nil }
func (d *device) Live() cudart.Live                                    { return cudart.Live{} }
func (d *device) Close() error                                         { return nil }

// module is code that was loaded: what of the file's modules holds each kernel, or all of them.
type module struct {
	d        *device
	code     *launch.Module
	symbols  map[string]string
	whole    int32            // of the file's modules
	machine  map[string]int32 // by kernel
	warnings []string
}

func (d *device) Load(ctx context.Context, _ int32, code *launch.Module) (cudart.Module, error) {
	m := &module{d: d, code: code}
	if code.Machine != nil && d.target.Exact {
		if machine, err := code.Machine(d.target.Capability, false); err == nil {
			m.machine = map[string]int32{}
			for _, k := range machine.Kernels {
				m.machine[k.Entry] = d.add(k.Cubin)
			}
			return m, nil
		}
	}
	switch code.Kind {
	case launch.Calls:
		return nil, unsupported("calls of " + code.Name)
	case launch.Source:
		c, err := launch.Compile(ctx, d.target.Compiler, code, launch.Target{Capability: d.target.Capability, PTX: !d.target.Exact})
		if err != nil {
			return nil, fmt.Errorf("module %w", err)
		}
		m.symbols = c.Symbols
		if c.Log != "" {
			m.warnings = append(m.warnings, c.Log)
		}
		m.whole = d.add(loadable(c.Kind, c.Code))
	default:
		if len(code.Code) == 0 {
			return nil, fmt.Errorf("module %s: no code", code.Name)
		}
		m.whole = d.add(loadable(code.Kind, code.Code))
	}
	return m, nil
}

// loadable ends text with a zero, as the driver takes it.
func loadable(kind launch.Kind, code []byte) []byte {
	if kind == launch.PTX {
		return append(code[:len(code):len(code)], 0)
	}
	return code
}

func (d *device) add(code []byte) int32 {
	d.modules = append(d.modules, code)
	return int32(len(d.modules) - 1)
}

func (m *module) Kernel(entry string) (cudart.Kernel, error) {
	at, ok := m.machine[entry]
	if !ok && m.machine != nil {
		return nil, fmt.Errorf("module %s has no kernel %s", m.code.Name, entry)
	}
	if !ok {
		at = m.whole
	}
	if symbol := m.symbols[entry]; symbol != "" {
		entry = symbol
	}
	return &kernel{module: at, entry: entry}, nil
}

func (m *module) Global(name string) (cudart.Ptr, int64, error) {
	return 0, 0, unsupported("the variable " + name + " of module " + m.code.Name)
}
func (m *module) Warnings() []string { return m.warnings }
func (m *module) Close() error       { return nil }

// kernel is a kernel of one of the file's modules.
type kernel struct {
	module int32
	entry  string
}

func (k *kernel) Attributes() cudart.KernelAttributes { return cudart.KernelAttributes{} }

func (k *kernel) Occupancy(uint32) (uint32, int, error) {
	return 0, 0, errors.New("the driver would choose its block when the device is known: give the node a block")
}

func (k *kernel) SetMaxShared(uint32) error { return nil }

// list is what fills memory, or what the engine would submit to streams, which nobody does.
type list struct {
	d        *device
	commands []cudart.Command
}

func (d *device) Encode(commands []cudart.Command, _ cudart.ListOptions) (cudart.List, error) {
	return &list{d, commands}, nil
}

// Submit keeps what is copied to the device.
func (l *list) Submit() error {
	for i := range l.commands {
		c := &l.commands[i]
		memory := l.d.HostBytes(c.Src, c.Bytes)
		if c.Kind != cudart.CopyMemory || c.DstDevice < 0 || memory == nil {
			return unsupported(fmt.Sprintf("node %q before the graph", c.Label))
		}
		l.d.filled[c.Dst] = memory
	}
	return nil
}

func (l *list) Capture(cudart.GraphOptions) (cudart.Graph, error) {
	return nil, unsupported("a captured graph")
}

func (l *list) SetArgs(int, [3]uint32, []cudart.Value) error { return unsupported("a change") }
func (l *list) SetCopy(int, cudart.Ptr, cudart.Ptr) error    { return unsupported("a change") }
func (l *list) Len() int                                     { return len(l.commands) }
func (l *list) Close() error                                 { return nil }

// finished is the graph; the device has its commands.
type finished struct{ nodes int }

func (d *device) BuildGraph(commands []cudart.Command, deps [][]int32, options cudart.GraphOptions) (cudart.Graph, error) {
	d.commands, d.deps, d.ranked = commands, deps, options.Priorities
	return finished{len(commands)}, nil
}

func (finished) Launch(cudart.Stream) error                   { return unsupported("a launch") }
func (finished) Upload(cudart.Stream) error                   { return nil }
func (finished) SetArgs(int, [3]uint32, []cudart.Value) error { return unsupported("a change") }
func (finished) SetCopy(int, cudart.Ptr, cudart.Ptr) error    { return unsupported("a change") }
func (finished) Update(cudart.List) error                     { return unsupported("a change") }
func (g finished) Nodes() int                                 { return g.nodes }
func (finished) Close() error                                 { return nil }
