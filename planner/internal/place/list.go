// The list strategy: makes passes over the graph with different preferences and keeps the best result.

package place

import (
	"math"

	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// The preferences of the passes. While there is slack between the longest remaining path and the lower bound, a pass takes the node
// that needs the fewest waits, not the most urgent one. The conservative pass leaves some of the slack for delays that the bound does
// not include, such as all streams being busy when a node becomes ready. The others use all of it. Among equals, the first two take
// nodes on which the most others depend, the last one the node that became ready last.
var (
	conservative = preference{patience: 0.85, eager: 1}
	releasing    = preference{patience: 1, eager: 1}
	newest       = preference{patience: 1, newest: true, moveCost: 1}
)

const (
	// mostPasses bounds the graphs that get a second pass, and fewPasses those that get every pass. Beyond it a pass costs more than
	// the waits it saves.
	mostPasses = 2000
	fewPasses  = 64
	// smallWindow and largeWindow are how many of the most urgent ready nodes are weighed against each other for a stream.
	smallWindow = 16
	largeWindow = 3
)

// List makes the passes. With inLine, all copies of an engine share a stream.
func List(p *Problem, inLine bool) (*Assignment, error) {
	if p.len() == 0 {
		return &Assignment{}, p.ctx.Err()
	}
	window := smallWindow
	if p.len() > mostPasses {
		window = largeWindow
	}
	l := newLister(p, window, inLine)
	if err := l.run(conservative, nil); err != nil {
		return nil, err
	}
	l.keep()
	var more []preference
	switch {
	case l.best.score.waits == 0 && l.best.score.makespan <= l.goal:
	case p.len() <= fewPasses:
		more = []preference{releasing, newest}
	case p.len() <= mostPasses && l.best.score.makespan <= l.goal*(1+slackFraction):
		more = []preference{newest} // there is time to save waits with
	}
	for _, t := range more {
		switch err := l.run(t, &l.best.score); {
		case err != nil:
			return nil, err
		case !l.lost && l.score.better(l.best.score):
			l.keep()
		}
	}
	return l.assignment(), nil
}

// slackFraction is the fraction of a makespan below which a difference is ignored: durations are not known better, and waits cost too.
const slackFraction = 0.004

// alike returns the range of makespans that count as equal to that of a score.
func (a score) alike() (low, high float64) {
	far := float64(slackFraction * a.makespan)
	return a.makespan - far, a.makespan + far
}

// better compares two scores: by makespan, or by waits and records if the makespans are nearly equal.
func (a score) better(b score) bool {
	if low, high := b.alike(); a.makespan < low || a.makespan > high {
		return a.makespan < b.makespan
	}
	if a.waits != b.waits {
		return a.waits < b.waits
	}
	if a.records != b.records {
		return a.records < b.records
	}
	return a.makespan < b.makespan
}

// beyond reports whether an unfinished pass is already no better than another score, whatever follows. least is a lower bound of its
// makespan.
func (a score) beyond(b score, least float64) bool {
	low, high := b.alike()
	return a.makespan > high || a.waits > b.waits && max(least, a.makespan) >= low
}

// goal returns a lower bound of the makespan: the longest path, or a pool's work divided by its streams if that is more.
func (p *Problem) goal() float64 {
	goal := 0.0
	work := make([]float64, len(p.pools))
	for i, d := range p.duration {
		goal = max(goal, p.rank[i])
		if p.engineOf(int32(i)) == plan.Compute {
			work[p.poolOf(int32(i))] += d
		}
	}
	for first := 0; first < len(work); {
		total, end := 0.0, first
		for end < len(work) && p.pools[end].device == p.pools[first].device {
			total += work[end]
			end++
		}
		goal = max(goal, total/float64(p.streams))
		first = end
	}
	return goal
}

// whole rounds a goal up to a whole number if all durations are whole numbers.
func (p *Problem) whole(goal float64) float64 {
	for _, d := range p.duration {
		if d != float64(int64(d)) { // no duration exceeds an int64
			return goal
		}
	}
	return math.Ceil(goal)
}

func newLister(p *Problem, window int, inLine bool) *lister {
	n := p.len()
	l := listers.Get().(*lister)
	l.p, l.window, l.inLine, l.sync, l.goal = p, window, inLine, p.sync(), p.whole(p.goal())
	pools := cap(l.pools)
	l.pools = scratch.Extended(l.pools, len(p.pools))
	devices := 0
	for q := range p.pools {
		if q > 0 && p.pools[q].device != p.pools[q-1].device {
			devices++
		}
		l.pools[q].device, l.pools[q].copyRoom = devices, 0
	}
	l.computeRoom = scratch.Sized(l.computeRoom, devices+1)
	streams := len(p.bindings)
	l.copyEngines = l.copyEngines[:0]
	if p.engine != nil {
		l.copyEngines = scratch.Extended(l.copyEngines, (devices+1)*int(plan.EngineKinds))
		used := make([]bool, len(p.pools)*int(plan.EngineKinds))
		for i, e := range p.engine {
			if at := int(p.pool[i])*int(plan.EngineKinds) + int(e); e != plan.Compute && !used[at] {
				used[at] = true
				l.pools[p.pool[i]].copyRoom += max(1, p.machine.CopyEngines)
			}
		}
		for e := range l.copyEngines {
			t := &l.copyEngines[e]
			t.free = t.free[:0]
			if !p.machine.Unit {
				t.free = scratch.Sized(t.free, max(1, p.machine.CopyEngines))
			}
		}
	}
	for q := range l.pools {
		streams += p.streams + l.pools[q].copyRoom
	}
	l.costTable.size(n, window, streams)
	l.pending, l.entrants = scratch.Sized(l.pending, p.vertices()), scratch.Sized(l.entrants, n)
	l.direct, l.source, l.alone = scratch.Sized(l.direct, streams), scratch.Sized(l.source, streams), scratch.Zeroed(l.alone, streams)
	l.placed = scratch.Sized(l.placed, n)
	// Most heaps stay small: one allocation serves them all.
	known := cap(l.streams)
	l.streams = scratch.Extended(l.streams, streams)
	if few := min(n, heapRoom); streams > known {
		heaps := make([]urgency, (streams-known)*few)
		for k := range l.streams[known:] {
			l.streams[known+k].preferring = heaps[k*few : k*few : (k+1)*few]
		}
	}
	if few := min(n, 4*heapRoom); len(l.pools) > pools {
		heaps := make([]urgency, (len(l.pools)-pools)*few)
		for q := range l.pools[pools:] {
			l.pools[pools+q].ready = heaps[q*few : q*few : (q+1)*few]
			l.pools[pools+q].idle, l.pools[pools+q].unused = make([]int32, 0, streams), make([]int32, 0, streams)
		}
	}
	l.clock = l.clock[:0]
	if l.clocked = streams <= mostClocked && (streams <= leastBlock || n*streams <= clockWords); l.clocked {
		l.width = int32(streams)
		l.clock = scratch.Sized(l.clock, n*streams)
		l.recorded = scratch.Sized(l.recorded, n)
	}
	return l
}

// run places every node. Given a score to beat, it stops as soon as the pass can no longer beat it.
func (l *lister) run(t preference, beat *score) error {
	l.start(t)
	p := l.p
	checked := 0
	// Where all nodes choose among the same streams, no schedule beats the goal. It is lowered a bit, because sums of durations are rounded.
	least := 0.0
	if p.engine == nil && p.bound == nil {
		least = l.goal * (1 - 1e-9)
	}
	for {
		if l.lost = beat != nil && l.score.beyond(*beat, least); l.lost {
			return p.ctx.Err()
		}
		if p.bound != nil {
			l.placeBound()
		}
		for q := range l.pools {
			l.placeCompute(int32(q))
		}
		for e := range l.copyEngines {
			l.placeCopies(&l.copyEngines[e])
		}
		if len(l.order)-checked >= checkEvery {
			checked = len(l.order)
			if err := p.ctx.Err(); err != nil {
				return err
			}
		}
		if p.joined() {
			if err := p.tooMany(len(l.pred)+len(l.resolver.nodes), len(l.streams)); err != nil {
				return err
			}
		}
		if len(l.running) == 0 {
			break
		}
		l.now = l.running[0].at
		for len(l.running) > 0 && l.running[0].at <= l.now {
			i := l.running[0].node
			l.running.pop()
			l.leave(i)
		}
	}
	if len(l.order) != p.len() {
		panic("planner: list left nodes out")
	}
	return p.ctx.Err()
}

// assignment returns the best outcome. It uses the memory of the lister and is valid until that is released.
func (l *lister) assignment() *Assignment {
	o, a := &l.best, &l.made
	*a = Assignment{stream: scratch.Sized(a.stream, len(o.spots)), order: o.order, streams: o.streams, score: o.score, owner: l}
	for i := range o.spots {
		a.stream[i] = o.spots[i].stream
	}
	if l.clocked && !l.p.explicit && !l.p.inOrder {
		l.sorted.sort(o.order, o.waitCount, o.waits)
		a.waits = &l.sorted
	}
	return a
}
