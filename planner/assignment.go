// An assignment: each node's stream and the order of submission, before waits. Makes no ops.

package planner

import (
	"cmp"
	"slices"
)

// assignment is what a strategy decides. Stream order is submission order, which is topological.
type assignment struct {
	stream []int32   // of each node
	order  []int32   // nodes as submitted
	lanes  []lane    // by stream
	waits  *waitList // nil: not known yet
	score  score     // as the strategy sees it, where it looks
}

// lane is a stream before it has a number that people see.
type lane struct {
	pool     int32
	binding  int32 // index into the problem's bindings, -1 for none
	computes bool
}

// number gives the streams their final numbers: a bound stream the one that its user wrote, where there are that many streams,
// the others what is left, by first use. Streams without nodes vanish.
func (s *assignment) number(p *problem) {
	used := make([]int32, 0, len(s.lanes))
	seen := make([]bool, len(s.lanes))
	for _, i := range s.order {
		if k := s.stream[i]; !seen[k] {
			seen[k] = true
			if used = append(used, k); len(used) == len(s.lanes) {
				break
			}
		}
	}
	final := make([]int32, len(s.lanes))
	lanes := make([]lane, len(used))
	taken := make([]bool, len(used))
	var homeless []int32
	for _, k := range used {
		final[k] = -1
		if b := s.lanes[k].binding; b >= 0 {
			if number := p.bindings[b].number; int(number) < len(used) {
				final[k] = number
				taken[number] = true
			} else {
				homeless = append(homeless, k)
			}
		}
	}
	slices.SortFunc(homeless, func(a, b int32) int {
		return cmp.Compare(p.bindings[s.lanes[a].binding].number, p.bindings[s.lanes[b].binding].number)
	})
	for _, k := range used {
		if s.lanes[k].binding < 0 {
			homeless = append(homeless, k)
		}
	}
	next := int32(0)
	for _, k := range homeless {
		for taken[next] {
			next++
		}
		final[k] = next
		taken[next] = true
	}
	for _, k := range used {
		lanes[final[k]] = s.lanes[k]
	}
	for i, k := range s.stream {
		s.stream[i] = final[k]
	}
	s.lanes = lanes
}
