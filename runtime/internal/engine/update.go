// Updates: change single nodes of a program between replays, without planning again.

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// ErrUpdate marks an update that the plan's proof does not cover, or that is not possible for the node.
var ErrUpdate = errors.New("update refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUpdate, fmt.Sprintf(format, args...))
}

// SetScalar changes one scalar argument of a kernel, which may be in the body of a loop or branch, for all later replays.
func (p *Program) SetScalar(node string, argument int, value float64) error {
	if err := p.usable(context.Background()); err != nil {
		return err
	}
	owner, id, ok := p.owner(node)
	if !ok {
		return refuse("the pipeline has no node %q", node)
	}
	launch := owner.launches[id]
	if launch == nil {
		return refuse("node %q is a %s, not a kernel", node, owner.graph.Nodes[id].Kind)
	}
	if argument < 0 || argument >= len(launch.Args) || launch.Args[argument].IsBuffer || launch.Args[argument].Struct != "" || launch.Args[argument].Within > 0 ||
		launch.Kernel.Params()[argument].Buffer || launch.Kernel.Params()[argument].LengthOf > 0 {
		return refuse("argument %d of node %q is not a scalar", argument, node)
	}
	args := append([]dag.Arg(nil), launch.Args...)
	a := &args[argument]
	if !a.DType.Float() && value != float64(int64(value)) {
		return refuse("argument %d of node %q is an integer (%s), not %v", argument, node, a.DType, value)
	}
	a.Bits = a.DType.FromFloat(value)
	grid := launch.Grid
	info, err := launch.Kernel.Describe(args)
	if err != nil {
		return refuse("node %q: %v", node, err)
	}
	if err := owner.withinDeclared(dag.NodeID(id), args, info); err != nil {
		return err
	}
	if info.HasHint {
		grid = info.Grid
	}
	changed := *launch
	changed.Args, changed.Grid = args, grid
	owner.launches[id] = &changed
	if owner != p {
		return p.applyIn(owner, dag.NodeID(id))
	}
	return p.apply(dag.NodeID(id))
}

// withinDeclared checks that the ranges that a changed launch would touch lie inside the declared ones.
func (p *Program) withinDeclared(id dag.NodeID, args []dag.Arg, info dag.LaunchInfo) error {
	for i, a := range args {
		if !a.IsBuffer || i >= len(info.Extents) || info.Extents[i] < 0 {
			continue
		}
		need := info.Extents[i] * a.DType.Size()
		covered := int64(0)
		for _, declared := range p.graph.Accesses(id) {
			if declared.Buffer == a.Range.Buffer && declared.Lo <= a.Range.Lo {
				covered = max(covered, declared.Hi-a.Range.Lo)
			}
		}
		if need > covered {
			return refuse("node %q would touch %d bytes of %q, but its declaration covers only %d", p.graph.Nodes[id].Name, need,
				p.graph.Buffers[a.Range.Buffer].Name, covered)
		}
	}
	if info.Scratch > 0 {
		for _, declared := range p.graph.Accesses(id) {
			if b := &p.graph.Buffers[declared.Buffer]; b.Scratch && info.Scratch > b.Bytes {
				return refuse("node %q would need %d bytes of scratch, but it has only %d", p.graph.Nodes[id].Name, info.Scratch, b.Bytes)
			}
		}
	}
	return nil
}

// apply updates every instance's commands and graph after a node's launch has changed.
func (p *Program) apply(id dag.NodeID) error {
	for _, in := range p.instances {
		if err := p.refresh(in, id); err != nil {
			return err
		}
	}
	return nil
}

// refresh encodes one node's command again from its launch and the instance's addresses.
func (p *Program) refresh(in *instance, id dag.NodeID) error {
	index := int(in.lowered.index[id])
	old := &in.lowered.commands[index]
	c, err := p.command(in, id)
	if err != nil {
		return err
	}
	if c.Kind != old.Kind {
		return refuse("node %q would launch nothing; give it a size above 0", p.graph.Nodes[id].Name)
	}
	c.Stream, c.Early = old.Stream, old.Early
	*old = c
	if err := setCommand(in.list, index, &c); err != nil {
		return err
	}
	if in.graph == nil {
		return nil
	}
	if p.built() {
		return setCommand(in.graph, in.built[id], &c)
	}
	return in.graph.Update(in.list)
}

