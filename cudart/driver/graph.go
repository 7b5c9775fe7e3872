// Executable graphs: instantiation, launch, upload and update. capture.go and nodes.go make the graphs.

package driver

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
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
	deps     [][]int32 // of a graph that can be changed and has nodes of several rows, or conditional nodes
	hosts    []uintptr // functions of the host, registered for the nodes
	count    int
	memory   arena
	launch   *graphLaunch
	scratch  *nodeScratch // for a graph that can be changed
	priority bool         // the nodes have priorities
	closed   bool
}

// graphLaunch is a small table that belongs to the graph, so that a launch allocates nothing.
type graphLaunch struct {
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

// instantiate makes the executable graph from a CUgraph.
func (g *graph) instantiate(template uintptr, priorities bool) error {
	flags := uintptr(0)
	if priorities && g.p.lib.version >= 11070 { // older drivers have no node priorities
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
	g.exec, g.count, g.priority = uintptr(s.outs[0]), int(s.outs[1]), priorities
	memory, err := g.memory.take(int(unsafe.Sizeof(graphLaunch{})), cacheLine)
	if err != nil {
		g.p.dispose(g.d, cuGraphExecDestroy, g.exec)
		return err
	}
	g.launch = (*graphLaunch)(memory)
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

// Launch submits the graph to a stream. It allocates nothing.
func (g *graph) Launch(on cudart.Stream) error { return g.submit(on, cuGraphLaunch) }

// Upload sends the graph to the device without running it, so that the first launch need not.
func (g *graph) Upload(on cudart.Stream) error { return g.submit(on, cuGraphUpload) }

func (g *graph) submit(on cudart.Stream, f function) error {
	s, ok := on.(*stream)
	if !ok || s.p != g.p {
		return fmt.Errorf("the stream to launch on is not one of this platform's")
	}
	if s.closed.Load() {
		return errStreamClosed
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
	walkTable(w)
	if i := w.failedRow(); i >= 0 {
		call := launchCalls[i]
		if i == launchGraph {
			call = f
		}
		return g.d.fail(g.p.lib, call, w.code)
	}
	if w.failedEpilogue() >= 0 {
		return g.d.fail(g.p.lib, cuCtxPopCurrent, w.epilogueCode)
	}
	return nil
}

// Nodes returns the number of nodes.
func (g *graph) Nodes() int { return g.count }

// Close destroys the graph.
func (g *graph) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	g.p.live.graphs.Add(-1)
	forgetHosts(g.hosts)
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

// replaceBy replaces a captured graph that cannot be updated. g.mu is held.
func (g *graph) replaceBy(template uintptr, d *device) error {
	next := &graph{p: g.p, d: d}
	if err := next.instantiate(template, g.priority); err != nil {
		return err
	}
	return g.take(next)
}

// replace takes another graph in the place of this one.
func (g *graph) replace(next *graph) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.Join(errors.New("update of a closed graph"), next.Close())
	}
	return g.take(next)
}

// take exchanges the driver's objects with another graph's and closes that graph.
func (g *graph) take(next *graph) error {
	g.d, next.d = next.d, g.d
	g.exec, next.exec = next.exec, g.exec
	g.template, next.template = next.template, g.template
	g.nodes, next.nodes = next.nodes, g.nodes
	g.hosts, next.hosts = next.hosts, g.hosts
	g.memory, next.memory = next.memory, g.memory
	g.launch, next.launch = next.launch, g.launch
	g.count = next.count
	return next.Close()
}

// nodeScratch holds what the calls for one node read and write. A graph owns it, so that it is on the heap and does not move.
type nodeScratch struct {
	kernel      kernelNodeParams
	copy        memcpy3D
	set         memsetNodeParams
	host        hostNodeParams
	priority    kernelNodeAttribute
	cluster     [16]uint32 // a kernelNodeAttribute too
	conditional conditionalNodeParams
	handle      uint64
	node        uintptr
	popped      uintptr
	before      []uintptr
	values      []uint64
	params      []uintptr
}
