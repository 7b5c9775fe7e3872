// Scratch memory and sorting by small keys. The proof has its own, because it shares no code with the planner.

package proof

// mostKept is the most nodes of a graph whose scratch memory is kept. For larger graphs, allocation costs little compared with the work,
// and unused memory would be large.
const mostKept = 1 << 15

// sized returns a slice of n entries with unspecified values.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// zeroed returns a slice of n entries that are all zero.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// countingSort orders 0..n-1 by a key below keys. If an order is given, it sorts that instead, stably. It makes a list for each key, filled
// from the back.
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
