// Scratch memory: lengths for slices that the making of a plan, or its proof, keeps from the last time. Knows neither.

// Package scratch has what the making of plans sorts with and keeps memory with.
package scratch

// MostKept is how many nodes a graph may have for scratch memory of its size to be kept. For larger ones to allocate costs
// little beside the work, and what is kept unused would be much.
const MostKept = 1 << 15

// Sized returns a slice of n entries that hold anything.
func Sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Zeroed returns a slice of n entries that are all zero.
func Zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// Extended returns a slice of n entries that keep what they held.
func Extended[T any](s []T, n int) []T {
	if more := n - cap(s); more > 0 {
		return append(s[:cap(s)], make([]T, more)...)
	}
	return s[:n]
}
