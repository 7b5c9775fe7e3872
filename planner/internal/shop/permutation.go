// Permutations of jobs by the flow-shop recurrence: tries an insertion in constant time per place, so it works for many jobs.

package shop

import (
	"cmp"
	"context"
	"math"
	"slices"
)

const (
	// taken is how many jobs are removed at a time.
	taken = 4
	// tolerance is the fraction of a mean operation by which an order may be worse than the one before.
	tolerance = 0.1
	// checkEvery is how many rounds pass between two checks of the context.
	checkEvery = 16
)

// flowShop is a simplified form of the work: all jobs pass all stages in one order, and a job is one operation at each stage. A stage with
// several lanes is free again after the time of the operation divided by the lanes.
type flowShop struct {
	stages int
	stay   []float64 // of job j at stage m, at j*stages+m: how long it is there
	hold   []float64 // how long it holds the stage
	head   []float64 // of each place in a sequence, by stage: when the stage is free again
	tail   []float64 // of each place, by stage: the time from its job's arrival at the stage to the end
	steps  *int
	enter  []float64 // by stage
}

// cellsPerStep is how many stages of jobs can be computed in the time of placing one operation.
const cellsPerStep = 8

// insertSteps returns about how many steps it takes to insert all jobs one by one.
func (f *flowShop) insertSteps() int {
	n := len(f.stay) / f.stages
	return 3 * n * n / 2 * f.stages / cellsPerStep
}

func (d *dispatcher) flowShop(stages []int32) *flowShop {
	w, n := d.s.w, d.jobs.Count
	f := &flowShop{stages: len(stages), steps: &d.s.steps}
	at := make([]int, len(w.Room))
	for k, m := range stages {
		at[m] = k
	}
	f.stay, f.hold = make([]float64, n*f.stages), make([]float64, n*f.stages)
	for i, j := range d.jobs.Of {
		if j < 0 {
			continue
		}
		m := w.Machine[i]
		cell := int(j)*f.stages + at[m]
		f.hold[cell] += w.US[i] / float64(w.Room[m])
		f.stay[cell] += w.US[i]
	}
	f.head, f.tail = make([]float64, (n+2)*f.stages), make([]float64, (n+2)*f.stages)
	f.enter = make([]float64, f.stages)
	return f
}

// measure fills in the heads and tails of a sequence and returns its makespan. The heads of place k are stored at k+1, its tails at k.
func (f *flowShop) measure(sequence []int32) float64 {
	m := f.stages
	*f.steps -= 2 * len(sequence) * m / cellsPerStep
	clear(f.head[:m])
	makespan := 0.0
	for k, j := range sequence {
		before, here := f.head[k*m:(k+1)*m], f.head[(k+1)*m:(k+2)*m]
		stay, hold := f.stay[int(j)*m:int(j+1)*m], f.hold[int(j)*m:int(j+1)*m]
		at := 0.0
		for c := range here {
			start := max(at, before[c])
			here[c] = start + hold[c]
			at = start + stay[c]
		}
		makespan = max(makespan, at)
	}
	clear(f.tail[len(sequence)*m : (len(sequence)+1)*m])
	for k := len(sequence) - 1; k >= 0; k-- {
		j := sequence[k]
		here, after := f.tail[k*m:(k+1)*m], f.tail[(k+1)*m:(k+2)*m]
		stay, hold := f.stay[int(j)*m:int(j+1)*m], f.hold[int(j)*m:int(j+1)*m]
		left := 0.0
		for c := m - 1; c >= 0; c-- {
			left = max(stay[c]+left, hold[c]+after[c])
			here[c] = left
		}
	}
	return makespan
}

