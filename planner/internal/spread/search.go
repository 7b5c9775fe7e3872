// The search: placements by every policy, and by improving the best of them step by step.

package spread

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dagrun/dagrun/planner/internal/effort"
	"github.com/dagrun/dagrun/planner/model"
)

// Candidate is a placement.
type Candidate struct {
	Policy string
	At     []int32
	US     float64 // as estimated
}

// Candidates returns placements that are worth judging by the simulator, the most promising first, no two alike. For a policy other than auto
// that is the one that the policy makes.
func Candidates(ctx context.Context, p *Problem, m *model.Machine, times []float64, streams int, policy string, how effort.Effort) ([]Candidate, error) {
	e := newEstimator(p, m, times, streams)
	if policy != Auto {
		place, known := policies[policy]
		if !known {
			return nil, fmt.Errorf("there is no policy %q", policy)
		}
		return []Candidate{{policy, place(e), 0}}, nil
	}
	var list []Candidate
	add := func(policy string, at []int32, us float64) {
		if !slices.ContainsFunc(list, func(c Candidate) bool { return slices.Equal(c.At, at) }) {
			list = append(list, Candidate{policy, at, us})
		}
	}
	for _, policy := range append([]string{One}, Names()[1:]...) { // of equal placements the first name is kept
		at := policies[policy](e)
		add(policy, at, e.makespan(at))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b Candidate) int { return cmp.Compare(a.US, b.US) })
	for k := range min(2, len(list)) {
		at, us, err := e.improve(ctx, list[k].At, list[k].US, steps(how, len(times)))
		if err != nil {
			return nil, err
		}
		add(Auto, at, us)
	}
	slices.SortStableFunc(list, func(a, b Candidate) int { return cmp.Compare(a.US, b.US) })
	return list, nil
}

// steps is how many node visits a search may take: each estimate visits every node once.
func steps(how effort.Effort, nodes int) int {
	const largest = 20_000 // for larger graphs the policies have to do
	if nodes > largest {
		return 0
	}
	switch how {
	case effort.Quick:
		return 100_000
	case effort.Normal:
		return 600_000
	}
	return 20_000_000
}

// improve changes a placement as long as the estimate gets better: it moves single nodes, exchanges the devices of two, and moves nodes with all
// that they read from. Late acceptance lets it leave local optima: a change counts as good if it is no worse than the state some changes ago.
func (e *estimator) improve(ctx context.Context, at []int32, us float64, budget int) (best []int32, bestUS float64, err error) {
	best, bestUS = slices.Clone(at), us
	var free []int32
	for i := range int32(len(at)) {
		if e.free(i) {
			free = append(free, i)
		}
	}
	if len(free) == 0 || e.p.Devices == 1 {
		return best, bestUS, nil
	}
	const memory = 40
	history := slices.Repeat([]float64{us}, memory)
	random := rand.New(rand.NewPCG(1, uint64(len(at))))
	now, try := slices.Clone(at), make([]int32, len(at))
	for k, end := 0, e.steps+budget; e.steps < end; k++ {
		if k%256 == 0 && ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		copy(try, now)
		e.change(random, free, try)
		e.flows.settle(try)
		new := e.makespan(try)
		if old := &history[k%memory]; new <= *old || new <= us {
			now, try, us = try, now, new
			if us < bestUS {
				bestUS = us
				copy(best, now)
			}
			*old = us
		} else {
			*old = min(*old, us)
		}
	}
	return best, bestUS, nil
}

// change makes one random change.
func (e *estimator) change(random *rand.Rand, free, at []int32) {
	i := free[random.IntN(len(free))]
	to := int32(random.IntN(e.p.Devices))
	switch random.IntN(4) {
	case 0: // to where what it reads is
		if reads := e.flows.reads[e.flows.start[i]:e.flows.start[i+1]]; len(reads) > 0 {
			if w := e.flows.data[reads[random.IntN(len(reads))]].writer; w >= 0 {
				to = at[w]
			}
		}
	case 1:
		j := free[random.IntN(len(free))]
		at[i], at[j] = at[j], at[i]
		return
	case 2: // with what it reads from, and so on
		for range 1 + random.IntN(8) {
			at[i] = to
			reads := e.flows.reads[e.flows.start[i]:e.flows.start[i+1]]
			if len(reads) == 0 {
				return
			}
			w := e.flows.data[reads[random.IntN(len(reads))]].writer
			if w < 0 {
				return
			}
			if e.free(w) {
				i = w
			}
		}
		return
	}
	at[i] = to
}
