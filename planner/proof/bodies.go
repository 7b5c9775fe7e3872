// The proof of loops and branches: the plan of every body, that each pass ends before the next begins, and that the node around a body
// declares what the body does. Derives everything from the accesses of the innermost nodes.

package proof

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// proof is the state of Verify.
type proof struct {
	schedule schedule
	clocks   planClocks
	walk     accessWalk
}

// checkBodies returns the first fault of the bodies of a graph.
func checkBodies(g *dag.Graph, p *plan.Plan) *Violation {
	if !g.HasControl() {
		if len(p.Bodies) > 0 {
			return newViolation(plan.ErrOtherGraph, "the plan has the bodies of loops or branches, but the graph has none").fix("plan this graph again")
		}
		return nil
	}
	b := &bodyProof{users: make([]int32, len(g.Buffers))}
	b.count(g, b.users)
	return b.graph(g, p, p.Memory)
}

// bodyProof is the state of checkBodies.
type bodyProof struct {
	users []int32 // by buffer: how many accesses of nodes that do something, in all bodies
}

// count adds the accesses to each buffer by nodes other than loops and branches, and by conditions.
func (b *bodyProof) count(g *dag.Graph, users []int32) {
	for i := range g.Nodes {
		c := g.Nodes[i].Control
		if c == nil {
			for _, a := range g.Accesses(dag.NodeID(i)) {
				users[a.Buffer]++
			}
			continue
		}
		b.countControl(c, users)
	}
}

func (b *bodyProof) countControl(c *dag.Control, users []int32) {
	if c.Condition != nil {
		for _, r := range c.Condition.Operands {
			users[r.Buffer]++
		}
	}
	for _, body := range c.Bodies {
		b.count(body, users)
	}
}

// graph checks the bodies of one level. memory is the part of the layout that may share bytes inside of this level.
func (b *bodyProof) graph(g *dag.Graph, p *plan.Plan, memory []plan.Placement) *Violation {
	next, alone := 0, usedAlone(g)
	for i := range g.Nodes {
		c := g.Nodes[i].Control
		if c == nil {
			continue
		}
		id := dag.NodeID(i)
		inside := within(id, alone, memory)
		for k, body := range c.Bodies {
			if next >= len(p.Bodies) || p.Bodies[next].Node != id || int(p.Bodies[next].Body) != k || p.Bodies[next].Plan == nil {
				return newViolation(plan.ErrPlanShape, "the plan has no schedule for body %d of %q", k, plan.NodeName(g, id)).node(g, id).fix("plan this graph again")
			}
			if v := b.body(body, p.Bodies[next].Plan, inside); v != nil {
				v.Problem = "in " + plan.NodeName(g, id) + ": " + v.Problem
				return v
			}
			next++
		}
		if v := b.declared(g, id); v != nil {
			return v
		}
		if v := carriedApart(g, id, inside); v != nil {
			return v
		}
	}
	if next < len(p.Bodies) {
		return newViolation(plan.ErrPlanShape, "the plan has the schedules of %d bodies, the graph has %d", len(p.Bodies), next).fix("plan this graph again")
	}
	return nil
}

// body checks one pass, and the step to the next: all of a pass lies between the beginning and the end of the body's first stream.
// memory is the part of the layout that may share bytes inside of the body.
func (b *bodyProof) body(g *dag.Graph, p *plan.Plan, memory []plan.Placement) *Violation {
	if len(p.Memory) > 0 || len(p.Kept) > 0 {
		return newViolation(plan.ErrMemory, "a body has a memory layout of its own").fix("plan this graph again")
	}
	var c proof
	if v := c.schedule.read(g, p); v != nil {
		return v
	}
	c.clocks.follow(p, &c.schedule)
	if _, v := checkConflicts(g, p, &c.schedule, &order{p, &c.schedule, &c.clocks, &c.walk}); v != nil {
		return v
	}
	r := p.Replay(1)
	for _, check := range []func(*dag.Graph, *plan.Plan, *plan.Replay) *Violation{checkReplayOps, checkFork, checkJoin} {
		if v := check(g, p, r); v != nil {
			return v
		}
	}
	if v := bodyMemory(g, p, &c.schedule, &c.clocks, memory); v != nil {
		return v
	}
	return b.graph(g, p, memory)
}

// declared checks that the accesses of a loop or branch cover what its bodies do.
func (b *bodyProof) declared(g *dag.Graph, id dag.NodeID) *Violation {
	c := g.Nodes[id].Control
	does := controlCertainty(&g.Nodes[id])
	var reads, writes, only byteSet
	for _, a := range g.Accesses(id) {
		if a.Mode&dag.Read != 0 {
			reads.add(a.Range)
		}
		if a.Mode&dag.Write != 0 {
			writes.add(a.Range)
		}
		if a.Mode == dag.Write {
			only.add(a.Range)
		}
	}
	if r, ok := does.reads.outside(&reads); ok {
		return undeclared(g, id, r, "reads")
	}
	if r, ok := does.may.outside(&writes); ok {
		return undeclared(g, id, r, "writes")
	}
	users := make([]int32, len(g.Buffers))
	b.countControl(c, users)
	for _, r := range only {
		buffer := &g.Buffers[r.Buffer]
		inside := buffer.InArena() && buffer.Init == nil && buffer.Save == "" && buffer.Expect == nil && users[r.Buffer] == b.users[r.Buffer]
		if inside || buffer.InArena() && buffer.Scratch && buffer.Expect == nil {
			continue
		}
		if left, ok := (byteSet{r}).outside(&does.must); ok {
			v := newViolation(ErrHazard, "%q counts as writing %s, but a run may leave that unwritten", plan.NodeName(g, id), g.RangeText(left)).node(g, id)
			v.Buffer, v.BufferName = left.Buffer, plan.BufferName(g, left.Buffer)
			return v
		}
	}
	return nil
}

func undeclared(g *dag.Graph, id dag.NodeID, r dag.Range, does string) *Violation {
	v := newViolation(ErrHazard, "a body of %q %s %s, which %q does not declare", plan.NodeName(g, id), does, g.RangeText(r), plan.NodeName(g, id)).node(g, id)
	v.Buffer, v.BufferName = r.Buffer, plan.BufferName(g, r.Buffer)
	return v
}