// insert puts a job at the last place where the makespan is least, and returns the sequence and its makespan.
func (f *flowShop) insert(sequence []int32, j int32) ([]int32, float64) {
	m := f.stages
	f.measure(sequence)
	*f.steps -= len(sequence) * m / cellsPerStep
	stay, hold := f.stay[int(j)*m:int(j+1)*m], f.hold[int(j)*m:int(j+1)*m]
	place, least := 0, math.Inf(1)
	for k := len(sequence); k >= 0; k-- {
		before, after := f.head[k*m:(k+1)*m], f.tail[k*m:(k+1)*m]
		at, makespan := 0.0, 0.0
		for c := range before {
			start := max(at, before[c])
			at = start + stay[c]
			makespan = max(makespan, at, start+hold[c]+after[c])
		}
		if makespan < least {
			place, least = k, makespan
		}
	}
	return slices.Insert(sequence, place, j), max(least, f.through(sequence))
}

// through returns the largest makespan that the last measure found for any place. Inserting a job does not make it shorter.
func (f *flowShop) through(sequence []int32) float64 {
	if len(sequence) == 0 {
		return 0
	}
	return slices.Max(f.tail[:f.stages])
}

// longestFirst sorts jobs by how long they take in all, equal ones as they stand.
func (f *flowShop) longestFirst(jobs []int32) []int32 {
	total := make([]float64, len(f.stay)/f.stages)
	for k, us := range f.stay {
		total[k/f.stages] += us
	}
	order := slices.Clone(jobs)
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(total[b], total[a]) })
	return order
}

// batches orders more jobs than can all be inserted: it deals them out to batches, long and short ones to each, inserts the jobs of each
// batch one by one, and puts the batches one after the other. So all stages have work all the time, whatever the order that the jobs came in.
func (f *flowShop) batches(jobs []int32, size int) []int32 {
	count := (len(jobs) + size - 1) / size
	batches := make([][]int32, count)
	for k, j := range f.longestFirst(jobs) {
		batches[k%count], _ = f.insert(batches[k%count], j)
	}
	return slices.Concat(batches...)
}

// search inserts the jobs one by one, then removes some and inserts them again, until the steps are used up or the result cannot get
// better. It returns the best sequence.
func (f *flowShop) search(ctx context.Context, s *search, start []int32, leave int) []int32 {
	n := len(f.stay) / f.stages
	mean := 0.0
	for _, us := range f.hold {
		mean += us
	}
	mean /= float64(n * f.stages)
	best, least := slices.Clone(start), f.measure(start)
	sequence := make([]int32, 0, n)
	for _, j := range f.longestFirst(start) {
		sequence, _ = f.insert(sequence, j)
	}
	makespan := f.measure(sequence)
	if makespan < least {
		best, least = slices.Clone(sequence), makespan
	} else {
		sequence, makespan = append(sequence[:0], best...), least
	}
	allowed := float64(tolerance * mean)
	next, out := make([]int32, 0, n), make([]int32, min(taken, n/2))
	round := len(out) * n * f.stages * 3 / cellsPerStep
	bound := f.bound()
	for k := 0; s.steps-round >= leave && least > bound*(1+near); k++ {
		if k%checkEvery == 0 && ctx.Err() != nil {
			break
		}
		next = append(next[:0], sequence...)
		for t := range out {
			at := s.random.Below(len(next))
			out[t] = next[at]
			next = slices.Delete(next, at, at+1)
		}
		for _, j := range out {
			next, _ = f.insert(next, j)
		}
		reached := f.measure(next)
		if reached < least {
			least = reached
			best = append(best[:0], next...)
		}
		if reached <= makespan+allowed {
			sequence, next, makespan = next, sequence, reached
		}
	}
	return best
}

// bound returns a lower bound of every sequence: the busiest stage with the least time before and after it.
func (f *flowShop) bound() float64 {
	m := f.stages
	n := len(f.stay) / m
	bound := 0.0
	for c := range m {
		total, head, tail := 0.0, math.Inf(1), math.Inf(1)
		for j := range n {
			before, after := 0.0, 0.0
			for k, us := range f.stay[j*m : (j+1)*m] {
				if k < c {
					before += us
				} else if k > c {
					after += us
				}
			}
			total += f.hold[j*m+c]
			head, tail = min(head, before), min(tail, after)
		}
		bound = max(bound, head+total+tail)
	}
	return bound
}
