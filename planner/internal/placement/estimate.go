// What the ways to place nodes and the estimate of how long a placement takes know of a graph: durations, what flows, and which nodes are urgent.

package placement

import (
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// estimator is what follows from a graph and a machine before nodes are placed.
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

	homes []int32 // by buffer
	steps int     // node visits so far
}

func newEstimator(p *Problem, m *model.Machine, times []float64, streams int) *estimator {
	g := p.Graph
	n := g.Len()
	e := &estimator{p: p, m: m, flows: findFlows(p), times: times, shares: shares(g, m), engine: make([]plan.Engine, n), slots: max(1, streams),
		homes: make([]int32, len(g.Buffers)), copyUS: m.CopyUS, rate: m.PeerToPeer}
	if m.Unit {
		e.copyUS, e.rate = 1, math.Inf(1)
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

// sharer is the device whose multiprocessors a device's kernels use: on a machine with cores, all share those of one.
func (e *estimator) sharer(at int32) int32 {
	if e.m.Cores > 0 {
		return 0
	}
	return at
}
