// Scripts: lists of a program with loops or branches, submitted as streams. The host submits the commands up to a loop or branch, then the
// passes of its body, and reads its condition in between.

package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
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
			err = submitList(ctx, part.list)
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

// forget begins a new replay: counts start at zero.
func (in *instance) forget() {
	for _, c := range in.controls {
		if c == nil {
			continue
		}
		c.passes, c.runs, c.missed, c.chosen = 0, 0, 0, [2]int64{}
		if c.counts != nil {
			c.counts.known = false // they are of an earlier replay, as a graph
		}
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
			return c.submitBody(ctx, chosen, 1)
		}
		if c.recorder != nil {
			c.recorder.chosenNone(c)
		}
		return nil
	}
	control := c.node.Control
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
		if err := c.submitBody(ctx, 0, pass+1); err != nil {
			return err
		}
	}
}

// submitBody submits a body once.
func (c *control) submitBody(ctx context.Context, k int, pass int64) error {
	if c.recorder != nil {
		return c.recorder.submit(ctx, c, k, pass)
	}
	return submitList(ctx, c.bodies[k].in.list)
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
