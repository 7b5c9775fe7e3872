// Conditional nodes: the loops and branches of a graph. In front of each is a launch of a kernel that makes the first decision, and at the end
// of a loop's body one that decides after each pass.

package driver

import (
	"slices"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/kernels/conditions"
)

// split reports whether a branch needs a conditional for each of its bodies.
func (g *graph) split(c *checked) bool {
	return len(c.bodies.commands) > 1 && g.p.lib.version < elseDriver
}

// addDecider adds the kernel that decides.
func (g *graph) addDecider(template uintptr, s *nodeScratch, decider *kernel, before []uintptr, launch *conditions.Launch) (uintptr, error) {
	s.before = append(s.before[:0], before...)
	s.values = append(s.values[:0], launch.Arguments()...)
	for len(s.values) < len(decider.attributes.ParamSizes) {
		s.values = append(s.values, 0)
	}
	s.params = s.params[:0]
	for i := range s.values {
		s.params = append(s.params, uintptr(unsafe.Pointer(&s.values[i])))
	}
	s.kernel = kernelNodeParams{function: decider.handle, grid: [3]uint32{1, 1, 1}, block: [3]uint32{1, 1, 1}, params: uintptr(unsafe.Pointer(&s.params[0]))}
	if code := uint32(dl.Call(g.p.lib.address[cuGraphAddKernelNode], uintptr(unsafe.Pointer(&s.node)), template,
		uintptr(unsafe.Pointer(unsafe.SliceData(s.before))),
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
