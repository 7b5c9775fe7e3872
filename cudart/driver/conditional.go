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
		if v := each.c.Conditional; v.Branch && v.Stamping.Room == 0 {
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

// where returns the device that does a copy or a set: that of its stream if it has one, or else that of its memory.
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
