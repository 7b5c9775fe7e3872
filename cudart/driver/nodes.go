// Graphs built node by node, whose nodes can be changed one at a time. Runs nothing on the device.

package driver

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// BuildGraph makes a graph node by node. The commands may be in any order.
func (p *Platform) BuildGraph(commands []cudart.Command, deps [][]int32, options cudart.GraphOptions) (cudart.Graph, error) {
	if len(deps) != len(commands) {
		return nil, fmt.Errorf("there are %d commands, but dependencies for %d", len(commands), len(deps))
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
	return p.build(list, deps, d, options.Priorities)
}

func (p *Platform) build(list []checked, deps [][]int32, d *device, priorities bool) (*graph, error) {
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
	g := &graph{p: p, d: d, template: template, commands: list, scratch: new(nodeScratch)}
	for i := range list {
		list[i].Args = slices.Clone(list[i].Args)
	}
	if hasRows(list) || hasEarly(list) || hasBodies(list) || hasCalls(list) {
		g.deps = deps
	}
	err = g.addNodes(deps, priorities)
	if err == nil {
		err = g.instantiate(template, priorities)
	}
	if err != nil {
		p.dispose(d, cuGraphDestroy, template)
		forgetHosts(g.hosts)
		return nil, err
	}
	if err := g.disableEmpty(); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// addNodes adds a node for every command, on a thread on which the context is current.
func (g *graph) addNodes(deps [][]int32, priorities bool) error {
	lib, scratch := g.p.lib, g.scratch
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if code := uint32(dl.Call(lib.address[cuCtxPushCurrent], g.d.context.Load())); code != 0 {
		return g.d.fail(lib, cuCtxPushCurrent, uint64(code))
	}
	defer dl.Call(lib.address[cuCtxPopCurrent], uintptr(unsafe.Pointer(&scratch.popped)))
	nodes, err := g.addCommands(g.template, scratch, g.commands, deps, priorities, false)
	g.nodes = nodes
	return err
}

// addCommands adds a node for every command to a graph, which may be the body of a conditional node.
func (g *graph) addCommands(template uintptr, scratch *nodeScratch, commands []checked, deps [][]int32, priorities, body bool) ([]uintptr, error) {
	nodes := make([]uintptr, len(commands))
	var later [][2]int32 // edges from nodes that are made after the node that waits for them
	var begin [][2]int32 // edges to nodes that begin before the other node has ended
	for i := range commands {
		c := &commands[i]
		scratch.before = scratch.before[:0]
		for _, dep := range deps[i] {
			switch {
			case dep < 0 || int(dep) >= len(commands) || int(dep) == i:
				return nil, c.wrong(i, "it waits for command %d, but there are %d commands", dep, len(commands))
			case !body && g.beginsAfter(i, deps[i]):
				begin = append(begin, [2]int32{dep, int32(i)})
			case int(dep) > i:
				later = append(later, [2]int32{dep, int32(i)})
			default:
				scratch.before = append(scratch.before, nodes[dep])
			}
		}
		if c.bodies != nil {
			var err error
			if nodes[i], err = g.addConditional(template, scratch, c, priorities); err != nil {
				return nil, labelled(err, c, i)
			}
			continue
		}
		f, code, err := g.addNode(template, scratch, c, priorities, body)
		if err != nil {
			return nil, err
		}
		if code != 0 {
			return nil, labelled(g.d.fail(g.p.lib, f, uint64(code)), c, i)
		}
		nodes[i] = scratch.node
	}
	if begin == nil && later == nil {
		return nodes, nil
	}
	if i := onCycle(deps); i >= 0 {
		return nil, commands[i].wrong(i, "it waits for itself through other nodes")
	}
	if err := g.addEarly(nodes, begin); err != nil || later == nil {
		return nodes, err
	}
	scratch.before, scratch.params = scratch.before[:0], scratch.params[:0]
	for _, edge := range later {
		scratch.before = append(scratch.before, nodes[edge[0]])
		scratch.params = append(scratch.params, nodes[edge[1]])
	}
	if code := uint32(dl.Call(g.p.lib.address[cuGraphAddDependencies], template, uintptr(unsafe.Pointer(&scratch.before[0])),
		uintptr(unsafe.Pointer(&scratch.params[0])), uintptr(len(later)))); code != 0 {
		return nil, g.d.fail(g.p.lib, cuGraphAddDependencies, uint64(code))
	}
	return nodes, nil
}

// labelled gives a failure the name of a command, unless it has one.
func labelled(err error, c *checked, index int) error {
	if failure, ok := err.(*cudart.Error); ok && failure.Index < 0 {
		failure.Label, failure.Node, failure.Index = c.Label, c.Node, index
	}
	return err
}

// onCycle returns the first command that waits for itself, directly or through others, or -1.
func onCycle(deps [][]int32) int {
	waiting := make([]int32, len(deps))
	followers := make([][]int32, len(deps))
	var ready []int32
	for i, waits := range deps {
		waiting[i] = int32(len(waits))
		if len(waits) == 0 {
			ready = append(ready, int32(i))
		}
		for _, dep := range waits {
			followers[dep] = append(followers[dep], int32(i))
		}
	}
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, f := range followers[i] {
			if waiting[f]--; waiting[f] == 0 {
				ready = append(ready, f)
			}
		}
	}
	// Every command that is left waits for a cycle or is on one, so following the dependencies of those that are left ends on a cycle.
	at := slices.IndexFunc(waiting, func(n int32) bool { return n > 0 })
	if at < 0 {
		return -1
	}
	back := func(i int) int {
		return int(deps[i][slices.IndexFunc(deps[i], func(dep int32) bool { return waiting[dep] > 0 })])
	}
	for range deps {
		at = back(at)
	}
	first := at
	for i := back(at); i != at; i = back(i) {
		first = min(first, i)
	}
	return first
}

// addNode adds one node; its handle is left in the scratch.
func (g *graph) addNode(template uintptr, s *nodeScratch, c *checked, priorities, body bool) (function, uint32, error) {
	lib := g.p.lib
	call := func(f function, args ...uintptr) uint32 {
		all := append([]uintptr{uintptr(unsafe.Pointer(&s.node)), template, uintptr(unsafe.Pointer(unsafe.SliceData(s.before))), uintptr(len(s.before))}, args...)
		return uint32(dl.Call(lib.address[f], all...))
	}
	switch {
	case c.Kind == cudart.Communicate:
		return 0, 0, fmt.Errorf("node %q: %w", c.Label, errNotANode)
	case c.Kind == cudart.LaunchKernel && body && nothing(c.Grid): // nodes of a body cannot be disabled
	case c.Kind == cudart.LaunchKernel && c.kernel.call != nil:
		code, err := g.addCall(template, s, c)
		return cuGraphAddChildGraphNode, code, err
	case c.Kind == cudart.LaunchKernel:
		s.fillKernel(c)
		code := call(cuGraphAddKernelNode, uintptr(unsafe.Pointer(&s.kernel)))
		if code == 0 && c.Cooperative {
			s.priority = kernelNodeAttribute{priority: 1} // the attribute's value, an int
			if code := uint32(dl.Call(lib.address[cuGraphKernelNodeSetAttribute], s.node, attributeCooperative, uintptr(unsafe.Pointer(&s.priority)))); code != 0 {
				return cuGraphKernelNodeSetAttribute, code, nil
			}
		}
		if code == 0 && clustered(c) {
			if code := g.clusterNode(s, c); code != 0 {
				return cuGraphKernelNodeSetAttribute, code, nil
			}
		}
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
	case c.Kind == cudart.RunHost:
		number := registerHost(c.Host)
		g.hosts = append(g.hosts, number)
		s.host = hostNodeParams{hostCallback(), number}
		return cuGraphAddHostNode, call(cuGraphAddHostNode, uintptr(unsafe.Pointer(&s.host))), nil
	case c.Kind == cudart.RecordEvent && c.event.timed:
		return cuGraphAddEventRecordNode, call(cuGraphAddEventRecordNode, c.event.handle), nil
	}
	return cuGraphAddEmptyNode, call(cuGraphAddEmptyNode), nil
}

// fillKernel fills the parameters of a kernel node. The driver copies the values.
func (s *nodeScratch) fillKernel(c *checked) {
	s.values = append(s.values[:0], make([]uint64, argWords(c.Args)+1)...)
	setArgs(s.values, c.Args)
	s.params = s.params[:0]
	at := 0
	for i := range cudart.OwnValues(c.Args) {
		s.params = append(s.params, uintptr(unsafe.Pointer(&s.values[at])))
		at += wordsOf(&c.Args[i])
	}
	s.params = append(s.params, uintptr(unsafe.Pointer(&s.values[at])))
	grid := c.Grid
	if nothing(grid) { // such a node will be disabled, but must have a legal grid until then
		grid = oneCluster(c)
	}
	s.kernel = kernelNodeParams{function: c.kernel.handle, grid: grid, block: c.Block, shared: c.Shared,
		params: uintptr(unsafe.Pointer(&s.params[0]))}
}

func (g *graph) copyParams(s *nodeScratch, c *checked) error {
	m := memcpy3D{width: uint64(c.Bytes), height: 1, depth: 1}
	if c.Rows > 1 {
		m.width, m.height = uint64(c.Target().Width()), uint64(c.Rows)
		m.srcPitch, m.srcHeight = uint64(c.SrcPitch), m.height
		m.dstPitch, m.dstHeight = uint64(c.DstPitch), m.height
	}
	device := uint32(memoryDevice)
	if c.DstDevice >= 0 && c.SrcDevice >= 0 && c.DstDevice != c.SrcDevice {
		device = memoryUnified // the addresses determine the devices; the node has only one context
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
	if c.Rows > 1 {
		s.set.width, s.set.height, s.set.pitch = uint64(c.Target().Width()/int64(c.Width)), uint64(c.Rows), uint64(c.DstPitch)
	}
	return g.p.prepare(g.where(c))
}

// disableEmpty disables launches of empty grids.
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
		return g.commands[index].wrong(index, "a launch of an empty grid in a graph: %v", err)
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
	if g.closed {
		return errors.New("change of a closed graph")
	}
	if g.nodes == nil {
		return fmt.Errorf("%w: single nodes of a captured graph cannot be changed; update it from a list", cudart.ErrUnsupported)
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
	if c.kernel.call != nil {
		return g.rebuild()
	}
	if now := nothing(grid); now != was && hasEarly(g.commands) {
		return g.rebuild()
	} else if now || was {
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
	if c.Rows > 1 {
		return g.rebuild()
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

// rebuild makes the graph again from its commands. The driver lets the addresses of a node change only if the node has one row. Launches
// that were submitted run to their end, but launches of the new graph wait for them only on the same stream. g.mu is held.
func (g *graph) rebuild() error {
	next, err := g.p.build(g.commands, g.deps, g.d, g.priority)
	if err != nil {
		return err
	}
	return g.take(next)
}

// addConditional adds the kernel that begins, the conditional node or nodes, and their bodies. It returns the node to wait for.
func (g *graph) addConditional(template uintptr, s *nodeScratch, c *checked, priorities bool) (uintptr, error) {
	v, d := c.Conditional, g.where(c)
	before := slices.Clone(s.before)
	handles := [2]uint64{}
	split := g.split(c)
	for k := range handles {
		if k == 1 && !split {
			break
		}
		if code := uint32(dl.Call(g.p.lib.address[cuGraphConditionalHandleCreate], uintptr(unsafe.Pointer(&s.handle)), template, d.context.Load(), 0, 0)); code != 0 {
			return 0, d.fail(g.p.lib, cuGraphConditionalHandleCreate, uint64(code))
		}
		handles[k] = s.handle
	}
	launch := conditions.Launch{Test: v.Test, Number: v.Number, Handle: handles[0], Other: handles[1], Counts: uint64(v.Counts), Clear: v.Clear,
		Stamps: uint64(v.Stamps), Stamping: v.Stamping}
	for _, at := range v.Operands {
		launch.Operands = append(launch.Operands, uint64(at))
	}
	begin, err := g.addDecider(template, s, c.bodies.decider, before, &launch)
	if err != nil {
		return 0, err
	}
	add := func(handle uint64, commands [][]checked, described []cudart.Body) (uintptr, error) {
		s.before = append(s.before[:0], begin)
		s.node, s.conditional = 0, conditionalNodeParams{kind: nodeConditional, handle: handle, count: uint32(len(commands)), context: d.context.Load()}
		if !v.Branch {
			s.conditional.loop = 1
		}
		if code := uint32(dl.Call(g.p.lib.address[cuGraphAddNode], uintptr(unsafe.Pointer(&s.node)), template, uintptr(unsafe.Pointer(&s.before[0])), 0, 1,
			uintptr(unsafe.Pointer(&s.conditional)))); code != 0 {
			return 0, d.fail(g.p.lib, cuGraphAddNode, uint64(code))
		}
		node := s.node
		graphs := slices.Clone(unsafe.Slice(*(**uintptr)(unsafe.Pointer(&s.conditional.graphs)), len(commands)))
		for k, list := range commands {
			nodes, err := g.addCommands(graphs[k], s, list, described[k].Deps, priorities, true)
			if err != nil {
				return 0, err
			}
			if v.Branch && v.Stamping.Room == 0 {
				continue
			}
			after := launch
			after.Pass = true
			if _, err := g.addDecider(graphs[k], s, c.bodies.decider, lasts(nodes, described[k].Deps), &after); err != nil {
				return 0, err
			}
		}
		return node, nil
	}
	if !split {
		return add(handles[0], c.bodies.commands, v.Bodies)
	}
	var ends []uintptr
	for k := range handles {
		node, err := add(handles[k], c.bodies.commands[k:k+1], v.Bodies[k:k+1])
		if err != nil {
			return 0, err
		}
		ends = append(ends, node)
	}
	s.before = append(s.before[:0], ends...)
	if code := uint32(dl.Call(g.p.lib.address[cuGraphAddEmptyNode], uintptr(unsafe.Pointer(&s.node)), template, uintptr(unsafe.Pointer(&s.before[0])),
		2)); code != 0 {
		return 0, d.fail(g.p.lib, cuGraphAddEmptyNode, uint64(code))
	}
	return s.node, nil
}
