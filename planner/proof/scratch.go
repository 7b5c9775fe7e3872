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
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// countingSort orders 0..n-1 (or the given order, which it keeps among equals) by a key below keys.
func countingSort(n, keys int, order []int32, key func(int32) int32) []int32 {
	start := make([]int32, keys+1)
	for k := range n {
		start[key(int32(k))+1]++
	}
	for k := range keys {
		start[k+1] += start[k]
	}
	sorted := make([]int32, n)
	for i := range n {
		k := int32(i)
		if order != nil {
			k = order[i]
		}
		at := key(k)
		sorted[start[at]] = k
		start[at]++
	}
	return sorted
}
