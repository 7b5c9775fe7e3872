// Sorting by small keys, for the planner and the proof.

package scratch

// CountingSort orders 0..n-1 by a key below keys. If an order is given, it sorts that instead, stably.
func CountingSort(n, keys int, order []int32, key func(int32) int32) []int32 {
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
