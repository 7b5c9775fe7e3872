// Insertion: builds orders of jobs by inserting each job where it delays the rest least, then removes some jobs and inserts them again.

package shop

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// construct tries orders of jobs by Johnson's rule, then by insertion, then rebuilds the best of them again and again.
func (d *dispatcher) construct(ctx context.Context) {
	s := d.s
	best, least := d.declared(), math.Inf(1)
	try := func(priority []int32) {
		order, makespan := d.dispatch(priority, math.Inf(1))
		s.offer(order)
		if makespan < least {
			best, least = priority, makespan
		}
	}
	try(best)
	for _, priority := range d.rules() {
		if try(priority); s.done() {
			return
		}
	}
	budget := s.steps
	f := d.flowShop(d.stages())
	if f.insertSteps() < budget {
		try(f.search(ctx, s, best, budget-int(mostInserted*float64(budget))))
	} else {
		for _, size := range batchSizes {
			try(f.batches(best, size))
		}
	}
	// Work on the operations themselves if there are few enough.
	if count := d.jobs.Count; count*count/3*s.w.Len()*dispatchSteps < int(mostInserted*float64(budget)) && !s.done() {
		try(d.insertAll())
	}
	d.rebuild(ctx, best, least, budget-int((mostInserted+mostRebuilt)*float64(budget)))
}

// batchSizes are the numbers of jobs in a batch that are tried: few in turn, or many that are ordered better.
var batchSizes = []int{16, 64}

// declared returns the order in which the jobs start in the best order so far.
func (d *dispatcher) declared() []int32 {
	var priority []int32
	seen := make([]bool, d.jobs.Count)
	for _, i := range d.s.best {
		if j := d.jobs.Of[i]; j >= 0 && !seen[j] {
			seen[j] = true
			priority = append(priority, j)
		}
	}
	return priority
}

// insertAll takes the jobs by their work, the most first, and inserts each where the makespan of those so far is least.
func (d *dispatcher) insertAll() []int32 {
	total := make([]float64, d.jobs.Count)
	order := make([]int32, d.jobs.Count)
	for j, members := range d.members {
		order[j] = int32(j)
		for _, i := range members {
			total[j] += d.s.w.US[i]
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(total[b], total[a]) })
	priority := make([]int32, 0, d.jobs.Count)
	for _, j := range order {
		priority, _ = d.insert(priority, j)
	}
	return priority
}

// insert puts a job at the last place where the makespan is least, and returns the order and the makespan.
func (d *dispatcher) insert(priority []int32, j int32) ([]int32, float64) {
	priority = append(priority, j)
	place, least := len(priority)-1, math.Inf(1)
	for k := len(priority) - 1; ; k-- {
		if _, makespan := d.dispatch(priority, least); makespan < least {
			place, least = k, makespan
		}
		if k == 0 {
			break
		}
		priority[k], priority[k-1] = priority[k-1], priority[k]
	}
	copy(priority, priority[1:place+1])
	priority[place] = j
	return priority, least
}

// rebuild removes a few jobs from an order and inserts each again where it is best, until only leave steps are left.
func (d *dispatcher) rebuild(ctx context.Context, priority []int32, makespan float64, leave int) {
	s := d.s
	mean := 0.0
	for _, us := range s.w.US {
		mean += us
	}
	allowed := float64(tolerance * mean / float64(s.w.Len()))
	count := min(taken, len(priority)/2)
	next, out := slices.Clone(priority), make([]int32, count)
	// About what a round costs: no round starts if fewer steps are left.
	round := count * len(priority) * s.w.Len() * dispatchSteps
	for k := 0; s.steps-round >= leave && !s.done(); k++ {
		if k%checkEvery == 0 && ctx.Err() != nil {
			return
		}
		next = append(next[:0], priority...)
		for t := range out {
			at := s.random.Below(len(next))
			out[t] = next[at]
			next = slices.Delete(next, at, at+1)
		}
		var reached float64
		for _, j := range out {
			next, reached = d.insert(next, j)
		}
		if reached < s.makespan {
			order, _ := d.dispatch(next, math.Inf(1))
			s.offer(order)
		}
		if reached <= makespan+allowed {
			priority, next = next, priority
			makespan = reached
		}
	}
}
