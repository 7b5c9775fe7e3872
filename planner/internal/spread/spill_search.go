// The search for what to spill: runs the rule with many settings, judges each by an estimate, and varies the best.

package spread

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/effort"
	"github.com/dagrun/dagrun/planner/model"
	"github.com/dagrun/dagrun/planner/plan"
)

// SpillCandidate is a way to spill.
type SpillCandidate struct {
	List []plan.Residency
	US   float64 // as estimated
}

// spillSearch is the state of a search.
type spillSearch struct {
	p      *SpillProblem
	m      *model.Machine
	times  []float64
	shares []float64
	engine []plan.Engine
	when   []float64
	finish []float64 // by node or join
	found  []SpillCandidate
	rules  []rule // by entry of found
	steps  int    // node visits left
}

// mostFound is how many ways the search returns, for the planner to judge.
const mostFound = 6

// SpillCandidates returns ways to spill a graph, the most promising first. The error is an ErrCannotSpill if a node alone needs more than there is.
func SpillCandidates(ctx context.Context, p *SpillProblem, m *model.Machine, times []float64, how effort.Effort) ([]SpillCandidate, error) {
	if err := p.tooLarge(); err != nil {
		return nil, err
	}
	g := p.Graph
	s := &spillSearch{p: p, m: m, times: times, shares: shares(g, m), engine: make([]plan.Engine, g.Len()), when: make([]float64, g.Len()+1), finish: make([]float64, g.Vertices()), steps: spillSteps(how)}
	for i := range times {
		s.engine[i] = plan.EngineOf(g, dag.NodeID(i))
		s.when[i+1] = s.when[i] + times[i]
	}
	if err := s.portfolio(ctx); err != nil {
		return nil, err
	}
	if len(s.found) == 0 {
		return nil, fmt.Errorf("%w: no order of copies was found that keeps within %d bytes", ErrCannotSpill, p.Limit)
	}
	if err := s.vary(ctx); err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.found, func(a, b SpillCandidate) int { return cmp.Compare(a.US, b.US) })
	return s.found, nil
}

// spillSteps is how many node visits a search may take.
func spillSteps(how effort.Effort) int {
	switch how {
	case effort.Quick:
		return 100_000
	case effort.Normal:
		return 1_000_000
	}
	return 20_000_000
}

// portfolio tries the rule with usual settings.
func (s *spillSearch) portfolio(ctx context.Context) error {
	for _, fraction := range []float64{0, 0.5, 1, 0.25, 0.75} {
		stays, some := s.staying(fraction)
		if fraction > 0 && !some {
			continue
		}
		for _, ahead := range []int{2, 0, 1, 4, 8, 16} {
			for _, power := range []float64{1, 4, 0.5} {
				for _, around := range []bool{true, false} {
					if err := ctx.Err(); err != nil {
						return err
					}
					if s.steps < 0 && len(s.found) > 0 {
						return nil
					}
					s.try(rule{limit: s.p.Limit, ahead: ahead, power: power, around: around, stays: stays})
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

// try runs the rule and keeps what it finds if that is among the best. It returns the estimate, +Inf if the rule found nothing.
func (s *spillSearch) try(r rule) float64 {
	const least = 500 // what a try takes besides
	s.steps -= 2*len(s.times) + least
	list := s.p.choose(&r, s.when)
	if list == nil {
		return math.Inf(1)
	}
	walked, err := s.p.steps(list)
	if err != nil {
		return math.Inf(1)
	}
	us := s.estimate(walked)
	for k := range s.found {
		if s.found[k].US == us && slices.Equal(s.found[k].List, list) {
			return us
		}
	}
	if len(s.found) < mostFound {
		s.found, s.rules = append(s.found, SpillCandidate{list, us}), append(s.rules, r)
		return us
	}
	worst := 0
	for k := range s.found {
		if s.found[k].US > s.found[worst].US {
			worst = k
		}
	}
	if us < s.found[worst].US {
		s.found[worst], s.rules[worst] = SpillCandidate{list, us}, r
	}
	return us
}

// vary changes the settings of the best way found, one after the other, and takes what is no worse than the state some changes ago.
func (s *spillSearch) vary(ctx context.Context) error {
	best := 0
	for k := range s.found {
		if s.found[k].US < s.found[best].US {
			best = k
		}
	}
	const memory = 20
	now, us := s.rules[best], s.found[best].US
	history := slices.Repeat([]float64{us}, memory)
	random := rand.New(rand.NewPCG(2, uint64(len(s.times))))
	var whole []dag.BufferID
	for k := range s.p.Graph.Buffers {
		if b := dag.BufferID(k); s.p.first[k] < s.p.first[k+1] && s.p.whole(b) && !s.p.pinned[k] {
			whole = append(whole, b)
		}
	}
	for k := 0; s.steps > 0 && len(s.p.units) > 0; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := now
		switch kind := random.IntN(6); {
		case kind == 0:
			next.ahead = max(0, now.ahead+random.IntN(5)-2)
		case kind == 1:
			next.power = max(0, now.power+random.Float64()-0.5)
		case kind == 2 && len(whole) > 0:
			next.stays = slices.Clone(now.stays)
			b := whole[random.IntN(len(whole))]
			next.stays[b] = !next.stays[b]
		default:
			if next.bias = slices.Clone(now.bias); next.bias == nil {
				next.bias = slices.Repeat([]float64{1}, len(s.p.units))
			}
			for range 1 + random.IntN(3) {
				next.bias[random.IntN(len(next.bias))] = math.Exp(2*random.Float64() - 1)
			}
		}
		got := s.try(next)
		if old := &history[k%memory]; got <= *old || got <= us {
			now, us = next, got
			*old = us
		} else {
			*old = min(*old, us)
		}
	}
	return nil
}

// estimate schedules steps in order: every engine takes what it is given in the order of the steps.
func (s *spillSearch) estimate(walked *stepping) float64 {
	g, m := s.p.Graph, s.m
	clear(s.finish)
	done := make([]float64, len(walked.steps))
	brought := make([]float64, len(walked.list)) // by residency: when what was last written to it is there
	saved := make([]float64, len(s.p.units))     // by unit: when its home is current
	free := map[[2]int32]float64{}
	end := 0.0
	run := func(device int32, e plan.Engine, ready, us, share float64) float64 {
		clock := [2]int32{device, int32(e)}
		begin := max(ready, free[clock])
		finish := begin + us
		if e == plan.Compute {
			finish = max(ready+us, begin+us*share)
			free[clock] = begin + us*share
		} else {
			free[clock] = finish
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
		s.finish[i] = done[k] + m.GapUS
		for j, t := range s.p.touches[i] {
			if on := step.in[j]; t.writes && on >= 0 {
				brought[on] = s.finish[i]
			} else if t.writes {
				saved[t.unit] = s.finish[i]
			}
		}
	}
	return end
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
