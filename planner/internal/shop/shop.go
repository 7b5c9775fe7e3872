// The shop (as in job-shop scheduling): operations that share machines, their schedules, and the state of a search for a short one.

// Package shop orders operations that share machines. Chains of operations that pass through the same machines, such as the upload,
// kernel and download of each chunk, are the jobs of a flow shop: they are ordered by Johnson's rule, by insertion and by local
// search. It works on plain values and knows neither graphs nor plans.
//
// The same arguments give the same schedule everywhere: searches count steps, not time.
package shop

import (
	"cmp"
	"math"
	"slices"

	"github.com/dagrun/dagrun/planner/internal/chance"
)

// Work is a set of operations and their needs. It is read only.
type Work struct {
	US          []float64 // how long each operation takes
	Machine     []int32   // the machine of each operation
	Room        []int32   // by machine: how many operations it takes at once, at least 1
	Start, Pred []int32   // operation i comes after Pred[Start[i]:Start[i+1]]
	Lag         float64   // time from the end of an operation to the start of one that depends on it on another lane
	Issue       float64   // the k-th operation of an order (from 0) starts at (k+1)*Issue at the earliest
}

// Schedule tells where and in which order operations run. A machine has Room lanes. Each lane takes one operation at a time, in the given
// order.
type Schedule struct {
	Order    []int32 // all operations by start, each after those that it depends on
	Lane     []int32 // of each operation, among the lanes of its machine
	Makespan float64
}

// Len is the number of operations.
func (w *Work) Len() int { return len(w.US) }

func (w *Work) preds(i int32) []int32 { return w.Pred[w.Start[i]:w.Start[i+1]] }

// near is how much a makespan may exceed a lower bound and still count as equal, because sums of durations are rounded.
const near = 1e-9

const (
	// mostInserted is the part of the steps for permutations of jobs, and mostRebuilt the part for removing jobs and inserting them again by
	// their operations. Local search gets the rest.
	mostInserted = 0.15
	mostRebuilt  = 0.7
	// fewestJobs is the least number of jobs that are ordered as jobs.
	fewestJobs = 3
)

// search is the state that all phases share.
type search struct {
	w      *Work
	lanes  []int32 // by machine: its first lane
	succs  Links
	tail   []float64 // by operation: the longest path after its end
	steps  int       // left
	enough float64
	random chance.Random

	best     []int32 // the best order
	makespan float64 // of it

	// These belong to the order that was placed last.
	spots  []spot // by operation
	free   []float64
	latest []int32 // by lane: its last operation, -1 for none
}

// spot is where an operation runs.
type spot struct {
	begin, end float64
	lane       int32
	before     int32 // the operation before it on its lane, -1 for none
}

// Links holds the operations that depend on each operation.
type Links struct{ start, to []int32 }

func (l *Links) of(i int32) []int32 { return l.to[l.start[i]:l.start[i+1]] }

func (w *Work) successors() Links {
	n := w.Len()
	l := Links{start: make([]int32, n+1), to: make([]int32, len(w.Pred))}
	for _, q := range w.Pred {
		l.start[q+1]++
	}
	for i := range n {
		l.start[i+1] += l.start[i]
	}
	next := slices.Clone(l.start[:n])
	for i := range int32(n) {
		for _, q := range w.preds(i) {
			l.to[next[q]] = i
			next[q]++
		}
	}
	return l
}

func newSearch(w *Work, steps int) *search {
	n := w.Len()
	s := &search{w: w, succs: w.successors(), steps: steps, random: chance.New(), makespan: math.Inf(1)}
	lanes := int32(0)
	s.lanes = make([]int32, len(w.Room)+1)
	for m, room := range w.Room {
		s.lanes[m] = lanes
		lanes += max(1, room)
	}
	s.lanes[len(w.Room)] = lanes
	s.spots = make([]spot, n)
	s.free, s.latest = make([]float64, lanes), make([]int32, lanes)
	s.tail = make([]float64, n)
	return s
}

// measureTails finds the longest path after each operation. It needs an order.
func (s *search) measureTails() {
	for k := len(s.best) - 1; k >= 0; k-- {
		i := s.best[k]
		for _, next := range s.succs.of(i) {
			s.tail[i] = max(s.tail[i], s.tail[next]+s.w.US[next])
		}
	}
}

// done reports whether the best makespan is good enough.
func (s *search) done() bool { return s.makespan <= s.enough }

