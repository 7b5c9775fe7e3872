// Lower bounds from the work of one engine, and of two engines that nodes use one after the other.

package model

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/shop"
	"github.com/dagrun/dagrun/planner/plan"
)

// Bound holds several lower bounds of the makespan, in microseconds.
type Bound struct {
	CriticalPathUS float64     // the longest chain of dependent nodes
	EngineUS       float64     // the busiest engine's work, plus the least time before and after it
	StreamsUS      float64     // a device's kernels divided by its compute streams, plus the least time before and after them
	HostUS         float64     // the time to submit every node
	Engine         plan.Engine // the busiest engine
	Device         int32       // its device
	PairUS         float64     // two engines that nodes use one after the other, by Johnson's rule
	Before, After  EngineAt    // the two engines
}

// US returns the largest of the bounds.
func (b Bound) US() float64 {
	return max(b.CriticalPathUS, b.EngineUS, b.StreamsUS, b.HostUS, b.PairUS)
}

// EngineAt is an engine of a device. HostCopy belongs to the host and counts as device 0.
type EngineAt struct {
	Engine plan.Engine
	Device int32
}

// String names the work of the engine.
func (e EngineAt) String() string {
	if e.Engine == plan.HostCopy {
		return "the copies on the host"
	}
	what := [...]string{plan.Compute: "kernels of", plan.Upload: "uploads of", plan.Download: "downloads of", plan.PeerCopy: "peer copies of",
		plan.LocalCopy: "copies within"}
	return fmt.Sprintf("the %s device %d", what[e.Engine], e.Device)
}

const (
	// mostBounded limits the size of graphs that get these bounds, and mostAlike that of graphs whose nodes all use one engine: for
	// those, sorting the nodes takes as long as scheduling them.
	mostBounded = 20_000
	mostAlike   = 2_000
)

// boundEngines raises the bound by engines. streams is how many kernels of each device may run at once. If the
// fraction of the device that kernels take is known, there is a second bound from that.
func (b *Bound) boundEngines(g *dag.Graph, m *Machine, durations []float64, preds func(dag.NodeID) []dag.NodeID, ways shop.Ways, streams []int) {
	n := g.Len()
	if n > mostBounded || m.Cores > 0 { // the bound is for engines, not for cores
		return
	}
	w := &shop.Work{US: durations, Machine: make([]int32, n), Start: make([]int32, n+1)}
	var engines []EngineAt
	known := map[EngineAt]int32{}
	shares := false
	for i := range int32(n) {
		e := EngineAt{plan.EngineOf(g, dag.NodeID(i)), max(0, g.Nodes[i].Device)}
		room := 1
		switch {
		case e.Engine == plan.Compute:
			room = streams[e.Device]
			shares = shares || m.Share(&g.Nodes[i]) > 0
		case m.Unit:
			room = n // engines of the unit machine run any number of nodes at once
		case e.Engine == plan.Upload || e.Engine == plan.Download:
			room = max(1, m.CopyEngines)
		case e.Engine == plan.HostCopy:
			e.Device = 0
		}
		k, ok := known[e]
		if !ok {
			k = int32(len(engines))
			known[e] = k
			engines = append(engines, e)
			w.Room = append(w.Room, int32(room))
		}
		w.Machine[i] = k
		for _, q := range preds(dag.NodeID(i)) {
			w.Pred = append(w.Pred, int32(q))
		}
		w.Start[i+1] = int32(len(w.Pred))
	}
	if len(engines) == 1 && n > mostAlike {
		return
	}
	jobs := shop.Jobs(w)
	b.raise(shop.LowerBound(w, ways, jobs), engines)
	if !shares {
		return
	}
	w.US = make([]float64, n)
	for i := range w.US {
		w.US[i] = durations[i]
		if engines[w.Machine[i]].Engine == plan.Compute {
			w.US[i] = float64(durations[i] * m.Share(&g.Nodes[i]))
		}
	}
	for k, e := range engines {
		if e.Engine == plan.Compute {
			w.Room[k] = 1
		}
	}
	b.raise(shop.LowerBound(w, ways, jobs), engines)
}

// raise uses the bound found if it is higher than the current one.
func (b *Bound) raise(found shop.Bound, engines []EngineAt) {
	switch {
	case found.US <= b.US()*(1+rounding):
	case found.Second >= 0:
		b.PairUS, b.Before, b.After = found.US, engines[found.First], engines[found.Second]
	default:
		b.EngineUS = found.US
		b.Engine, b.Device = engines[found.First].Engine, engines[found.First].Device
	}
}

// Note writes the bound into the plan's Stats. A bound that exceeds the makespan only by rounding is lowered to it.
func (b Bound) Note(p *plan.Plan) {
	if p == nil {
		return
	}
	s := &p.Stats
	s.LowerBoundUS, s.LowerBoundBy, s.CriticalPathUS = b.US(), b.By(), b.CriticalPathUS
	if us := s.MakespanUS; s.LowerBoundUS > us && s.LowerBoundUS <= us*(1+rounding) {
		s.LowerBoundUS = us
	}
}

// rounding is the tolerance for sums of the same durations added in different orders, as a fraction.
const rounding = 1e-9

// By describes the largest of the bounds.
func (b Bound) By() string {
	switch us := b.US(); us {
	case 0:
		return ""
	case b.CriticalPathUS:
		return "the critical path"
	case b.EngineUS:
		return EngineAt{b.Engine, b.Device}.String()
	case b.PairUS:
		return fmt.Sprintf("%s, then %s", b.Before, b.After)
	case b.StreamsUS:
		return "the streams for kernels"
	}
	return "the submission by the host"
}
