// Streams, events and encoded commands of one replay in flight, and those of the bodies of its loops and branches.

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// prepareInstance gives an instance that has its memory what the plan needs besides: streams, events and encoded commands.
func (p *Program) prepareInstance(in *instance) error {
	if p.hosts != nil {
		in.run = &hostRun{ctx: context.Background()}
	}
	if err := p.newStreams(in, p.options.Origin); err != nil {
		return err
	}
	if len(in.streams) == 0 { // a pipeline without nodes still needs a stream to be replayed on
		stream, err := p.platform.NewStream(0, dag.Normal)
		if err != nil {
			return err
		}
		in.streams = append(in.streams, stream)
	}
	return p.encodeOn(in, cudart.ListOptions{Origin: in.streams[0], Threads: p.options.Threads})
}

// newStreams gives an instance the plan's streams. The first is origin, if there is one.
func (p *Program) newStreams(in *instance, origin cudart.Stream) error {
	for i, s := range p.plan.Streams {
		if i == 0 && origin != nil {
			in.streams, in.adopted = append(in.streams, origin), true
			continue
		}
		stream, err := p.platform.NewStream(s.Device, p.priority(s.Priority))
		if err != nil {
			return err
		}
		in.streams = append(in.streams, stream)
	}
	return nil
}

// encodeOn gives an instance that has its streams its events and encoded commands.
func (p *Program) encodeOn(in *instance, options cudart.ListOptions) error {
	if err := p.newEvents(in); err != nil {
		return err
	}
	if err := p.prepareControls(in); err != nil {
		return err
	}
	var err error
	if in.lowered, err = p.lower(in); err != nil {
		return err
	}
	in.list, err = p.encode(in, in.lowered.commands, options)
	p.countEarly(in.lowered.commands)
	return err
}

// newEvents makes the plan's events, each on the device of the stream that records it, and those of fork, join and timing.
func (p *Program) newEvents(in *instance) error {
	devices := make([]int32, p.plan.Events)
	for _, s := range p.plan.Streams {
		for _, op := range s.Ops {
			if op.Kind == plan.Record {
				devices[op.Event] = s.Device
			}
		}
	}
	for _, device := range devices {
		e, err := p.platform.NewEvent(device, false)
		if err != nil {
			return err
		}
		in.events = append(in.events, e)
	}
	origin := in.streams[0].Device()
	var err error
	if in.fork, err = p.platform.NewEvent(origin, false); err != nil {
		return err
	}
	for _, s := range p.plan.Join() {
		e, err := p.platform.NewEvent(p.plan.Streams[s].Device, false)
		if err != nil {
			return err
		}
		in.join = append(in.join, e)
	}
	if in.begin, err = p.platform.NewEvent(origin, true); err != nil {
		return err
	}
	in.end, err = p.platform.NewEvent(origin, true)
	return err
}

