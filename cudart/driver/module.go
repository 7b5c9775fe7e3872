// Modules: loads code, and adds the compiler's log to errors.

package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels/launch"
)

// module is a CUmodule.
type module struct {
	p        *Platform
	d        *device
	name     string
	handle   uintptr
	machine  *machineCode    // loaded instead of PTX; then there is no handle
	entries  []string        // of PTX, for messages
	params   map[string]int  // how many parameters each kernel has, as far as the code tells
	waiting  map[string]bool // of PTX: the kernels that wait for the launches before them before they do anything else
	warnings []string
	closed   atomic.Bool
	origin   string            // how source was compiled, or which machine code was loaded instead of PTX
	symbols  map[string]string // of source: where the code has kernels
}

// Origin tells whether a module of CUDA C was compiled now or found in the cache, and whether machine code that comes with PTX was loaded or why not; "" for
// other modules.
func (m *module) Origin() string { return m.origin }

// Load loads a module on a device. Source is compiled for the device first. The driver may delay loading a kernel until its first use
// (CUDA_MODULE_LOADING); Module.Kernel loads it, so that the first replay is not slower.
func (p *Platform) Load(ctx context.Context, number int32, code *launch.Module) (cudart.Module, error) {
	d, err := p.device(number)
	if err != nil {
		return nil, err
	}
	if code == nil {
		return nil, fmt.Errorf("there is no module to load")
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if code.Kind == launch.Calls {
		return p.loadCalls(d, code)
	}
	image, kind, log, origin := code.Code, code.Kind, "", ""
	var symbols map[string]string
	if code.Machine != nil {
		machine, err := p.loadMachine(d, code)
		if err == nil {
			return p.machineModule(d, code.Name, machine), nil
		}
		origin = "PTX, because " + err.Error()
	}
	if kind == launch.Source {
		c, err := p.compileFor(ctx, d, code)
		if err != nil {
			return nil, err
		}
		image, kind, log, origin, symbols = c.Code, c.Kind, c.Log, c.Origin(), c.Symbols
	}
	if len(image) == 0 {
		return nil, fmt.Errorf("module %s: no code", code.Name)
	}
	if code.Waiting || code.MayWait && p.CanOverlap(number) == nil {
		form, err := waiting(code.Name, kind, image)
		switch {
		case err == nil:
			image = form
		case code.Waiting:
			return nil, err
		}
	}
	if err := checkImage(image); err != nil {
		return nil, fmt.Errorf("module %s: %w", code.Name, err)
	}
	handle, err := p.loadImage(d, code.Name, kind, image)
	if err != nil {
		return nil, err
	}
	m := &module{p: p, d: d, name: code.Name, origin: origin, symbols: symbols, handle: handle}
	switch kind {
	case launch.PTX:
		// If only the driver can read the PTX, the driver lists its entries.
		if parsed, err := ptx.Parse(string(image)); err == nil {
			m.entries, m.params = ptxEntries(parsed)
			m.waiting = earlyEntries(parsed)
		}
	case launch.Cubin:
		m.params = launch.CubinParameters(image)
		if code.Kind == launch.Source {
			break // whose text shows its variables
		}
		m.warnings = writableGlobalsOfCubin(code.Name, image)
	}
	if log != "" {
		m.warnings = append(m.warnings, log)
	}
	p.live.modules.Add(1)
	return m, nil
}

// Waits reports whether every kernel of the module waits for the launches before it before it does anything else.
func (m *module) Waits() bool {
	for _, entry := range m.entries {
		if !m.waiting[entry] {
			return false
		}
	}
	return len(m.entries) > 0
}

// machineModule makes a module of machine code.
func (p *Platform) machineModule(d *device, name string, machine *machineCode) *module {
	p.live.modules.Add(1)
	return &module{p: p, d: d, name: name, machine: machine, entries: machine.entries, params: machine.params, waiting: machine.waiting,
		origin: "machine code for " + machine.architecture}
}

// holding returns the CUmodule that a kernel is in, or should be.
func (m *module) holding(entry string) uintptr {
	if m.machine != nil {
		return m.machine.holding(entry)
	}
	return m.handle
}

// Warnings returns what a user should know about the module.
func (m *module) Warnings() []string { return m.warnings }

// Kernel finds a kernel and loads it.
func (m *module) Kernel(entry string) (cudart.Kernel, error) {
	if m.closed.Load() {
		return nil, fmt.Errorf("module %s is closed", m.name)
	}
	if symbol := m.symbols[entry]; symbol != "" {
		entry = symbol
	}
	handle, err := m.p.findKernel(m.d, m.holding(entry), entry)
	if err != nil {
		if isCode(err, codeNotFound) {
			return nil, fmt.Errorf("module %s: %w", m.name, m.missing(err.(*cudart.Error), entry))
		}
		return nil, fmt.Errorf("module %s: kernel %s: %w", m.name, entry, err)
	}
	k := &kernel{p: m.p, closed: &m.closed, d: m.d, entry: entry, handle: handle}
	params, known := m.params[entry]
	if !known {
		params = -1
	}
	if err := k.read(params); err != nil {
		return nil, fmt.Errorf("module %s: kernel %s: %w", m.name, entry, err)
	}
	k.attributes.WaitsFirst = m.waiting[entry]
	return k, nil
}

// Global finds a variable.
func (m *module) Global(name string) (cudart.Ptr, int64, error) {
	if m.closed.Load() {
		return 0, 0, fmt.Errorf("module %s is closed", m.name)
	}
	symbol := strings.TrimPrefix(name, "&")
	if s := m.symbols[name]; s != "" {
		symbol = s
	}
	text := append([]byte(symbol), 0)
	s, err := m.p.sequence(m.d)
	if err != nil {
		return 0, 0, err
	}
	defer s.release()
	s.callPointers(cuModuleGetGlobal, s.out(0), s.out(1), m.holding(""), unsafe.Pointer(&text[0]))
	if err := s.run(); err != nil {
		if isCode(err, codeNotFound) {
			err.(*cudart.Error).Detail = fmt.Sprintf("the module has no variable %q", symbol)
		}
		return 0, 0, fmt.Errorf("module %s: %w", m.name, err)
	}
	return cudart.Ptr(s.outs[0]), int64(s.outs[1]), nil
}

// missing returns the error for a kernel that is not in the module.
func (m *module) missing(e *cudart.Error, entry string) error {
	e.Detail = fmt.Sprintf("the module has no kernel %q", entry)
	if shown := m.kernels(); len(shown) > 0 {
		more := ""
		if len(shown) > 8 {
			shown, more = shown[:8], fmt.Sprintf(" and %d more", len(shown)-8)
		}
		e.Detail += "; it has " + strings.Join(shown, ", ") + more
	}
	e.Detail += `; names of kernels not declared extern "C" are mangled`
	return e
}

// kernels lists the kernels of PTX in file order, and those of a binary by name if the driver can list them.
func (m *module) kernels() []string {
	if m.entries != nil || m.p.lib.address[cuModuleEnumerateFunctions] == 0 || m.p.lib.address[cuFuncGetName] == 0 {
		return m.entries
	}
	s, err := m.p.sequence(m.d)
	if err != nil {
		return nil
	}
	s.call(cuModuleGetFunctionCount, s.out(0), m.handle)
	err = s.run()
	count := int(uint32(s.outs[0]))
	s.release()
	if err != nil || count == 0 {
		return nil
	}
	handles := make([]uintptr, count)
	if s, err = m.p.sequence(m.d); err != nil {
		return nil
	}
	s.callPointers(cuModuleEnumerateFunctions, unsafe.Pointer(&handles[0]), count, m.handle)
	err = s.run()
	s.release()
	if err != nil {
		return nil
	}
	var names []string
	for _, handle := range handles {
		text := new(*byte)
		if s, err = m.p.sequence(m.d); err != nil {
			return nil
		}
		s.callPointers(cuFuncGetName, unsafe.Pointer(text), handle)
		if err = s.run(); err == nil && *text != nil {
			names = append(names, dl.Text(*text))
		}
		s.release()
	}
	slices.Sort(names)
	return names
}

// Close unloads the module.
func (m *module) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	m.p.live.modules.Add(-1)
	if m.machine != nil {
		return m.machine.unload(m.p, m.d)
	}
	return m.p.dispose(m.d, cuModuleUnload, m.handle)
}
