// The state of a search: how low each buffer can still lie, why, and which sections still fit. Makes no decisions.

package pack

import (
	"context"
	"slices"
)

// search is a partial layout. Each placed buffer lies at its low. Those that are not placed lie there or higher.
type search struct {
	p        *Problem
	capacity int64
	lowest   int64 // no layout ends lower, or needs to
	low      []int64
	placed   []bool
	open     []uint64 // buffers that are not placed, a bit each
	pending  []bool   // of those not placed: rests on another that is not placed, so it may not be placed yet
	level    []int32  // of those placed: the number of the decision
	depth    int32    // decisions so far
	reason   []uint64 // by buffer, the levels of the decisions that its low follows from; rows of p.words
	conflict []uint64 // the levels of the decisions that the last failure followed from

	members [][]int32 // by section, those not placed first; by descending low after a check
	count   []int32   // by section, how many are not placed
	dirty   []int32   // sections to be checked
	isDirty []bool

	trail []change
	saved []uint64 // reasons of the trail

	orders [][]int32
	tries  int
	rank   []int32 // by buffer: which goes first among those with the same low
	seen   []uint64
	queue  []int32
	steps  int64
	limit  int64
	looked int64           // steps at the last check of the context
	ctx    context.Context // of the call that made the search
	ended  bool            // the context has ended
}

// change is one entry of the trail, which undo reverts.
type change struct {
	buffer int32
	kind   changeKind
	low    int64
}

type changeKind uint8

const (
	changedLow changeKind = iota
	changedPlaced
	changedPending
)

func newSearch(ctx context.Context, p *Problem) *search {
	n := len(p.size)
	s := &search{
		ctx: ctx, p: p, low: make([]int64, n), placed: make([]bool, n), open: make([]uint64, p.words), pending: make([]bool, n),
		level: make([]int32, n), reason: make([]uint64, n*p.words), conflict: make([]uint64, p.words),
		members: make([][]int32, len(p.sections)), count: make([]int32, len(p.sections)), isDirty: make([]bool, len(p.sections)),
		seen: make([]uint64, p.words),
	}
	for i, m := range p.sections {
		s.members[i] = slices.Clone(m)
		s.count[i] = int32(len(m))
	}
	for k := range n {
		s.open[k>>6] |= 1 << (k & 63)
	}
	return s
}

// why returns the reason of a buffer's low.
func (s *search) why(k int32) []uint64 { return s.reason[int(k)*s.p.words:][:s.p.words] }

// save stores the low and the reason of a buffer before they change.
func (s *search) save(k int32) {
	s.trail = append(s.trail, change{k, changedLow, s.low[k]})
	s.saved = append(s.saved, s.why(k)...)
}

func (s *search) setPending(k int32, pending bool) {
	if s.pending[k] != pending {
		s.trail = append(s.trail, change{k, changedPending, 0})
		s.pending[k] = pending
	}
}

// undo reverts all changes after a mark.
func (s *search) undo(mark int) {
	for len(s.trail) > mark {
		c := s.trail[len(s.trail)-1]
		s.trail = s.trail[:len(s.trail)-1]
		k := c.buffer
		switch c.kind {
		case changedLow:
			s.low[k] = c.low
			at := len(s.saved) - s.p.words
			copy(s.why(k), s.saved[at:])
			s.saved = s.saved[:at]
		case changedPending:
			s.pending[k] = !s.pending[k]
		case changedPlaced:
			s.placed[k] = false
			s.open[k>>6] |= 1 << (k & 63)
			for _, i := range s.p.within[k] {
				s.count[i]++
			}
		}
	}
}

func (s *search) touch(section int32) {
	if !s.isDirty[section] {
		s.isDirty[section] = true
		s.dirty = append(s.dirty, section)
	}
}

// blame sets the conflict to the reasons of some buffers.
func (s *search) blame(buffers ...int32) {
	clear(s.conflict)
	for _, k := range buffers {
		for i, w := range s.why(k) {
			s.conflict[i] |= w
		}
	}
}

// raise sets a buffer's low, whose reason is complete, and reports whether the buffer still fits there.
func (s *search) raise(k int32, to int64) bool {
	s.low[k] = to
	for _, i := range s.p.within[k] {
		s.touch(i)
	}
	if to+s.p.size[k] > s.capacity {
		s.blame(k)
		return false
	}
	return true
}

// lift raises a pending buffer to the lowest top that it can rest on. Placed buffers do not count: all of their tops are at its old low or
// below.
func (s *search) lift(k int32) bool {
	p := s.p
	to := s.capacity // if there is nothing to rest on, it does not fit
	others := p.others(k)
	s.steps += int64(len(others))
	for _, q := range others {
		if !s.placed[q] {
			to = min(to, s.low[q]+p.size[q])
		}
	}
	if to <= s.low[k] {
		return true
	}
	s.save(k)
	why := s.why(k)
	for _, q := range others {
		if s.placed[q] {
			why[s.level[q]>>6] |= 1 << (s.level[q] & 63)
			continue
		}
		for i, w := range s.why(q) {
			why[i] |= w
		}
	}
	return s.raise(k, to)
}

// place puts a buffer at its low. Unplaced buffers that it excludes cannot lie lower, so they all go on top.
func (s *search) place(k int32) bool {
	p := s.p
	s.placed[k] = true
	s.open[k>>6] &^= 1 << (k & 63)
	s.trail = append(s.trail, change{k, changedPlaced, 0})
	for _, i := range p.within[k] {
		s.count[i]--
		m := s.members[i][:s.count[i]+1]
		at := len(m) - 1
		for m[at] != k {
			at--
		}
		copy(m[at:], m[at+1:])
		m[len(m)-1] = k
		s.touch(i)
	}
	top := s.low[k] + p.size[k]
	others := p.others(k)
	s.steps += int64(len(others))
	for _, q := range others {
		if s.placed[q] {
			continue
		}
		if s.low[q] <= top {
			s.setPending(q, false)
			if s.low[q] < top {
				s.save(q)
				s.why(q)[s.level[k]>>6] |= 1 << (s.level[k] & 63)
				if !s.raise(q, top) {
					return false
				}
			}
		} else if s.pending[q] && !s.lift(q) {
			return false
		}
	}
	return s.check()
}

// check checks the sections that have changed, until one does not fit.
func (s *search) check() bool {
	fits := true
	for _, i := range s.dirty {
		s.isDirty[i] = false
		fits = fits && s.fits(i)
	}
	s.dirty = s.dirty[:0]
	return fits
}

// forget drops the changed sections without checking them.
func (s *search) forget() {
	for _, i := range s.dirty {
		s.isDirty[i] = false
	}
	s.dirty = s.dirty[:0]
}

// fits reports whether the unplaced buffers of a section fit: those that start at some offset or higher need all of their bytes above that
// offset.
func (s *search) fits(section int32) bool {
	m := s.members[section][:s.count[section]]
	s.steps += int64(len(m))
	low := s.low
	for x := 1; x < len(m); x++ { // nearly sorted from the last time
		k := m[x]
		y := x
		for ; y > 0 && low[m[y-1]] < low[k]; y-- {
			m[y] = m[y-1]
		}
		m[y] = k
	}
	bytes := int64(0)
	for x, k := range m {
		if bytes += s.p.size[k]; low[k]+bytes > s.capacity {
			s.blame(m[:x+1]...)
			return false
		}
	}
	return true
}
