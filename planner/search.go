// Searching on from a plan: shorter schedules first, then fewer waits. How far is counted in steps, so that it ends at the same plan everywhere.

package planner

import (
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
)

// budget is how many nodes may be placed, for each node of the graph and at most in all: first in search of a shorter schedule, then in
// search of fewer waits. Graphs of more nodes than largest are not searched.
type budget struct {
	scheduleEach, scheduleMost int
	waitsEach, waitsMost       int
	largest                    int
}

// budgets by effort. Quick takes some milliseconds at most, normal some tens of them, thorough seconds.
var budgets = [...]budget{
	Quick:    {0, 0, 2000, 200_000, 1000},
	Normal:   {20_000, 1_000_000, 4000, 400_000, 20_000},
	Thorough: {200_000, 20_000_000, 100_000, 20_000_000, 20_000},
}

// search makes the best plan so far shorter where it is above the bound, and then looks for one that needs fewer waits.
func (r *request) search(best *Plan, streams int) (*Plan, error) {
	b, n := budgets[r.o.Effort], r.g.Len()
	if n == 0 || n > b.largest {
		return best, nil
	}
	// A node with many dependencies takes longer to place than one of a chain.
	if steps := 2 * n * min(n*b.scheduleEach, b.scheduleMost) / (n + len(r.g.Edges())); steps > 0 {
		shorter, err := r.shorten(best, streams, steps)
		if err != nil {
			return nil, err
		}
		best = shorter
	}
	if best.Stats.Waits == 0 || r.o.Effort == Quick && best.Strategy != "list" {
		return best, nil
	}
	p, err := r.problem(streams)
	if err != nil {
		return nil, err
	}
	from := place.FromPlan(p, best)
	if from == nil {
		return best, nil
	}
	a, err := place.Polish(p, from, min(n*b.waitsEach, b.waitsMost))
	if a == nil || err != nil {
		return best, err
	}
	return r.better(p, a, best, best.Strategy)
}

// shorten searches for schedules of smaller makespan: with all streams, and with as many as kernels fill the device on.
func (r *request) shorten(best *Plan, streams, steps int) (*Plan, error) {
	bound := model.LowerBoundWith(r.g, r.o.Machine, r.durations, streams, false).US()
	if best.Stats.MakespanUS <= bound*(1+1e-9) {
		return best, nil
	}
	p, err := r.problem(streams)
	if err != nil || !place.CanSearch(p) {
		return best, err
	}
	tried := []int{streams}
	if crowd := place.Crowd(p); crowd > 0 && crowd < streams {
		tried = append(tried, crowd)
	}
	from := place.FromPlan(p, best)
	if from == nil {
		return best, nil
	}
	seeds := [][]int32{from.Order()}
	for _, s := range tried {
		if s != streams {
			if p, err = r.problem(s); err != nil {
				return nil, err
			}
		}
		a, err := place.Shop(p, seeds, bound, steps/len(tried))
		if err != nil {
			return nil, err
		}
		if best, err = r.better(p, a, best, "search"); err != nil {
			return nil, err
		}
	}
	return best, nil
}

// better returns the plan of an assignment where it is better than the best so far, else that.
func (r *request) better(p *place.Problem, a *place.Assignment, best *Plan, strategy string) (*Plan, error) {
	made, err := r.schedule(p, a, strategy)
	if err != nil {
		return nil, err
	}
	if err := r.simulate(made); err != nil {
		return nil, err
	}
	if betterPlan(made, best) {
		return made, nil
	}
	return best, nil
}
