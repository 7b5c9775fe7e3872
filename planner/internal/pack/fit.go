// The decisions of a search: which buffer comes next, what to do if it cannot lie at its lowest offset, and when to start over in another
// order.

package pack

import (
	"cmp"
	"math/bits"
	"slices"
)

// restartDives is the shortest run of one order, in dives. A tenth of the orders solve a hard instance within a hundred dives, and most
// others never do, so many orders get short runs and few get long ones.
const restartDives = 20

// outcome of a part of the search.
type outcome uint8

const (
	failed outcome = iota
	solved
	stopped // out of steps
)

// fit looks for a layout within a capacity, order after order. The layout that it finds is in low.
func (s *search) fit(capacity, steps int64) Verdict {
	s.restart()
	s.capacity = s.p.floor(capacity)
	for i := range s.p.sections {
		s.touch(int32(i))
	}
	if !s.check() {
		return Impossible
	}
	all := s.p.ranked(func(a, b int32) int { return 0 })
	end := s.steps + steps
	unit := min(restartDives*s.p.dive(), steps/2)
	for run := 1; s.steps < end && !s.ended; run++ {
		s.rank = s.order(s.tries)
		s.tries++
		s.limit = min(end, s.steps+unit*luby(run))
		switch s.solve(all) {
		case solved:
			return Found
		case failed:
			return Impossible
		}
		s.restart()
	}
	return Unknown
}

// restart undoes every decision.
func (s *search) restart() {
	s.forget()
	s.undo(0)
	s.depth = 0
}

// luby is the sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... from 1: the best lengths of runs if nothing is known about the problem.
func luby(i int) int64 {
	for {
		k := bits.Len(uint(i))
		if i == 1<<k-1 {
			return 1 << (k - 1)
		}
		i -= 1<<(k-1) - 1
	}
}

// choose returns the lowest buffer of a part that is not placed, or -1.
func (s *search) choose(part []int32) int32 {
	best := int32(-1)
	for _, k := range part {
		if !s.placed[k] && (best < 0 || s.low[k] < s.low[best] || s.low[k] == s.low[best] && s.rank[k] < s.rank[best]) {
			best = k
		}
	}
	s.steps += int64(len(part)) / 4
	return best
}

// solve places the buffers of a part that excludes no other buffer that is not placed. If it fails, the state is as before, and the
// conflict holds the earlier decisions that the failure follows from.
func (s *search) solve(part []int32) outcome {
	mark, start := len(s.trail), s.depth
	for {
		k := s.choose(part)
		if k < 0 {
			return solved
		}
		if s.steps > s.limit || s.over() {
			return stopped
		}
		level := s.depth
		if !s.pending[k] {
			s.depth++
			s.level[k] = level
			before := len(s.trail)
			if s.place(k) {
				if result := s.solveRest(part, k); result != failed {
					return result
				}
			}
			s.forget()
			s.undo(before)
			s.depth = level
			word, bit := level>>6, uint64(1)<<(level&63)
			if s.conflict[word]&bit == 0 { // another offset for k would not help
				s.undo(mark)
				s.depth = start
				return failed
			}
			s.save(k)
			s.conflict[word] &^= bit
			for i, w := range s.conflict {
				s.why(k)[i] |= w
			}
			s.setPending(k, true)
		}
		if !s.lift(k) || !s.check() {
			s.forget()
			s.undo(mark)
			s.depth = start
			return failed
		}
	}
}

// contextSteps is how many steps pass between two checks of the context, about a millisecond.
const contextSteps = 100_000

// over reports whether the context has ended.
func (s *search) over() bool {
	if s.steps-s.looked > contextSteps {
		s.looked = s.steps
		s.ended = s.ctx.Err() != nil
	}
	return s.ended
}

// solveRest solves what is left of a part after a buffer was placed. If the rest has split into pieces, it solves them one by one.
func (s *search) solveRest(part []int32, k int32) outcome {
	left := make([]int32, 0, len(part))
	for _, q := range part {
		if !s.placed[q] {
			left = append(left, q)
		}
	}
	if s.together(k) {
		return s.solve(left)
	}
	for _, piece := range s.pieces(left) {
		if result := s.solve(piece); result != solved {
			return result
		}
	}
	return solved
}

// together reports whether the unplaced buffers that a buffer excludes are still connected.
func (s *search) together(k int32) bool {
	row := s.p.row(k)
	left, first := 0, int32(-1)
	for i, w := range row {
		s.seen[i] = 0
		w &= s.open[i]
		if w != 0 && first < 0 {
			first = int32(i*64 + bits.TrailingZeros64(w))
		}
		left += bits.OnesCount64(w)
	}
	if left == 0 {
		return false
	}
	s.seen[first>>6] |= 1 << (first & 63)
	left--
	s.queue = append(s.queue[:0], first)
	for at := 0; at < len(s.queue) && left > 0; at++ {
		s.steps += int64(s.p.words)
		for i, w := range s.p.row(s.queue[at]) {
			if w &= s.open[i] &^ s.seen[i]; w != 0 {
				s.seen[i] |= w
				left -= bits.OnesCount64(w & row[i])
				for ; w != 0; w &= w - 1 {
					s.queue = append(s.queue, int32(i*64+bits.TrailingZeros64(w)))
				}
			}
		}
	}
	return left == 0
}

// pieces splits unplaced buffers into connected pieces, the smallest piece first.
func (s *search) pieces(left []int32) [][]int32 {
	var pieces [][]int32
	clear(s.seen)
	for _, first := range left {
		if s.seen[first>>6]&(1<<(first&63)) != 0 {
			continue
		}
		s.seen[first>>6] |= 1 << (first & 63)
		piece := []int32{first}
		for at := 0; at < len(piece); at++ {
			s.steps += int64(s.p.words)
			for i, w := range s.p.row(piece[at]) {
				w &= s.open[i] &^ s.seen[i]
				s.seen[i] |= w
				for ; w != 0; w &= w - 1 {
					piece = append(piece, int32(i*64+bits.TrailingZeros64(w)))
				}
			}
		}
		slices.Sort(piece)
		pieces = append(pieces, piece)
	}
	slices.SortStableFunc(pieces, func(a, b []int32) int { return cmp.Compare(len(a), len(b)) })
	return pieces
}
