// The search for what to spill: runs the rule with many orders and settings, judges each by an estimate, and varies the best.

package placement

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/planner/effort"
	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// SpillCandidate is a way to spill.
type SpillCandidate struct {
	Order []dag.NodeID // of the nodes; nil: as declared
	List  []plan.Residency
	US    float64 // as estimated
}

// spillSearch is the state of a search.
type spillSearch struct {
	p      *SpillProblem
	m      *model.Machine
	times  []float64
	shares []float64
	engine []plan.Engine
	finish []float64 // by node or join
	found  []SpillCandidate
	ways   []way // by entry of found
	starts []way // the best ways with the most promising orders
	steps  int   // node visits left
	random *rand.Rand
	chosen choosing // the last try
	walked stepping
	fits   bool // the last try found a way
	// The estimate.
	done    []float64                   // by step
	brought []float64                   // by residency: when what was last written to it is there
	saved   []float64                   // by unit: when its home is current
	clocks  [][plan.EngineKinds]float64 // by device: when each of its engines is free
}

// absence is a time that a unit is not on the device: after which position it was used last, and where it is used next. A unit of -1: none.
type absence struct{ unit, before, after int32 }

// way is an order of the nodes, and the rule for it.
type way struct {
	rule
	p    *SpillProblem // with that order
	when []float64     // by position: the time of the nodes before it
}

// drawnOrders is how many greedy orders with a random taste are made, and mostOrders how many of all orders are worth more than one rule.
const drawnOrders, mostOrders = 24, 8

// mostFound is how many ways the search returns, for the planner to judge.
const mostFound = 6

// SpillCandidates returns ways to spill a graph, the most promising first. The error is an ErrCannotSpill if a node alone needs more than there is.
func SpillCandidates(ctx context.Context, p *SpillProblem, m *model.Machine, times []float64, how effort.Effort) ([]SpillCandidate, error) {
	if err := p.tooLarge(); err != nil {
		return nil, err
	}
	g := p.Graph
	s := &spillSearch{p: p, m: m, times: times, shares: shares(g, m), engine: make([]plan.Engine, g.Len()), finish: make([]float64, g.Vertices()),
		steps: spillSteps(how, g.Len()), random: rand.New(rand.NewPCG(2, uint64(len(times))))}
	for i := range times {
		s.engine[i] = plan.EngineOf(g, dag.NodeID(i))
	}
	if err := s.portfolio(ctx); err != nil {
		return nil, err
	}
	if len(s.found) == 0 {
		return nil, fmt.Errorf("%w: no order of copies was found that keeps within %s", ErrCannotSpill, words.Bytes(p.Limit))
	}
	left := s.steps
	for k, w := range s.starts {
		if err := s.vary(ctx, w, left/10*(8-2*k)); err != nil {
			return nil, err
		}
	}
	if err := s.vary(ctx, s.best(), 0); err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.found, func(a, b SpillCandidate) int { return cmp.Compare(a.US, b.US) })
	return s.found, nil
}

// spillSteps is how many node visits a search may take.
func spillSteps(how effort.Effort, nodes int) int {
	switch how {
	case effort.Quick:
		return 100_000
	case effort.Normal:
		return int(max(700_000, min(2_000_000, 45_000_000_000/max(1, int64(nodes)*int64(nodes))))) // in larger graphs a visit takes longer, as more is on the device
	}
	return 20_000_000
}

// ordered is a way that has no rule yet.
func (s *spillSearch) ordered(order []dag.NodeID) way {
	w := way{p: s.p.ordered(order), when: make([]float64, len(s.times)+1)}
	for k := range s.times {
		w.when[k+1] = w.when[k] + s.times[w.p.nodeAt(int32(k))]
	}
	return w
}

// startingOrders are the declared order and greedy ones, as many as there are steps for.
func (s *spillSearch) startingOrders() []way {
	list := []way{s.ordered(s.p.declared())}
	tastes := []taste{{deep: true, memory: 0.25}, {memory: 1}, {deep: true, memory: 1, shared: true}, {memory: 0.25, shared: true},
		{deep: true, memory: 0.5, noise: 0.5}, {memory: 0.5, noise: 0.5, shared: true}}
	for range drawnOrders {
		tastes = append(tastes, taste{deep: s.random.IntN(2) == 0, memory: s.random.Float64(), shared: s.random.IntN(2) == 0, noise: s.random.Float64()})
	}
	most := s.steps / 4
	for _, taste := range tastes {
		order, seen := s.p.greedyOrder(taste, s.random, most)
		s.steps -= seen / 4
		if most -= seen; order == nil || most < 0 {
			break
		}
		if !slices.ContainsFunc(list, func(w way) bool { return slices.Equal(w.p.order, order) }) && !slices.IsSorted(order) {
			list = append(list, s.ordered(order))
		}
	}
	return list
}

