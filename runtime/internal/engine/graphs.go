// CUDA graphs built node by node, from the plan's happens-before order, reduced and proved.

package engine

import (
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/conditions"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// built reports whether the program replays as a graph that was built node by node. One with loops or branches always is.
func (p *Program) built() bool { return p.mode == Built || p.mode != Streams && p.bodies != nil }

// graphShape is the order of a graph's commands: by node the place of its command, and what each place waits for.
type graphShape struct {
	place []int // by node
	order []int32
	deps  [][]int32 // by node: predecessor nodes, plan.GraphRoot for the root
	edges []plan.GraphEdge
	root  bool
}

// shape derives the edges from the plan and proves them, because only edges order the nodes of a graph.
func (p *Program) shape() (*graphShape, error) {
	edges, err := p.edges(p.graph, p.plan)
	if err != nil {
		return nil, err
	}
	if p.body {
		err = proof.VerifyBodyEdges(p.graph, p.plan, edges, p.layout)
	} else {
		err = proof.VerifyEdges(p.graph, p.plan, edges)
	}
	if err != nil && !p.tolerates(err) {
		return nil, err
	}
	s := &graphShape{edges: edges, place: make([]int, p.graph.Len()), deps: make([][]int32, p.graph.Len())}
	for _, e := range edges {
		s.deps[e.To] = append(s.deps[e.To], int32(e.From))
		s.root = s.root || e.From == plan.GraphRoot
	}
	next := make([]int32, len(p.plan.Streams))
	for _, stream := range p.plan.Order {
		op := p.plan.Streams[stream].Ops[next[stream]]
		next[stream]++
		if op.Kind == plan.Launch {
			s.order = append(s.order, int32(op.Node))
		}
	}
	return s, nil
}

// buildGraph makes an instance's graph and stores the place of each node's command.
func (p *Program) buildGraph(in *instance, options cudart.GraphOptions) (cudart.Graph, error) {
	s, err := p.shape()
	if err != nil {
		return nil, err
	}
	commands, deps, err := p.graphCommands(in, s, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := p.overlapGraph(s.edges, commands, deps); err != nil {
		return nil, err
	}
	p.countEarly(commands)
	in.built = s.place
	return p.platform.BuildGraph(commands, deps, options)
}

// buildTracedGraph adds a timed event before and after every node. Whatever waits for the node waits for the event after it.
func (p *Program) buildTracedGraph(in *instance, before, after []cudart.Event) (cudart.Graph, error) {
	s, err := p.shape()
	if err != nil {
		return nil, err
	}
	commands, deps, err := p.graphCommands(in, s, before, after)
	if err != nil {
		return nil, err
	}
	return p.platform.BuildGraph(commands, deps, cudart.GraphOptions{Origin: in.streams[0], Priorities: p.ranked})
}

func (p *Program) graphCommands(in *instance, s *graphShape, before, after []cudart.Event) ([]cudart.Command, [][]int32, error) {
	var commands []cudart.Command
	var deps [][]int32
	add := func(c cudart.Command, waits []int32) int32 {
		commands, deps = append(commands, c), append(deps, waits)
		return int32(len(commands) - 1)
	}
	root := int32(-1)
	if s.root {
		root = add(cudart.Command{Kind: cudart.Empty, Node: -1, Label: "root", Stream: in.streams[0]}, nil)
	}
	end := make([]int32, p.graph.Len()) // by node: the command that its successors wait for
	for _, node := range s.order {
		c := in.lowered.commands[in.lowered.index[node]]
		c.Early = false // overlapGraph decides
		if in.controls != nil && in.controls[node] != nil {
			control, clear := in.controls[node], 0
			if control.counts != nil {
				clear = len(control.counts.nest)
			}
			var err error
			if c, err = p.conditional(in, control, c, clear); err != nil {
				return nil, nil, err
			}
		}
		var waits []int32
		for _, from := range s.deps[node] {
			if dag.NodeID(from) == plan.GraphRoot {
				waits = append(waits, root)
			} else {
				waits = append(waits, end[from])
			}
		}
		if before == nil {
			end[node] = add(c, waits)
			s.place[node] = int(end[node])
			continue
		}
		mark := func(e cudart.Event) cudart.Command {
			return cudart.Command{Kind: cudart.RecordEvent, Stream: c.Stream, Event: e, Node: node, Label: c.Label}
		}
		start := add(mark(before[node]), waits)
		s.place[node] = int(add(c, []int32{start}))
		end[node] = add(mark(after[node]), []int32{int32(s.place[node])})
	}
	return commands, deps, nil
}

// testOf says when the bodies of a loop or branch run.
func testOf(n *dag.Node) conditions.Test {
	c := n.Control
	return conditions.Test{Branch: n.Kind == dag.Branch, Condition: c.Condition, While: c.While, Times: c.Times, Every: c.Every}
}

// conditional returns the command of a loop or branch in a graph. clear is how many sets of counts it sets to zero.
func (p *Program) conditional(in *instance, c *control, command cudart.Command, clear int) (cudart.Command, error) {
	control := c.node.Control
	v := &cudart.Conditional{Counts: c.counted, Clear: clear, Test: testOf(c.node), Stamps: c.stamps, Stamping: c.stamping}
	if d := p.deciders; d != nil {
		v.Decider, v.Number = d.kernels[c.node.Device], d.Number(control.Condition)
	}
	if control.Condition != nil {
		for _, r := range control.Condition.Operands {
			v.Operands = append(v.Operands, in.at(r))
		}
	}
	for _, body := range c.bodies {
		s, err := body.program.shape()
		if err != nil {
			return command, fmt.Errorf("body of %q: %w", c.name, err)
		}
		commands, deps, err := body.program.graphCommands(body.in, s, nil, nil)
		if err != nil {
			return command, err
		}
		v.Bodies = append(v.Bodies, cudart.Body{Commands: commands, Deps: deps})
	}
	command.Kind, command.Conditional = cudart.RunBodies, v
	return command, nil
}
