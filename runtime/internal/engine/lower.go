// Lowering: translates a replay's ops one by one into the commands that a platform encodes. Submits nothing.

package engine

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/library"
	"github.com/dagrun/dagrun/planner/plan"
)

// lower turns a replay into commands over one instance's streams, events and memory.
func (p *Program) lower(in *instance) (*lowered, error) {
	l := &lowered{index: make([]int32, p.graph.Len())}
	origin := in.streams[0]
	add := func(c cudart.Command) { l.commands = append(l.commands, c) }
	ranged := func(kind cudart.CommandKind, label string) {
		add(cudart.Command{Kind: kind, Stream: origin, Label: label, Node: -1})
	}
	ranged(cudart.RangePush, p.graph.Name)
	for _, op := range p.ops.Ops {
		label := in.label(op.Event)
		if op.Node >= 0 {
			label = p.graph.Nodes[op.Node].Name
		}
		switch op.Kind {
		case plan.Launch:
			c, err := p.command(in, op.Node)
			if err != nil {
				return nil, fmt.Errorf("node %q: %w", label, err)
			}
			c.Stream = in.streams[op.Stream]
			ranged(cudart.RangePush, label)
			before, after := p.communicationMarks(in, &p.graph.Nodes[op.Node], c.Stream)
			l.commands = append(l.commands, before...)
			l.index[op.Node] = int32(len(l.commands))
			add(c)
			l.commands = append(l.commands, after...)
			ranged(cudart.RangePop, label)
			if in.progress != 0 {
				add(cudart.Command{Kind: cudart.SetMemory, Stream: c.Stream, Label: label, Node: -1, Dst: in.progress + cudart.Ptr(4*op.Node), DstDevice: -1, Bytes: 4,
					Pattern: 1, Width: 4})
			}
		case plan.Record:
			add(cudart.Command{Kind: cudart.RecordEvent, Stream: in.streams[op.Stream], Event: in.event(op.Event), Node: int32(op.Node), Label: label})
		case plan.Wait:
			add(cudart.Command{Kind: cudart.WaitEvent, Stream: in.streams[op.Stream], Event: in.event(op.Event), Node: int32(op.Node), Label: label})
		}
	}
	ranged(cudart.RangePop, p.graph.Name)
	return l, nil
}

// event returns the object for a replay's event. The plan's events come first, then the fork's, then those of the join.
func (in *instance) event(event int32) cudart.Event {
	switch k := int(event) - len(in.events); {
	case k < 0:
		return in.events[event]
	case k == 0:
		return in.fork
	default:
		return in.join[k-1]
	}
}

// label returns the name of an op of fork or join.
func (in *instance) label(event int32) string {
	if int(event) == len(in.events) {
		return "fork"
	}
	return "join"
}

// command returns the command of one node, without its stream.
func (p *Program) command(in *instance, id dag.NodeID) (cudart.Command, error) {
	n := &p.graph.Nodes[id]
	c := cudart.Command{Label: n.Name, Node: int32(id), Priority: p.priority(n.Priority), Accesses: p.accesses(in, id)}
	switch n.Kind {
	case dag.Memcpy:
		p.copyCommand(in, n, &c)
		return c, nil
	case dag.Memset:
		return c, p.setCommand(in, n, &c)
	case dag.Communicate:
		p.communicateCommand(in, n, &c)
		return c, nil
	case dag.HostFunction:
		c.Kind, c.Host = cudart.RunHost, p.hostCommand(in, id)
		return c, nil
	case dag.Kernel, dag.Map, dag.Call:
		return c, p.launchCommand(in, id, &c)
	case dag.Repeat, dag.Branch:
		c.Kind = cudart.Empty // where the passes of its bodies are submitted
		return c, nil
	}
	return c, fmt.Errorf("a %s can be planned, but not run", n.Kind)
}

func (p *Program) copyCommand(in *instance, n *dag.Node, c *cudart.Command) {
	p.copyRange(in, n.Copy.Dst, n.Copy.Src, c)
}

// Pattern returns the shortest pattern that gives the element when repeated, and its width in bytes.
func Pattern(size int64, bits uint64) (uint64, int64) {
	for size > 1 {
		half := uint(4 * size)
		low := bits & (1<<half - 1)
		if bits>>half != low {
			break
		}
		bits, size = low, size/2
	}
	return bits, size
}

