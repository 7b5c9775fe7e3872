// Searching on from a plan: shorter schedules first, then fewer waits. How far is counted in steps, so that it ends at the same plan everywhere.

package planner

import (
	"github.com/dagrun/dagrun/planner/internal/place"
	"github.com/dagrun/dagrun/planner/model"
)

// budget is how many nodes may be placed in search of a shorter schedule, and in search of fewer waits. What a graph has beyond
// largest nodes is not searched.
type budget struct{ schedule, waits, largest int }

// budgets by effort. Quick takes some milliseconds, normal some tens of them, thorough seconds.
var budgets = [...]budget{
	Quick:    {0, 400_000, 1000},
	Normal:   {600_000, 900_000, 5000},
	Thorough: {30_000_000, 60_000_000, 20_000},
}

// search makes the best plan so far shorter where it is above the bound, and then looks for one that needs fewer waits.
func (r *request) search(best *Plan, streams int) (*Plan, error) {
	b := budgets[r.o.Effort]
	if r.g.Len() > b.largest {
		return best, nil
	}
	if b.schedule > 0 {
		shorter, err := r.shorten(best, streams, b.schedule)
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
	a, err := place.Polish(p, place.FromPlan(p, best), b.waits)
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
	seeds := [][]int32{place.NodeOrder(best)}
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