// encode prepares commands for submission, the bodies of loops and branches included.
func (p *Program) encode(in *instance, commands []cudart.Command, options cudart.ListOptions) (cudart.List, error) {
	if err := p.overlapStreams(commands); err != nil {
		return nil, err
	}
	if in.controls == nil {
		return p.platform.Encode(commands, options)
	}
	options.Threads = 1
	s := &script{len: len(commands)}
	flush := func(first, end int) error {
		if first == end {
			return nil
		}
		list, err := p.platform.Encode(commands[first:end], options)
		if err == nil {
			s.parts = append(s.parts, scriptPart{first: first, list: list})
		}
		return err
	}
	first := 0
	for k := range commands {
		c := &commands[k]
		if c.Kind != cudart.Empty || c.Node < 0 || in.controls[c.Node] == nil {
			continue
		}
		if err := flush(first, k); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.parts = append(s.parts, scriptPart{first: k, control: in.controls[c.Node]})
		first = k + 1
	}
	if err := flush(first, len(commands)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepareControls prepares the loops and branches of an instance that has its memory and streams.
func (p *Program) prepareControls(in *instance) error {
	if p.bodies == nil {
		return nil
	}
	in.controls = make([]*control, p.graph.Len())
	for _, op := range p.ops.Ops {
		if op.Kind != plan.Launch || p.bodies[op.Node] == nil {
			continue
		}
		n := &p.graph.Nodes[op.Node]
		c := &control{name: n.Name, node: n, place: int(op.Node), stream: in.streams[op.Stream], platform: p.platform}
		in.controls[op.Node] = c
		if err := p.prepareTest(in, c); err != nil {
			return fmt.Errorf("node %q: %w", n.Name, err)
		}
		for _, body := range p.bodies[op.Node] {
			inner := &instance{flight: in.flight, memory: in.memory, run: in.run, communicated: in.communicated}
			c.bodies = append(c.bodies, &controlBody{body, inner})
			if err := body.prepareBody(inner, c.stream); err != nil {
				return fmt.Errorf("body of %q: %w", n.Name, err)
			}
		}
	}
	return nil
}

// operandBytes is how far apart the operands of a condition are where the host reads them.
const operandBytes = 8

// prepareTest encodes the copies that the host reads a condition from.
func (p *Program) prepareTest(in *instance, c *control) error {
	condition := c.node.Control.Condition
	if condition == nil {
		return nil
	}
	bytes := int64(operandBytes * len(condition.Operands))
	var err error
	if c.memory, err = p.platform.AllocHost(bytes, false); err != nil {
		return err
	}
	c.words = p.platform.HostBytes(c.memory, bytes)
	if p.graph.Ranks > 1 && c.node.Communicates() {
		if c.shared, err = p.platform.Alloc(c.node.Device, bytes); err != nil {
			return err
		}
	}
	to, device := c.testedAt()
	var commands []cudart.Command
	for k, r := range condition.Operands {
		b := &p.graph.Buffers[r.Buffer]
		commands = append(commands, cudart.Command{Kind: cudart.CopyMemory, Stream: c.stream, Label: c.name, Node: -1, Priority: p.priority(c.node.Priority),
			Dst: to + cudart.Ptr(operandBytes*k), DstDevice: device, Src: in.at(r), SrcDevice: deviceOf(b), Bytes: r.Hi - r.Lo,
			Accesses: []cudart.Access{{Ptr: in.at(r), Bytes: r.Hi - r.Lo, Offset: r.Lo, Name: b.Name}}})
	}
	if c.shared != 0 {
		commands = append(commands, p.decideTogether(in, c, bytes)...)
	}
	c.test, err = p.platform.Encode(commands, cudart.ListOptions{Origin: c.stream})
	return err
}

// testedAt is where the operands of a condition are copied to first: to the host, or to where ranks get those of rank 0.
func (c *control) testedAt() (to cudart.Ptr, device int32) {
	if c.shared != 0 {
		return c.shared, c.node.Device
	}
	return c.memory, -1
}

// decideTogether returns the commands after which the host of every rank has rank 0's operands of a condition, so that all ranks decide alike:
// they compute the same condition.
func (p *Program) decideTogether(in *instance, c *control, bytes int64) []cudart.Command {
	broadcast := cudart.Command{Kind: cudart.Communicate, Stream: c.stream, Label: c.name, Node: -1, Priority: p.priority(c.node.Priority),
		Communication: &cudart.Communication{Verb: dag.Broadcast, DType: dag.I64, Rank: p.graph.Rank, Group: dag.Among{}.Members(p.graph.Ranks),
			Src: c.shared, Dst: c.shared, SrcBytes: bytes, DstBytes: bytes}}
	down := cudart.Command{Kind: cudart.CopyMemory, Stream: c.stream, Label: c.name, Node: -1, Priority: p.priority(c.node.Priority),
		Dst: c.memory, DstDevice: -1, Src: c.shared, SrcDevice: c.node.Device, Bytes: bytes}
	before, after := p.communicationMarks(in, c.node, c.stream)
	return append(append(append(before, broadcast), after...), down)
}

// prepareBody gives a body's instance its streams, events and encoded commands. Its first stream is that of the node around it, if that is on the
// same device.
func (p *Program) prepareBody(in *instance, origin cudart.Stream) error {
	if len(p.plan.Streams) == 0 || p.plan.Streams[0].Device == origin.Device() {
		if err := p.newStreams(in, origin); err != nil {
			return err
		}
		return p.encodeOn(in, cudart.ListOptions{Origin: origin})
	}
	if err := p.newStreams(in, nil); err != nil {
		return err
	}
	if err := p.encodeOn(in, cudart.ListOptions{Origin: in.streams[0]}); err != nil {
		return err
	}
	return p.embed(in, origin)
}
