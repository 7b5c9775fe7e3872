// Calls of vendors' libraries. Each call is captured once, as a graph: it becomes a child graph in graphs, and the launch of a small graph on
// streams. So it runs the same kernels everywhere.

package driver

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/libraries"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels/launch"
)

// openLibrary opens a vendor's library. Tests replace it.
var openLibrary = libraries.Open

// loadCalls opens a vendor's library for a device.
func (p *Platform) loadCalls(d *device, code *launch.Module) (cudart.Module, error) {
	lib, err := openLibrary(code.Name)
	if err != nil {
		return nil, err
	}
	m := &callModule{p: p, d: d, code: code, streams: map[dag.Priority]*stream{}}
	err = p.inContext(d, func() error {
		m.session, err = lib.NewSession()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("device %d: %w", d.number, err)
	}
	p.live.modules.Add(1)
	return m, nil
}

// inContext does something with the device's context current on the calling thread.
func (p *Platform) inContext(d *device, do func() error) (err error) {
	if err := p.prepare(d); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if code := uint32(dl.Call(p.lib.address[cuCtxPushCurrent], d.context.Load())); code != 0 {
		return d.fail(p.lib, cuCtxPushCurrent, uint64(code))
	}
	defer func() {
		popped := new(uintptr)
		if code := dl.CallWith(p.lib.address[cuCtxPopCurrent], dl.Pointer(popped)); code != 0 {
			err = errors.Join(err, d.fail(p.lib, cuCtxPopCurrent, uint64(code)))
		}
	}()
	return do()
}

// Kernel finds a call.
func (m *callModule) Kernel(entry string) (cudart.Kernel, error) {
	if m.closed.Load() {
		return nil, fmt.Errorf("module %s is closed", m.code.Name)
	}
	if _, known := m.code.Parameters[entry]; !known {
		return nil, fmt.Errorf("module %s has no call %q", m.code.Name, entry)
	}
	return &kernel{p: m.p, closed: &m.closed, d: m.d, entry: entry, call: m, attributes: cudart.KernelAttributes{MaxThreads: 1024}}, nil
}

// Global fails: a vendor's library has no variables for pipelines.
func (m *callModule) Global(name string) (cudart.Ptr, int64, error) {
	return 0, 0, fmt.Errorf("module %s: the module has no variable %q", m.code.Name, name)
}

// Warnings implements [cudart.Module].
func (m *callModule) Warnings() []string { return nil }

// Close gives the library's handle back.
func (m *callModule) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.live.modules.Add(-1)
	var errs []error
	if m.d.fault.Load() == nil {
		errs = append(errs, m.p.inContext(m.d, m.session.Close))
	}
	for _, priority := range []dag.Priority{dag.High, dag.Normal, dag.Low} {
		if s := m.streams[priority]; s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// capture makes a CUgraph of a call, which the caller destroys.
func (m *callModule) capture(c *checked) (graph uintptr, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[c.Priority]
	if s == nil {
		if s, err = m.p.newStream(m.d, c.Priority); err != nil {
			return 0, err
		}
		m.streams[c.Priority] = s
	}
	lib := m.p.lib
	args := &libraries.Arguments{Entry: c.kernel.entry, Stream: s.handle, Names: m.code.Parameters[c.kernel.entry], Values: c.Args}
	err = m.p.inContext(m.d, func() error {
		if err := m.session.Prepare(args); err != nil {
			return err
		}
		// A library may allocate memory for itself in its first calls, which only relaxed captures allow.
		if code := uint32(dl.Call(lib.address[cuStreamBeginCapture], s.handle, captureRelaxed)); code != 0 {
			return m.d.fail(lib, cuStreamBeginCapture, uint64(code))
		}
		err := m.session.Call(args)
		made := new(uintptr)
		code := dl.CallWith(lib.address[cuStreamEndCapture], dl.Number(s.handle), dl.Pointer(made))
		graph = *made
		if err == nil && code != 0 {
			err = m.d.fail(lib, cuStreamEndCapture, uint64(code))
		}
		return err
	})
	if err == nil && graph == 0 {
		err = errors.New("the library did nothing that could be captured")
	}
	if err != nil {
		if graph != 0 {
			err = errors.Join(err, m.p.dispose(m.d, cuGraphDestroy, graph))
		}
		return 0, fmt.Errorf("node %q: call %s: %w", c.Label, c.kernel.entry, err)
	}
	return graph, nil
}

// executable makes an executable graph of a call, for streams.
func (m *callModule) executable(c *checked) (exec uintptr, err error) {
	graph, err := m.capture(c)
	if err != nil {
		return 0, err
	}
	s, err := m.p.sequence(m.d)
	if err == nil {
		s.call(cuGraphInstantiateWithFlags, s.out(0), graph, 0)
		err = s.run()
		exec = uintptr(s.outs[0])
		s.release()
	}
	return exec, errors.Join(err, m.p.dispose(m.d, cuGraphDestroy, graph))
}

// call appends the row of a call, the launch of its graph.
func (e *encoded) call(l *submitter, i int, c *checked) error {
	exec, err := c.kernel.call.executable(c)
	if err != nil {
		return err
	}
	if e.calls == nil {
		e.calls = map[int]callRow{}
	}
	e.calls[i] = callRow{c.kernel.d, exec}
	l.add(e.p, cuGraphLaunch, int32(i), exec, c.stream.handle)
	return nil
}

// close frees the table's memory and the graphs of its calls. Launches that were submitted run to their end.
func (e *encoded) close() error {
	errs := []error{e.memory.close()}
	for i := range e.places {
		if call, ok := e.calls[i]; ok {
			errs = append(errs, e.p.dispose(call.d, cuGraphExecDestroy, call.exec))
		}
	}
	e.calls = nil
	forgetHosts(e.functions)
	e.functions = nil
	return errors.Join(errs...)
}

func hasCalls(list []checked) bool {
	return slices.ContainsFunc(list, func(c checked) bool { return c.kernel != nil && c.kernel.call != nil })
}

// addCall adds a call to a graph, as a child graph that the driver copies.
func (g *graph) addCall(template uintptr, s *nodeScratch, c *checked) (uint32, error) {
	child, err := c.kernel.call.capture(c)
	if err != nil {
		return 0, err
	}
	code := uint32(dl.Call(g.p.lib.address[cuGraphAddChildGraphNode], uintptr(unsafe.Pointer(&s.node)), template,
		uintptr(unsafe.Pointer(unsafe.SliceData(s.before))), uintptr(len(s.before)), child))
	return code, g.p.dispose(g.d, cuGraphDestroy, child)
}