// offer places an order and keeps it if it is the best so far.
func (s *search) offer(order []int32) float64 {
	makespan := s.place(order, math.Inf(1))
	if makespan < s.makespan {
		s.makespan = makespan
		s.best = append(s.best[:0], order...)
	}
	return makespan
}

// place gives each operation, in order, a lane and the earliest possible start there, and returns the makespan. It gives up, and returns
// infinity, as soon as the makespan is certain to exceed the limit.
func (s *search) place(order []int32, limit float64) float64 {
	clear(s.free)
	for k := range s.latest {
		s.latest[k] = -1
	}
	makespan, _ := s.placeFrom(order, 0, progress{}, limit, nil)
	return makespan
}

// progress is what is known before one place of an order, besides the lanes.
type progress struct{ makespan, issued float64 }

// placeFrom places what an order has from one place on, and also returns the place at which it gave up. Steps are counted as if it had
// started at the first place, so that results do not depend on how much was known already. It notes the lanes in marks, if there are any.
func (s *search) placeFrom(order []int32, from int, at progress, limit float64, marks *marks) (makespan float64, stopped int) {
	w := s.w
	for k := from; k < len(order); k++ {
		if marks != nil && k%marks.stride == 0 {
			marks.note(s, k, at)
		}
		i := order[k]
		at.issued += w.Issue
		m := w.Machine[i]
		first, after := s.lanes[m], s.lanes[m+1]
		ready, last := at.issued, int32(-1)
		preds := w.preds(i)
		for _, q := range preds {
			if e := s.spots[q].end; e > ready || last < 0 {
				ready, last = max(ready, e), q
			}
		}
		on := first
		if after-first > 1 {
			on = s.choose(first, after, ready, last)
		}
		if w.Lag > 0 {
			ready = at.issued
			for _, q := range preds {
				e := s.spots[q].end
				if s.spots[q].lane != on {
					e += w.Lag
				}
				ready = max(ready, e)
			}
		}
		begin := max(ready, s.free[on])
		end := begin + w.US[i]
		if end+s.tail[i] > limit {
			s.steps -= k
			return math.Inf(1), k
		}
		s.spots[i] = spot{begin, end, on, s.latest[on]}
		s.free[on], s.latest[on] = end, i
		at.makespan = max(at.makespan, end)
	}
	s.steps -= len(order)
	return at.makespan, len(order)
}

// choose returns the lane for an operation that is ready at a given time: the lane of the operation that it waited for last, if that lane is
// free again; or else the lane that has been free for the shortest time; or else the lane that becomes free first.
func (s *search) choose(first, after int32, ready float64, from int32) int32 {
	if from >= 0 {
		if k := s.spots[from].lane; k >= first && k < after && s.latest[k] == from {
			return k
		}
	}
	// The order of times that are not negative is that of their bits. Compared so, no branch has to be predicted.
	at := int64(math.Float64bits(ready))
	best, least := first, uint64(math.MaxUint64)
	for k, free := range s.free[first:after] {
		idle := at - int64(math.Float64bits(free))
		idle ^= int64(uint64(idle>>63) >> 1) // below all that are idle, those that become free first
		if uint64(idle) < least {
			best, least = first+int32(k), uint64(idle)
		}
	}
	return best
}

// schedule returns the best order as a schedule, sorted by start.
func (s *search) schedule() Schedule {
	makespan := s.place(s.best, math.Inf(1))
	n := s.w.Len()
	rank := make([]int32, n)
	for k, i := range s.best {
		rank[i] = int32(k)
	}
	order := slices.Clone(s.best)
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.spots[a].begin, s.spots[b].begin), cmp.Compare(rank[a], rank[b]))
	})
	lane := make([]int32, n)
	for i := range s.spots {
		lane[i] = s.spots[i].lane - s.lanes[s.w.Machine[i]]
	}
	return Schedule{Order: order, Lane: lane, Makespan: makespan}
}

// marks are the lanes before every stride-th place of an order.
type marks struct {
	stride, lanes int
	at            []progress // by mark
	free          []float64  // by mark, of each lane
	latest        []int32    // likewise
}

// note keeps the lanes before a place.
func (m *marks) note(s *search, place int, at progress) {
	k := place / m.stride
	m.at[k] = at
	copy(m.free[k*m.lanes:], s.free)
	copy(m.latest[k*m.lanes:], s.latest)
}
