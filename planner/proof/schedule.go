// What happens before what, from a plan's ops alone: stream order, records and waits. Does not depend on how the plan was made.

package proof

import (
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// spot is where a node is launched: its stream, and its position among the launches of that stream, from 1. The zero position
// means that it never is.
type spot struct{ stream, pos int32 }

// schedule is a plan whose ops have been read and found valid: every id is in range, every node is launched once, and every wait comes
// after its record.
type schedule struct {
	spots []spot  // by node
	order []int32 // nodes in submission order
	rank  []int32 // by node, its place in order; made when first asked for
	ops   []int32 // where each node's launch is in Plan.Order; made when first asked for

	cursors  []int32 // of the walk that reads the ops
	recorded []int32 // by event, the node that its latest record follows, plus 1
}

// ranks returns the nodes' places in the submission order.
func (s *schedule) ranks() []int32 {
	if s.rank == nil {
		s.rank = make([]int32, len(s.spots))
		for k, node := range s.order {
			s.rank[node] = int32(k)
		}
	}
	return s.rank
}

// opOf returns the index of a node's launch in the plan's order.
func (s *schedule) opOf(p *plan.Plan, node dag.NodeID) int32 {
	if s.ops == nil {
		s.ops = make([]int32, len(s.spots))
		forEachOp(p, func(at int, _ int32, op *plan.Op) {
			if op.Kind == plan.Launch {
				s.ops[op.Node] = int32(at)
			}
		})
	}
	return s.ops[node]
}

// CheckOps returns what keeps a plan's ops from being a schedule of the graph, as a *Violation.
func CheckOps(g *dag.Graph, p *plan.Plan) error {
	_, v := readSchedule(g, p)
	return violationError(v)
}

// readSchedule reads a plan's ops.
func readSchedule(g *dag.Graph, p *plan.Plan) (*schedule, *Violation) {
	s := &schedule{}
	if v := s.read(g, p); v != nil {
		return nil, v
	}
	return s, nil
}

// read walks the submission order once. Plans also come from files, so nothing in them is trusted.
func (s *schedule) read(g *dag.Graph, p *plan.Plan) *Violation {
	if v := checkCounts(g, p); v != nil {
		return v
	}
	n := g.Len()
	s.spots, s.order, s.rank, s.ops = zeroed(s.spots, n), sized(s.order, n)[:0], nil, nil
	streams := len(p.Streams)
	s.cursors = zeroed(s.cursors, 3*streams)
	next, launched, last := s.cursors[:streams], s.cursors[streams:2*streams], s.cursors[2*streams:]
	for i := range last {
		last[i] = -1
	}
	s.recorded = zeroed(s.recorded, int(p.Events))
	spots, recorded := s.spots, s.recorded
	for k, stream := range p.Order {
		if stream < 0 || int(stream) >= streams {
			return newViolation(plan.ErrPlanShape, "order[%d] is stream %d, but the plan has %d streams", k, stream, streams).at(k, -1)
		}
		ops := p.Streams[stream].Ops
		at := next[stream]
		if int(at) >= len(ops) {
			return newViolation(plan.ErrPlanShape, "order[%d] takes op %d of stream %d, which has only %d ops", k, at, stream, len(ops)).at(k, stream)
		}
		next[stream]++
		op := &ops[at]
		if op.Kind == plan.Launch {
			if op.Node < 0 || int(op.Node) >= n {
				return newViolation(plan.ErrOtherGraph, "stream %d launches node %d, but the graph has %d nodes", stream, op.Node, n).at(k, stream)
			}
			launched[stream]++
			if spots[op.Node].pos != 0 {
				return newViolation(plan.ErrPlanShape, "%q is launched twice, on streams %d and %d", plan.NodeName(g, op.Node), spots[op.Node].stream, stream).
					node(g, op.Node).at(k, stream).fix("remove one of the launches")
			}
			spots[op.Node] = spot{stream, launched[stream]}
			s.order = append(s.order, int32(op.Node))
			last[stream] = int32(op.Node)
			continue
		}
		if op.Kind > plan.Wait {
			return newViolation(plan.ErrPlanShape, "op %d of stream %d is of unknown kind %d", at, stream, uint8(op.Kind)).at(k, stream)
		}
		if op.Event < 0 || op.Event >= p.Events {
			v := newViolation(plan.ErrPlanShape, "op %d of stream %d uses event %d, but the plan has %d events", at, stream, op.Event, p.Events).at(k, stream)
			v.Event = op.Event
			return v
		}
		if op.Kind == plan.Record {
			if dag.NodeID(last[stream]) != op.Node || op.Node < 0 {
				v := newViolation(ErrEvent, "stream %d records event %d after %q, but the launch before it is %s", stream, op.Event, plan.NodeName(g, op.Node),
					lastLaunch(g, dag.NodeID(last[stream])))
				v.Event = op.Event
				return v.node(g, op.Node).at(k, stream)
			}
			recorded[op.Event] = int32(op.Node + 1)
			continue
		}
		if dag.NodeID(recorded[op.Event]) != op.Node+1 || op.Node < 0 {
			return wrongWait(g, p, k, stream, op, recorded[op.Event]-1)
		}
	}
	if len(s.order) < n {
		for i := range s.spots {
			if s.spots[i].pos == 0 {
				return newViolation(plan.ErrOtherGraph, "%q is never launched", plan.NodeName(g, dag.NodeID(i))).node(g, dag.NodeID(i)).fix("plan this graph again")
			}
		}
	}
	if v := checkEventDevices(g, p); v != nil {
		return v
	}
	return checkPlaces(g, p, s)
}

// checkEventDevices checks that each event is recorded on one device: an event belongs to the context it was made in.
func checkEventDevices(g *dag.Graph, p *plan.Plan) (v *Violation) {
	one := true
	for i := range p.Streams {
		one = one && p.Streams[i].Device == p.Streams[0].Device
	}
	if one {
		return nil
	}
	after := make([]int32, p.Events) // a node after which the event is recorded, plus 1
	on := make([]int32, p.Events)
	forEachOp(p, func(at int, stream int32, op *plan.Op) {
		if v != nil || op.Kind != plan.Record {
			return
		}
		device := p.Streams[stream].Device
		if first := after[op.Event] - 1; first >= 0 && on[op.Event] != device {
			v = newViolation(ErrEvent, "event %d is recorded after %q on device %d and after %q on device %d",
				op.Event, plan.NodeName(g, dag.NodeID(first)), on[op.Event], plan.NodeName(g, op.Node), device).node(g, op.Node).at(at, stream).fix("record two events")
			v.Event, v.Before, v.BeforeName = op.Event, dag.NodeID(first), plan.NodeName(g, dag.NodeID(first))
		}
		after[op.Event], on[op.Event] = int32(op.Node+1), device
	})
	return v
}

func lastLaunch(g *dag.Graph, node dag.NodeID) string {
	if node < 0 {
		return "none"
	}
	return fmt.Sprintf("%q", plan.NodeName(g, node))
}

// checkPresent refuses a missing graph or plan.
func checkPresent(g *dag.Graph, p *plan.Plan) *Violation {
	if err := g.Check(); err != nil {
		return newViolation(plan.ErrOtherGraph, "%v", err)
	}
	if p == nil {
		return newViolation(plan.ErrPlanShape, "there is no plan")
	}
	return nil
}

// checkCounts refuses numbers that would make the walk itself unsafe, such as more events than records.
func checkCounts(g *dag.Graph, p *plan.Plan) *Violation {
	if v := checkPresent(g, p); v != nil {
		return v
	}
	ops := int64(0)
	for i := range p.Streams {
		ops += int64(len(p.Streams[i].Ops))
	}
	switch {
	case int64(len(p.Streams))+ops > math.MaxInt32:
		return newViolation(plan.ErrPlanShape, "the plan has %d streams and %d ops; together these must be fewer than 2^31", len(p.Streams), ops)
	case int64(len(p.Order)) != ops:
		return newViolation(plan.ErrPlanShape, "the order has %d entries, the streams have %d ops", len(p.Order), ops)
	}
	records := 0
	for i := range p.Streams {
		for _, op := range p.Streams[i].Ops {
			if op.Kind == plan.Record {
				records++
			}
		}
	}
	switch {
	case p.Events < 0 || int(p.Events) > records:
		return newViolation(plan.ErrPlanShape, "the plan needs %d events, but has only %d records", p.Events, records)
	case p.Stats.Nodes != 0 && p.Stats.Nodes != g.Len():
		return newViolation(plan.ErrOtherGraph, "the plan was made for a graph of %d nodes, this one has %d", p.Stats.Nodes, g.Len())
	}
	return nil
}

// wrongWait tells why a wait does not wait for the node that it names. recorded is the node of the event's latest record, or -1.
func wrongWait(g *dag.Graph, p *plan.Plan, k int, stream int32, op *plan.Op, recorded int32) *Violation {
	if cycle := waitCycle(g, p); cycle != "" {
		v := newViolation(ErrDeadlock, "waits form a cycle: %s", cycle).at(k, stream)
		v.Event = op.Event
		return v.fix("remove one of these waits")
	}
	name := plan.NodeName(g, op.Node)
	var v *Violation
	switch {
	case recorded >= 0:
		v = newViolation(ErrEvent, "stream %d waits on event %d for %q, but its latest record submitted follows %q", stream, op.Event, name,
			plan.NodeName(g, dag.NodeID(recorded))).
			fix("record another event after %q", name)
	case recordSubmitted(p, op):
		v = newViolation(ErrEvent, "stream %d waits on event %d before its record after %q is submitted", stream, op.Event, name).
			fix("submit that record first")
	default:
		v = newViolation(ErrEvent, "stream %d waits on event %d, which is never recorded after %q", stream, op.Event, name).
			fix("record event %d after %q", op.Event, name)
	}
	v.Event, v.Before, v.BeforeName = op.Event, op.Node, name
	return v.at(k, stream)
}

// recordSubmitted reports whether the record that a wait names is submitted at all.
func recordSubmitted(p *plan.Plan, wait *plan.Op) (found bool) {
	forEachOp(p, func(_ int, _ int32, op *plan.Op) {
		found = found || op.Kind == plan.Record && op.Event == wait.Event && op.Node == wait.Node
	})
	return found
}

// forEachOp visits ops in submission order, as far as the order makes sense.
func forEachOp(p *plan.Plan, visit func(at int, stream int32, op *plan.Op)) {
	next := make([]int32, len(p.Streams))
	for k, stream := range p.Order {
		if stream < 0 || int(stream) >= len(next) || int(next[stream]) >= len(p.Streams[stream].Ops) {
			return
		}
		op := &p.Streams[stream].Ops[next[stream]]
		next[stream]++
		visit(k, stream, op)
	}
}

// waitCycle looks for a cycle of streams that wait for each other, where each wait refers to the record that it names, wherever that is. It
// returns the nodes waited for, or "".
func waitCycle(g *dag.Graph, p *plan.Plan) string {
	type recordKey struct {
		event int32
		node  dag.NodeID
	}
	records := map[recordKey][2]int32{}
	for s := range p.Streams {
		for i, op := range p.Streams[s].Ops {
			if op.Kind == plan.Record {
				if _, ok := records[recordKey{op.Event, op.Node}]; !ok {
					records[recordKey{op.Event, op.Node}] = [2]int32{int32(s), int32(i)}
				}
			}
		}
	}
	done := make([]int32, len(p.Streams)) // ops of each stream that can run
	need := func(s int32) (at [2]int32, blocked bool) {
		if int(done[s]) == len(p.Streams[s].Ops) || p.Streams[s].Ops[done[s]].Kind != plan.Wait {
			return at, false
		}
		op := p.Streams[s].Ops[done[s]]
		at, ok := records[recordKey{op.Event, op.Node}]
		return at, ok && at[1] >= done[at[0]]
	}
	waiting := map[[2]int32][]int32{} // streams that are stopped at a wait, by the record they need
	var ready []int32
	for s := range p.Streams {
		ready = append(ready, int32(s))
	}
	for len(ready) > 0 {
		s := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for int(done[s]) < len(p.Streams[s].Ops) {
			at, blocked := need(s)
			if blocked {
				waiting[at] = append(waiting[at], s)
				break
			}
			here := [2]int32{s, done[s]}
			done[s]++
			if woken := waiting[here]; woken != nil {
				ready = append(ready, woken...)
				delete(waiting, here)
			}
		}
	}
	for s := range p.Streams {
		if _, blocked := need(int32(s)); blocked {
			return cycleThrough(g, p, done, need, int32(s))
		}
	}
	return ""
}

// cycleThrough follows blocked streams until the cycle closes, and describes the cycle from its lowest stream.
func cycleThrough(g *dag.Graph, p *plan.Plan, done []int32, need func(int32) ([2]int32, bool), from int32) string {
	seen := make([]bool, len(p.Streams))
	for !seen[from] {
		seen[from] = true
		at, _ := need(from)
		from = at[0]
	}
	lowest := from
	for at, _ := need(from); at[0] != from; at, _ = need(at[0]) {
		lowest = min(lowest, at[0])
	}
	var text strings.Builder
	stream := lowest
	for {
		at, _ := need(stream)
		node := plan.NodeName(g, p.Streams[stream].Ops[done[stream]].Node)
		if stream == lowest {
			fmt.Fprintf(&text, "stream %d waits for %q on stream %d", stream, node, at[0])
		} else {
			fmt.Fprintf(&text, ", which waits for %q on stream %d", node, at[0])
		}
		if stream = at[0]; stream == lowest {
			return text.String()
		}
	}
}

// checkPlaces checks devices, priorities and bound streams.
func checkPlaces(g *dag.Graph, p *plan.Plan, s *schedule) *Violation {
	var bound, streamOf []int32 // by stream: a node bound to it, plus 1; by stream number: a node of it, plus 1
	numbers := map[int32]int32{}
	for i := range g.Nodes {
		node := &g.Nodes[i]
		at := s.spots[i].stream
		stream := &p.Streams[at]
		if stream.Device != node.Device || stream.Priority != node.Priority {
			v := newViolation(ErrWrongStream, "%q runs on device %d with %v priority, but stream %d is on device %d with %v priority",
				plan.NodeName(g, dag.NodeID(i)), node.Device, node.Priority, at, stream.Device, stream.Priority).node(g, dag.NodeID(i))
			v.Stream = at
			return v.fix("launch it on another stream")
		}
		asked := node.Stream.Number()
		if asked < 0 {
			continue
		}
		if bound == nil {
			bound = make([]int32, len(p.Streams))
		}
		number, known := numbers[asked]
		if !known {
			number = int32(len(streamOf))
			numbers[asked] = number
			streamOf = append(streamOf, int32(i)+1)
		}
		first, other := streamOf[number]-1, bound[at]-1
		var v *Violation
		switch {
		case s.spots[first].stream != at:
			v = newViolation(ErrWrongStream, "%q and %q are both bound to stream %d, but run on the plan's streams %d and %d",
				plan.NodeName(g, dag.NodeID(first)), plan.NodeName(g, dag.NodeID(i)), asked, s.spots[first].stream, at).fix("launch both on one stream")
			v.Before, v.BeforeName, v.BeforeStream = dag.NodeID(first), plan.NodeName(g, dag.NodeID(first)), s.spots[first].stream
		case other >= 0 && g.Nodes[other].Stream != node.Stream:
			v = newViolation(ErrWrongStream, "%q is bound to stream %d and %q to stream %d, but both run on the plan's stream %d",
				plan.NodeName(g, dag.NodeID(other)), g.Nodes[other].Stream.Number(), plan.NodeName(g, dag.NodeID(i)), asked, at).fix("launch them on two streams")
			v.Before, v.BeforeName, v.BeforeStream = dag.NodeID(other), plan.NodeName(g, dag.NodeID(other)), at
		}
		if v != nil {
			v.Stream = at
			return v.node(g, dag.NodeID(i))
		}
		bound[at] = int32(i) + 1
	}
	return nil
}
