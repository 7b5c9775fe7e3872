// Launches with attributes: those that may begin before the launch before them has ended. Decides nothing.

package driver

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/internal/dl"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels/launch"
)

const (
	attributeEarly = 6 // programmatic stream serialization

	// The parts of CUgraphEdgeData as one word, for an edge from the place where a kernel lets the next one begin.
	edgeProgrammatic = 1<<0 | 1<<16 // from_port, type

	earlyDriver     = 12030 // the first that keeps early launches in a captured graph
	earlyCapability = 9
)

// CanOverlap returns nil if launches on a device may begin before those before them have ended, and otherwise why not.
func (p *Platform) CanOverlap(number int32) error {
	d, err := p.device(number)
	if err != nil {
		return err
	}
	if major := d.info.Capability[0]; major < earlyCapability {
		return fmt.Errorf("%w: launches overlap on devices of compute capability %d.0 and newer, and device %d has %d.%d", cudart.ErrUnsupported,
			earlyCapability, number, major, d.info.Capability[1])
	}
	if p.lib.version < earlyDriver {
		return fmt.Errorf("%w: launches overlap with drivers for CUDA %s and newer, and this one is for CUDA %s", cudart.ErrUnsupported,
			versionText(earlyDriver), versionText(p.lib.version))
	}
	for _, f := range [2]function{cuLaunchKernelEx, cuGraphAddDependencies2} {
		if err := p.lib.need(f); err != nil {
			return err
		}
	}
	return nil
}

// earlyEntries returns the kernels of PTX that wait for the launches before them before they do anything else.
func earlyEntries(m *ptx.Module) map[string]bool {
	var found map[string]bool
	for _, id := range m.Entries() {
		if m.WaitsFirst(id) {
			if found == nil {
				found = map[string]bool{}
			}
			found[m.Functions[id].Name] = true
		}
	}
	return found
}

// checkEarly refuses a launch that may begin early, if its code does not wait.
func (p *Platform) checkEarly(c *checked, i int) error {
	if !c.Early {
		return nil
	}
	if err := p.CanOverlap(c.kernel.d.number); err != nil {
		return c.wrong(i, "%v", err)
	}
	if !c.kernel.attributes.WaitsFirst {
		return c.wrong(i, "kernel %s may begin before the launch before it has ended, but its code does not wait for that", c.kernel.entry)
	}
	if c.Cooperative {
		return c.wrong(i, "kernel %s may begin before the launch before it has ended, but all its blocks must run at once", c.kernel.entry)
	}
	return nil
}

// early reports for each command whether it begins early: not if something other than a launch comes before it on its stream, which
// launches of empty grids do not.
func early(list []checked) []bool {
	var found []bool
	after := map[*stream]bool{}
	for i := range list {
		c := &list[i]
		switch c.Kind {
		case cudart.RangePush, cudart.RangePop, cudart.Empty:
			continue
		case cudart.LaunchKernel:
			if c.Early && after[c.stream] {
				if found == nil {
					found = make([]bool, len(list))
				}
				found[i] = true
			}
			if !nothing(c.Grid) {
				after[c.stream] = c.kernel.call == nil // a call is a graph
			}
		default:
			after[c.stream] = false
		}
	}
	return found
}

// extended appends the row of a launch that has attributes.
func (e *encoded) extended(l *submitter, owner int32, c *checked, params uintptr, begins bool) (*launchConfig, error) {
	memory, err := e.memory.take(int(unsafe.Sizeof(launchConfig{})), 16)
	if err != nil {
		return nil, err
	}
	config := (*launchConfig)(memory)
	config.grid, config.block, config.shared, config.stream = c.Grid, c.Block, c.Shared, c.stream.handle
	config.attributes = uintptr(unsafe.Pointer(&config.list))
	config.fixed = uint32(copy(config.list[:], fixedAttributes(c)))
	config.begin(begins)
	l.add(e.p, cuLaunchKernelEx, owner, uintptr(memory), c.kernel.handle, params, 0)
	return config, nil
}

// begin lets the launch begin early, or not.
func (c *launchConfig) begin(early bool) {
	c.count = c.fixed
	if early {
		c.list[c.count] = launchAttribute{id: attributeEarly, value: [16]uint32{1}}
		c.count++
	}
}

// begin lets launches begin early that may, after a grid has become empty or no longer is.
func (e *encoded) begin(list []checked) {
	now := early(list)
	for i := range e.places {
		if c := e.places[i].config; c != nil && list[i].Early {
			c.begin(now != nil && now[i])
		}
	}
	e.early = now
}

// waiting returns PTX whose kernels wait for the launches before them.
func waiting(name string, kind launch.Kind, image []byte) ([]byte, error) {
	if kind != launch.PTX {
		return nil, fmt.Errorf("module %s: %w: launches of its kernels cannot overlap, because its code is no PTX", name, cudart.ErrUnsupported)
	}
	text, err := ptx.Waiting(string(image))
	if err != nil {
		return nil, fmt.Errorf("module %s: %w: launches of its kernels cannot overlap: %w", name, cudart.ErrUnsupported, err)
	}
	return []byte(text), nil
}

func hasEarly(list []checked) bool {
	return slices.ContainsFunc(list, func(c checked) bool { return c.Early })
}

// beginsAfter reports whether a node of a graph may begin before the node that it waits for has ended.
func (g *graph) beginsAfter(i int, deps []int32) bool {
	c := &g.commands[i]
	if !c.Early || nothing(c.Grid) || len(deps) != 1 {
		return false
	}
	from := &g.commands[deps[0]]
	return from.Kind == cudart.LaunchKernel && from.kernel.call == nil && !nothing(from.Grid) && from.kernel.d == c.kernel.d
}

// addEarly adds the edges to nodes that begin early. The context is current.
func (g *graph) addEarly(nodes []uintptr, edges [][2]int32) error {
	if len(edges) == 0 {
		return nil
	}
	from, to, data := make([]uintptr, len(edges)), make([]uintptr, len(edges)), make([]uint64, len(edges))
	for i, e := range edges {
		from[i], to[i], data[i] = nodes[e[0]], nodes[e[1]], edgeProgrammatic
	}
	if code := uint32(dl.Call(g.p.lib.address[cuGraphAddDependencies2], g.template, uintptr(unsafe.Pointer(&from[0])), uintptr(unsafe.Pointer(&to[0])),
		uintptr(unsafe.Pointer(&data[0])), uintptr(len(edges)))); code != 0 {
		return g.d.fail(g.p.lib, cuGraphAddDependencies2, uint64(code))
	}
	return nil
}
