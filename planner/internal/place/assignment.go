// An assignment: the stream of each node and the order of submission, before waits are inserted.

package place

import (
	"cmp"
	"slices"
)

// Release returns the memory to its owner, if any. The assignment must not be used any more.
func (s *Assignment) Release() {
	if s.owner != nil {
		s.owner.release()
	}
}

// fewStreams is how many streams most assignments stay within.
const fewStreams = 32

// number gives the streams their final numbers. A bound stream gets the number that its user wrote, if there are that many streams. The
// others get the remaining numbers by first use. Streams without nodes are dropped.
func (s *Assignment) number(p *Problem) {
	// Most plans have few streams, so that these slices stay on the stack.
	var few [4 * fewStreams]int32
	words := few[:]
	if len(s.streams) > fewStreams {
		words = make([]int32, 4*len(s.streams))
	}
	count := len(s.streams)
	used, homeless := words[:0:count], words[count:count:2*count]
	final, taken := words[2*count:3*count], words[3*count:4*count]
	for k := range final {
		final[k] = -1
	}
	for _, i := range s.order {
		if k := s.stream[i]; final[k] < 0 {
			final[k] = 0
			if used = append(used, k); len(used) == count {
				break
			}
		}
	}
	streams := make([]draftStream, len(used))
	for _, k := range used {
		final[k] = -1
		if b := s.streams[k].binding; b >= 0 {
			if number := p.bindings[b].number; int(number) < len(used) {
				final[k] = number
				taken[number] = 1
			} else {
				homeless = append(homeless, k)
			}
		}
	}
	slices.SortFunc(homeless, func(a, b int32) int {
		return cmp.Compare(p.bindings[s.streams[a].binding].number, p.bindings[s.streams[b].binding].number)
	})
	for _, k := range used {
		if s.streams[k].binding < 0 {
			homeless = append(homeless, k)
		}
	}
	next := int32(0)
	for _, k := range homeless {
		for taken[next] > 0 {
			next++
		}
		final[k] = next
		taken[next] = 1
	}
	for _, k := range used {
		streams[final[k]] = s.streams[k]
	}
	for i, k := range s.stream {
		s.stream[i] = final[k]
	}
	s.streams = streams
}
