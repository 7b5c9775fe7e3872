// Johnson's rule, and the orders of jobs that follow from it for more than two machines.

package shop

import (
	"cmp"
	"slices"
)

// Johnson returns the order of jobs that ends first if each job takes first[j] on one machine and then second[j] on another: first the jobs
// that are shorter on the first machine, the shortest of them first; then the others, the shortest on the second machine last.
func Johnson(first, second []float64) []int32 {
	order := make([]int32, len(first))
	for j := range order {
		order[j] = int32(j)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		early, late := first[a] < second[a], first[b] < second[b]
		switch {
		case early && late:
			return cmp.Compare(first[a], first[b])
		case early:
			return -1
		case late:
			return 1
		}
		return cmp.Compare(second[b], second[a])
	})
	return order
}

// Flow returns the makespan of a flow shop of two machines that takes the jobs in this order.
func Flow(first, second []float64, order []int32) float64 {
	a, b := 0.0, 0.0
	for _, j := range order {
		a += first[j]
		b = max(a, b) + second[j]
	}
	return b
}

// stages returns the machines that jobs use, in the order in which jobs come to them on average.
func (d *dispatcher) stages() []int32 {
	w := d.s.w
	n := w.Len()
	depth := make([]int32, n)
	sum, count := make([]float64, len(w.Room)), make([]float64, len(w.Room))
	for _, i := range d.s.best {
		for _, q := range w.preds(i) {
			depth[i] = max(depth[i], depth[q]+1)
		}
		if d.jobs.Of[i] >= 0 {
			sum[w.Machine[i]] += float64(depth[i])
			count[w.Machine[i]]++
		}
	}
	var stages []int32
	for m := range w.Room {
		if count[m] > 0 {
			sum[m] /= count[m]
			stages = append(stages, int32(m))
		}
	}
	slices.SortStableFunc(stages, func(a, b int32) int { return cmp.Compare(sum[a], sum[b]) })
	return stages
}

// rules returns orders of jobs by Johnson's rule: for each pair of stages as if there were no others, and for each cut between stages as if
// the stages before it were one machine and those after it another. If a machine runs several operations at once, times on it are divided
// by that number. For two machines the first order is optimal. For three machines, the orders by cuts are optimal if the middle machine
// never delays a job.
func (d *dispatcher) rules() [][]int32 {
	w := d.s.w
	stages := d.stages()
	// The order by work on the busiest machine is a starting point even if there are many machines.
	const mostStages = 6
	on := make([][]float64, len(stages))
	at := make([]int, len(w.Room))
	for k, m := range stages {
		on[k] = make([]float64, d.jobs.Count)
		at[m] = k
	}
	for i, j := range d.jobs.Of {
		if m := w.Machine[i]; j >= 0 {
			on[at[m]][j] += w.US[i] / float64(w.Room[m])
		}
	}
	var orders [][]int32
	if len(stages) <= mostStages {
		for a := range stages {
			for b := a + 1; b < len(stages); b++ {
				orders = append(orders, Johnson(on[a], on[b]))
			}
		}
	}
	if len(stages) == 2 {
		return orders
	}
	before, after := make([]float64, d.jobs.Count), make([]float64, d.jobs.Count)
	for k := range stages {
		for j, us := range on[k] {
			after[j] += us
		}
	}
	for k := range min(len(stages)-1, mostStages) {
		for j := range before {
			before[j] += on[k][j]
		}
		orders = append(orders, Johnson(before, after)) // the stage itself is on both sides, as in the rule for three machines
		for j := range after {
			after[j] -= on[k][j]
		}
		orders = append(orders, Johnson(before, after))
	}
	return orders
}
