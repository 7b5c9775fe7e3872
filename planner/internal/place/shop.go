// The search for a short schedule: nodes are the operations of a shop (job-shop scheduling), whose machines are copy engines and streams.

package place

import (
	"github.com/dagrun/dagrun/planner/internal/shop"
	"github.com/dagrun/dagrun/planner/plan"
)

// CanSearch reports whether Shop takes a problem: not if users chose streams or declared the order themselves, nor if
// dependencies go through joins.
func CanSearch(p *Problem) bool {
	return p.len() > 1 && p.bound == nil && !p.explicit && !p.inOrder && !p.joined()
}

// Shop searches for a schedule of small makespan, starting from orders of all nodes. Copies of one engine share a stream, so that the
// engine makes them in the order of the schedule. enough is a makespan that cannot be beaten; steps bounds how many nodes are placed.
func Shop(p *Problem, seeds [][]int32, enough float64, steps int) (*Assignment, error) {
	w, kinds := p.work()
	s, err := shop.Best(p.ctx, w, seeds, enough, steps)
	if err != nil {
		return nil, err
	}
	a := &Assignment{stream: make([]int32, p.len()), order: s.Order, score: score{makespan: s.Makespan}}
	type home struct{ pool, machine, stream int32 }
	homes := map[home]int32{}
	for _, i := range s.Order {
		at := home{p.poolOf(i), w.Machine[i], s.Lane[i]}
		k, ok := homes[at]
		if !ok {
			k = int32(len(a.streams))
			homes[at] = k
			a.streams = append(a.streams, draftStream{pool: at.pool, binding: -1, computes: kinds[at.machine] == plan.Compute})
		}
		a.stream[i] = k
	}
	return a, nil
}

// work states the problem as a shop problem, and returns what kind of engine each machine is. The kernels of one device and priority share
// a machine that runs as many at once as there are streams.
func (p *Problem) work() (*shop.Work, []plan.Engine) {
	n := p.len()
	w := &shop.Work{US: make([]float64, n), Machine: make([]int32, n), Start: p.predStart, Pred: p.pred, Lag: p.sync()}
	gap := 0.0
	if !p.machine.Unit {
		gap, w.Issue = p.machine.GapUS, p.machine.LaunchUS
	}
	type engine struct {
		kind   plan.Engine
		device int32 // of a copy engine
		pool   int32 // of streams
	}
	machines := map[engine]int32{}
	var kinds []plan.Engine
	for i := range int32(n) {
		e := engine{kind: p.engineOf(i)}
		room := max(1, p.machine.CopyEngines)
		switch e.kind {
		case plan.Compute:
			e.pool = p.poolOf(i)
			room = p.evenShare(int(e.pool))
		case plan.HostCopy:
			room = 1
		case plan.Upload, plan.Download:
			e.device = p.pools[p.poolOf(i)].device
		default:
			e.device = p.pools[p.poolOf(i)].device
			room = 1
		}
		if p.machine.Unit && e.kind != plan.Compute {
			room = p.streams // copies need no engine, only a stream
		}
		m, ok := machines[e]
		if !ok {
			m = int32(len(kinds))
			machines[e] = m
			kinds = append(kinds, e.kind)
			w.Room = append(w.Room, int32(room))
		}
		w.Machine[i] = m
		w.US[i] = p.duration[i] + gap
	}
	return w, kinds
}

// Crowd returns how many average kernels fill the device: at most as many as there are streams, and 0 if the blocks of no kernel are
// known.
func Crowd(p *Problem) int {
	work, filled := 0.0, 0.0
	for i := range p.g.Nodes {
		if share := p.machine.Share(&p.g.Nodes[i]); share > 0 {
			work += p.duration[i]
			filled += float64(p.duration[i] * share)
		}
	}
	if filled == 0 {
		return 0
	}
	return max(1, min(p.streams, int(work/filled)))
}

// Order is the order of submission. It is read only.
func (s *Assignment) Order() []int32 { return s.order }

// FromPlan returns the streams and the order of a plan as an assignment. It returns nil if the plan submits a node before one that it
// depends on, or if dependencies go through joins: such graphs are too large to be searched.
func FromPlan(p *Problem, made *plan.Plan) *Assignment {
	if p.joined() {
		return nil
	}
	a := &Assignment{stream: make([]int32, p.len()), order: nodeOrder(made)}
	submitted := make([]bool, p.len())
	for _, i := range a.order {
		for _, q := range p.preds(i) {
			if !submitted[q] {
				return nil
			}
		}
		submitted[i] = true
	}
	for k := range made.Streams {
		s := &made.Streams[k]
		st := draftStream{binding: -1}
		for _, op := range s.Ops {
			if op.Kind != plan.Launch {
				continue
			}
			a.stream[op.Node] = int32(k)
			st.pool = p.poolOf(int32(op.Node))
			st.binding = max(st.binding, p.boundOf(int32(op.Node)))
			st.computes = st.computes || p.engineOf(int32(op.Node)) == plan.Compute
		}
		a.streams = append(a.streams, st)
	}
	return a
}

// nodeOrder is the order in which a plan submits nodes.
func nodeOrder(made *plan.Plan) []int32 {
	order := make([]int32, 0, made.Stats.Nodes)
	next := make([]int32, len(made.Streams))
	for _, k := range made.Order {
		if op := &made.Streams[k].Ops[next[k]]; op.Kind == plan.Launch {
			order = append(order, int32(op.Node))
		}
		next[k]++
	}
	return order
}