// setCommand uses the driver's own call if the pattern has 4 bytes or fewer, or else the library's fill.
func (p *Program) setCommand(in *instance, n *dag.Node, c *cudart.Command) error {
	b := &p.graph.Buffers[n.Set.Dst.Buffer]
	bits, width := Pattern(b.DType.Component().Size(), n.Set.Bits)
	bytes := n.Set.Dst.Bytes()
	if width <= 4 {
		c.Kind, c.Dst, c.DstDevice, c.Bytes, c.Pattern, c.Width = cudart.SetMemory, in.at(n.Set.Dst), deviceOf(b), bytes, uint32(bits), uint8(width)
		c.Rows, c.DstPitch, _ = rows(n.Set.Dst, n.Set.Dst)
		return nil
	}
	kernel, err := library.Catalog{}.Kernel("fill", []dag.DType{dag.InvalidDType, dag.InvalidDType, dag.F64})
	if err != nil {
		return err
	}
	args := []dag.Arg{{DType: dag.I64, Bits: uint64(bytes / 8)}, {DType: dag.F64, Bits: bits}, {IsBuffer: true, Mode: dag.Write, DType: dag.F64, Range: n.Set.Dst}}
	info, err := kernel.Describe(args)
	if err != nil {
		return err
	}
	if bytes == 0 {
		c.Kind = cudart.Empty
		return nil
	}
	c.Kind, c.Kernel, c.Grid, c.Block = cudart.LaunchKernel, p.setKernel[n.Device], info.Grid, info.Block
	for _, a := range args {
		c.Args = append(c.Args, in.value(a))
	}
	return nil
}

func (p *Program) launchCommand(in *instance, id dag.NodeID, c *cudart.Command) error {
	l := p.launches[id]
	if l.Grid[0] == 0 {
		c.Kind = cudart.Empty
		return nil
	}
	c.Kind, c.Kernel, c.Grid, c.Block, c.Shared = cudart.LaunchKernel, p.codeOf(in).kernels[id], l.Grid, l.Block, l.Shared
	c.Cooperative, c.Cluster = l.Cooperative, l.Cluster
	if c.Block[0] == 0 {
		block, _, err := c.Kernel.Occupancy(l.Shared)
		if err != nil {
			return err
		}
		c.Block = [3]uint32{block, 1, 1}
	}
	c.Args = make([]cudart.Value, len(l.Args))
	for i, a := range l.Args {
		c.Args[i] = in.value(a)
	}
	return nil
}

func (p *Program) accesses(in *instance, id dag.NodeID) []cudart.Access {
	var list []cudart.Access
	all := p.graph.Accesses(id)
	for _, a := range all {
		if a.Lo == a.Hi {
			continue
		}
		access := cudart.Access{Ptr: in.at(a.Range), Bytes: a.Bytes(), Offset: a.Lo, Write: a.Mode&dag.Write != 0, Name: p.graph.Buffers[a.Buffer].Name}
		access.Whole = a.Mode == dag.Write && !p.graph.Buffers[a.Buffer].Scratch &&
			!slices.ContainsFunc(all, func(b dag.Access) bool { return b.Mode&dag.Read != 0 && b.Overlaps(a.Range) })
		if a.Tile() {
			access.Rows, _ = a.Box()
			access.Pitch = int64(a.Pitch)
		}
		list = append(list, access)
	}
	return list
}

// value returns the value of an argument, with addresses in this instance's memory.
func (in *instance) value(a dag.Arg) cudart.Value {
	if a.IsBuffer {
		v := cudart.Value{Pointer: true, Ptr: in.at(a.Range), Bytes: a.Range.Hi - a.Range.Lo, Size: 8, Within: a.Within, Offset: a.Offset,
			Unused: a.Mode == dag.Untouched, Start: a.Start}
		if a.Range.Tile() {
			_, v.Row = a.Range.Box()
			v.Pitch = int64(a.Range.Pitch)
		}
		v.Texture = textureOf(&a)
		return v
	}
	if a.Struct != "" {
		return cudart.Value{Struct: []byte(a.Struct)}
	}
	return cudart.Value{Bits: a.Bits, Size: uint8(a.DType.Size()), Within: a.Within, Offset: a.Offset}
}
