// The estimate: how long a placement takes, by scheduling its nodes one after the other in the order of what depends on them. It is a
// coarser and much faster model than the simulator, which judges the finalists.

package placement

import (
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// estimator schedules placements.
type estimator struct {
	p      *Problem
	m      *model.Machine
	flows  *flows
	times  []float64
	shares []float64
	engine []plan.Engine
	order  []int32 // nodes, the most urgent first
	slots  int     // kernels that a device runs at once
	copyUS float64
	rate   float64 // bytes per microsecond between devices

	homes   []int32   // by buffer
	finish  []float64 // by node
	arrival []float64 // by datum and device
	stamp   []int32   // of arrival: the run that it belongs to
	run     int32
	joinRun []int32     // by join: the run that its finish is of
	streams [][]float64 // by device: when each slot is free
	work    []float64   // by device: when its work so far is done
	copiers [4][]float64
	in      []float64
	host    float64
	steps   int // node visits so far
}

// The copiers of a device.
const (
	up = iota
	down
	local
	out
)

func newEstimator(p *Problem, m *model.Machine, times []float64, streams int) *estimator {
	g := p.Graph
	n := g.Len()
	e := &estimator{p: p, m: m, flows: findFlows(p), times: times, shares: shares(g, m), engine: make([]plan.Engine, n), slots: max(1, streams),
		homes:  make([]int32, len(g.Buffers)),
		finish: make([]float64, g.Vertices()), work: make([]float64, p.Devices), in: make([]float64, p.Devices), copyUS: m.CopyUS, rate: m.PeerToPeer}
	if m.Unit {
		e.copyUS, e.rate = 1, math.Inf(1)
	}
	e.arrival, e.stamp = make([]float64, len(e.flows.data)*p.Devices), make([]int32, len(e.flows.data)*p.Devices)
	for range p.Devices {
		e.streams = append(e.streams, make([]float64, e.slots))
	}
	e.joinRun = make([]int32, g.Vertices()-n)
	for k := range e.copiers {
		e.copiers[k] = make([]float64, p.Devices)
	}
	for i := range n {
		e.engine[i] = plan.EngineOf(g, dag.NodeID(i))
	}
	e.rank()
	return e
}

// rank orders the nodes by the longest path from each to the end, half of all data being moved on the way.
func (e *estimator) rank() {
	g := e.p.Graph
	n := g.Len()
	ranks := make([]float64, g.Vertices())
	moved := make([]float64, n)
	for i := range n {
		for _, id := range e.flows.reads[e.flows.start[i]:e.flows.start[i+1]] {
			d := &e.flows.data[id]
			moved[i] = max(moved[i], e.copyUS+float64(d.bytes)/e.rate)
		}
	}
	sequence := g.Sequence()
	for k := len(sequence) - 1; k >= 0; k-- {
		i := sequence[k]
		longest := 0.0
		for _, to := range g.Succs(i) {
			length := ranks[to]
			if int(to) < n {
				length += moved[to] / 2
			}
			longest = max(longest, length)
		}
		ranks[i] = longest
		if int(i) < n {
			ranks[i] += e.times[i] + e.m.GapUS
		}
	}
	place := make([]int32, n)
	for k, i := range g.Topological() {
		place[i] = int32(k)
		e.order = append(e.order, int32(i))
	}
	slices.SortStableFunc(e.order, func(a, b int32) int {
		switch {
		case ranks[a] > ranks[b]:
			return -1
		case ranks[a] < ranks[b]:
			return 1
		}
		return int(place[a] - place[b])
	})
}

// begin starts another schedule.
func (e *estimator) begin() {
	e.run++
	clear(e.work)
	clear(e.in)
	for k := range e.copiers {
		clear(e.copiers[k])
	}
	for d := range e.streams {
		clear(e.streams[d])
	}
	e.host = 0
}

// home finds where buffers that need a home have it under a placement.
func (e *estimator) home(at []int32) {
	used := e.flows.used
	if len(used) == 0 {
		return
	}
	bytes := make([]int64, len(e.homes)*e.p.Devices)
	for _, u := range used {
		bytes[int(u.buffer)*e.p.Devices+int(at[u.device])] += u.hi - u.lo
	}
	for b := range e.homes {
		best := int64(0)
		for d, n := range bytes[b*e.p.Devices : (b+1)*e.p.Devices] {
			if n > best {
				best, e.homes[b] = n, int32(d)
			}
		}
	}
}

// each visits the nodes in order, and keeps the times of joins.
func (e *estimator) each(visit func(i int32)) {
	e.steps += len(e.order)
	for _, i := range e.order {
		visit(i)
	}
}

// transfer returns when bytes arrive that are ready at a time on one device and needed on another.
func (e *estimator) transfer(ready float64, from, to int32, bytes int64, commit bool) float64 {
	begin := max(ready, e.copiers[out][from], e.in[to])
	end := begin + e.copyUS + float64(bytes)/e.rate
	if commit {
		e.copiers[out][from], e.in[to] = end, end
		e.host += e.m.LaunchUS
	}
	return end + e.m.SyncUS + e.m.GapUS
}

// place schedules a node on a device and returns when it ends. Without commit nothing is noted.
func (e *estimator) place(i, d int32, at []int32, commit bool) float64 {
	g := e.p.Graph
	ready := 0.0
	for k, from := range g.Preds(dag.NodeID(i)) {
		edge := &g.Edges()[g.PredEdges(dag.NodeID(i))[k]]
		if g.IsJoin(from) || edge.Declared {
			ready = max(ready, e.joined(from))
			continue
		}
		// What is only overwritten elsewhere is another piece of memory there.
		if edge.Why == dag.RAW && !e.p.stays[edge.Buffer] || at[from] != d && !e.p.stays[edge.Buffer] {
			continue
		}
		ready = max(ready, e.finish[from]+e.m.GapUS)
	}
	for _, id := range e.flows.reads[e.flows.start[i]:e.flows.start[i+1]] {
		ready = max(ready, e.arrives(id, d, at, commit))
	}
	begin, us := ready, e.times[i]
	if e.host > begin {
		begin = e.host
	}
	var end float64
	switch kind := e.engine[i]; {
	case kind == plan.Compute:
		end = e.compute(d, begin, us, e.shares[i], commit)
	case e.m.Unit || kind == plan.HostCopy:
		end = begin + us
	default:
		clock := &e.copiers[local][d]
		switch kind {
		case plan.Upload:
			clock = &e.copiers[up][d]
		case plan.Download:
			clock = &e.copiers[down][d]
		case plan.PeerCopy:
			clock = &e.copiers[out][d]
		}
		end = max(begin, *clock) + us
		if commit {
			*clock = end
		}
	}
	if commit {
		e.host += e.m.LaunchUS
		e.finish[i] = end
	}
	return end
}

// joined returns when a node, or all before a join, have finished.
func (e *estimator) joined(i dag.NodeID) float64 {
	if !e.p.Graph.IsJoin(i) {
		return e.finish[i]
	}
	if seen := &e.joinRun[int(i)-len(e.times)]; *seen != e.run {
		*seen = e.run
		end := 0.0
		for _, from := range e.p.Graph.Preds(i) {
			end = max(end, e.joined(from))
		}
		e.finish[i] = end
	}
	return e.finish[i]
}

// arrives returns when a datum is on a device.
func (e *estimator) arrives(id, d int32, at []int32, commit bool) float64 {
	x := &e.flows.data[id]
	ready, from := 0.0, e.flows.from(id, e.homes, at)
	if x.writer >= 0 {
		ready, from = e.finish[x.writer], at[x.writer]
	}
	if from == d {
		return ready + e.m.GapUS
	}
	k := int(id)*e.p.Devices + int(d)
	if e.stamp[k] == e.run {
		return e.arrival[k]
	}
	end := e.transfer(ready, from, d, x.bytes, commit)
	if commit {
		e.stamp[k], e.arrival[k] = e.run, end
	}
	return end
}

// compute runs a kernel that takes a share of its device.
func (e *estimator) compute(d int32, begin, us, share float64, commit bool) float64 {
	slots := e.streams[d]
	free := 0
	for k := range slots {
		if slots[k] < slots[free] {
			free = k
		}
	}
	begin = max(begin, slots[free])
	shared := &e.work[d]
	if e.m.Cores > 0 { // all devices share the cores
		shared = &e.work[0]
	}
	done := max(*shared, begin) + us*share
	end := max(begin+us, done)
	if share == 0 {
		end = begin + us
	}
	if commit {
		slots[free] = end
		if share > 0 {
			*shared = done
		}
	}
	return end
}
