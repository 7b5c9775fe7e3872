// Policies: simple rules that place nodes. They are there to compare with, and the search starts from them.

package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/sets"
)

// The policies.
const (
	Auto        = "auto"        // the best of all of these and of a search
	Heft        = "heft"        // each node, the most urgent first, where it ends first
	MinTransfer = "mintransfer" // each node where the fewest bytes have to be moved to
	RoundRobin  = "roundrobin"  // one device after the other
	Owner       = "owner"       // each node where what it writes belongs; ranges of buffers are dealt out in turn
	Chains      = "chains"      // parts that have nothing to do with each other, the longest first, where there is the least work
	One         = "one"         // the first device
)

// policies makes placements.
var policies = map[string]func(*estimator) []int32{Heft: heft, MinTransfer: minTransfer, RoundRobin: roundRobin, Owner: owner, Chains: chains, One: one}

// Names lists what a user can ask for.
func Names() []string { return []string{Auto, Heft, MinTransfer, RoundRobin, Owner, Chains, One} }

// start is a placement with the fixed nodes only; the others are on device 0.
func (e *estimator) start() []int32 {
	at := slices.Clone(e.p.unit)
	for i := range at {
		at[i] = max(at[i], 0)
	}
	return at
}

// free reports whether a node is for a policy to place: it is not fixed, and does not follow another one.
func (e *estimator) free(i int32) bool { return e.p.unit[i] == Free && e.flows.lead[i] < 0 }

func one(e *estimator) []int32 { return e.start() }

func roundRobin(e *estimator) []int32 {
	at := e.start()
	next := 0
	for i := range at {
		if e.free(int32(i)) {
			at[i] = int32(next % e.p.Devices)
			next++
		}
	}
	e.flows.settle(at)
	return at
}

// minTransfer counts the bytes that each device lacks. Among equals the device with the least work so far is taken.
func minTransfer(e *estimator) []int32 {
	at := e.start()
	there := make([]bool, len(e.flows.data)*e.p.Devices)
	load, lacks := make([]float64, e.p.Devices), make([]int64, e.p.Devices)
	for _, n := range e.p.Graph.Topological() {
		i := int32(n)
		reads := e.flows.reads[e.flows.start[i]:e.flows.start[i+1]]
		if e.free(i) {
			clear(lacks)
			for _, id := range reads {
				x := &e.flows.data[id]
				for d := range e.p.Devices {
					if x.writer >= 0 && !there[int(id)*e.p.Devices+d] && at[x.writer] != int32(d) && !e.movable(x.writer) {
						lacks[d] += x.bytes
					}
				}
			}
			best := 0
			for d := range e.p.Devices {
				if lacks[d] < lacks[best] || lacks[d] == lacks[best] && load[d] < load[best] {
					best = d
				}
			}
			at[i] = int32(best)
			load[best] += e.times[i]
		} else if l := e.flows.lead[i]; l >= 0 && l < i {
			at[i] = at[l]
		}
		for _, id := range reads {
			there[int(id)*e.p.Devices+int(at[i])] = true
		}
	}
	e.flows.settle(at)
	return at
}

// movable reports whether a node takes the device of one that reads what it writes.
func (e *estimator) movable(i int32) bool { return e.flows.lead[i] > i }

// heft counts what the data that a node reads takes to arrive, and the kernels that a device has to run before it.
func heft(e *estimator) []int32 {
	at := e.start()
	e.home(at)
	devices := e.p.Devices
	finish, busy := make([]float64, len(e.times)), make([]float64, devices)
	sends, receives := make([]float64, devices), make([]float64, devices) // until when a device does
	arrival := make([]float64, len(e.flows.data)*devices)                 // by datum and device; 0: no node there has read it
	begin := func(i, d int32, placed bool) float64 {
		ready := 0.0
		for _, id := range e.flows.reads[e.flows.start[i]:e.flows.start[i+1]] {
			x := &e.flows.data[id]
			us, from := 0.0, e.flows.from(id, e.homes, at)
			if x.writer >= 0 {
				us, from = finish[x.writer], at[x.writer]
			}
			if from != d {
				arrives := arrival[int(id)*devices+int(d)]
				if arrives == 0 {
					arrives = max(us, sends[from], receives[d]) + e.copyUS + float64(x.bytes)/e.rate
				}
				if us = arrives + e.m.SyncUS; placed {
					sends[from], receives[d], arrival[int(id)*devices+int(d)] = max(sends[from], arrives), max(receives[d], arrives), arrives
				}
			}
			ready = max(ready, us+e.m.GapUS)
		}
		if e.shares[i] > 0 {
			ready = max(ready, busy[e.sharer(d)])
		}
		return ready
	}
	for _, i := range e.order {
		if l := e.flows.lead[i]; e.p.unit[i] == Free && l >= 0 && l < i {
			at[i] = at[l]
		} else if e.p.unit[i] == Free {
			earliest := math.Inf(1)
			for d := range int32(devices) {
				if us := begin(i, d, false); us < earliest {
					at[i], earliest = d, us
				}
			}
		}
		us := begin(i, at[i], true)
		finish[i] = us + e.times[i]
		if e.shares[i] > 0 {
			busy[e.sharer(at[i])] = us + e.times[i]*e.shares[i]
		}
	}
	e.flows.settle(at)
	return at
}

// owner deals out the ranges that nodes write.
func owner(e *estimator) []int32 {
	at := e.start()
	g := e.p.Graph
	type tile struct {
		buffer dag.BufferID
		lo     int64
	}
	tiles := map[tile]int32{}
	for i := range at {
		if !e.free(int32(i)) {
			continue
		}
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if a.Mode&dag.Write == 0 || e.p.stays[a.Buffer] || g.Buffers[a.Buffer].Scratch {
				continue
			}
			d, known := tiles[tile{a.Buffer, a.Lo}]
			if !known {
				d = int32(len(tiles) % e.p.Devices)
				tiles[tile{a.Buffer, a.Lo}] = d
			}
			at[i] = d
			break
		}
	}
	e.flows.settle(at)
	return at
}

// chains finds the parts of the graph that no data connects.
func chains(e *estimator) []int32 {
	n := len(e.times)
	connected := sets.New(n)
	for i := range int32(n) {
		for _, id := range e.flows.reads[e.flows.start[i]:e.flows.start[i+1]] {
			if w := e.flows.data[id].writer; w >= 0 {
				connected.Join(w, i)
			}
		}
	}
	work, fixed := make([]float64, n), slices.Repeat([]int32{Free}, n)
	var parts []int32
	for i := range int32(n) {
		root := connected.Least(i)
		if root == i {
			parts = append(parts, i)
		}
		work[root] += e.times[i]
		if e.p.unit[i] != Free {
			fixed[root] = e.p.unit[i]
		}
	}
	slices.SortStableFunc(parts, func(a, b int32) int { return cmp.Compare(work[b], work[a]) })
	load, device := make([]float64, e.p.Devices), make([]int32, n)
	for _, root := range parts {
		best := fixed[root]
		if best == Free {
			best = 0
			for d := range load {
				if load[d] < load[best] {
					best = int32(d)
				}
			}
		}
		device[root] = best
		load[best] += work[root]
	}
	at := e.start()
	for i := range at {
		if e.p.unit[i] == Free {
			at[i] = device[connected.Least(int32(i))]
		}
	}
	e.flows.settle(at)
	return at
}
