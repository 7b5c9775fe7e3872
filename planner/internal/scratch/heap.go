// Heaps, for what simulates and dispatches.

package scratch

// Ordered is what a heap can keep in order.
type Ordered[T any] interface{ Before(T) bool }

// Heap keeps its least element first.
type Heap[T Ordered[T]] []T

// Push adds an element.
func (h *Heap[T]) Push(x T) {
	s := append(*h, x)
	*h = s
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !x.Before(s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = x
}

// Pop removes the least element. The heap must have one.
func (h *Heap[T]) Pop() T {
	s := *h
	first, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		down := 2*i + 1
		if down >= len(s) {
			break
		}
		if down+1 < len(s) && s[down+1].Before(s[down]) {
			down++
		}
		if !s[down].Before(last) {
			break
		}
		s[i] = s[down]
		i = down
	}
	if len(s) > 0 {
		s[i] = last
	}
	return first
}
