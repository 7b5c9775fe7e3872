// Disjoint sets of small numbers, joined one pair at a time (union-find).

// Package sets joins numbers into disjoint sets.
package sets

// Sets divides the numbers from 0 to n-1 into disjoint sets.
type Sets struct{ toward []int32 } // by number: a number of the same set, closer to the least one

// New puts each of n numbers into a set of its own.
func New(n int) Sets {
	s := Sets{make([]int32, n)}
	for i := range s.toward {
		s.toward[i] = int32(i)
	}
	return s
}

// Least returns the least number of the set that i is in: two numbers with the same one are in the same set.
func (s Sets) Least(i int32) int32 {
	for s.toward[i] != i {
		s.toward[i] = s.toward[s.toward[i]]
		i = s.toward[i]
	}
	return i
}

// Join makes the sets of a and b one.
func (s Sets) Join(a, b int32) {
	a, b = s.Least(a), s.Least(b)
	s.toward[max(a, b)] = min(a, b)
}
