// Conditional nodes: the loops and branches of a graph. In front of each is a kernel that makes the first decision, and at the end of a
// loop's body one that decides after each pass.

package driver

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// Drivers before conditionalDriver have no conditional nodes that can be relied on, and those before elseDriver none with a second body.
const (
	conditionalDriver = 12040
	elseDriver        = 12080
)

// bodies are what a conditional runs, with its kernels once their module is loaded.
type bodies struct {
	commands [][]checked
	begin    uintptr
	pass     uintptr // 0 for a branch
}

// checkConditional checks a conditional and everything in its bodies.
func (p *Platform) checkConditional(c *checked, i int, streams bool) error {
	v := c.Conditional
	switch {
	case v == nil || len(v.Bodies) == 0 || len(v.Bodies) > 2 || len(v.Bodies) > 1 && !v.Branch:
		return c.wrong(i, "a loop has one body, and a branch one or two")
	case v.Condition == nil && (v.Branch || len(v.Operands) > 0), v.Condition != nil && len(v.Operands) != len(v.Condition.Operands):
		return c.wrong(i, "its condition needs one address for each operand")
	case v.Counts == 0:
		return c.wrong(i, "it has no memory for its counts")
	case streams:
		return c.refused(i, "a loop or branch is part of a graph, not of a list")
	case p.lib.version < conditionalDriver || p.lib.address[cuGraphConditionalHandleCreate] == 0 || p.lib.address[cuGraphAddNode] == 0:
		return c.refused(i, "the driver (CUDA %s) has no conditional graph nodes, which came with CUDA %s", versionText(p.lib.version), versionText(conditionalDriver))
	}
	number := int32(0)
	if s, ok := c.Stream.(*stream); ok && s.p == p {
		number = s.d.number
	}
	c.bodies = &bodies{}
	for _, body := range v.Bodies {
		if len(body.Deps) != len(body.Commands) {
			return c.wrong(i, "its body has %d commands, but dependencies for %d", len(body.Commands), len(body.Deps))
		}
		list, err := p.check(body.Commands, false)
		if err != nil {
			return err
		}
		for k := range list {
			if problem := list[k].notInBody(number); problem != "" {
				return list[k].refused(k, "%s, which the body of a conditional graph node cannot", problem)
			}
			list[k].Args = slices.Clone(list[k].Args)
		}
		c.bodies.commands = append(c.bodies.commands, list)
	}
	return nil
}

// refused returns an error for what the driver cannot do in a graph.
func (c *checked) refused(index int, format string, args ...any) error {
	return fmt.Errorf("%w: %w", cudart.ErrUnsupported, c.wrong(index, format, args...))
}

// notInBody says what a command does that the body of a conditional node cannot, or "".
func (c *checked) notInBody(device int32) string {
	switch c.Kind {
	case cudart.LaunchKernel:
		if c.kernel.d.number != device {
			return fmt.Sprintf("it runs on device %d, and the node around it on device %d", c.kernel.d.number, device)
		}
	case cudart.CopyMemory:
		switch {
		case c.SrcPageable || c.DstPageable:
			return "it copies pageable host memory"
		case c.SrcDevice < 0 && c.DstDevice < 0:
			return "it copies within host memory"
		case c.SrcDevice >= 0 && c.SrcDevice != device || c.DstDevice >= 0 && c.DstDevice != device:
			return "it copies to or from another device"
		}
	case cudart.SetMemory:
		if c.DstDevice != device {
			return "it sets memory elsewhere"
		}
	case cudart.RecordEvent, cudart.WaitEvent:
		return "it uses an event"
	}
	return ""
}

// decider is a conditional whose kernels are to be loaded.
type decider struct {
	c *checked
	d *device
}

// deciders lists the conditionals of a graph, each before those in its bodies.
func (g *graph) deciders(list []checked, found []decider) []decider {
	for i := range list {
		if c := &list[i]; c.bodies != nil {
			found = append(found, decider{c, g.where(c)})
			for _, body := range c.bodies.commands {
				found = g.deciders(body, found)
			}
		}
	}
	return found
}

