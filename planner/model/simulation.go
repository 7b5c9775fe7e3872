// What a simulation keeps, and which plans can be simulated.

package model

import (
	"fmt"
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// simulation is one run of the simulator. Ops are numbered stream by stream. Records also have numbers of their own, in submission
// order.
type simulation struct {
	g         *dag.Graph
	p         *plan.Plan
	m         *Machine
	graph     bool
	durations []float64
	timeline  *plan.Timeline

	firstOp  []int32 // of each stream, in the numbering of all ops
	record   []int32 // of each op: a record's own number, a wait's record
	position []int32 // of each node among the launches, in submission order
	launched []bool  // by node
	engines  []plan.Engine
	idle     []bool  // by node: nothing is submitted for it
	latest   []int32 // by event: its latest record
	cursor   []int32 // by stream: its next op in submission order
	records  int32
	devices  int32 // 1 + the highest device number

	ready []moment // by stream: when its next launch may start, on a machine on which only nodes take time

	submits bool // the host submits nodes, or parts of a graph, in turn

	// The fields below are used only on machines where engines, waits or the host take time.
	gap, sync float64
	apart     float64 // what a change of engines adds to the gap
	change    float64 // what a copy engine takes to change to another stream
	streams   []streamState
	recorded  []moment // by record; its time is NaN until the record is reached
	waiter    []int32  // by record: the first stream that waits for it, -1 for none
	copiers   []copier // by device and engine
	limited   bool     // copies both ways slow each other
	links     []link   // by device, if limited
	traffic   traffic  // copies that share buses
	ways      []int32  // by device: copies up and down among the traffic
	sharing   []sharing
	issued    []moment // by device: when it can issue the next node, and which it issued last
	begun     []bool   // by node: its engine has it, so that its cause will not change
	events    scratch.Heap[event]
	touched   []int32 // what must be updated before time advances: copiers, then devices for their multiprocessors, then devices for their links
	isTouched []bool
	now       float64

	host      host
	submitted []moment // by op: when, and which copy the host had waited for last; the time is NaN until the host gets there
	starved   []int32  // streams whose next op is not submitted yet
	resumed   []int32  // streams that starved until the host went on
}

// moment is a time and its cause.
type moment struct {
	us    float64
	by    int32
	cause plan.Cause
}

type streamState struct {
	ready      moment  // when the next launch may start according to its stream and waits
	next       int32   // index of its current op
	nextWaiter int32   // next stream that waits for the same record
	waits      float64 // before the next launch, as parts of GraphEdgeUS
	following  int32   // the node of the next launch, -1 for none; only known where a change of engines takes time
	changed    moment  // when the next launch may start because of nodes on other engines
}

// host is the progress of the host through the submission order.
type host struct {
	at      int     // index into Order
	free    float64 // when it can submit the next op
	blocked int32   // the pageable copy that it waits for, -1 for none
	after   int32   // the pageable copy that it waited for last, -1 for none
}

const maxSimulatedDevices = 1 << 12

// index checks that the plan is a schedule and finds each wait's record: the one of its event that was submitted last.
func (s *simulation) index() error {
	p, n := s.p, s.g.Len()
	total := 0
	s.firstOp = scratch.Sized(s.firstOp, len(p.Streams)+1)
	for k := range p.Streams {
		s.firstOp[k] = int32(total)
		if total += len(p.Streams[k].Ops); total > math.MaxInt32 {
			return fmt.Errorf("%w: more than %d ops", plan.ErrPlanShape, math.MaxInt32)
		}
	}
	s.firstOp[len(p.Streams)] = int32(total)
	if total != len(p.Order) {
		return fmt.Errorf("%w: the submission order has %d ops, the streams have %d", plan.ErrPlanShape, len(p.Order), total)
	}
	if p.Events < 0 || int(p.Events) > total {
		return fmt.Errorf("%w: %d events for %d ops", plan.ErrPlanShape, p.Events, total)
	}
	s.record, s.position = scratch.Sized(s.record, total), scratch.Sized(s.position, n)
	s.records, s.devices = 0, 0
	s.latest = scratch.Sized(s.latest, int(p.Events))
	latest := s.latest
	for e := range latest {
		latest[e] = -1
	}
	s.engines, s.idle = scratch.Sized(s.engines, n), scratch.Sized(s.idle, n)
	for i := range s.g.Nodes {
		s.engines[i], s.idle[i] = plan.EngineOf(s.g, dag.NodeID(i)), s.m.idle(s.g, &s.g.Nodes[i])
		d := s.g.Nodes[i].Device
		if d < 0 || d >= maxSimulatedDevices {
			return fmt.Errorf("node %q: device %d: the simulator takes devices 0 to %d", s.g.Nodes[i].Name, d, maxSimulatedDevices-1)
		}
		s.devices = max(s.devices, d+1)
	}
	s.cursor, s.launched = scratch.Zeroed(s.cursor, len(p.Streams)), scratch.Zeroed(s.launched, n)
	cursor, launched := s.cursor, s.launched
	launches := 0
	for _, k := range p.Order {
		if k < 0 || int(k) >= len(p.Streams) || int(cursor[k]) >= len(p.Streams[k].Ops) {
			return fmt.Errorf("%w: the submission order has more ops of stream %d than the stream has", plan.ErrPlanShape, k)
		}
		at := cursor[k]
		op := &p.Streams[k].Ops[at]
		cursor[k]++
		switch op.Kind {
		case plan.Launch:
			if op.Node < 0 || int(op.Node) >= n {
				return fmt.Errorf("%w: stream %d, op %d launches node %d, but the graph has %d nodes", plan.ErrPlanShape, k, at, op.Node, n)
			}
			if launched[op.Node] {
				return fmt.Errorf("%w: stream %d, op %d launches %q, which was launched before", plan.ErrPlanShape, k, at, s.g.Nodes[op.Node].Name)
			}
			launched[op.Node] = true
			s.position[op.Node] = int32(launches)
			launches++
		case plan.Record, plan.Wait:
			if op.Event < 0 || op.Event >= p.Events {
				return fmt.Errorf("%w: stream %d, op %d uses event %d, but the plan has %d events", plan.ErrPlanShape, k, at, op.Event, p.Events)
			}
			if op.Kind == plan.Record {
				latest[op.Event] = s.records
				s.records++
			} else if latest[op.Event] < 0 {
				return fmt.Errorf("%w: stream %d, op %d waits for event %d before it is recorded", plan.ErrPlanShape, k, at, op.Event)
			}
			s.record[s.firstOp[k]+at] = latest[op.Event]
		default:
			return fmt.Errorf("%w: stream %d, op %d is of kind %d", plan.ErrPlanShape, k, at, op.Kind)
		}
	}
	if launches != n {
		for i := range launched {
			if !launched[i] {
				return fmt.Errorf("%w: %q is never launched (only %d of %d nodes are)", plan.ErrPlanShape, s.g.Nodes[i].Name, launches, n)
			}
		}
	}
	return nil
}

// start puts a node on the timeline with the time when it was ready and the time when it starts.
func (s *simulation) start(node, stream int32, ready moment, now float64) {
	s.timeline.Nodes[node] = plan.Span{
		Start: now, End: now, Alone: s.durations[node], Stream: stream, Device: s.g.Nodes[node].Device,
		By: dag.NodeID(ready.by), Engine: s.engines[node], Cause: ready.cause,
	}
}

// linkOf returns the index of the link of a device in touched.
func (s *simulation) linkOf(d int32) int32 { return int32(len(s.copiers)) + s.devices + d }

// touch marks a copier, the multiprocessors of a device or its link to be updated before time advances.
func (s *simulation) touch(c int32) {
	mark := &s.isTouched[c]
	if !*mark {
		*mark = true
		s.touched = append(s.touched, c)
	}
}

// trafficMark is the index of the traffic in touched.
func (s *simulation) trafficMark() int32 { return int32(len(s.isTouched)) - 1 }
