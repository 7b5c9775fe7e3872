// The search: placements by every policy, and by improving the best of them step by step.

package placement

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/effort"
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
	d := newDispatcher(e)
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
		add(policy, at, d.makespan(at))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	named, budget := len(list), steps(how, len(times))
	if budget > 0 {
		for _, at := range e.patterns() {
			add(Auto, at, d.makespan(at))
		}
	}
	byTime := func(a, b Candidate) int { return cmp.Compare(a.US, b.US) }
	slices.SortStableFunc(list[named:], byTime)
	const patterns = 4
	list = list[:min(len(list), named+patterns)]
	slices.SortStableFunc(list, byTime)
	for k := range min(2, len(list)) {
		at, us, err := d.improve(ctx, list[k].At, list[k].US, budget)
		if err != nil {
			return nil, err
		}
		add(Auto, at, us)
	}
	slices.SortStableFunc(list, byTime)
	return list, nil
}

// steps is how many node visits a search may take: each estimate visits every node once.
func steps(how effort.Effort, nodes int) int {
	const largest = 20_000 // for larger graphs the policies have to do
	if nodes > largest {
		return 0
	}
	switch how { // a small graph needs no more changes than a large one
	case effort.Quick:
		return min(100_000, 1_000*nodes)
	case effort.Normal:
		return min(600_000, 3_000*nodes)
	}
	return min(20_000_000, 100_000*nodes)
}

// improve changes a placement as long as the estimate gets better: it moves single nodes, exchanges the devices of two, and moves nodes with all
// that they read from. Late acceptance lets it leave local optima: a change counts as good if it is no worse than the state some changes ago.
func (d *dispatcher) improve(ctx context.Context, at []int32, us float64, budget int) (best []int32, bestUS float64, err error) {
	e := d.e
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
	var critical []int32
	for k, end := 0, e.steps+budget; e.steps < end; k++ {
		if k%256 == 0 && ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		copy(try, now)
		e.change(random, free, critical, try)
		e.flows.settle(try)
		new := d.makespan(try)
		if old := &history[k%memory]; new <= *old || new <= us {
			now, try, us = try, now, new
			critical = d.critical(critical[:0])
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

// change makes one random change, half of the time to one of the nodes that others waited for.
func (e *estimator) change(random *rand.Rand, free, critical, at []int32) {
	i := free[random.IntN(len(free))]
	if len(critical) > 0 && random.IntN(2) == 0 {
		if c := critical[random.IntN(len(critical))]; e.free(c) {
			i = c
		}
	}
	to := int32(random.IntN(e.p.Devices))
	switch random.IntN(5) {
	case 0: // to where what it reads is
		if w := e.source(random, i); w >= 0 {
			to = at[w]
		}
	case 1:
		j := free[random.IntN(len(free))]
		at[i], at[j] = at[j], at[i]
		return
	case 2: // with what it reads from, and so on
		for range 1 + random.IntN(8) {
			at[i] = to
			w := e.source(random, i)
			if w < 0 {
				return
			}
			if e.free(w) {
				i = w
			}
		}
		return
	case 3: // with what reads from it, and so on
		for range 1 + random.IntN(8) {
			at[i] = to
			list := e.p.Graph.Succs(dag.NodeID(i))
			if len(list) == 0 {
				return
			}
			if j := int32(list[random.IntN(len(list))]); int(j) < len(at) && e.free(j) {
				i = j
			}
		}
		return
	}
	at[i] = to
}

// source returns a node that wrote something that a node reads, or -1.
func (e *estimator) source(random *rand.Rand, i int32) int32 {
	reads := e.flows.reads[e.flows.start[i]:e.flows.start[i+1]]
	if len(reads) == 0 {
		return -1
	}
	return e.flows.data[reads[random.IntN(len(reads))]].writer
}

// Changer makes random changes to placements, for a search that judges them by other means.
type Changer struct {
	e      *estimator
	random *rand.Rand
	free   []int32
}

// NewChanger returns a Changer that always makes the same changes.
func NewChanger(p *Problem, m *model.Machine, times []float64, streams int) *Changer {
	c := &Changer{e: newEstimator(p, m, times, streams), random: rand.New(rand.NewPCG(2, uint64(len(times))))}
	for i := range int32(len(times)) {
		if c.e.free(i) {
			c.free = append(c.free, i)
		}
	}
	return c
}

// Change changes a placement. critical lists nodes that others wait for, which are changed more often. It returns false if nothing can move.
func (c *Changer) Change(at, critical []int32) bool {
	if len(c.free) == 0 || c.e.p.Devices == 1 {
		return false
	}
	c.e.change(c.random, c.free, critical, at)
	c.e.flows.settle(at)
	return true
}
