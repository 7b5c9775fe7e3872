// The exact solver that orders and bounds are compared with: it tries every schedule that could be best, except those that a bound
// or a better state seen before rules out.

package instances

import (
	"math"
	"slices"
)

// Work is operations and their needs: operation i takes a lane of Machine[i] for US[i] microseconds, after the operations Preds[i],
// which all have smaller numbers. Machine m has Room[m] lanes.
type Work struct {
	US      []float64
	Machine []int32
	Room    []int32
	Preds   [][]int32
}

// exact is a search through operations in the order of their starts.
type exact struct {
	w       *Work
	tail    []float64 // of each operation, the longest path after it
	succs   [][]int32
	best    float64 // to be beaten
	left    int     // states that may still be visited
	end     []float64
	pending []int32
	free    [][]float64 // by machine: when each lane is free, ascending
	work    []float64   // by machine: the time of operations that are not placed yet
	placed  uint64
	seen    map[uint64][][]float64
}

// Least returns the least makespan of work of at most 64 operations, and whether that is proved: it is not proved if more than the
// given number of states would have to be visited. start is a makespan that is known to be possible.
func Least(w *Work, start float64, states int) (float64, bool) {
	n := len(w.US)
	x := &exact{w: w, tail: make([]float64, n), succs: make([][]int32, n), best: start, left: states, seen: map[uint64][][]float64{}}
	for i := n - 1; i >= 0; i-- {
		for _, q := range w.Preds[i] {
			x.tail[q] = max(x.tail[q], w.US[i]+x.tail[i])
			x.succs[q] = append(x.succs[q], int32(i))
		}
	}
	x.end, x.pending = make([]float64, n), make([]int32, n)
	x.work = make([]float64, len(w.Room))
	for _, room := range w.Room {
		x.free = append(x.free, make([]float64, room))
	}
	for i := range int32(n) {
		x.pending[i] = int32(len(w.Preds[i]))
		x.work[w.Machine[i]] += w.US[i]
	}
	x.branch(0, 0, 0)
	return x.best, x.left > 0
}

// branch places one more operation that starts at or after the last one; it tries each that could be next.
func (x *exact) branch(count int, last, makespan float64) {
	w := x.w
	if count == len(w.US) {
		x.best = min(x.best, makespan)
		return
	}
	if x.left--; x.left <= 0 || x.isDominated(last) {
		return
	}
	type choice struct {
		i          int32
		start, end float64
	}
	var choices []choice
	soonest := slices.Repeat([]float64{math.Inf(1)}, len(w.Room)) // by machine: the earliest end of the operations that could be next on it
	for i := range int32(len(w.US)) {
		if x.placed>>i&1 == 1 || x.pending[i] > 0 {
			continue
		}
		m := w.Machine[i]
		start := x.free[m][0]
		for _, q := range w.Preds[i] {
			start = max(start, x.end[q])
		}
		if start+w.US[i]+x.tail[i] >= x.best-1e-9 {
			return // whatever is placed next, this operation ends too late
		}
		choices = append(choices, choice{i, start, start + w.US[i]})
		soonest[m] = min(soonest[m], start+w.US[i])
	}
	if x.bound() >= x.best-1e-9 {
		return
	}
	slices.SortFunc(choices, func(a, b choice) int {
		switch {
		case a.start != b.start:
			if a.start < b.start {
				return -1
			}
			return 1
		case x.tail[a.i]+w.US[a.i] > x.tail[b.i]+w.US[b.i]:
			return -1
		}
		return int(a.i - b.i)
	})
	for _, c := range choices {
		m := w.Machine[c.i]
		if c.start < last || c.start >= soonest[m] {
			continue // it would start before the last one, or another operation fits before it
		}
		kept := slices.Clone(x.free[m])
		x.free[m][0] = c.end
		slices.Sort(x.free[m])
		x.end[c.i] = c.end
		x.placed |= 1 << c.i
		x.work[m] -= w.US[c.i]
		for _, next := range x.succs[c.i] {
			x.pending[next]--
		}
		x.branch(count+1, c.start, max(makespan, c.end))
		for _, next := range x.succs[c.i] {
			x.pending[next]++
		}
		x.work[m] += w.US[c.i]
		x.placed &^= 1 << c.i
		copy(x.free[m], kept)
	}
}

// bound returns a makespan that no completion beats: for each machine, the work left on it plus the least time before and after.
func (x *exact) bound() float64 {
	bound := 0.0
	head := make([]float64, len(x.w.US))
	first, tail := slices.Repeat([]float64{math.Inf(1)}, len(x.free)), slices.Repeat([]float64{math.Inf(1)}, len(x.free))
	for i := range int32(len(x.w.US)) { // ids are topological
		if x.placed>>i&1 == 1 {
			continue
		}
		m := x.w.Machine[i]
		head[i] = x.free[m][0]
		for _, q := range x.w.Preds[i] {
			if x.placed>>q&1 == 1 {
				head[i] = max(head[i], x.end[q])
			} else {
				head[i] = max(head[i], head[q]+x.w.US[q])
			}
		}
		bound = max(bound, head[i]+x.w.US[i]+x.tail[i])
		first[m], tail[m] = min(first[m], head[i]), min(tail[m], x.tail[i])
	}
	for m, free := range x.free {
		if math.IsInf(first[m], 1) {
			continue
		}
		total := x.work[m]
		for _, at := range free {
			total += max(at, first[m])
		}
		bound = max(bound, total/float64(len(free))+tail[m])
	}
	return bound
}

// isDominated reports whether the same operations were placed before, with no end later than now; if not, it records the present ends.
func (x *exact) isDominated(last float64) bool {
	state := []float64{last}
	for _, free := range x.free {
		state = append(state, free...)
	}
	for i := range int32(len(x.w.US)) {
		if x.placed>>i&1 == 1 && slices.ContainsFunc(x.succs[i], func(next int32) bool { return x.placed>>next&1 == 0 }) {
			state = append(state, x.end[i])
		}
	}
	known := x.seen[x.placed]
	for _, other := range known {
		if noLater(other, state) {
			return true
		}
	}
	const mostKnown = 200
	if len(known) < mostKnown {
		x.seen[x.placed] = append(known, state)
	}
	return false
}

func noLater(a, b []float64) bool {
	for k := range a {
		if a[k] > b[k] {
			return false
		}
	}
	return true
}
