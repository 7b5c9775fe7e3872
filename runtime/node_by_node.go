// Runs every node alone, so that a fault or a hang can be attributed to the node that was running.

package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
)

// StageNode is the prefix of the stages that RunAlone reports to Options.Progress. The name of the running node follows.
const StageNode = "node "

// RunAlone replays the program with one node on the device at a time: it submits each node by itself, in the plan's order, and waits for it.
// A device reports the fault of a kernel only to a later call. Here that is the call that waits for this kernel, so the error names the node
// that caused the fault.
func (p *Program) RunAlone(ctx context.Context, iterations int) error {
	if err := p.checkReplays(ctx, "run", iterations, 0); err != nil {
		return err
	}
	if err := p.Synchronize(ctx); err != nil {
		return err
	}
	p.dirty = true
	in := p.instances[0]
	p.next = 1 % len(p.instances)
	lists := make([]cudart.List, len(in.lowered.commands))
	defer func() {
		for _, l := range lists {
			if l != nil {
				l.Close()
			}
		}
	}()
	for i, c := range in.lowered.commands {
		if c.Node < 0 || c.Kind == cudart.RecordEvent || c.Kind == cudart.WaitEvent {
			continue
		}
		var err error
		if lists[i], err = p.platform.Encode([]cudart.Command{c}, cudart.ListOptions{Origin: c.Stream}); err != nil {
			return fmt.Errorf("node %q: %w", c.Label, err)
		}
	}
	for replay := range iterations {
		for i, l := range lists {
			if l == nil {
				continue
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			c := &in.lowered.commands[i]
			p.report(StageNode+c.Label, replay, iterations)
			err := l.Submit()
			if err == nil {
				err = c.Stream.Synchronize(ctx)
			}
			if err != nil {
				return &NodeError{Node: c.Label, Stream: p.streamOf(in, c.Stream), Replay: replay, Err: err}
			}
		}
	}
	return nil
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
