// The proof of a replay, which is the plan between a fork and a join: two replays of one instance never overlap.

package proof

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// Replay proves that replays can follow each other, or returns the first fault as a *Violation. The plan must have passed [Verify].
//
// Two consecutive replays of one instance use the same streams, events and memory. Stream 0, the origin, orders the end of the first
// before the beginning of the second. So they never overlap if each launch comes after the beginning of the origin and before its end.
// Replays of different instances run side by side, so none may need what another leaves behind.
func Replay(g *dag.Graph, p *plan.Plan, r *plan.Replay) error {
	if v := checkReplayOps(g, p, r); v != nil {
		return v
	}
	if v := checkFork(g, p, r); v != nil {
		return v
	}
	if v := checkJoin(g, p, r); v != nil {
		return v
	}
	return violationError(checkInstances(g, r))
}

// checkReplayOps checks that a replay has the plan's ops in their order, and besides them only records and waits on events of its own.
func checkReplayOps(g *dag.Graph, p *plan.Plan, r *plan.Replay) *Violation {
	if _, v := readSchedule(g, p); v != nil {
		return v
	}
	if r == nil || r.Events < p.Events || int(r.Events) > int(p.Events)+len(r.Ops)+1 {
		return newViolation(plan.ErrPlanShape, "the replay does not have the plan's %d events", p.Events)
	}
	next := make([]int32, len(p.Streams))
	recorded := make([]bool, r.Events-p.Events)
	at := 0 // in p.Order
	for k, op := range r.Ops {
		if op.Stream < 0 || int(op.Stream) >= len(p.Streams) {
			return newViolation(plan.ErrPlanShape, "op %d of the replay is on stream %d, but the plan has %d streams", k, op.Stream, len(p.Streams)).at(k, -1)
		}
		if op.Kind == plan.Launch || op.Event < p.Events {
			if at == len(p.Order) || p.Order[at] != op.Stream || p.Streams[op.Stream].Ops[next[op.Stream]] != op.Op {
				return newViolation(plan.ErrPlanShape, "op %d of the replay is not the plan's next op", k).at(k, op.Stream)
			}
			next[op.Stream]++
			at++
			continue
		}
		if op.Kind > plan.Wait || op.Event >= r.Events {
			return newViolation(plan.ErrPlanShape, "op %d of the replay is of kind %d on event %d, but the replay has %d events", k, uint8(op.Kind), op.Event,
				r.Events).at(k, op.Stream)
		}
		own := op.Event - p.Events
		switch {
		case op.Kind == plan.Record && recorded[own]:
			v := newViolation(ErrEvent, "the replay records event %d twice", op.Event).at(k, op.Stream).fix("record two events")
			v.Event = op.Event
			return v
		case op.Kind == plan.Wait && !recorded[own]:
			v := newViolation(ErrEvent, "stream %d waits on event %d before the replay records it, so it waits for an earlier replay", op.Stream, op.Event).
				at(k, op.Stream).fix("submit that record first")
			v.Event = op.Event
			return v
		}
		recorded[own] = true
	}
	if at < len(p.Order) {
		return newViolation(plan.ErrPlanShape, "the replay has %d of the plan's %d ops", at, len(p.Order))
	}
	return nil
}

// checkFork checks that each launch comes after the beginning of the origin.
func checkFork(g *dag.Graph, p *plan.Plan, r *plan.Replay) *Violation {
	stream, event := make([]bool, len(p.Streams)), make([]bool, r.Events)
	if len(stream) > 0 {
		stream[0] = true
	}
	for k, op := range r.Ops {
		switch op.Kind {
		case plan.Record:
			event[op.Event] = stream[op.Stream]
		case plan.Wait:
			stream[op.Stream] = stream[op.Stream] || event[op.Event]
		case plan.Launch:
			if !stream[op.Stream] {
				return newViolation(ErrHazard, "%q (stream %d) can start before the replay before it has finished", plan.NodeName(g, op.Node), op.Stream).
					node(g, op.Node).at(k, op.Stream).fix("stream %d must wait for an event recorded on stream 0 at the start", op.Stream)
			}
		}
	}
	return nil
}

// checkJoin checks that each launch comes before the end of the origin. It walks backwards: a stream counts as joined from the point that
// the origin waits for.
func checkJoin(g *dag.Graph, p *plan.Plan, r *plan.Replay) *Violation {
	stream, event := make([]bool, len(p.Streams)), make([]bool, r.Events)
	if len(stream) > 0 {
		stream[0] = true
	}
	for k := len(r.Ops) - 1; k >= 0; k-- {
		op := r.Ops[k]
		switch op.Kind {
		case plan.Record:
			stream[op.Stream] = stream[op.Stream] || event[op.Event]
			event[op.Event] = false // waits before this refer to an earlier record
		case plan.Wait:
			event[op.Event] = event[op.Event] || stream[op.Stream]
		case plan.Launch:
			if !stream[op.Stream] {
				return newViolation(ErrHazard, "%q (stream %d) may still run when the next replay starts", plan.NodeName(g, op.Node), op.Stream).
					node(g, op.Node).at(k, op.Stream).fix("stream 0 must wait at the end for an event recorded on stream %d after %q", op.Stream, plan.NodeName(g, op.Node))
			}
		}
	}
	return nil
}

// checkInstances checks that replays that run side by side do not depend on each other: a replay must not write bytes that it also reads
// before it has written them.
func checkInstances(g *dag.Graph, r *plan.Replay) *Violation {
	if r.Instances < 1 {
		return newViolation(plan.ErrPlanShape, "%d replays in flight: there must be at least 1", r.Instances)
	}
	if r.Instances == 1 {
		return nil
	}
	for b, carried := range walkDeclared(g, declaredSchedule(g)).carried {
		if carried {
			v := newViolation(ErrHazard, "%d replays in flight cannot run side by side: each changes bytes of %q that the next one reads", r.Instances,
				plan.BufferName(g, dag.BufferID(b))).
				fix("keep 1 replay in flight")
			v.Buffer, v.BufferName = dag.BufferID(b), plan.BufferName(g, dag.BufferID(b))
			return v
		}
	}
	return nil
}

// declaredSchedule returns a schedule with all nodes on one stream, in declared order.
func declaredSchedule(g *dag.Graph) *schedule {
	s := &schedule{spots: make([]spot, g.Len()), order: make([]int32, g.Len())}
	for i := range s.spots {
		s.spots[i], s.order[i] = spot{0, int32(i) + 1}, int32(i)
	}
	return s
}
