// Runs every node alone, so that a fault or a hang can be attributed to the node that was running.

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
)

// StageNode is the prefix of the stages that RunAlone reports to Options.Progress. The name of the running node follows.
const StageNode = "node "

// RunAlone replays the program with one node on the device at a time: it submits each node by itself, in the plan's order, and waits for it.
func (p *Program) RunAlone(ctx context.Context, iterations int) error {
	if err := p.CheckReplays(ctx, "run", iterations, 0); err != nil {
		return err
	}
	a, err := p.alone(ctx)
	if err != nil {
		return err
	}
	defer a.close()
	for replay := range iterations {
		for i := range a.steps {
			p.report(StageNode+a.steps[i].command.Label, replay, iterations)
			if err := a.run(ctx, i, replay); err != nil {
				return err
			}
		}
	}
	return nil
}

// alone is a program's replay as single commands, in the plan's order.
type alone struct {
	program *Program
	in      *instance
	steps   []step
}

type step struct {
	command *cudart.Command
	list    cudart.List
}

func (p *Program) alone(ctx context.Context) (*alone, error) {
	if err := p.Synchronize(ctx); err != nil {
		return nil, err
	}
	p.dirty = true
	a := &alone{program: p, in: p.instances[0]}
	p.next = 1 % len(p.instances)
	for i := range a.in.lowered.commands {
		c := &a.in.lowered.commands[i]
		if c.Node < 0 || c.Kind == cudart.RecordEvent || c.Kind == cudart.WaitEvent {
			continue
		}
		list, err := p.encode(a.in, []cudart.Command{*c}, cudart.ListOptions{Origin: c.Stream})
		if err != nil {
			a.close()
			return nil, fmt.Errorf("node %q: %w", c.Label, err)
		}
		a.steps = append(a.steps, step{c, list})
	}
	return a, nil
}

// run submits a step and waits for it.
func (a *alone) run(ctx context.Context, i, replay int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if i == 0 {
		a.in.forget()
		if err := a.program.beginHosts(ctx, a.in); err != nil {
			return err
		}
	}
	s := &a.steps[i]
	err := submitList(ctx, s.list)
	if err == nil {
		err = s.command.Stream.Synchronize(ctx)
	}
	if err != nil {
		return &NodeError{Node: s.command.Label, Stream: a.program.streamOf(a.in, s.command.Stream), Replay: replay, Err: err}
	}
	return nil
}

func (a *alone) close() {
	for _, s := range a.steps {
		s.list.Close()
	}
}

func (p *Program) streamOf(in *instance, stream cudart.Stream) int {
	for s := range in.streams {
		if in.streams[s] == stream {
			return s
		}
	}
	return -1
}

// NodeError is a failure that one node has certainly caused: nothing else was running.
type NodeError struct {
	Node   string
	Stream int // of the plan
	Replay int // counts from 0
	Err    error
}

func (e *NodeError) Error() string {
	err := e.Err
	if device := (*cudart.Error)(nil); errors.As(err, &device) {
		bare := *device // the message already starts with the node's name
		bare.Label = ""
		err = &bare
	}
	return fmt.Sprintf("node %q (stream %d): %v", e.Node, e.Stream, err)
}

func (e *NodeError) Unwrap() error { return e.Err }