// portfolio tries the rule with usual settings: a few of them with every order, then all of them with the best orders.
func (s *spillSearch) portfolio(ctx context.Context) error {
	list := s.startingOrders()
	var stays [][]bool
	for _, fraction := range []float64{0, 0.5, 1, 0.25, 0.75} {
		if list, some := s.staying(fraction); fraction == 0 || some {
			stays = append(stays, list)
		}
	}
	best := make([]float64, len(list))
	rank := make([]int, len(list))
	for k := range list {
		w := list[k]
		w.rule = rule{limit: s.p.Limit, ahead: 2, power: 2, around: true, stays: stays[0]}
		rank[k], best[k], list[k] = k, s.try(w), w
	}
	slices.SortStableFunc(rank, func(a, b int) int { return cmp.Compare(best[a], best[b]) })
	rank = rank[:min(mostOrders, len(rank))]
	for _, k := range rank {
		for _, some := range stays[:min(3, len(stays))] {
			for _, ahead := range []int{2, 0, 6} {
				if err := ctx.Err(); err != nil {
					return err
				}
				if s.steps < 0 && len(s.found) > 0 {
					return nil
				}
				w := list[k]
				w.rule = rule{limit: s.p.Limit, ahead: ahead, power: 2, around: true, stays: some}
				if us := s.try(w); us < best[k] {
					best[k], list[k] = us, w
				}
			}
		}
	}
	slices.SortStableFunc(rank, func(a, b int) int { return cmp.Compare(best[a], best[b]) })
	const most = 3
	for _, k := range rank[:min(most, len(rank))] {
		if !math.IsInf(best[k], 1) {
			s.starts = append(s.starts, list[k])
		}
	}
	left := s.steps / 4 * 3 // the rest is for variations
	for _, k := range rank {
		for _, some := range stays {
			for _, ahead := range []int{2, 0, 1, 4, 8, 16} {
				for _, power := range []int{2, 8, 1} {
					for _, around := range []bool{true, false} {
						if err := ctx.Err(); err != nil {
							return err
						}
						if s.steps < left && len(s.found) > 0 {
							return nil
						}
						w := list[k]
						w.rule = rule{limit: s.p.Limit, ahead: ahead, power: power, around: around, stays: some}
						s.try(w)
					}
				}
			}
		}
	}
	return nil
}

// staying chooses buffers with contents from outside that stay on the device: those that are used most often for their size, up to a fraction of
// the memory that the largest node leaves. some reports whether there are any.
func (s *spillSearch) staying(fraction float64) (stays []bool, some bool) {
	g := s.p.Graph
	stays = make([]bool, len(g.Buffers))
	most, left := map[int32]int64{}, map[int32]int64{}
	sums := map[int32]int64{}
	for i := range s.p.touches {
		clear(sums)
		for _, t := range s.p.touches[i] {
			if !t.copied {
				sums[s.p.units[t.unit].device] += s.p.units[t.unit].room
			}
		}
		for d, n := range sums {
			most[d] = max(most[d], n)
		}
	}
	var list []dag.BufferID
	count := make([]int, len(g.Buffers))
	for k := range g.Buffers {
		b := &g.Buffers[k]
		if b.InArena() {
			left[b.Device] = int64(float64(s.p.Limit-most[b.Device]) * fraction)
		}
		for u := s.p.first[k]; u < s.p.first[k+1]; u++ {
			count[k] += len(s.p.uses[u])
		}
		if b.InArena() && s.p.whole(dag.BufferID(k)) && count[k] > 0 && !s.p.pinned[k] {
			list = append(list, dag.BufferID(k))
		}
	}
	slices.SortStableFunc(list, func(a, b dag.BufferID) int {
		perUnit := func(b dag.BufferID) float64 { return float64(count[b]) / float64(s.p.first[b+1]-s.p.first[b]) }
		return cmp.Compare(perUnit(b), perUnit(a))
	})
	for _, b := range list {
		at := &g.Buffers[b]
		if room := plan.AlignUp(at.Bytes); room <= left[at.Device] {
			left[at.Device] -= room
			stays[b], some = true, true
		}
	}
	return stays, some
}