// loadDeciders loads the kernels that decide about the conditionals of a graph: one module for each device.
func (g *graph) loadDeciders() error {
	all := g.deciders(g.commands, nil)
	texts := make([][]conditions.Kernels, len(g.p.devices))
	for k, each := range all {
		v := each.c.Conditional
		texts[each.d.number] = append(texts[each.d.number], conditions.Kernels{Test: v.Test, Begin: fmt.Sprintf("begin_%d", k), Pass: fmt.Sprintf("pass_%d", k),
			Clear: v.Clear, Split: g.split(each.c)})
	}
	loaded := make([]cudart.Module, len(g.p.devices))
	for number, kernelsOf := range texts {
		if kernelsOf == nil {
			continue
		}
		m, err := g.p.Load(context.Background(), int32(number), &kernels.Module{Name: "conditions", Kind: kernels.PTX, Code: []byte(conditions.Module(kernelsOf))})
		if err != nil {
			return err
		}
		g.modules, loaded[number] = append(g.modules, m), m
	}
	find := func(each decider, entry string) (uintptr, error) {
		k, err := loaded[each.d.number].Kernel(entry)
		if err != nil {
			return 0, err
		}
		return k.(*kernel).handle, nil
	}
	for k, each := range all {
		var err error
		if each.c.bodies.begin, err = find(each, fmt.Sprintf("begin_%d", k)); err != nil {
			return err
		}
		if each.c.Conditional.Branch {
			continue
		}
		if each.c.bodies.pass, err = find(each, fmt.Sprintf("pass_%d", k)); err != nil {
			return err
		}
	}
	return nil
}

// split reports whether a branch needs a conditional for each of its bodies.
func (g *graph) split(c *checked) bool {
	return len(c.bodies.commands) > 1 && g.p.lib.version < elseDriver
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
	arguments := []cudart.Value{{Bits: handles[0]}, {Bits: handles[1]}, {Bits: uint64(v.Counts)}}
	for _, at := range v.Operands {
		arguments = append(arguments, cudart.Value{Bits: uint64(at)})
	}
	begin, err := g.addDecider(template, s, c.bodies.begin, before, arguments)
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
			if !v.Branch {
				if _, err := g.addDecider(graphs[k], s, c.bodies.pass, lasts(nodes, described[k].Deps), arguments); err != nil {
					return 0, err
				}
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
	if code := uint32(dl.Call(g.p.lib.address[cuGraphAddEmptyNode], uintptr(unsafe.Pointer(&s.node)), template, uintptr(unsafe.Pointer(&s.before[0])), 2)); code != 0 {
		return 0, d.fail(g.p.lib, cuGraphAddEmptyNode, uint64(code))
	}
	return s.node, nil
}

// addDecider adds a kernel of one thread.
func (g *graph) addDecider(template uintptr, s *nodeScratch, function uintptr, before []uintptr, arguments []cudart.Value) (uintptr, error) {
	s.before = append(s.before[:0], before...)
	s.values = append(s.values[:0], make([]uint64, len(arguments))...)
	setArgs(s.values, arguments)
	s.params = s.params[:0]
	for i := range s.values {
		s.params = append(s.params, uintptr(unsafe.Pointer(&s.values[i])))
	}
	s.kernel = kernelNodeParams{function: function, grid: [3]uint32{1, 1, 1}, block: [3]uint32{1, 1, 1}, params: uintptr(unsafe.Pointer(&s.params[0]))}
	if code := uint32(dl.Call(g.p.lib.address[cuGraphAddKernelNode], uintptr(unsafe.Pointer(&s.node)), template, uintptr(unsafe.Pointer(unsafe.SliceData(s.before))),
		uintptr(len(s.before)), uintptr(unsafe.Pointer(&s.kernel)))); code != 0 {
		return 0, g.d.fail(g.p.lib, cuGraphAddKernelNode, uint64(code))
	}
	return s.node, nil
}

// lasts returns the nodes that no other node waits for.
func lasts(nodes []uintptr, deps [][]int32) []uintptr {
	waited := make([]bool, len(nodes))
	for _, waits := range deps {
		for _, dep := range waits {
			waited[dep] = true
		}
	}
	var ends []uintptr
	for i, node := range nodes {
		if !waited[i] {
			ends = append(ends, node)
		}
	}
	return ends
}

func hasBodies(list []checked) bool {
	return slices.ContainsFunc(list, func(c checked) bool { return c.bodies != nil })
}
