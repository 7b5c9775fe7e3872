// Scratch memory: slices that the planner and the proof keep from one plan to the next.

// Package scratch has the slices and the sorting that the planner and the proof share. It knows nothing of plans.
package scratch

// MostKept is the most nodes of a graph whose scratch memory is kept. For larger graphs, allocation costs little compared with the work,
// and unused memory would be large.
const MostKept = 1 << 15

// Sized returns a slice of n entries with unspecified values.
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

// Extended returns a slice of n entries. Existing entries keep their values.
func Extended[T any](s []T, n int) []T {
	if more := n - cap(s); more > 0 {
		return append(s[:cap(s)], make([]T, more)...)
	}
	return s[:n]
}