// try follows a way and keeps what it finds if that is among the best. It returns the estimate, +Inf if the rule found nothing.
func (s *spillSearch) try(w way) float64 {
	const (
		least       = 100 // what a try takes besides
		seenPerStep = 200 // looking at one unit takes less than a visit of a node, and most of what is seen costs little
	)
	s.steps -= 2*len(s.times) + least
	s.fits = false
	list := s.chosen.choose(w.p, &w.rule, w.when)
	s.steps -= s.chosen.seen / seenPerStep
	if list == nil {
		return math.Inf(1)
	}
	if err := s.walked.derive(w.p, list); err != nil {
		return math.Inf(1)
	}
	s.fits = true
	us := s.estimate(&s.walked)
	if slices.ContainsFunc(s.found, func(c SpillCandidate) bool { return c.US == us }) { // most probably the same copies
		return us
	}
	if len(s.found) < mostFound {
		s.found, s.ways = append(s.found, SpillCandidate{w.p.order, slices.Clone(list), us}), append(s.ways, w)
		return us
	}
	worst := 0
	for k := range s.found {
		if s.found[k].US > s.found[worst].US {
			worst = k
		}
	}
	if us < s.found[worst].US {
		s.found[worst], s.ways[worst] = SpillCandidate{w.p.order, slices.Clone(list), us}, w
	}
	return us
}

// best is the best way found so far.
func (s *spillSearch) best() way {
	best := 0
	for k := range s.found {
		if s.found[k].US < s.found[best].US {
			best = k
		}
	}
	return s.ways[best]
}

// vary changes the order and the settings of a way, one after the other, until so many steps are left. It takes what is no worse than the state
// some changes ago.
func (s *spillSearch) vary(ctx context.Context, from way, until int) error {
	const memory = 20
	now, us := from, s.try(from)
	moves := s.moves(now.p)
	history := slices.Repeat([]float64{us}, memory)
	var whole []dag.BufferID
	for k := range s.p.Graph.Buffers {
		if b := dag.BufferID(k); s.p.first[k] < s.p.first[k+1] && s.p.whole(b) && !s.p.pinned[k] {
			whole = append(whole, b)
		}
	}
	o := newOrders(s.p)
	for k := 0; s.steps > until && len(s.p.units) > 0; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := now
		if s.random.IntN(3) > 0 {
			next = s.reorder(o, now, moves)
		} else {
			s.change(&next, moves, whole)
		}
		got := s.try(next)
		if old := &history[k%memory]; s.fits && (got <= *old || got <= us) {
			now, us, moves = next, got, s.moves(next.p)
			*old = us
		} else {
			*old = min(*old, us)
		}
	}
	return nil
}

// change varies the settings of a rule.
func (s *spillSearch) change(w *way, moves []absence, whole []dag.BufferID) {
	r := &w.rule
	switch kind := s.random.IntN(6); {
	case kind == 0:
		r.ahead = max(0, r.ahead+s.random.IntN(5)-2)
	case kind == 1:
		r.power = max(0, r.power+s.random.IntN(3)-1)
	case kind < 4 && len(whole) > 0:
		r.stays = slices.Clone(r.stays)
		b := whole[s.random.IntN(len(whole))]
		r.stays[b] = !r.stays[b]
		if other := whole[s.random.IntN(len(whole))]; s.random.IntN(2) == 0 && r.stays[other] == r.stays[b] && other != b { // in place of it
			r.stays[other] = !r.stays[other]
		}
	default:
		if r.bias = slices.Clone(r.bias); r.bias == nil {
			r.bias = slices.Repeat([]float64{1}, int(s.p.count))
		}
		if m, some := s.reloaded(moves); some && s.random.IntN(2) == 0 { // it could have stayed
			touches := w.p.touchesAt(m.after)
			for k := range touches {
				if touches[k].unit == m.unit {
					r.bias[touches[k].number] *= math.Exp(2 * s.random.Float64())
				}
			}
			return
		}
		for range 1 + s.random.IntN(3) {
			r.bias[s.random.IntN(len(r.bias))] = math.Exp(2*s.random.Float64() - 1)
		}
	}
}

// reorder moves a node with what it depends on, or with what depends on it: mostly so that what was copied out and back in between can stay.
func (s *spillSearch) reorder(o *orders, w way, moves []absence) way {
	order := slices.Clone(w.p.order)
	if order == nil {
		order = slices.Clone(s.p.Graph.Topological())
	}
	n := len(order)
	from, to := int32(s.random.IntN(n)), int32(s.random.IntN(n))
	if s.random.IntN(4) > 0 {
		if m, some := s.reloaded(moves); some {
			from, to = m.after, m.before+1
			if s.random.IntN(2) == 0 {
				from, to = m.before, m.after-1
			}
		}
	}
	if to < from {
		s.steps -= o.earlier(order, from, to) / 4
	} else {
		s.steps -= o.later(order, from, to) / 4
	}
	next := s.ordered(order)
	next.rule = w.rule
	return next
}

