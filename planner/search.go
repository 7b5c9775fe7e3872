// Improves a plan by search: first a shorter schedule, then fewer waits. Limits are counted in steps, so the result is the same everywhere.

package planner

import (
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
)

// budget limits a search: how many nodes it may place for each node of the graph, and in total, while it searches for a shorter schedule and
// then for fewer waits. Graphs of more nodes than largest are not searched.
type budget struct {
	scheduleEach, scheduleMost int
	waitsEach, waitsMost       int
	largest                    int
}

// budgets by effort. Quick takes a few milliseconds at most, normal tens of milliseconds, thorough seconds.
var budgets = [...]budget{
	Quick:    {0, 0, 2000, 200_000, 1000},
	Normal:   {20_000, 500_000, 4000, 300_000, 20_000},
	Thorough: {200_000, 20_000_000, 100_000, 20_000_000, 20_000},
}

// search looks for a plan that is shorter than the best so far, unless that reaches the bound, and then for one that needs fewer waits.
func (r *request) search(best *Plan, streams int) (*Plan, error) {
	b, n := budgets[r.o.Effort], r.g.Len()
	if n == 0 || n > b.largest {
		return best, nil
	}
	// A node with many dependencies takes longer to place than a node in a chain.
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

// shorten searches for schedules with a smaller makespan: with all streams, and with as few as suffice to fill the device with kernels.
func (r *request) shorten(best *Plan, streams, steps int) (*Plan, error) {
	bound := model.LowerBoundWith(r.g, r.o.Machine, r.durations, streams, r.o.InGraph).US()
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

// better returns the plan of an assignment if it is better than the best plan so far, or else the best plan.
func (r *request) better(p *place.Problem, a *place.Assignment, best *Plan, strategy string) (*Plan, error) {
	made, err := r.schedule(p, a, strategy)
	if err != nil {
		return nil, err
	}
	if err := r.simulate(made); err != nil {
		return nil, err
	}
	if r.improves(made, best) {
		return made, nil
	}
	return best, nil
}
