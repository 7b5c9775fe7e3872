// Placing a changed order again: only from the change on, since what runs before the change stays where it was.

package shop

import "math"

// leastStride is the least number of places between marks. With more lanes marks are further apart, so that they cost less than placing.
const leastStride = 16

func newMarks(s *search) marks {
	m := marks{lanes: len(s.free)}
	m.stride = max(leastStride, m.lanes)
	count := s.w.Len()/m.stride + 1
	m.at, m.free, m.latest = make([]progress, count), make([]float64, count*m.lanes), make([]int32, count*m.lanes)
	return m
}

// take copies the marks after a place.
func (m *marks) take(from *marks, place int) {
	k := place/m.stride + 1
	if k < len(m.at) {
		copy(m.at[k:], from.at[k:])
		copy(m.free[k*m.lanes:], from.free[k*m.lanes:])
		copy(m.latest[k*m.lanes:], from.latest[k*m.lanes:])
	}
}

// placeAll places the order and returns its makespan.
func (h *improver) placeAll() float64 {
	s := h.s
	clear(s.free)
	for k := range s.latest {
		s.latest[k] = -1
	}
	makespan, _ := s.placeFrom(h.order, 0, progress{}, math.Inf(1), &h.current)
	copy(h.spots, s.spots)
	return makespan
}

// try places the order after a change, and reports whether it ends within the limit. If it does not, operations have the spots from before.
func (h *improver) try(limit float64) (float64, bool) {
	s, m := h.s, &h.current
	k := min(h.firstChange()/m.stride, len(m.at)-1)
	if k*m.stride == len(h.order) {
		k--
	}
	from := k * m.stride
	copy(s.free, m.free[k*m.lanes:])
	copy(s.latest, m.latest[k*m.lanes:])
	makespan, stopped := s.placeFrom(h.order, from, m.at[k], limit, &h.next)
	if makespan > limit {
		for _, i := range h.order[from:stopped] {
			s.spots[i] = h.spots[i]
		}
		return makespan, false
	}
	for _, i := range h.order[from:] {
		h.spots[i] = s.spots[i]
	}
	m.take(&h.next, from)
	return makespan, true
}

// firstChange is the first place at which the last change made a difference.
func (h *improver) firstChange() int {
	for k, i := range h.undo {
		if h.order[h.undoFrom+k] != i {
			return h.undoFrom + k
		}
	}
	return h.undoFrom + len(h.undo)
}

// held is an operation that started when the one before it on its lane ended.
type held struct{ op, before int32 }

// improver changes an order.
type improver struct {
	s        *search
	jobs     Grouping
	members  [][]int32 // of each job; nil if only single operations are moved
	order    []int32
	place    []int32 // of each operation in the order
	moved    []int32
	rest     []int32
	marked   []bool
	critical []held  // operations of the critical path that were delayed only by their lane, the last first
	undo     []int32 // what the order held from undoFrom on
	undoFrom int
	current  marks  // of the order
	next     marks  // of the order that is tried
	spots    []spot // of the order, by operation
}
