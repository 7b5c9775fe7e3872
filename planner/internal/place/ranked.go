// The heaps of the list strategy. They are written for their element types, because a generic heap calls its comparison through a table.
// They grow and shrink in place, because assigning a slice takes a write barrier.

package place

import (
	"math"
)

// urgency orders ready nodes, the smallest first: by longest remaining path, in single precision, then by a tie-break.
type urgency uint64

func urgencyOf(rank float64, tie uint32) urgency {
	// Bits of positive floats order as the floats do.
	return urgency(^math.Float32bits(float32(rank)))<<32 | urgency(tie)
}

// rank returns the longest remaining path, rounded.
func (u urgency) rank() float64 { return float64(math.Float32frombits(^uint32(u >> 32))) }

func (u urgency) tie() uint32 { return uint32(u) }

// urgencyHeap returns the smallest urgency first. Each node has four children: half as many levels as with two, in one cache line.
type urgencyHeap []urgency

func (h *urgencyHeap) push(u urgency) {
	*h = append(*h, u)
	s := *h
	k := len(s) - 1
	for k > 0 {
		parent := (k - 1) / 4
		if u >= s[parent] {
			break
		}
		s[k] = s[parent]
		k = parent
	}
	s[k] = u
}

// less returns 1 if a is less than b, else 0.
func less(a, b urgency) int {
	if a < b {
		return 1
	}
	return 0
}

func (h *urgencyHeap) pop() {
	s := *h
	last := len(s) - 1
	u := s[last]
	*h = (*h)[:last]
	s = s[:last]
	if last == 0 {
		return
	}
	k := 0
	for {
		child := 4*k + 1
		if child+4 > last {
			break
		}
		// Which child is the smallest is unpredictable, so this is branch-free.
		four := (*[4]urgency)(s[child:])
		left, right := less(four[1], four[0]), 2+less(four[3], four[2])
		first, second := min(four[0], four[1]), min(four[2], four[3])
		least := left ^ (left^right)&-less(second, first)
		value := min(first, second)
		if value >= u {
			s[k] = u
			return
		}
		s[k] = value
		k = child + least
	}
	if child := 4*k + 1; child < last {
		least := child
		for other := child + 1; other < last; other++ {
			if s[other] < s[least] {
				least = other
			}
		}
		if s[least] < u {
			s[k] = s[least]
			k = least
		}
	}
	s[k] = u
}

// finishing is a running node and when it ends.
type finishing struct {
	at   float64
	node int32
}

func (a finishing) before(b finishing) bool { return a.at < b.at || a.at == b.at && a.node < b.node }

// finishingHeap returns the node that ends first; among equals, the one declared first.
type finishingHeap []finishing

func (h *finishingHeap) push(f finishing) {
	*h = append(*h, f)
	s := *h
	k := len(s) - 1
	for k > 0 {
		parent := (k - 1) / 2
		if !f.before(s[parent]) {
			break
		}
		s[k] = s[parent]
		k = parent
	}
	s[k] = f
}

func (h *finishingHeap) pop() {
	s := *h
	last := len(s) - 1
	f := s[last]
	*h = (*h)[:last]
	s = s[:last]
	if last == 0 {
		return
	}
	k := 0
	for {
		child := 2*k + 1
		if child >= last {
			break
		}
		if child+1 < last && s[child+1].before(s[child]) {
			child++
		}
		if !s[child].before(f) {
			break
		}
		s[k] = s[child]
		k = child
	}
	s[k] = f
}
