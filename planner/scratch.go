// Scratch memory: lengths for slices that the making of a plan, or its proof, keeps from the last time. Knows neither.

package planner

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

// extended returns a slice of n entries that keep what they held.
func extended[T any](s []T, n int) []T {
	if more := n - cap(s); more > 0 {
		return append(s[:cap(s)], make([]T, more)...)
	}
	return s[:n]
}
