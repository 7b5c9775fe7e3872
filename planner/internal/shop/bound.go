// Lower bounds for work that passes through machines: every order takes at least this long.

package shop

import (
	"cmp"
	"slices"
)

// Ways holds two lower bounds for each operation: the earliest time at which it can start, and the least time from its end to the end of
// the last operation.
type Ways struct{ Head, Tail []float64 }

// Bound is a lower bound of the makespan, and the machines that it comes from.
type Bound struct {
	US            float64
	First, Second int32 // the machine, or both if the bound is that of a flow shop of two machines; -1 for none
}

func (b *Bound) raise(us float64, first, second int32) {
	if us > b.US {
		*b = Bound{us, first, second}
	}
}

// Ways returns the longest ways through dependencies alone.
func (w *Work) Ways(order []int32) Ways {
	n := w.Len()
	ways := Ways{Head: make([]float64, n), Tail: make([]float64, n)}
	for _, i := range order {
		for _, q := range w.preds(i) {
			ways.Head[i] = max(ways.Head[i], ways.Head[q]+w.US[q])
		}
	}
	for k := n - 1; k >= 0; k-- {
		i := order[k]
		for _, q := range w.preds(i) {
			ways.Tail[q] = max(ways.Tail[q], w.US[i]+ways.Tail[i])
		}
	}
	return ways
}

// LowerBound returns the best of these bounds: for each machine, that its operations run one at a time, each after its head and before its
// tail; for each pair of machines that jobs pass one after the other, Johnson's rule, which is optimal for two machines. If a machine can
// run several operations at once, the time of each is divided by that number.
func LowerBound(w *Work, ways Ways, jobs Grouping) Bound {
	b := Bound{First: -1, Second: -1}
	on := make([][]int32, len(w.Room))
	for i, m := range w.Machine {
		if w.US[i] > 0 {
			on[m] = append(on[m], int32(i))
		}
	}
	for m := range on {
		b.raise(w.inTurn(ways, on[m], float64(w.Room[m])), int32(m), -1)
		b.raise(w.sideBySide(ways, on[m], int(w.Room[m]), flow{}), int32(m), -1)
	}
	if jobs.Count < 2 {
		return b
	}
	w.boundPairs(ways, jobs, on, &b)
	return b
}

// inTurn bounds one machine: it always works on the operation with the longest tail, and interrupts it if one with a longer tail arrives.
// No schedule ends earlier, even if operations may run side by side at a part of the rate.
func (w *Work) inTurn(ways Ways, ops []int32, room float64) float64 {
	if len(ops) == 0 {
		return 0
	}
	sorted := slices.Clone(ops)
	slices.SortFunc(sorted, func(a, b int32) int {
		return cmp.Or(cmp.Compare(ways.Head[a], ways.Head[b]), cmp.Compare(a, b))
	})
	var ready tails
	now, bound, next := 0.0, 0.0, 0
	for next < len(sorted) || len(ready) > 0 {
		if len(ready) == 0 {
			now = max(now, ways.Head[sorted[next]])
		}
		for next < len(sorted) && ways.Head[sorted[next]] <= now {
			i := sorted[next]
			ready.push(remaining{ways.Tail[i], w.US[i] / room})
			next++
		}
		first := &ready[0]
		end := now + first.us
		if next < len(sorted) && ways.Head[sorted[next]] < end {
			first.us -= ways.Head[sorted[next]] - now
			now = ways.Head[sorted[next]]
			continue
		}
		now = end
		bound = max(bound, end+first.tail)
		ready.pop()
	}
	return bound
}

// remaining is what is left of an operation.
type remaining struct{ tail, us float64 }

// tails is a heap that returns the longest tail first.
type tails []remaining

func (h *tails) push(x remaining) {
	*h = append(*h, x)
	s := *h
	k := len(s) - 1
	for k > 0 && s[(k-1)/2].tail < x.tail {
		s[k] = s[(k-1)/2]
		k = (k - 1) / 2
	}
	s[k] = x
}

func (h *tails) pop() {
	s := *h
	last := len(s) - 1
	x := s[last]
	s = s[:last]
	*h = s
	k := 0
	for {
		child := 2*k + 1
		if child >= last {
			break
		}
		if child+1 < last && s[child+1].tail > s[child].tail {
			child++
		}
		if s[child].tail <= x.tail {
			break
		}
		s[k] = s[child]
		k = child
	}
	if last > 0 {
		s[k] = x
	}
}

// sideBySide bounds a machine that runs several operations at once. Its lanes start no earlier than the first, the second and the further
// operations can arrive, and likewise at the end.
func (w *Work) sideBySide(ways Ways, ops []int32, room int, f flow) float64 {
	if len(ops) < room || room < 1 {
		return 0
	}
	heads, ends := make([]float64, len(ops)), make([]float64, len(ops))
	total := 0.0
	for k, i := range ops {
		heads[k], ends[k] = ways.Head[i], ways.Tail[i]
		total += w.US[i]
	}
	slices.Sort(heads)
	slices.Sort(ends)
	for k := range room {
		head, end := heads[k], ends[k]
		if k < len(f.arrivals) {
			head = max(head, f.arrivals[k])
		}
		if k < len(f.departures) {
			end = max(end, f.departures[k])
		}
		total += head + end
	}
	return max(total/float64(room), heads[0]+w.crowded(ops, room)+ends[0])
}

// crowded returns how long a machine works at least because operations cannot be divided: of room*k+1 operations, some lane has k+1.
func (w *Work) crowded(ops []int32, room int) float64 {
	sums := make([]float64, len(ops)+1) // of the longest operation, the two longest, and so on
	for k, i := range ops {
		sums[k+1] = w.US[i]
	}
	slices.SortFunc(sums[1:], func(a, b float64) int { return cmp.Compare(b, a) })
	for k := range ops {
		sums[k+1] += sums[k]
	}
	most := 0.0
	for k := 1; room*k < len(ops); k++ {
		most = max(most, sums[room*k+1]-sums[room*k-k])
	}
	return most
}

