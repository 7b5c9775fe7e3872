// The heap of the list strategy. Written for one element type: a generic one calls its comparison through a table.

package planner

// ranked is a node or a lane with what it is chosen by.
type ranked struct {
	key float64
	tie int32
	id  int32
}

func (a ranked) before(b ranked) bool { return a.key > b.key || a.key == b.key && a.tie < b.tie }

// rankedHeap gives the largest key first and, among equals, the lowest tie.
type rankedHeap []ranked

func (h *rankedHeap) push(r ranked) {
	s := append(*h, r)
	*h = s
	k := len(s) - 1
	for k > 0 {
		parent := (k - 1) / 2
		if !r.before(s[parent]) {
			break
		}
		s[k] = s[parent]
		k = parent
	}
	s[k] = r
}

func (h *rankedHeap) pop() {
	s := *h
	last := len(s) - 1
	r := s[last]
	s = s[:last]
	*h = s
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
		if !s[child].before(r) {
			break
		}
		s[k] = s[child]
		k = child
	}
	s[k] = r
}
