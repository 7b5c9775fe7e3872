// Scratch memory and sorting by small keys, the proof's own: it shares no code with the making of plans.

package proof

// mostKept is how many nodes a graph may have for scratch memory of its size to be kept. For larger ones to allocate costs
// little beside the work, and what is kept unused would be much.
const mostKept = 1 << 15

// sized returns a slice of n entries that hold anything.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// zeroed returns a slice of n entries that are all zero.
func zeroed[T any](s []T, n int) []T {
	s = sized(s, n)
	clear(s)
	return s
}

// countingSort orders 0..n-1 (or the given order, which it keeps among equals) by a key below keys: a list for each key, filled from the
// back.
func countingSort(n, keys int, order []int32, key func(int32) int32) []int32 {
	lists, next := make([]int32, keys), make([]int32, n) // plus 1
	for i := n - 1; i >= 0; i-- {
		k := int32(i)
		if order != nil {
			k = order[i]
		}
		list := &lists[key(k)]
		next[k], *list = *list, k+1
	}
	sorted := make([]int32, 0, n)
	for _, k := range lists {
		for ; k > 0; k = next[k-1] {
			sorted = append(sorted, k-1)
		}
	}
	return sorted
}
