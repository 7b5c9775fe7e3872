// Updates of nodes in the bodies of loops and branches.

package engine

import (
	"context"
	"errors"

	"github.com/dagrun/dagrun/cudart"
)

// owner finds a node by its name in the program or in one of its bodies, which are programs too.
func (p *Program) owner(name string) (*Program, int32, bool) {
	for _, q := range p.family() {
		if id, ok := q.node(name); ok {
			return q, id, true
		}
	}
	return nil, -1, false
}

// of returns the instance of a body in this instance of the program around it, or in itself.
func (in *instance) of(own, body *Program) *instance {
	if own == body {
		return in
	}
	for _, c := range in.controls {
		if c == nil {
			continue
		}
		for _, b := range c.bodies {
			if found := b.in.of(b.program, body); found != nil {
				return found
			}
		}
	}
	return nil
}

// retest makes the host read the condition's operands where they are now.
func (c *control) retest(in *instance) error {
	if c.test == nil {
		return nil
	}
	to, _ := c.testedAt()
	for k, r := range c.node.Control.Condition.Operands {
		if err := c.test.SetCopy(k, to+cudart.Ptr(operandBytes*k), in.at(r)); err != nil {
			return err
		}
	}
	return nil
}

// rebuild makes an instance's graph again from its commands, because a conditional node cannot be changed. Replays that have begun end first.
func (p *Program) rebuild(in *instance) error {
	if in.graph == nil {
		return nil
	}
	if err := in.streams[0].Synchronize(context.Background()); err != nil {
		return err
	}
	was := in.graph
	next, err := p.buildGraph(in, cudart.GraphOptions{Origin: in.streams[0], Priorities: p.ranked})
	if err != nil {
		return err
	}
	in.graph = next
	return errors.Join(was.Close(), next.Upload(in.streams[0]))
}

func (p *Program) node(name string) (int32, bool) {
	for i := range p.graph.Nodes {
		if p.graph.Nodes[i].Name == name {
			return int32(i), true
		}
	}
	return -1, false
}