// flow is what the machines before and after one allow. Both lists are ascending: the earliest times at which the first, the second and
// further operations can arrive; and the least times that remain after the last operation, the one before it, and so on.
type flow struct{ arrivals, departures []float64 }

// meet raises each of the times to at least the other one.
func meet(times *[]float64, others []float64) {
	if *times == nil {
		*times = others
		return
	}
	for k := range *times {
		(*times)[k] = max((*times)[k], others[k])
	}
}

// largestJob is the most operations that a job may have for bounds of pairs, because a set of them is one word.
const largestJob = 64

// boundPairs raises the bound by the bounds of pairs of machines.
func (w *Work) boundPairs(ways Ways, jobs Grouping, on [][]int32, b *Bound) {
	order := make([]int32, w.Len())
	for i := range order {
		order[i] = int32(i)
	}
	members := jobs.members(order)
	// By operation: its index in its job, and the set of the operations of the job before it.
	number, ahead := make([]uint8, w.Len()), make([]uint64, w.Len())
	sorted := make([]int32, 0, largestJob)
	for j := range members {
		if len(members[j]) > largestJob {
			members[j] = nil
			continue
		}
		// An operation after another has a later head, or the same one if the other takes no time. So repeat until nothing changes.
		sorted = append(sorted[:0], members[j]...)
		slices.SortStableFunc(sorted, func(a, b int32) int { return cmp.Compare(ways.Head[a], ways.Head[b]) })
		for k, i := range sorted {
			number[i] = uint8(k)
		}
		for changed := true; changed; {
			changed = false
			for _, i := range sorted {
				set := ahead[i]
				for _, q := range w.preds(i) {
					if jobs.Of[q] == jobs.Of[i] {
						set |= ahead[q] | 1<<number[q]
					}
				}
				changed = changed || set != ahead[i]
				ahead[i] = set
			}
		}
		copy(members[j], sorted)
	}
	flows := make([]flow, len(w.Room))
	for first := range w.Room {
		for second := range w.Room {
			if first != second && len(on[first]) > 1 && len(on[second]) > 1 {
				w.boundPair(ways, members, ahead, int32(first), int32(second), on, flows, b)
			}
		}
	}
	for m := range on {
		if w.Room[m] > 1 {
			b.raise(w.sideBySide(ways, on[m], int(w.Room[m]), flows[m]), int32(m), -1)
		}
	}
}

// boundPair raises the bound by the flow shop of two machines. For each job it counts the operations on the first machine that come before
// any on the second, and all operations on the second.
func (w *Work) boundPair(ways Ways, members [][]int32, ahead []uint64, first, second int32, on [][]int32, flows []flow, b *Bound) {
	var before, after []float64
	head, between, tail := 0.0, 0.0, 0.0
	for _, ops := range members {
		common, work := ^uint64(0), 0.0
		opensAt, closesAt := 0.0, 0.0
		for _, i := range ops {
			if w.Machine[i] != second {
				continue
			}
			if work == 0 || ways.Tail[i] < closesAt {
				closesAt = ways.Tail[i]
			}
			work += w.US[i]
			common &= ahead[i]
		}
		if work == 0 || common == 0 {
			continue
		}
		lead := 0.0
		for k, i := range ops {
			if common>>k&1 == 1 && w.Machine[i] == first {
				if lead == 0 || ways.Head[i] < opensAt {
					opensAt = ways.Head[i]
				}
				lead += w.US[i]
			}
		}
		if lead == 0 {
			continue
		}
		gap := w.between(ops, ahead, common, first, second)
		if len(before) == 0 {
			head, between, tail = opensAt, gap, closesAt
		}
		head, between, tail = min(head, opensAt), min(between, gap), min(tail, closesAt)
		before = append(before, lead/float64(w.Room[first]))
		after = append(after, work/float64(w.Room[second]))
	}
	if len(before) < 2 {
		return
	}
	b.raise(head+between+Flow(before, after, Johnson(before, after))+tail, first, second)
	// If each operation of a machine belongs to a different job, they cannot arrive faster than the other machine finishes, the shortest
	// first.
	if len(before) == len(on[second]) {
		meet(&flows[second].arrivals, sums(head+between, before))
	}
	if len(after) == len(on[first]) {
		meet(&flows[first].departures, sums(tail+between, after))
	}
}

// sums returns from plus the least of the parts, from plus the two least, and so on.
func sums(from float64, parts []float64) []float64 {
	parts = slices.Clone(parts)
	slices.Sort(parts)
	for k := range parts {
		from += parts[k]
		parts[k] = from
	}
	return parts
}

// between returns the least time from the end of a job's last counted operation on the first machine to the start of its first operation
// on the second.
func (w *Work) between(ops []int32, ahead []uint64, common uint64, first, second int32) float64 {
	least, found := 0.0, false
	var way [largestJob]float64 // from the end of one operation on the first machine to the start of each
	for a, from := range ops {
		if common>>a&1 == 0 || w.Machine[from] != first {
			continue
		}
		for k, i := range ops {
			way[k] = 0
			if ahead[i]>>a&1 == 0 {
				continue
			}
			for c, q := range ops {
				if ahead[i]>>c&1 == 1 && ahead[q]>>a&1 == 1 {
					way[k] = max(way[k], way[c]+w.US[q])
				}
			}
			if w.Machine[i] == second && (!found || way[k] < least) {
				least, found = way[k], true
			}
		}
	}
	return least
}
