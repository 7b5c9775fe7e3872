// The simulator: predicts when each node of a plan runs on a machine. Use Verify to check that the plan is correct.

package model

import (
	"fmt"
	"math"
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// Simulate predicts one replay of a plan that is submitted op by op to streams. The profile may be nil. The plan must be a
// schedule of g (each node launched once, each wait after its record), else the error names the op. Whether the plan
// enforces the dependencies of g is not checked: see Verify.
//
// A node starts as soon as the host has submitted it, GapUS have passed since the end of the nodes that its stream waits for (plus
// SyncUS for nodes of other streams), and its engine is free. A copy engine makes one copy at a time: the next one of the stream whose
// copy it made last, or else the one that became ready first, which costs CopySwitchUS. While copies run both ways, each runs at
// BothWays of its rate. Copies that share a bus divide its rate, and so do copies from several devices to one. Kernels that run together share the
// multiprocessors in proportion to the blocks they can place, higher priorities first; nodes whose blocks are unknown slow nothing down. The host
// waits until a copy from or to pageable memory, or within host memory, is done.
func Simulate(g *dag.Graph, p *plan.Plan, m *Machine, profile *Profile) (*plan.Timeline, error) {
	return SimulateWith(g, p, m.With(profile), Durations(g, m, profile), false)
}

// SimulateGraph predicts one replay of a plan that runs as a CUDA graph: a node starts GraphNodeUS after what it depends on, and each device issues
// its nodes one at a time. Nothing is submitted node by node, but copies within host memory are made by the host, which launches what comes after
// them in the order of submission only when they are done.
func SimulateGraph(g *dag.Graph, p *plan.Plan, m *Machine, profile *Profile) (*plan.Timeline, error) {
	return SimulateWith(g, p, m.With(profile), Durations(g, m, profile), true)
}

// Predict simulates the plan on streams and fills in its Costs and the times of its Stats. Use it for schedules made by hand or read from a file;
// plans from New have these times already. streams is the argument of LowerBound.
func Predict(g *dag.Graph, p *plan.Plan, m *Machine, profile *Profile, streams int) error {
	durations, m := Durations(g, m, profile), m.With(profile)
	timeline, err := SimulateWith(g, p, m, durations, false)
	if err != nil {
		return err
	}
	p.Costs = CostsOf(g, m, profile, durations)
	p.Stats.MakespanUS = timeline.MakespanUS
	LowerBoundWith(g, m, durations, streams, false).Note(p)
	return nil
}

func SimulateWith(g *dag.Graph, p *plan.Plan, m *Machine, durations []float64, graph bool) (*plan.Timeline, error) {
	m = m.orDefault()
	if err := checkSimulated(g, p, m, durations); err != nil {
		return nil, err
	}
	s := simulations.Get().(*simulation)
	s.g, s.p, s.m, s.graph, s.durations = g, p, m, graph, durations
	t := &plan.Timeline{Machine: m.Name, Graph: graph, Nodes: make([]plan.Span, g.Len())}
	s.timeline = t
	if err := s.index(); err != nil {
		return nil, err
	}
	if m.Unit {
		s.walk()
	} else {
		s.begin()
		s.run()
	}
	for i := range t.Nodes {
		t.MakespanUS = max(t.MakespanUS, t.Nodes[i].End)
	}
	if len(p.Order) <= scratch.MostKept {
		s.g, s.p, s.m, s.durations, s.timeline = nil, nil, nil, nil, nil
		simulations.Put(s)
	}
	return t, nil
}

// simulations keeps the memory of finished simulations: a search simulates hundreds of plans.
var simulations = sync.Pool{New: func() any { return new(simulation) }}

// checkSimulated returns an error for input that the simulator cannot handle.
func checkSimulated(g *dag.Graph, p *plan.Plan, m *Machine, durations []float64) error {
	if p == nil {
		return fmt.Errorf("%w: there is no plan", plan.ErrPlanShape)
	}
	return checkTimes(g, m, durations)
}

// walk simulates a machine on which only nodes take time. One pass is enough, because every record comes before its waits in the
// submission order.
func (s *simulation) walk() {
	s.ready = scratch.Sized(s.ready, len(s.p.Streams))
	ready := s.ready
	for k := range ready {
		ready[k] = moment{by: -1}
	}
	s.recorded = scratch.Sized(s.recorded, int(s.records))
	recorded := s.recorded
	clear(s.cursor)
	cursor := s.cursor
	for _, k := range s.p.Order {
		at := cursor[k]
		cursor[k]++
		op := &s.p.Streams[k].Ops[at]
		switch op.Kind {
		case plan.Launch:
			end := ready[k].us + s.durations[op.Node]
			s.start(int32(op.Node), k, ready[k], ready[k].us)
			s.timeline.Nodes[op.Node].End = end
			ready[k] = moment{end, int32(op.Node), plan.AfterOrder}
		case plan.Record:
			recorded[s.record[s.firstOp[k]+at]] = ready[k]
		case plan.Wait:
			if r := recorded[s.record[s.firstOp[k]+at]]; r.us > ready[k].us {
				ready[k] = moment{r.us, r.by, plan.AfterWait}
			}
		}
	}
}

// begin sets every stream to its first op and lets the host submit as far as it can without waiting.
func (s *simulation) begin() {
	s.gap, s.sync, s.change = s.m.GapUS, s.m.SyncUS, s.m.CopySwitchUS
	if s.graph {
		s.gap, s.sync, s.change = s.m.GraphNodeUS, 0, min(s.m.CopySwitchUS, s.m.GraphSwitchUS)
	}
	s.apart = max(0, s.m.EngineUS-s.gap)
	s.now, s.host, s.events, s.touched, s.starved = 0, host{}, s.events[:0], s.touched[:0], s.starved[:0]
	s.streams = scratch.Sized(s.streams, len(s.p.Streams))
	for k := range s.streams {
		s.streams[k] = streamState{ready: moment{by: -1}, nextWaiter: -1, following: -1, changed: moment{by: -1}}
		if s.apart > 0 {
			s.streams[k].following = s.launchAfter(int32(k), 0)
		}
	}
	s.recorded, s.waiter = scratch.Sized(s.recorded, int(s.records)), scratch.Sized(s.waiter, int(s.records))
	for r := range s.recorded {
		s.recorded[r] = moment{us: math.NaN()}
		s.waiter[r] = -1
	}
	s.copiers = scratch.Sized(s.copiers, int(s.devices)*int(plan.EngineKinds))
	for e := range s.copiers {
		s.copiers[e] = copier{queue: s.copiers[e].queue[:0], lastBy: -1, kept: -1}
	}
	s.sharing = scratch.Sized(s.sharing, int(s.devices))
	for d := range s.sharing {
		s.sharing[d].reset()
	}
	s.limited = s.m.BothWays > 0 && s.m.BothWays < 1
	s.links = s.links[:0]
	if s.limited {
		s.links = scratch.Sized(s.links, int(s.devices))
		for d := range s.links {
			s.links[d] = link{class: class{kernels: s.links[d].kernels[:0]}}
		}
	}
	ends := s.devices // a copy may reach a device that runs nothing
	for k := range s.g.Buffers {
		ends = max(ends, s.g.Buffers[k].Device+1)
	}
	s.traffic.reset(BusesOf(s.m, int(ends)))
	s.ways = scratch.Zeroed(s.ways, 2*int(s.devices))
	s.isTouched = scratch.Zeroed(s.isTouched, len(s.copiers)+len(s.sharing)+len(s.links)+1)
	s.issued = scratch.Sized(s.issued, int(s.devices))
	for d := range s.issued {
		s.issued[d] = moment{by: -1}
	}
	s.begun = scratch.Zeroed(s.begun, s.g.Len())
	s.host.blocked, s.host.after = -1, -1
	s.submits = !s.graph || s.hosted()
	if s.submits {
		s.submitted = scratch.Sized(s.submitted, len(s.p.Order))
		for op := range s.submitted {
			s.submitted[op] = moment{us: math.NaN()}
		}
		clear(s.cursor)
		if !s.graph {
			s.timeline.Host = make([]plan.HostSpan, 0, len(s.p.Order))
		}
		s.submit()
	}
	for k := range s.streams {
		s.advance(int32(k))
	}
}

// launchAfter returns the node that a stream launches first from op number at on, -1 for none.
func (s *simulation) launchAfter(k, at int32) int32 {
	for _, op := range s.p.Streams[k].Ops[at:] {
		if op.Kind == plan.Launch {
			return int32(op.Node)
		}
	}
	return -1
}

// follow notes that the next launch of a stream has to wait for a node, and longer if that ran on another engine.
func (s *simulation) follow(stream *streamState, at moment) {
	if s.apart == 0 || at.by < 0 || stream.following < 0 || !changesEngine(s.timeline.Nodes[at.by].Engine, s.engines[stream.following]) {
		return
	}
	if at.us += s.apart; at.us > stream.changed.us {
		if at.cause == plan.AfterOrder && stream.ready.by != at.by {
			at.cause = plan.AfterWait
		}
		stream.changed = at
	}
}

// Waits in graphs, fitted to stencils, wavefronts, trees and factorisations on two to ten streams of an H200.
const (
	emptyWait     = 0.15 // a wait for an empty kernel, as a part of a wait for another
	waitsTogether = 0.8  // several waits of one node take as long as this power of their number
	waitsInTurn   = 0.5  // the part of them in which the device starts no other node
)

// waitsAs returns what a wait for a node takes in a graph, as a part of GraphEdgeUS: an empty kernel has no results that others must see.
func waitsAs(node *dag.Node) float64 {
	switch {
	case node.Copy != nil:
		return 0
	case node.Work.Bytes == 0:
		return emptyWait
	}
	return 1
}

// advance executes the records and waits of a stream up to its next launch, and schedules the launch for when it may start.
func (s *simulation) advance(k int32) {
	stream := &s.streams[k]
	ops := s.p.Streams[k].Ops
	for int(stream.next) < len(ops) {
		number := s.firstOp[k] + stream.next
		if ops[stream.next].Kind == plan.Launch && stream.changed.us > stream.ready.us {
			stream.ready = stream.changed
		}
		if s.submits {
			submitted := s.submitted[number]
			if math.IsNaN(submitted.us) {
				s.starved = append(s.starved, k)
				return
			}
			if submitted.us > stream.ready.us {
				stream.ready = submitted
			}
		}
		switch op := &ops[stream.next]; op.Kind {
		case plan.Launch:
			s.events.Push(event{us: max(s.now, stream.ready.us), node: int32(op.Node), stream: k, kind: launchReady})
			return
		case plan.Record:
			r := s.record[number]
			s.recorded[r] = stream.ready
			for w := s.waiter[r]; w >= 0; {
				s.events.Push(event{us: s.now, node: -1, stream: w, kind: streamWoken})
				w, s.streams[w].nextWaiter = s.streams[w].nextWaiter, -1
			}
		case plan.Wait:
			r := s.record[number]
			at := s.recorded[r]
			if math.IsNaN(at.us) {
				stream.nextWaiter, s.waiter[r] = s.waiter[r], k
				return
			}
			if at.by >= 0 {
				stream.waits += waitsAs(&s.g.Nodes[at.by])
			}
			at.us += s.sync
			s.follow(stream, at)
			if at.us > stream.ready.us {
				if at.cause == plan.AfterOrder {
					at.cause = plan.AfterWait
				}
				stream.ready = at
			}
		}
		stream.next++
	}
}

// run processes events in order of time until none is left. Then every node is done: as every record comes before its waits in the
// submission order, the first op that is not done can always run.
func (s *simulation) run() {
	for len(s.events) > 0 {
		s.now = s.events[0].us
		// All events of the same time are processed before any engine picks its next node, so that ties do not depend on their order.
		for len(s.events) > 0 && s.events[0].us == s.now {
			switch e := s.events.Pop(); e.kind {
			case copyDone:
				s.endCopy(e.node, e.stream)
			case copyBegun:
				s.beginCopy(e.node, e.stream)
			case linkDone:
				l := &s.links[e.node]
				if l.version != e.stream {
					continue
				}
				for l.when() <= s.now {
					r := l.kernels.Pop()
					*l.way(s.timeline.Nodes[r.node].Engine)--
					s.endCopy(r.node, r.stream)
				}
				s.touch(s.linkOf(e.node))
			case trafficDone:
				if s.traffic.version == e.stream {
					s.endTransits()
				}
			case nodeDone:
				s.finish(e.node, e.stream)
			case sharedDone:
				d := e.node
				if s.sharing[d].version != e.stream {
					continue
				}
				for r, ok := s.sharing[d].take(s.now); ok; r, ok = s.sharing[d].take(s.now) {
					s.finish(r.node, r.stream)
				}
				s.touch(int32(len(s.copiers)) + d)
			case streamWoken:
				s.advance(e.stream)
			case launchReady:
				if s.graph {
					s.issue(e)
				} else {
					s.enter(e.node, e.stream)
				}
			case launchIssued:
				s.enter(e.node, e.stream)
			}
		}
		for k := 0; k < len(s.touched); k++ { // copy may append links to touched
			c := s.touched[k]
			s.isTouched[c] = false
			switch d := c - int32(len(s.copiers)); {
			case c == s.trafficMark():
				s.paceTraffic()
			case d < 0:
				s.copy(c)
			case d < s.devices:
				s.divide(d)
			default:
				s.pace(d - s.devices)
			}
		}
		s.touched = s.touched[:0]
	}
}

// issue passes a node of a graph through the front end of the device, which handles one at a time.
func (s *simulation) issue(e event) {
	d := s.g.Nodes[e.node].Device
	front := &s.issued[d]
	at := e.us
	if front.us > at {
		at = front.us
		s.streams[e.stream].ready = moment{at, front.by, plan.AfterIssue}
	}
	waited := 0.0
	if waits := s.streams[e.stream].waits; waits > 0 {
		waited = math.Pow(waits, waitsTogether) * s.m.GraphEdgeUS
	}
	s.timeline.Nodes[e.node].By = dag.NodeID(s.streams[e.stream].ready.by) // known before it enters its engine, for what is issued after it
	*front = moment{us: at + float64(waited*waitsInTurn) + s.m.GraphIssueUS, by: e.node}
	at += waited
	s.events.Push(event{us: at, node: e.node, stream: e.stream, kind: launchIssued})
}

// enter passes a node that may start to its engine.
func (s *simulation) enter(node, stream int32) {
	ready := s.streams[stream].ready
	if ready.cause == plan.AfterIssue {
		ready.by = s.began(ready.by)
	}
	s.start(node, stream, ready, s.now)
	n := &s.g.Nodes[node]
	if s.timeline.Nodes[node].Engine != plan.Compute && s.m.Cores == 0 {
		c := s.copierOf(dag.NodeID(node))
		q := queued{s.now, s.position[node], node, stream}
		if engine := &s.copiers[c]; engine.kept == node {
			engine.next, engine.here = q, true
		} else {
			engine.queue.Push(q)
		}
		s.touch(c)
		return
	}
	s.begun[node] = true
	share, device := s.m.shareOf(n, s.durations[node]), n.Device
	if s.m.Cores > 0 {
		device = 0 // all devices share the cores
	}
	if share == 0 {
		s.events.Push(event{us: s.now + s.durations[node], node: node, stream: stream, kind: nodeDone})
		return
	}
	s.sharing[device].add(s.now, s.p.Streams[stream].Priority, running{
		virtual: s.durations[node], position: s.position[node], node: node, stream: stream, share: share})
	s.touch(int32(len(s.copiers)) + device)
}

// began returns the node that was issued, or while that waits for its engine, what it was issued after or had to wait for. Its engine may
// take it after the node that is issued next, and of two nodes only one can be the cause of the other.
func (s *simulation) began(node int32) int32 {
	for node >= 0 && !s.begun[node] {
		node = int32(s.timeline.Nodes[node].By)
	}
	return node
}

// copy starts copies on a copy engine while it is free.
func (s *simulation) copy(c int32) {
	engine, kind := &s.copiers[c], plan.Engine(c%int32(plan.EngineKinds))
	room, change := 1, 0.0
	if kind == plan.Upload || kind == plan.Download {
		room, change = s.m.CopyEngines, s.change
	}
	for engine.active < room && (engine.here || engine.kept < 0 && len(engine.queue) > 0) {
		q := engine.next
		if engine.here {
			engine.kept, engine.here = -1, false
		} else {
			q = engine.queue.Pop()
		}
		engine.active++
		s.begun[q.node] = true
		if q.us == s.now {
			s.beginCopy(q.node, q.stream)
			continue
		}
		// The engine has to switch from the stream of the copy that this one waited for.
		begins := s.now + change
		s.start(q.node, q.stream, moment{q.us, engine.lastBy, plan.AfterQueue}, begins)
		s.events.Push(event{us: begins, node: q.node, stream: q.stream, kind: copyBegun})
	}
}

// beginCopy starts a copy on its engine.
func (s *simulation) beginCopy(node, stream int32) {
	if s.beginTransit(node, stream) {
		return
	}
	span := &s.timeline.Nodes[node]
	if !s.limited || span.Engine != plan.Upload && span.Engine != plan.Download {
		s.events.Push(event{us: s.now + s.durations[node], node: node, stream: stream, kind: copyDone})
		return
	}
	s.links[span.Device].start(s.now, span.Engine, running{virtual: s.durations[node], position: s.position[node], node: node, stream: stream})
	s.touch(s.linkOf(span.Device))
}

// endCopy ends a copy and frees its engine.
func (s *simulation) endCopy(node, stream int32) {
	c := s.copierOf(dag.NodeID(node))
	s.copiers[c].active--
	s.copiers[c].lastBy = node
	s.touch(c)
	s.finish(node, stream)
	s.copiers[c].kept = s.follower(c, stream)
}

// follower returns the next copy of a stream for the same engine if it waits only for the copy that ended, else -1. An engine
// prefers it to copies of other streams, however long they have waited: on an H200, of 16 copies spread over two streams, the eight of
// one stream were made first.
func (s *simulation) follower(c, stream int32) int32 {
	if s.m.CopyEngines > 1 {
		return -1
	}
	state := &s.streams[stream]
	if int(state.next) >= len(s.p.Streams[stream].Ops) || state.ready.cause != plan.AfterOrder {
		return -1
	}
	op := &s.p.Streams[stream].Ops[state.next]
	if op.Kind != plan.Launch || s.submits && math.IsNaN(s.submitted[s.firstOp[stream]+state.next].us) {
		return -1
	}
	if e := s.engines[op.Node]; e == plan.Compute || CopierOf(e, s.g.Nodes[op.Node].Device) != c {
		return -1
	}
	return int32(op.Node)
}

// pace updates the speed of a link and schedules the next end of a copy.
func (s *simulation) pace(d int32) {
	l := &s.links[d]
	if next := l.pace(s.now, s.m.BothWays); !math.IsInf(next, 1) {
		s.events.Push(event{us: max(next, s.now), node: d, stream: l.version, kind: linkDone})
	}
}

// divide updates how kernels share the multiprocessors of a device, and schedules the next end of a kernel.
func (s *simulation) divide(d int32) {
	sharing := &s.sharing[d]
	if next := sharing.divide(s.now); !math.IsInf(next, 1) {
		s.events.Push(event{us: max(next, s.now), node: d, stream: sharing.version, kind: sharedDone})
	}
}

// copierOf returns the copy engine of a node on the timeline. The host has one for all devices.
func (s *simulation) copierOf(node dag.NodeID) int32 {
	span := &s.timeline.Nodes[node]
	return CopierOf(span.Engine, span.Device)
}

func CopierOf(e plan.Engine, device int32) int32 {
	if e == plan.HostCopy {
		return int32(plan.HostCopy)
	}
	return device*int32(plan.EngineKinds) + int32(e)
}

// finish ends a node now and resumes its stream, and the host if it waited for the node.
func (s *simulation) finish(node, stream int32) {
	s.timeline.Nodes[node].End = s.now
	state := &s.streams[stream]
	state.ready = moment{s.now + s.gap, node, plan.AfterOrder}
	if !s.graph && s.idle[node] {
		state.ready.us = s.now
	}
	state.waits = 0
	state.next++
	if s.apart > 0 {
		state.following, state.changed = s.launchAfter(stream, state.next), moment{by: -1}
		s.follow(state, state.ready)
	}
	s.advance(stream)
	if s.host.blocked != node {
		return
	}
	s.host.blocked, s.host.after = -1, node
	s.host.free = max(s.host.free, s.now)
	s.submit()
	s.starved, s.resumed = s.resumed[:0], s.starved
	for _, k := range s.resumed {
		s.advance(k)
	}
}

// beginTransit starts a copy that shares buses. It returns false for copies that share nothing.
func (s *simulation) beginTransit(node, stream int32) bool {
	span := &s.timeline.Nodes[node]
	if len(s.traffic.buses.Rates()) == 0 || s.g.Nodes[node].Copy == nil {
		return false
	}
	host := span.Engine == plan.Upload || span.Engine == plan.Download
	if !host && span.Engine != plan.PeerCopy {
		return false
	}
	from, to := ends(s.g, dag.NodeID(node))
	uses := s.traffic.buses.Between(from, to, nil)
	if len(uses) == 0 && !(host && len(s.m.Buses) > 0) {
		return false
	}
	if host {
		*s.way(span)++
	}
	s.traffic.start(s.now, s.durations[node], s.m.rateOf(span.Engine), node, stream, s.position[node], uses)
	s.touch(s.trafficMark())
	return true
}

// way counts the copies of a device from or to the host.
func (s *simulation) way(span *plan.Span) *int32 {
	return &s.ways[2*span.Device+int32(span.Engine-plan.Upload)]
}

// endTransits ends the copies whose time has come.
func (s *simulation) endTransits() {
	for c, ok := s.traffic.take(s.now); ok; c, ok = s.traffic.take(s.now) {
		if span := &s.timeline.Nodes[c.node]; span.Engine != plan.PeerCopy {
			*s.way(span)--
		}
		s.endCopy(c.node, c.stream)
	}
	s.touch(s.trafficMark())
}

// paceTraffic updates the speeds of all copies on buses and schedules the next end of one.
func (s *simulation) paceTraffic() {
	next := s.traffic.pace(s.now, func(node int32) float64 {
		span := &s.timeline.Nodes[node]
		if span.Engine != plan.PeerCopy && s.m.BothWays > 0 && s.ways[2*span.Device] > 0 && s.ways[2*span.Device+1] > 0 {
			return s.m.BothWays
		}
		return 1
	})
	if !math.IsInf(next, 1) {
		s.events.Push(event{us: max(next, s.now), stream: s.traffic.version, kind: trafficDone})
	}
}
