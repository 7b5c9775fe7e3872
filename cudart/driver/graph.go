// Executable graphs: instantiation, launch, upload and update. capture.go and nodes.go make the graphs.

package driver

import (
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
	deps     [][]int32 // of a graph that can be changed and has nodes of several rows
	count    int
	memory   arena
	launch   *launch
	scratch  *nodeScratch // for a graph that can be changed
	priority bool         // the nodes have priorities
	closed   bool
}

// launch is a small table that belongs to the graph, so that a launch allocates nothing.
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
		return g.p.fail(g.d, call, w.code)
	}
	if w.failedEpilogue() >= 0 {
		return g.p.fail(g.d, cuCtxPopCurrent, w.epilogueCode)
	}
	return nil
}

// Nodes returns the number of nodes.
func (g *graph) Nodes() int { return g.count }

// Update replaces the graph by the capture of a list with the same shape.
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
	if g.closed {
		return fmt.Errorf("update of a closed graph")
	}
	s, err := g.p.sequence(g.d)
	if err != nil {
		return err
	}
	defer s.release()
	s.call(cuGraphExecUpdate, g.exec, template, s.out(0), s.out(1))
	if err := s.run(); err != nil {
		if failure, ok := err.(*cudart.Error); ok && failure.Code == codeGraphUpdateFailure {
			if reason := s.outs[1]; (reason == updateParametersChanged || reason == updateNotSupported) && hasRows(l.commands) {
				return g.replaceBy(template, d)
			}
			failure.Detail = updateResult(uint32(s.outs[1]))
		}
		return err
	}
	return nil
}

// updateResult tells why a graph cannot be updated (CUgraphExecUpdateResult).
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
