// The heap that ids are taken from in ascending order.

package ids

// Heap is a binary heap with the smallest id on top.
type Heap[ID ~int32] []ID

// Push puts an id into the heap.
func (h *Heap[ID]) Push(v ID) {
	s := append(*h, v)
	i := len(s) - 1
	for i > 0 && s[(i-1)/2] > v {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = v
	*h = s
}

// Pop takes the smallest id out of the heap, which is not empty.
func (h *Heap[ID]) Pop() ID {
	s := *h
	top, v := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if s[child] >= v {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = v
	return top
}
