// The proof of a plan: checks from its ops alone that every dependency is enforced and that no two live buffers share bytes.

// Package proof proves plans correct, from their ops and the graph's accesses alone. It imports nothing that makes plans, so that a mistake
// there cannot be repeated here.
package proof

import (
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Verify proves that a plan is correct for a graph, or returns the first fault as a *Violation.
//
// It derives what happens before what from the plan's ops alone: from the order of each stream, and from waits, each of which refers to the
// latest record of its event in the submission order. A plan is correct if every node is launched once, on a stream of its device and
// priority; nodes bound to one stream share a stream; no wait comes before its record; every dependency of the graph is enforced; and
// every device buffer lies in the arena of its device, aligned, and shares bytes only with buffers that are not alive at the same time.
//
// Under sync: explicit only after: and the order of nodes that are bound to one stream count, so data hazards can remain, whatever else the
// plan happens to order. They are checked last: an error that matches [ErrRace] means that everything else is correct. [Violations] lists
// all of them.
//
// The same holds for the plan of each body of a loop or branch, which shares the memory of the plan around it. Each pass must end on the
// body's first stream before the next begins there, and the node must declare what its bodies do.
//
// A plan may come from anywhere: ids out of range are reported too. The proof holds for the byte ranges that the
// graph declares.
func Verify(g *dag.Graph, p *plan.Plan) error {
	if v := checkPresent(g, p); v != nil {
		return v
	}
	c := proofs.Get().(*proof)
	v := c.check(g, p)
	if words := cap(c.schedule.cursors) + cap(c.clocks.streams) + cap(c.clocks.events); g.Len() <= mostKept && len(g.Buffers) <= mostKept && words <= 32*mostKept {
		c.clocks.p, c.walk.g, c.walk.s = nil, nil, nil
		proofs.Put(c)
	}
	if v == nil {
		v = checkBodies(g, p)
	}
	return violationError(v)
}

// proofs keeps the memory of finished proofs for reuse.
var proofs = sync.Pool{New: func() any { return new(proof) }}

// check returns the first violation.
func (c *proof) check(g *dag.Graph, p *plan.Plan) *Violation {
	s, clocks := &c.schedule, &c.clocks
	if v := s.read(g, p); v != nil {
		return v
	}
	clocks.follow(p, s)
	if g.Sync == dag.SyncExplicit {
		if v := checkDeclared(g, p, s, clocks); v != nil {
			return v
		}
		if v := checkMemory(g, p, s, clocks, readFirstOf(g, s)); v != nil {
			return v
		}
		declared, _ := declaredOrder(g, p, s, nil)
		_, v := checkConflicts(g, p, s, declared)
		return v
	}
	readFirst, v := checkConflicts(g, p, s, &order{p, s, clocks, &c.walk})
	if v != nil {
		return v
	}
	return checkMemory(g, p, s, clocks, readFirst)
}

// checkDeclared returns the first after: of an explicit schedule that is not enforced.
func checkDeclared(g *dag.Graph, p *plan.Plan, s *schedule, clocks clockSource) *Violation {
	var asked []pair
	for _, to := range s.order {
		for _, from := range g.Nodes[to].After {
			asked = append(asked, pair{int32(from), to})
		}
	}
	bad := unordered(p, s, clocks, asked)
	if len(bad) == 0 {
		return nil
	}
	first := asked[bad[0]]
	return hazardViolation(g, p, s, dag.Edge{From: dag.NodeID(first.from), To: dag.NodeID(first.to), Buffer: -1, Why: dag.After})
}

// VerifySingleUse checks that no event is recorded twice. A program that several threads submit needs this besides what [Verify] checks: a
// wait refers to the latest record submitted, and several threads have no common submission order that determines it.
func VerifySingleUse(g *dag.Graph, p *plan.Plan) error {
	if v := checkCounts(g, p); v != nil {
		return v
	}
	after := make([]int32, p.Events)
	var v *Violation
	forEachOp(p, func(at int, stream int32, op *plan.Op) {
		if v != nil || op.Kind != plan.Record || op.Event < 0 || op.Event >= p.Events {
			return
		}
		if first := after[op.Event] - 1; first >= 0 {
			v = newViolation(ErrEvent, "event %d is recorded after %q and again after %q", op.Event, plan.NodeName(g, dag.NodeID(first)), plan.NodeName(g, op.Node)).
				node(g, op.Node).at(at, stream).fix("plan with one event per record")
			v.Event, v.Before, v.BeforeName = op.Event, dag.NodeID(first), plan.NodeName(g, dag.NodeID(first))
		}
		after[op.Event] = int32(op.Node + 1)
	})
	return violationError(v)
}
