// The list strategy: passes over the graph with different tastes, the best kept. Places nothing itself.

package planner

import "math"

// tastes are the passes over small graphs. The first looks at the longest remaining path alone; the others spend time that the
// lower bound leaves over on saving waits, one by newest nodes first, one by nodes that free the most others.
var tastes = []taste{
	{},
	{patient: true, newest: true, suit: 1},
	{patient: true, eager: 1},
}

const (
	// mostPasses bounds the graphs that get every pass. Beyond it a pass costs more than the waits it saves.
	mostPasses = 2000
	// smallWindow and largeWindow are how many of the most urgent ready nodes are weighed against each other for a stream.
	smallWindow = 16
	largeWindow = 6
)

func planList(p *problem) (*assignment, error) {
	if p.len() == 0 {
		return &assignment{}, p.ctx.Err()
	}
	l := newLister(p)
	if p.len() > mostPasses {
		l.window = largeWindow
		if err := l.run(tastes[0]); err != nil {
			return nil, err
		}
		return l.take(), nil
	}
	l.window = smallWindow
	var best *assignment
	for _, t := range tastes {
		if err := l.run(t); err != nil {
			return nil, err
		}
		if best == nil || l.score.before(best.score) {
			best = l.take()
		}
	}
	return best, nil
}

// score is what assignments are compared by, the lower the better, in this order.
type score struct {
	makespan       float64
	waits, records int
}

func (a score) before(b score) bool {
	if a.makespan != b.makespan {
		return a.makespan < b.makespan
	}
	if a.waits != b.waits {
		return a.waits < b.waits
	}
	return a.records < b.records
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
