// Graphs: captured from a list, or built node by node; launched, changed, replaced.

package driver

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/internal/dl"
)

// graph is a CUgraphExec.
type graph struct {
	p        *Platform
	d        *device
	mu       sync.Mutex
	exec     uintptr
	template uintptr   // the CUgraph whose nodes can be changed, or 0
	nodes    []uintptr // by command
	commands []checked
	count    int
	memory   arena
	launch   *launch
	scratch  *nodeScratch // of a graph that can be changed
	closed   bool
}

// launch is a graph's own small table, so that launching allocates nothing.
type launch struct {
	walk     walk
	rows     [7]row
	epilogue [2]row
	popped   uint64
}

// The rows of a launch.
const (
	launchPush = iota
	launchRecordIn
	launchWaitIn
	launchGraph
	launchRecordOut
	launchWaitOut
	launchRows
)

var launchCalls = [launchRows]function{cuCtxPushCurrent, cuEventRecord, cuStreamWaitEvent, cuGraphLaunch, cuEventRecord, cuStreamWaitEvent}

// Capture records the list as a graph. Begin, commands and end are one crossing, since a thread-local capture begins and
// ends on one thread; the end is called after an error too.
func (l *list) Capture(options cudart.GraphOptions) (cudart.Graph, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	template, d, err := l.capture(options)
	if err != nil {
		return nil, err
	}
	g := &graph{p: l.p, d: d}
	err = g.instantiate(template, options.Priorities)
	destroyErr := l.p.dispose(d, cuGraphDestroy, template)
	if err == nil && destroyErr != nil {
		g.Close()
		err = destroyErr
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// capture returns a CUgraph. l.mu is held.
func (l *list) capture(options cudart.GraphOptions) (uintptr, *device, error) {
	if l.closed {
		return 0, nil, fmt.Errorf("capture of a closed list")
	}
	origin, err := l.p.origin(options.Origin)
	if err != nil {
		return 0, nil, err
	}
	if origin == nil {
		origin = l.origin
	}
	if origin == nil {
		return 0, nil, fmt.Errorf("capture of a list without an origin stream")
	}
	if err := l.p.prepare(origin.d); err != nil {
		return 0, nil, err
	}
	code, err := l.p.encodeCapture(l.commands, origin)
	if err != nil {
		return 0, nil, err
	}
	defer code.memory.close()
	*code.stop = 0
	lane := code.lanes[0]
	cross(lane.walk)
	template := lane.graph()
	if err := code.outcome(l.commands); err != nil {
		if template != 0 {
			l.p.dispose(origin.d, cuGraphDestroy, template)
		}
		return 0, nil, err
	}
	return template, origin.d, nil
}

// graph is what cuStreamEndCapture wrote.
func (l *lane) graph() uintptr {
	for i, f := range l.ends {
		if f == cuStreamEndCapture {
			return uintptr(**(**uint64)(unsafe.Pointer(&l.epilogue[i].arg[1])))
		}
	}
	return 0
}

// encodeCapture makes a table of one lane between the begin and the end of a capture. Legacy streams are not bridged: a graph
// is bridged where it is launched.
func (p *Platform) encodeCapture(list []checked, origin *stream) (e *encoded, err error) {
	e = &encoded{p: p, places: make([]place, len(list))}
	defer func() {
		if err != nil {
			e.memory.close()
		}
	}()
	if e.stop, err = e.memory.word(); err != nil {
		return nil, err
	}
	result, err := e.memory.words(2)
	if err != nil {
		return nil, err
	}
	waited := make(map[*event]bool)
	for i := range list {
		if list[i].Kind == cudart.WaitEvent {
			waited[list[i].event] = true
		}
	}
	l := new(lane)
	e.lanes = []*lane{l}
	l.add(p, cuCtxPushCurrent, -1, origin.d.context.Load())
	l.device = origin.d
	l.add(p, cuStreamBeginCapture, -1, origin.handle, captureThreadLocal)
	l.finally(p, cuStreamEndCapture, 1, origin.handle, uintptr(unsafe.Pointer(&result[0])))
	for i := range list {
		c := &list[i]
		if c.stream != nil {
			l.enter(p, c.stream.d)
		}
		// A time stamp inside a graph is a node of its own; a record that only orders is an edge.
		if c.Kind == cudart.RecordEvent && c.event.timed && !waited[c.event] {
			e.places[i] = place{row: int32(len(l.rows))}
			l.add(p, cuEventRecordWithFlags, int32(i), c.event.handle, c.stream.handle, eventRecordExternal)
			continue
		}
		if err := e.command(l, 0, i, c); err != nil {
			return nil, err
		}
	}
	return e, e.settle()
}

// instantiate makes the executable graph from a CUgraph.
func (g *graph) instantiate(template uintptr, priorities bool) error {
	flags := uintptr(0)
	if priorities && g.p.lib.version >= 11070 { // older drivers know no priorities of nodes
		flags = instantiatePriorities
	}
	s, err := g.p.sequence(g.d)
	if err != nil {
		return err
	}
	defer s.release()
	s.call(cuGraphGetNodes, template, 0, s.out(1))
	s.call(cuGraphInstantiateWithFlags, s.out(0), template, flags)
	if err := s.run(); err != nil {
		return err
	}
	g.exec, g.count = uintptr(s.outs[0]), int(s.outs[1])
	memory, err := g.memory.take(int(unsafe.Sizeof(launch{})), cacheLine)
	if err != nil {
		g.p.dispose(g.d, cuGraphExecDestroy, g.exec)
		return err
	}
	g.launch = (*launch)(memory)
	w := &g.launch.walk
	w.stop = &w.own
	w.setRows(g.launch.rows[:launchRows])
	w.setEpilogue(g.launch.epilogue[:1])
	for i, f := range launchCalls {
		g.launch.rows[i].fn = g.p.lib.address[f]
	}
	g.launch.rows[launchPush].arg[0] = g.d.context.Load()
	g.launch.rows[launchGraph].arg[0] = g.exec
	pop := &g.launch.epilogue[0]
	pop.fn = g.p.lib.address[cuCtxPopCurrent]
	pop.arg[0] = uintptr(unsafe.Pointer(&g.launch.popped))
	pop.arg[rowGuard] = uintptr(unsafe.Pointer(&g.launch.rows[launchPush]))
	g.p.live.graphs.Add(1)
	return nil
}

// Launch puts one run of the graph on a stream. It allocates nothing.
func (g *graph) Launch(on cudart.Stream) error { return g.submit(on, cuGraphLaunch) }

// Upload sends the graph to the device without running it, so that the first launch need not.
func (g *graph) Upload(on cudart.Stream) error { return g.submit(on, cuGraphUpload) }

func (g *graph) submit(on cudart.Stream, f function) error {
	s, ok := on.(*stream)
	if !ok || s.p != g.p {
		return fmt.Errorf("the stream to launch on is not one of this platform's")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fmt.Errorf("launch of a closed graph")
	}
	for _, d := range [2]*device{g.d, s.d} {
		if d.fault.Load() != nil {
			return d.faulted()
		}
	}
	rows, lib := &g.launch.rows, g.p.lib
	rows[launchGraph].fn = lib.address[f]
	rows[launchGraph].arg[1] = s.handle
	bridged := s.bridge != nil
	for _, i := range [4]int{launchRecordIn, launchWaitIn, launchRecordOut, launchWaitOut} {
		rows[i].fn = rowNothing
		if bridged {
			rows[i].fn = lib.address[launchCalls[i]]
		}
	}
	if bridged {
		b := s.bridge
		rows[launchRecordIn].arg[0], rows[launchRecordIn].arg[1] = b.in.handle, b.legacy
		rows[launchWaitIn].arg[0], rows[launchWaitIn].arg[1] = s.handle, b.in.handle
		rows[launchRecordOut].arg[0], rows[launchRecordOut].arg[1] = b.out.handle, s.handle
		rows[launchWaitOut].arg[0], rows[launchWaitOut].arg[1] = b.legacy, b.out.handle
	}
	w := &g.launch.walk
	w.own = 0
	cross(w)
	if i := w.failedRow(); i >= 0 {
		call := launchCalls[i]
		if i == launchGraph {
			call = f
		}
		return g.p.fail(g.d, call, w.code)
	}
	if w.failedEpilogue() >= 0 {
		return g.p.fail(g.d, cuCtxPopCurrent, w.epilogueCode)
	}
	return nil
}

// Nodes is the number of nodes.
func (g *graph) Nodes() int { return g.count }

// Update replaces everything by the capture of a list with the same shape.
func (g *graph) Update(from cudart.List) error {
	l, ok := from.(*list)
	if !ok || l.p != g.p {
		return fmt.Errorf("the list to update from is not one of this platform's")
	}
	l.mu.Lock()
	template, d, err := l.capture(cudart.GraphOptions{})
	l.mu.Unlock()
	if err != nil {
		return err
	}
	defer g.p.dispose(d, cuGraphDestroy, template)
	g.mu.Lock()
	defer g.mu.Unlock()
	s, err := g.p.sequence(g.d)
	if err != nil {
		return err
	}
	defer s.release()
	s.call(cuGraphExecUpdate, g.exec, template, s.out(0), s.out(1))
	if err := s.run(); err != nil {
		if failure, ok := err.(*cudart.Error); ok && failure.Code == codeGraphUpdateFailure {
			failure.Detail = updateResult(uint32(s.outs[1]))
		}
		return err
	}
	return nil
}

// updateResult says why a graph cannot be updated (CUgraphExecUpdateResult).
func updateResult(result uint32) string {
	reasons := [...]string{
		1: "the update failed",
		2: "the graphs differ in shape",
		3: "a node changed its kind",
		4: "a kernel node changed its function in a way that this driver cannot update",
		5: "a node's parameters changed in a way that cannot be updated",
		6: "a node is of a kind that cannot be updated",
		7: "a kernel node changed its function in a way that cannot be updated",
		8: "a node's attributes changed in a way that cannot be updated",
	}
	if int(result) < len(reasons) && reasons[result] != "" {
		return reasons[result] + "; make a new graph instead"
	}
	return fmt.Sprintf("the update was refused with %d; make a new graph instead", result)
}

// Close destroys the graph.
func (g *graph) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	g.p.live.graphs.Add(-1)
	err := g.p.dispose(g.d, cuGraphExecDestroy, g.exec)
	if g.template != 0 {
		if e := g.p.dispose(g.d, cuGraphDestroy, g.template); err == nil {
			err = e
		}
	}
	if e := g.memory.close(); err == nil {
		err = e
	}
	return err
}

// BuildGraph makes a graph node by node. deps must be in an order in which every node comes after what it waits for.
func (p *Platform) BuildGraph(commands []cudart.Command, deps [][]int32, options cudart.GraphOptions) (cudart.Graph, error) {
	if len(deps) != len(commands) {
		return nil, fmt.Errorf("%d commands and dependencies of %d", len(commands), len(deps))
	}
	list, err := p.check(commands, false)
	if err != nil {
		return nil, err
	}
	origin, err := p.origin(options.Origin)
	if err != nil {
		return nil, err
	}
	d := p.devices[0]
	if origin != nil {
		d = origin.d
	}
	s, err := p.sequence(d)
	if err != nil {
		return nil, err
	}
	s.call(cuGraphCreate, s.out(0), 0)
	err = s.run()
	template := uintptr(s.outs[0])
	s.release()
	if err != nil {
		return nil, err
	}
	g := &graph{p: p, d: d, template: template, commands: list, nodes: make([]uintptr, len(list)), scratch: new(nodeScratch)}
	for i := range list {
		list[i].Args = slices.Clone(list[i].Args)
	}
	if err = g.addNodes(deps, options.Priorities); err == nil {
		err = g.instantiate(template, options.Priorities)
	}
	if err != nil {
		p.dispose(d, cuGraphDestroy, template)
		return nil, err
	}
	if err := g.disableEmpty(); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// nodeScratch is what one node's calls read and write. A graph holds it, so that all of it lies on the heap, where nothing moves.
type nodeScratch struct {
	kernel   kernelNodeParams
	copy     memcpy3D
	set      memsetNodeParams
	priority kernelNodeAttribute
	node     uintptr
	popped   uintptr
	before   []uintptr
	values   []uint64
	params   []uintptr
}

// addNodes adds a node for every command, on a thread that holds the context for the time.
func (g *graph) addNodes(deps [][]int32, priorities bool) error {
	p, lib := g.p, g.p.lib
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	scratch := g.scratch
	if code := uint32(dl.Call(lib.address[cuCtxPushCurrent], g.d.context.Load())); code != 0 {
		return p.fail(g.d, cuCtxPushCurrent, uint64(code))
	}
	defer dl.Call(lib.address[cuCtxPopCurrent], uintptr(unsafe.Pointer(&scratch.popped)))
	for i := range g.commands {
		c := &g.commands[i]
		scratch.before = scratch.before[:0]
		for _, dep := range deps[i] {
			if dep < 0 || int(dep) >= i {
				return c.wrong(i, "it waits for command %d, which does not come before it", dep)
			}
			scratch.before = append(scratch.before, g.nodes[dep])
		}
		f, code, err := g.addNode(scratch, c, priorities)
		if err != nil {
			return err
		}
		if code != 0 {
			failure := p.fail(g.d, f, uint64(code))
			failure.Label, failure.Node, failure.Index = c.Label, c.Node, i
			return failure
		}
		g.nodes[i] = scratch.node
	}
	return nil
}

// addNode adds one node; its handle is left in the scratch.
func (g *graph) addNode(s *nodeScratch, c *checked, priorities bool) (function, uint32, error) {
	lib := g.p.lib
	call := func(f function, args ...uintptr) uint32 {
		all := append([]uintptr{uintptr(unsafe.Pointer(&s.node)), g.template, uintptr(unsafe.Pointer(unsafe.SliceData(s.before))), uintptr(len(s.before))}, args...)
		return uint32(dl.Call(lib.address[f], all...))
	}
	switch {
	case c.Kind == cudart.LaunchKernel:
		s.fillKernel(c)
		code := call(cuGraphAddKernelNode, uintptr(unsafe.Pointer(&s.kernel)))
		if code != 0 || !priorities || lib.version < 11070 {
			return cuGraphAddKernelNode, code, nil
		}
		s.priority = kernelNodeAttribute{priority: c.kernel.d.priority(c.Priority)}
		return cuGraphKernelNodeSetAttribute, uint32(dl.Call(lib.address[cuGraphKernelNodeSetAttribute],
			s.node, attributePriority, uintptr(unsafe.Pointer(&s.priority)))), nil
	case c.Kind == cudart.CopyMemory && c.Bytes > 0:
		if err := g.copyParams(s, c); err != nil {
			return 0, 0, err
		}
		return cuGraphAddMemcpyNode, call(cuGraphAddMemcpyNode, uintptr(unsafe.Pointer(&s.copy)), g.where(c).context.Load()), nil
	case c.Kind == cudart.SetMemory && c.Bytes > 0:
		if err := g.setParams(s, c); err != nil {
			return 0, 0, err
		}
		return cuGraphAddMemsetNode, call(cuGraphAddMemsetNode, uintptr(unsafe.Pointer(&s.set)), g.where(c).context.Load()), nil
	case c.Kind == cudart.RecordEvent && c.event.timed:
		return cuGraphAddEventRecordNode, call(cuGraphAddEventRecordNode, c.event.handle), nil
	}
	return cuGraphAddEmptyNode, call(cuGraphAddEmptyNode), nil
}

// fillKernel fills the parameters of a kernel node. The driver copies the values.
func (s *nodeScratch) fillKernel(c *checked) {
	s.values = append(s.values[:0], make([]uint64, len(c.Args)+1)...)
	setArgs(s.values, c.Args)
	s.params = s.params[:0]
	for i := range s.values {
		s.params = append(s.params, uintptr(unsafe.Pointer(&s.values[i])))
	}
	grid := c.Grid
	if nothing(grid) { // such a node is disabled, and needs a legal grid until then
		grid = [3]uint32{1, 1, 1}
	}
	s.kernel = kernelNodeParams{function: c.kernel.handle, grid: grid, block: c.Block, shared: c.Shared,
		params: uintptr(unsafe.Pointer(&s.params[0]))}
}

func (g *graph) copyParams(s *nodeScratch, c *checked) error {
	m := memcpy3D{width: uint64(c.Bytes), height: 1, depth: 1}
	device := uint32(memoryDevice)
	if c.DstDevice >= 0 && c.SrcDevice >= 0 && c.DstDevice != c.SrcDevice {
		device = memoryUnified // addresses say which device; the node has only one context
	}
	if m.srcType, m.srcDevice = device, c.Src; c.SrcDevice < 0 {
		m.srcType, m.srcDevice, m.srcHost = memoryHost, 0, c.Src
	}
	if m.dstType, m.dstDevice = device, c.Dst; c.DstDevice < 0 {
		m.dstType, m.dstDevice, m.dstHost = memoryHost, 0, c.Dst
	}
	s.copy = m
	return g.p.prepare(g.where(c))
}

func (g *graph) setParams(s *nodeScratch, c *checked) error {
	s.set = memsetNodeParams{dst: c.Dst, value: c.Pattern, elementSize: uint32(c.Width), width: uint64(c.Bytes / int64(c.Width)), height: 1}
	return g.p.prepare(g.where(c))
}

// where is the device that does a copy or a set: its stream's if it names one, else the one whose memory it touches.
func (g *graph) where(c *checked) *device {
	if s, ok := c.Stream.(*stream); ok && s.p == g.p {
		return s.d
	}
	if c.DstDevice >= 0 {
		return g.p.devices[c.DstDevice]
	}
	if c.Kind == cudart.CopyMemory && c.SrcDevice >= 0 {
		return g.p.devices[c.SrcDevice]
	}
	return g.d
}

// disableEmpty disables launches of nothing.
func (g *graph) disableEmpty() error {
	for i := range g.commands {
		if c := &g.commands[i]; c.Kind == cudart.LaunchKernel && nothing(c.Grid) {
			if err := g.enable(i, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *graph) enable(index int, enabled bool) error {
	if err := g.p.lib.need(cuGraphNodeSetEnabled); err != nil {
		return g.commands[index].wrong(index, "a launch of nothing in a graph: %v", err)
	}
	value := uintptr(0)
	if enabled {
		value = 1
	}
	s, err := g.p.sequence(g.d)
	if err != nil {
		return err
	}
	defer s.release()
	s.call(cuGraphNodeSetEnabled, g.exec, g.nodes[index], value)
	return g.named(s.run(), index)
}

func (g *graph) named(err error, index int) error {
	if failure, ok := err.(*cudart.Error); ok {
		c := &g.commands[index]
		failure.Label, failure.Node, failure.Index = c.Label, c.Node, index
	}
	return err
}

func (g *graph) changeable() error {
	if g.nodes == nil {
		return fmt.Errorf("%w: a captured graph has no nodes that can be named; update it from a list", cudart.ErrUnsupported)
	}
	return nil
}

// SetArgs changes a launch of a graph made by BuildGraph.
func (g *graph) SetArgs(index int, grid [3]uint32, args []cudart.Value) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.changeable(); err != nil {
		return err
	}
	c, err := commandAt(g.commands, index, cudart.LaunchKernel)
	if err != nil {
		return err
	}
	was := nothing(c.Grid)
	if err := changeLaunch(c, index, grid, args); err != nil {
		return err
	}
	if now := nothing(grid); now || was {
		if err := g.enable(index, !now); err != nil || now {
			return err
		}
	}
	g.scratch.fillKernel(c)
	s, err := g.p.sequence(g.d)
	if err != nil {
		return err
	}
	defer s.release()
	s.callPointers(cuGraphExecKernelNodeSetParams, g.exec, g.nodes[index], unsafe.Pointer(&g.scratch.kernel))
	return g.named(s.run(), index)
}

// SetCopy changes the addresses of a copy or a set of a graph made by BuildGraph.
func (g *graph) SetCopy(index int, dst, src cudart.Ptr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.changeable(); err != nil {
		return err
	}
	c, err := commandAt(g.commands, index, cudart.CopyMemory, cudart.SetMemory)
	if err != nil {
		return err
	}
	c.Dst, c.Src = dst, src
	if c.Bytes == 0 {
		return nil
	}
	scratch := g.scratch
	s, err := g.p.sequence(g.d)
	if err != nil {
		return err
	}
	defer s.release()
	if c.Kind == cudart.SetMemory {
		if err := g.setParams(scratch, c); err != nil {
			return err
		}
		s.callPointers(cuGraphExecMemsetNodeSetParams, g.exec, g.nodes[index], unsafe.Pointer(&scratch.set), g.where(c).context.Load())
	} else {
		if err := g.copyParams(scratch, c); err != nil {
			return err
		}
		s.callPointers(cuGraphExecMemcpyNodeSetParams, g.exec, g.nodes[index], unsafe.Pointer(&scratch.copy), g.where(c).context.Load())
	}
	return g.named(s.run(), index)
}
