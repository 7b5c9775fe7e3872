// Layout by one sweep: buffers get bytes in the order in which the plan first uses them, from buffers that have finished. Looks at few
// pairs, so it works for any number of buffers.

package layout

import (
	"math/bits"

	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// Limits of a sweep: how many pieces of about the right size are tried for one buffer, and how many pieces are tried for all buffers
// together when no single piece fits and runs of neighbours are tried.
const (
	sweepTries = 64
	sweepSteps = 50_000_000
)

// piece is a part of the arena that one buffer had last.
type piece struct {
	lo, hi       int64
	owner        int32
	ended        bool  // the owner's last access comes earlier in submission order; that alone does not order it before the next owner
	below, above int32 // neighbours, -1 at the ends
	class        int32 // the size class it is listed in
	prev, next   int32 // in that list, -1 at the ends
}

// sweep is the state of an arena while it is swept.
type sweep struct {
	l         *lifetimes
	pieces    []piece
	unused    []int32 // pieces that may be made anew
	top       int32   // the highest piece, -1 while there is none
	oldest    [256]int32
	newest    [256]int32
	filled    [4]uint64 // size classes that have pieces
	pieceOf   []int32   // by buffer
	stepsLeft int
}

// sizeClass puts sizes into classes, four to each doubling.
func sizeClass(bytes int64) int {
	units := uint64(bytes) / plan.ArenaAlign
	if units < 4 {
		return int(units)
	}
	log := bits.Len64(units) - 1
	return 4*(log-1) + int(units>>(log-2)&3)
}

// sweepLayout places all buffers of a plan of so many nodes.
func sweepLayout(l *lifetimes, nodes int) []int64 {
	n := len(l.buffers)
	s := &sweep{l: l, top: -1, pieceOf: make([]int32, n), stepsLeft: sweepSteps}
	for i := range s.oldest {
		s.oldest[i], s.newest[i] = -1, -1
	}
	byFirst := scratch.CountingSort(n, nodes, nil, func(k int32) int32 { return l.first[k] })
	byLast := scratch.CountingSort(n, nodes, nil, func(k int32) int32 { return l.last[k] })
	for i := range byFirst { // what one node brings to life comes largest first
		for k := i; k > 0 && l.first[byFirst[k-1]] == l.first[byFirst[k]] && l.bytes[byFirst[k-1]] < l.bytes[byFirst[k]]; k-- {
			byFirst[k-1], byFirst[k] = byFirst[k], byFirst[k-1]
		}
	}
	offsets := make([]int64, n)
	for _, k := range byFirst {
		for len(byLast) > 0 && l.last[byLast[0]] < l.first[k] {
			s.end(s.pieceOf[byLast[0]])
			byLast = byLast[1:]
		}
		offsets[k] = s.place(k)
	}
	return offsets
}

// place finds bytes for a buffer: the smallest piece that is large enough, or else the shortest run of neighbours, or else the top.
func (s *sweep) place(k int32) int64 {
	bytes := s.l.bytes[k]
	if i := s.findPiece(k, bytes); i >= 0 {
		return s.occupy(i, k, bytes)
	}
	if i := s.findRun(k, bytes); i >= 0 {
		return s.occupy(i, k, bytes)
	}
	// Grow the arena. If the piece at its end has finished, start from there.
	first := int32(-1)
	for i := s.top; i >= 0 && s.done(i, k); i = s.pieces[i].below {
		first = i
	}
	lo := int64(0)
	if first >= 0 {
		lo = s.pieces[first].lo
		s.pieces[s.top].hi = max(s.pieces[s.top].hi, lo+bytes)
		return s.occupy(first, k, bytes)
	}
	if s.top >= 0 {
		lo = s.pieces[s.top].hi
	}
	i := s.newPiece(piece{lo: lo, hi: lo + bytes, owner: k, below: s.top, above: -1})
	if s.top >= 0 {
		s.pieces[s.top].above = i
	}
	s.top = i
	s.pieceOf[k] = i
	return lo
}

// done reports whether the owner of a piece has finished before a buffer starts.
func (s *sweep) done(i, k int32) bool {
	return s.pieces[i].ended && s.l.before(s.pieces[i].owner, k)
}

// findPiece tries pieces of the right size and larger, those that ended first before the others.
func (s *sweep) findPiece(k int32, bytes int64) int32 {
	tries := sweepTries
	found := int32(-1)
	for class := s.nextClass(sizeClass(bytes)); class >= 0 && tries > 0; class = s.nextClass(class + 1) {
		for i := s.oldest[class]; i >= 0 && tries > 0; i = s.pieces[i].next {
			tries--
			room := s.pieces[i].hi - s.pieces[i].lo
			if room < bytes || found >= 0 && room >= s.pieces[found].hi-s.pieces[found].lo || !s.l.before(s.pieces[i].owner, k) {
				continue
			}
			if found = i; room == bytes {
				return found
			}
		}
		if found >= 0 {
			return found
		}
	}
	return found
}

// nextClass is the first size class from the given one that has pieces, or -1.
func (s *sweep) nextClass(class int) int {
	for word := class / 64; word < len(s.filled); word++ {
		set := s.filled[word]
		if word == class/64 {
			set &= ^uint64(0) << (class % 64)
		}
		if set != 0 {
			return word*64 + bits.TrailingZeros64(set)
		}
	}
	return -1
}

// findRun looks for neighbours that have finished and together are large enough, and returns the lowest.
func (s *sweep) findRun(k int32, bytes int64) int32 {
	found, tightest := int32(-1), int64(1<<62)
	first := int32(-1)
	for i := s.top; i >= 0 && s.stepsLeft > 0; i = s.pieces[i].below {
		s.stepsLeft--
		if !s.done(i, k) {
			first = -1
			continue
		}
		if first < 0 {
			first = i
		}
		room := s.pieces[first].hi - s.pieces[i].lo
		if below := s.pieces[i].below; room >= bytes && room < tightest && (below < 0 || !s.done(below, k)) {
			found, tightest = i, room
		}
	}
	return found
}

// occupy gives the lowest bytes of a run that starts at piece i to a buffer.
func (s *sweep) occupy(i, k int32, bytes int64) int64 {
	lo := s.pieces[i].lo
	end := lo + bytes
	for s.pieces[i].hi < end {
		above := s.pieces[i].above
		s.unlink(above)
		s.remove(above)
		s.pieces[i].hi = s.pieces[above].hi
		s.pieces[i].owner = s.pieces[above].owner // of what is left over, if anything
		s.unused = append(s.unused, above)
	}
	s.unlink(i)
	if s.pieces[i].hi > end {
		rest := s.newPiece(piece{lo: end, hi: s.pieces[i].hi, owner: s.pieces[i].owner, below: i, above: s.pieces[i].above})
		if above := s.pieces[rest].above; above >= 0 {
			s.pieces[above].below = rest
		} else {
			s.top = rest
		}
		s.pieces[i].above = rest
		s.pieces[i].hi = end
		s.end(rest)
	}
	s.pieces[i].owner, s.pieces[i].ended = k, false
	s.pieceOf[k] = i
	return lo
}

func (s *sweep) newPiece(p piece) int32 {
	if last := len(s.unused) - 1; last >= 0 {
		i := s.unused[last]
		s.unused = s.unused[:last]
		s.pieces[i] = p
		return i
	}
	s.pieces = append(s.pieces, p)
	return int32(len(s.pieces) - 1)
}

// remove merges a piece into the one below it.
func (s *sweep) remove(i int32) {
	p := s.pieces[i]
	s.pieces[p.below].above = p.above
	if p.above >= 0 {
		s.pieces[p.above].below = p.below
	} else {
		s.top = p.below
	}
}

// end makes a piece available to other buffers.
func (s *sweep) end(i int32) {
	p := &s.pieces[i]
	class := sizeClass(p.hi - p.lo)
	p.ended, p.class, p.prev, p.next = true, int32(class), s.newest[class], -1
	if p.prev >= 0 {
		s.pieces[p.prev].next = i
	} else {
		s.oldest[class] = i
	}
	s.newest[class] = i
	s.filled[class/64] |= 1 << (class % 64)
}

// unlink takes an ended piece out of its size class.
func (s *sweep) unlink(i int32) {
	p := &s.pieces[i]
	class := p.class
	if p.prev >= 0 {
		s.pieces[p.prev].next = p.next
	} else {
		s.oldest[class] = p.next
	}
	if p.next >= 0 {
		s.pieces[p.next].prev = p.prev
	} else {
		s.newest[class] = p.prev
	}
	if s.oldest[class] < 0 {
		s.filled[class/64] &^= 1 << (class % 64)
	}
}
