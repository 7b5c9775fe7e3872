// Dispatching: turns jobs in an order of priority into an order of operations. Each machine takes first what is ready first.

package shop

import (
	"math"

	"github.com/dagrun/dagrun/planner/internal/scratch"
)

// dispatcher turns orders of jobs into orders of operations.
type dispatcher struct {
	s       *search
	jobs    Grouping
	members [][]int32 // the operations of each job

	rank    []int32 // of each job; -1 where the job is left out
	pending []int32 // by operation: what it still waits for
	ready   []float64
	queues  []scratch.Heap[waiting]
	order   []int32
	end     []float64
}

// waiting is an operation that is ready.
type waiting struct {
	at   float64
	rank int32 // of its job
	op   int32
}

// Before puts first what is ready first; among equals, the operation whose job has the lowest rank.
func (a waiting) Before(b waiting) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.rank < b.rank || a.rank == b.rank && a.op < b.op
}

func newDispatcher(s *search, jobs Grouping) *dispatcher {
	n := s.w.Len()
	d := &dispatcher{s: s, jobs: jobs}
	d.members = jobs.members(s.best)
	d.rank = make([]int32, jobs.Count)
	d.pending, d.ready, d.end = make([]int32, n), make([]float64, n), make([]float64, n)
	d.queues = make([]scratch.Heap[waiting], len(s.w.Room))
	d.order = make([]int32, 0, n)
	return d
}

// rankOf returns the rank of an operation's job, -1 for an operation without a job, and less than -1 if the job is left out.
func (d *dispatcher) rankOf(i int32) int32 {
	j := d.jobs.Of[i]
	switch {
	case j < 0:
		return -1
	case d.rank[j] < 0:
		return -2
	}
	return d.rank[j]
}

// dispatch returns the order in which operations start if jobs have this order of priority, and its makespan. Jobs that are not in it are
// left out, as if nothing depended on them. It gives up, and returns infinity, as soon as the makespan is certain to reach the limit. The
// result is overwritten by the next call.
func (d *dispatcher) dispatch(priority []int32, limit float64) ([]int32, float64) {
	s, w := d.s, d.s.w
	for j := range d.rank {
		d.rank[j] = -1
	}
	for k, j := range priority {
		d.rank[j] = int32(k)
	}
	for m := range d.queues {
		d.queues[m] = d.queues[m][:0]
	}
	clear(s.free)
	for i := range int32(w.Len()) {
		rank := d.rankOf(i)
		if rank < -1 {
			continue
		}
		d.pending[i], d.ready[i] = 0, 0
		for _, q := range w.preds(i) {
			if d.rankOf(q) >= -1 {
				d.pending[i]++
			}
		}
		if d.pending[i] == 0 {
			d.queues[w.Machine[i]].Push(waiting{0, rank, i})
		}
	}
	d.order = d.order[:0]
	makespan := 0.0
	for {
		// The machine that can start something first, and its lane.
		at, from, lane := 0.0, -1, int32(0)
		for m := range d.queues {
			if len(d.queues[m]) == 0 {
				continue
			}
			least := s.lanes[m]
			for k := least + 1; k < s.lanes[m+1]; k++ {
				if s.free[k] < s.free[least] {
					least = k
				}
			}
			if start := max(d.queues[m][0].at, s.free[least]); from < 0 || start < at {
				at, from, lane = start, m, least
			}
		}
		if from < 0 {
			break
		}
		i := d.queues[from].Pop().op
		d.order = append(d.order, i)
		end := at + w.US[i]
		if end+s.tail[i] >= limit && d.jobs.Of[i] >= 0 {
			makespan = math.Inf(1)
			break
		}
		s.free[lane] = end
		makespan = max(makespan, end)
		for _, next := range s.succs.of(i) {
			rank := d.rankOf(next)
			if rank < -1 {
				continue
			}
			ready := end
			if w.Machine[next] != int32(from) {
				ready += w.Lag
			}
			d.ready[next] = max(d.ready[next], ready)
			if d.pending[next]--; d.pending[next] == 0 {
				d.queues[w.Machine[next]].Push(waiting{d.ready[next], rank, next})
			}
		}
	}
	s.steps -= dispatchSteps * len(d.order)
	return d.order, makespan
}

// dispatchSteps is how many steps dispatching an operation counts as: its queues cost more than placing it.
const dispatchSteps = 4