// changeable is a list or a built graph: single commands can be replaced.
type changeable interface {
	SetArgs(index int, grid [3]uint32, args []cudart.Value) error
	SetCopy(index int, dst, src cudart.Ptr) error
}

func setCommand(in changeable, index int, c *cudart.Command) error {
	switch c.Kind {
	case cudart.LaunchKernel:
		return in.SetArgs(index, c.Grid, c.Args)
	case cudart.CopyMemory, cudart.SetMemory:
		return in.SetCopy(index, c.Dst, c.Src)
	}
	return nil
}

// SetStorage moves a declared buffer to other memory for all later replays: device memory of the same device for a device buffer, pinned or pageable
// host memory (as declared) for a host buffer.
func (p *Program) SetStorage(buffer string, address cudart.Ptr, bytes int64) error {
	if err := p.usable(context.Background()); err != nil {
		return err
	}
	id, ok := p.Buffer(buffer)
	if !ok {
		return refuse("the pipeline has no buffer %q", buffer)
	}
	b := &p.graph.Buffers[id]
	if bytes != b.Bytes {
		return refuse("buffer %q has %d bytes, but the memory has %d", buffer, b.Bytes, bytes)
	}
	if len(p.instances) > 1 {
		return refuse("%d replays are in flight, and each has its own memory for %q", len(p.instances), buffer)
	}
	if other, shared := p.sharesBytes(dag.BufferID(id)); shared {
		return refuse("buffer %q shares bytes with %q in the plan; plan it with planner.Options.Keep to move it", buffer, p.graph.Buffers[other].Name)
	}
	in := p.instances[0]
	for i := range p.graph.Buffers {
		at, size := in.memory.address[i], cudart.Ptr(p.graph.Buffers[i].Bytes)
		if dag.BufferID(i) != id && deviceOf(&p.graph.Buffers[i]) == deviceOf(b) && at < address+cudart.Ptr(bytes) && address < at+size {
			return refuse("the memory for %q overlaps that of %q", buffer, p.graph.Buffers[i].Name)
		}
	}
	in.memory.address[id] = address
	inBody, err := p.relocate(in, id)
	if err == nil && inBody {
		err = p.rebuild(in)
	}
	return err
}

func uses(accesses []dag.Access, id dag.BufferID) bool {
	return slices.ContainsFunc(accesses, func(a dag.Access) bool { return a.Buffer == id })
}

// sharesBytes finds another buffer that shares bytes with this one in the plan.
func (p *Program) sharesBytes(id dag.BufferID) (other dag.BufferID, shared bool) {
	if p.options.Memory == Separate {
		return 0, false
	}
	var own *plan.Placement
	for i := range p.plan.Memory {
		if p.plan.Memory[i].Buffer == id {
			own = &p.plan.Memory[i]
		}
	}
	if own == nil {
		return 0, false
	}
	for _, m := range p.plan.Memory {
		if m.Buffer != id && m.Device == own.Device && m.Offset < own.Offset+own.Bytes && own.Offset < m.Offset+m.Bytes {
			return m.Buffer, true
		}
	}
	return 0, false
}

// applyIn updates a node of a body in every instance.
func (p *Program) applyIn(body *Program, id dag.NodeID) error {
	for _, in := range p.instances {
		if err := body.refresh(in.of(p, body), id); err != nil {
			return err
		}
		if err := p.rebuild(in); err != nil {
			return err
		}
	}
	return nil
}

// relocate encodes everything again that uses a buffer, whose address has changed. It reports whether that is the case in a body.
func (p *Program) relocate(in *instance, id dag.BufferID) (inBody bool, err error) {
	for i := range p.graph.Nodes {
		if !uses(p.graph.Accesses(dag.NodeID(i)), id) {
			continue
		}
		if in.controls == nil || in.controls[i] == nil {
			if err := p.refresh(in, dag.NodeID(i)); err != nil {
				return inBody, err
			}
			continue
		}
		inBody = true
		c := in.controls[i]
		if err := c.retest(in); err != nil {
			return inBody, err
		}
		for _, b := range c.bodies {
			if _, err := b.program.relocate(b.in, id); err != nil {
				return inBody, err
			}
		}
	}
	return inBody, nil
}
