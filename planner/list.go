// The list strategy: passes over the graph with different tastes, the best kept. Places nothing itself.

package planner

import "math"

// The passes. Two spend the time that the lower bound leaves over on saving waits, one by nodes that free the most others, one by
// newest nodes first; the hasty one looks at the longest remaining path alone.
var (
	freeing = taste{patient: true, eager: 1}
	newest  = taste{patient: true, newest: true, suit: 1}
	hasty   = taste{}
)

const (
	// mostPasses bounds the graphs that get every pass. Beyond it a pass costs more than the waits it saves.
	mostPasses = 2000
	// smallWindow and largeWindow are how many of the most urgent ready nodes are weighed against each other for a stream.
	smallWindow = 16
	largeWindow = 6
)

// planList makes the passes. With inLine all copies of an engine share a stream.
func planList(p *problem, inLine bool) (*assignment, error) {
	if p.len() == 0 {
		return &assignment{}, p.ctx.Err()
	}
	window := smallWindow
	if p.len() > mostPasses {
		window = largeWindow
	}
	l := newLister(p, window, inLine)
	if err := l.run(freeing); err != nil {
		return nil, err
	}
	best := l.take()
	if p.len() > mostPasses || best.score.waits == 0 && best.score.makespan <= l.goal {
		return best.assignment(p), nil
	}
	// A second pass mends what the first lacks: time, or waits where it met the goal. Where the goal is out of reach, no pass
	// gains time, and waits are left to save.
	if best.score.makespan > l.goal*(1+slackShare) {
		if err := l.run(hasty); err != nil {
			return nil, err
		}
		if l.score.better(best.score) {
			best = l.take()
			return best.assignment(p), nil
		}
	}
	if err := l.run(newest); err != nil {
		return nil, err
	}
	if l.score.better(best.score) {
		best = l.take()
	}
	return best.assignment(p), nil
}

// score is what assignments are compared by: makespan, then waits, then records.
type score struct {
	makespan       float64
	waits, records int
}

// slackShare is the part of a makespan below which a difference says nothing: durations are not known better, and waits cost too.
const slackShare = 0.004

// better compares two scores, the lower makespan first unless it is nearly the same.
func (a score) better(b score) bool {
	if far := slackShare * b.makespan; a.makespan < b.makespan-far || a.makespan > b.makespan+far {
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

// goal is a makespan that no schedule on that many streams beats: the longest path, and each pool's work over its streams.
func (p *problem) goal() float64 {
	goal := 0.0
	work := make([]float64, len(p.pools))
	for i, d := range p.duration {
		goal = max(goal, p.rank[i])
		if p.engineOf(int32(i)) == Compute {
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

// whole rounds a goal up to what durations that are whole numbers can reach.
func (p *problem) whole(goal float64) float64 {
	for _, d := range p.duration {
		if d != math.Trunc(d) {
			return goal
		}
	}
	return math.Ceil(goal)
}
