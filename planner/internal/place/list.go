// The list strategy: makes passes over the graph with different preferences and keeps the best result.

package place

import (
	"math"

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

// score is what assignments are compared by: makespan, then waits, then records.
type score struct {
	makespan       float64
	waits, records int
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
