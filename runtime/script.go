// Scripts: lists of a program with loops or branches, submitted as streams. The host submits the commands up to a loop or branch, then the
// passes of its body, and reads its condition in between.

package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner"
)

// script is a list of commands with loops and branches in it. It implements [cudart.List].
type script struct {
	parts []scriptPart
	len   int
}

// scriptPart is either commands without a loop or branch, or one loop or branch.
type scriptPart struct {
	first   int // index of its first command
	list    cudart.List
	control *control
}

// errNoCapture is returned where a graph of a program with loops or branches is asked for.
var errNoCapture = errors.New("a list with loops or branches cannot be captured")

// encode prepares commands for submission, the bodies of loops and branches included.
func (p *Program) encode(in *instance, commands []cudart.Command, options cudart.ListOptions) (cudart.List, error) {
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

// submitList submits a list, which may have loops and branches: then the context ends those too.
func submitList(ctx context.Context, list cudart.List) error {
	if s, ok := list.(*script); ok {
		return s.run(ctx)
	}
	return list.Submit()
}

func (s *script) run(ctx context.Context) error {
	for _, part := range s.parts {
		var err error
		if part.control != nil {
			err = part.control.run(ctx)
		} else {
			err = part.list.Submit()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Submit implements [cudart.List].
func (s *script) Submit() error { return s.run(context.Background()) }

// Capture implements [cudart.List].
func (s *script) Capture(cudart.GraphOptions) (cudart.Graph, error) { return nil, errNoCapture }

// part returns the list that has a command, and the command's index in it.
func (s *script) part(index int) (cudart.List, int, error) {
	for k := len(s.parts) - 1; k >= 0; k-- {
		if part := s.parts[k]; index >= part.first && part.list != nil {
			return part.list, index - part.first, nil
		}
	}
	return nil, 0, fmt.Errorf("there is no command %d that can be changed", index)
}

// SetArgs implements [cudart.List].
func (s *script) SetArgs(index int, grid [3]uint32, args []cudart.Value) error {
	list, index, err := s.part(index)
	if err != nil {
		return err
	}
	return list.SetArgs(index, grid, args)
}

// SetCopy implements [cudart.List].
func (s *script) SetCopy(index int, dst, src cudart.Ptr) error {
	list, index, err := s.part(index)
	if err != nil {
		return err
	}
	return list.SetCopy(index, dst, src)
}

// Len implements [cudart.List].
func (s *script) Len() int { return s.len }

// Close implements [cudart.List]. The bodies belong to the instance.
func (s *script) Close() error {
	var errs []error
	for _, part := range s.parts {
		if part.list != nil {
			errs = append(errs, part.list.Close())
		}
	}
	return errors.Join(errs...)
}

// control runs one loop or branch of one instance.
type control struct {
	name   string
	node   *dag.Node
	stream cudart.Stream
	bodies []*controlBody
	test   cudart.List // copies the operands to words; nil without a condition
	words  []byte      // eight bytes for each operand
	memory cudart.Ptr  // of words

	platform cudart.Platform
	passes   int64 // in the latest replay, over all times that it ran
	runs     int64
	missed   int64 // runs that ended although the condition did not hold
	chosen   [2]int64
}

// controlBody is a body as a program of its own, over the memory of the one around it.
type controlBody struct {
	program *Program
	in      *instance
}

// bodies makes a program for each body of each loop and branch.
func (p *Program) makeBodies() {
	for i := range p.graph.Nodes {
		n := &p.graph.Nodes[i]
		if n.Control == nil {
			continue
		}
		if p.bodies == nil {
			p.bodies = make([][]*Program, p.graph.Len())
		}
		for k, g := range n.Control.Bodies {
			plan := p.plan.BodyOf(dag.NodeID(i), k)
			body := &Program{graph: g, plan: plan, ops: plan.Replay(1), platform: p.platform, log: p.log, ranked: p.ranked, low: p.low,
				setKernel: p.setKernel}
			body.options.Progress = p.options.Progress
			body.takeLaunches()
			body.makeBodies()
			p.bodies[i] = append(p.bodies[i], body)
		}
	}
}

// takeLaunches notes what each node launches.
func (p *Program) takeLaunches() {
	p.launches = make([]*dag.Launch, p.graph.Len())
	for i := range p.graph.Nodes {
		p.launches[i] = p.graph.Nodes[i].Launch
	}
}

// family returns the program and those of all its bodies.
func (p *Program) family() []*Program {
	all := []*Program{p}
	for _, bodies := range p.bodies {
		for _, body := range bodies {
			all = append(all, body.family()...)
		}
	}
	return all
}

// equipControls prepares the loops and branches of an instance that has its memory and streams.
func (p *Program) equipControls(in *instance) error {
	if p.bodies == nil {
		return nil
	}
	in.controls = make([]*control, p.graph.Len())
	for _, op := range p.ops.Ops {
		if op.Kind != planner.Launch || p.bodies[op.Node] == nil {
			continue
		}
		n := &p.graph.Nodes[op.Node]
		c := &control{name: n.Name, node: n, stream: in.streams[op.Stream], platform: p.platform}
		in.controls[op.Node] = c
		if err := p.equipTest(in, c); err != nil {
			return fmt.Errorf("node %q: %w", n.Name, err)
		}
		for _, body := range p.bodies[op.Node] {
			inner := &instance{flight: in.flight, memory: in.memory}
			c.bodies = append(c.bodies, &controlBody{body, inner})
			if err := body.equipBody(inner, c.stream); err != nil {
				return fmt.Errorf("body of %q: %w", n.Name, err)
			}
		}
	}
	return nil
}

// equipTest encodes the copies that the host reads a condition from.
func (p *Program) equipTest(in *instance, c *control) error {
	condition := c.node.Control.Condition
	if condition == nil {
		return nil
	}
	const word = 8
	bytes := int64(word * len(condition.Operands))
	var err error
	if c.memory, err = p.platform.AllocHost(bytes, false); err != nil {
		return err
	}
	c.words = p.platform.HostBytes(c.memory, bytes)
	var copies []cudart.Command
	for k, r := range condition.Operands {
		b := &p.graph.Buffers[r.Buffer]
		copies = append(copies, cudart.Command{Kind: cudart.CopyMemory, Stream: c.stream, Label: c.name, Node: -1, Priority: p.priority(c.node.Priority),
			Dst: c.memory + cudart.Ptr(word*k), DstDevice: -1, Src: in.at(r), SrcDevice: deviceOf(b), Bytes: r.Hi - r.Lo,
			Accesses: []cudart.Access{{Ptr: in.at(r), Bytes: r.Hi - r.Lo, Offset: r.Lo, Name: b.Name}}})
	}
	c.test, err = p.platform.Encode(copies, cudart.ListOptions{Origin: c.stream})
	return err
}

// equipBody gives a body's instance its streams, events and encoded commands. Its first stream is that of the node around it.
func (p *Program) equipBody(in *instance, origin cudart.Stream) error {
	if err := p.newStreams(in, origin); err != nil {
		return err
	}
	return p.encodeOn(in, cudart.ListOptions{Origin: origin})
}

// strip frees what a loop or branch has. Its stream has no more work by then.
func (c *control) strip(note func(error)) {
	for _, body := range c.bodies {
		note(body.in.strip())
	}
	if c.test != nil {
		note(c.test.Close())
	}
	if c.memory != 0 {
		note(c.platform.Free(c.memory))
	}
}

// forget begins a new replay: counts start at zero.
func (in *instance) forget() {
	for _, c := range in.controls {
		if c == nil {
			continue
		}
		c.passes, c.runs, c.missed, c.chosen = 0, 0, 0, [2]int64{}
		for _, body := range c.bodies {
			body.in.forget()
		}
	}
}

// run submits a loop or branch. With a condition it waits for the device before each test.
func (c *control) run(ctx context.Context) error {
	c.runs++
	if c.node.Kind == dag.Branch {
		holds, err := c.holds(ctx)
		if err != nil {
			return err
		}
		chosen := 0
		if !holds {
			chosen = 1
		}
		c.chosen[chosen]++
		if chosen < len(c.bodies) {
			return submitList(ctx, c.bodies[chosen].in.list)
		}
		return nil
	}
	control := c.node.Control
	body := c.bodies[0].in.list
	for pass := int64(0); ; pass++ {
		last := pass == control.Times
		if control.Condition != nil && (last || pass%control.Every == 0) && (control.While || pass > 0) {
			holds, err := c.holds(ctx)
			if err != nil {
				return err
			}
			if holds != control.While {
				return nil
			}
			if last {
				c.missed++
			}
		}
		if last {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.passes++
		if err := submitList(ctx, body); err != nil {
			return err
		}
	}
}

// holds computes the condition from what the device has reached.
func (c *control) holds(ctx context.Context) (bool, error) {
	if err := c.test.Submit(); err != nil {
		return false, err
	}
	if err := c.stream.Synchronize(ctx); err != nil {
		return false, err
	}
	condition := c.node.Control.Condition
	return condition.Holds(func(k int) uint64 { return condition.Types[k].Load(c.words[8*k:8*k+8], 0) }), nil
}

// noGraph says why a program with loops or branches is not made a graph.
const noGraph = "streams: loops and branches are tested by the host"