// moves lists, for each residency of the last try, between which nodes its unit was away.
func (s *spillSearch) moves(p *SpillProblem) []absence {
	list := make([]absence, len(s.walked.list))
	for k, u := range s.walked.units {
		list[k] = absence{-1, -1, -1}
		if u < 0 {
			continue
		}
		uses := p.uses[u]
		if next, _ := slices.BinarySearch(uses, int32(s.walked.list[k].First)); next > 0 && next < len(uses) {
			list[k] = absence{u, uses[next-1], uses[next]}
		}
	}
	return list
}

// reloaded draws a unit that comes back to the device.
func (s *spillSearch) reloaded(moves []absence) (m absence, some bool) {
	if len(moves) == 0 {
		return m, false
	}
	for range 8 {
		if m = moves[s.random.IntN(len(moves))]; m.unit >= 0 {
			return m, true
		}
	}
	return m, false
}

// estimate schedules steps in order: every engine takes what it is given in the order of the steps.
func (s *spillSearch) estimate(walked *stepping) float64 {
	g, m := s.p.Graph, s.m
	clear(s.finish)
	s.done = scratch.Zeroed(s.done, len(walked.steps))
	s.brought, s.saved = scratch.Zeroed(s.brought, len(walked.list)), scratch.Zeroed(s.saved, len(s.p.units))
	s.clocks = scratch.Zeroed(s.clocks, g.UsedDevices())
	done, brought, saved := s.done, s.brought, s.saved
	end, waits := 0.0, 0.0 // waits: for copies within host memory, while the host submits nothing; when it makes them is up to the plan
	run := func(device int32, e plan.Engine, ready, us, share float64) float64 {
		free := &s.clocks[device][e]
		begin := max(ready, *free)
		finish := begin + us
		if e == plan.Compute {
			finish = max(ready+us, begin+us*share)
			*free = begin + us*share
		} else {
			*free = finish
		}
		end = max(end, finish)
		return finish
	}
	for k := range walked.steps {
		step := &walked.steps[k]
		ready := 0.0
		for _, before := range step.after {
			ready = max(ready, done[before])
		}
		if step.do != compute {
			u := &s.p.units[walked.units[step.stay]]
			bytes := float64(step.moved.Bytes())
			if step.do == load {
				done[k] = run(u.device, plan.Upload, max(ready, saved[walked.units[step.stay]]), s.copyUS(bytes, m.HostToDevice), 1) + m.SyncUS
				brought[step.stay] = done[k]
			} else {
				done[k] = run(u.device, plan.Download, max(ready, brought[step.stay]), s.copyUS(bytes, m.DeviceToHost), 1) + m.SyncUS
				saved[walked.units[step.stay]] = done[k]
			}
			continue
		}
		i := step.node
		device := g.Nodes[i].Device
		for _, from := range g.Preds(i) {
			ready = max(ready, s.joined(from))
		}
		e, us, onDevice := s.engine[i], s.times[i], false
		for j, t := range s.p.touches[i] {
			switch on := step.in[j]; {
			case on >= 0:
				ready, onDevice = max(ready, brought[on]), true
			case !walked.stays[s.p.units[t.unit].buffer] && t.copied:
				ready = max(ready, saved[t.unit])
			default:
				onDevice = true
			}
		}
		if !onDevice && g.Nodes[i].Copy != nil { // both sides are in host memory now
			e, us = plan.HostCopy, s.copyUS(float64(g.Nodes[i].Copy.Src.Bytes()), m.HostToHost)
		}
		done[k] = run(device, e, ready, us, s.shares[i])
		if e == plan.HostCopy && g.Nodes[i].Copy != nil && m.Cores == 0 {
			waits += us
		}
		s.finish[i] = done[k] + m.GapUS
		for j, t := range s.p.touches[i] {
			if on := step.in[j]; t.writes && on >= 0 {
				brought[on] = s.finish[i]
			} else if t.writes {
				saved[t.unit] = s.finish[i]
			}
		}
	}
	return end + waits
}

func (s *spillSearch) copyUS(bytes, rate float64) float64 {
	if s.m.Unit {
		return 1
	}
	return s.m.CopyUS + bytes/rate
}

// joined returns when a node, or all before a join, have finished.
func (s *spillSearch) joined(i dag.NodeID) float64 {
	if !s.p.Graph.IsJoin(i) {
		return s.finish[i]
	}
	if s.finish[i] == 0 {
		for _, from := range s.p.Graph.Preds(i) {
			s.finish[i] = max(s.finish[i], s.joined(from))
		}
	}
	return s.finish[i]
}
