// The layout of an ejection: how low a buffer that has a place can end, and how high it can begin. Decides nothing.

package pack

import (
	"math/bits"
	"slices"

	"github.com/dagrun/dagrun/planner/internal/chance"
)

// span is between which offsets a buffer lies: its highest begin and its lowest end.
type span struct{ low, top int64 }

// nowhere is the begin of a buffer without a place, above all others.
const nowhere = 1 << (62 - edgeBits)

// edge is where a placed buffer begins or ends, and its number in the low bits.
type edge uint64

const (
	edgeBits   = 16
	edgeBuffer = 1<<edgeBits - 1
)

func edgeAt(at int64, buffer int32) edge { return edge(at)<<edgeBits | edge(buffer) }

func (e edge) at() int64     { return int64(e >> edgeBits) }
func (e edge) buffer() int32 { return int32(e & edgeBuffer) }

// in is 1 if the edge's buffer is in a set, or else 0.
func (e edge) in(set []uint64) uint64 { return set[e&edgeBuffer>>6] >> (e & 63) & 1 }

func has(set []uint64, k int32) bool { return set[k>>6]>>(k&63)&1 != 0 }

func add(set, more []uint64) {
	set = set[:len(more)]
	for i, w := range more {
		set[i] |= w
	}
}

// ejector is a layout in which some buffers have no place. One of them at a time is put where it fits. Where it fits nowhere, it goes where
// what is in its way has been hard to place the fewest times, and that is left without a place. (Nagata and Bräysy call this guided
// ejection.) Sometimes a buffer moves to another place where it fits, so that the search does not come by the same layouts again.
//
// What has a place has no offset: of two buffers that exclude each other it is only settled which lies below. So every buffer has a lowest
// end, on top of all that is below it, and a highest begin, below all that is above it, and what lies between may still move. A buffer fits at
// an offset if each that it excludes can begin above it or end below it.
//
// Offsets are counted in grains. Few branches of the inner loops depend on the layout: those are unpredictable, and most of the time went there.
type ejector struct {
	p        *Problem
	capacity int64
	size     []int64
	span     []span  // by buffer
	out      []int32 // without a place
	easy     []bool  // by buffer: there is room for it in most layouts of the others
	bySize   []int32 // those, the largest last
	waiting  []int32 // those of them that have no place yet, the largest last
	hard     []int64 // by buffer: how often it fitted nowhere, and one
	weight   []int64 // by buffer: what counts against an offset where the buffer is in the way
	largest  int64

	order []edge // of what has a place: the highest begins, ascending, so that what is below another comes before it
	tops  []edge // the lowest ends, ascending

	from, to int      // what was put or removed since the last update lies here in the order
	changed  []uint64 // buffers that may have another begin, a bit each; those that changed and what they exclude
	marked   []uint64 // likewise for ends

	lows, highs []edge // of what may be in the way of a buffer: begins and ends, ascending
	random      chance.Random
	steps       int64

	settled []int64 // by buffer, the offset in the layout that was found last

	best     []int64 // the lowest layout so far, in bytes
	peak     int64   // its end
	least    int64   // no layout ends lower, or needs to
	lower    int64   // how far the next capacity is below the peak
	patience int64   // how many steps it takes to give a capacity up
	trying   bool    // a capacity is being tried, until so many steps have been taken
	giveUp   int64
}

// put places a buffer: below all that can begin on top of it at an offset, and above the others.
func (e *ejector) put(k int32, at int64) {
	i, _ := slices.BinarySearch(e.order, edgeAt(at+e.size[k], 0))
	e.order = slices.Insert(e.order, i, edgeAt(at, k))
	e.change(k)
	if e.to > i {
		e.to++
	}
	e.from, e.to = min(e.from, i), max(e.to, i+1)
}

func (e *ejector) remove(k int32) {
	i, _ := slices.BinarySearch(e.order, edgeAt(e.span[k].low, k))
	e.order = slices.Delete(e.order, i, i+1)
	e.span[k].low = nowhere
	e.change(k)
	if e.to > i {
		e.to--
	}
	e.from, e.to = min(e.from, i), max(e.to, i)
}

// change marks a buffer that was put or removed, and what it excludes.
func (e *ejector) change(k int32) {
	e.changed[k>>6] |= 1 << (k & 63)
	add(e.changed, e.p.row(k))
}

// update computes begins and ends anew after buffers were put and removed, where they may have changed.
func (e *ejector) update() {
	if e.from > e.to {
		return
	}
	copy(e.marked, e.changed)
	e.updateEnds()
	e.updateBegins()
	clear(e.changed)
	e.from, e.to = len(e.order), 0
}

// ahead is how many entries an edge is moved past without looking whether it has to: it usually moves past two to six.
const ahead = 6

// updateEnds walks up from the lowest change.
func (e *ejector) updateEnds() {
	e.keepTops()
	tops, marked, words := e.tops, e.marked, e.p.words
	computed := int64(0)
	for _, x := range e.order[e.from:] {
		k := x.buffer()
		s := &e.span[k]
		if x.in(marked) != 0 {
			row := e.p.clash[int(k)*words:][:words]
			computed++
			top := endBelow(row, tops) + e.size[k]
			if top != s.top {
				s.top = top
				add(marked, row)
			}
		}
		// Insert it into the tops.
		v, j := edgeAt(s.top, k), len(tops)
		tops = tops[:j+1]
		if j >= ahead {
			last := (*[ahead + 1]edge)(tops[j-ahead:])
			last[6], v = max(last[5], v), min(last[5], v)
			last[5], v = max(last[4], v), min(last[4], v)
			last[4], v = max(last[3], v), min(last[3], v)
			last[3], v = max(last[2], v), min(last[2], v)
			last[2], v = max(last[1], v), min(last[1], v)
			last[1], v = max(last[0], v), min(last[0], v)
			j -= ahead
		}
		for ; j > 0 && tops[j-1] > v; j-- {
			tops[j] = tops[j-1]
		}
		tops[j] = v
	}
	e.tops = tops
	e.steps += 2*int64(len(e.order)-e.from) + computed*int64(2+e.p.words/8)
}

// endBelow is the highest of the tops of buffers in a set, or 0.
func endBelow(set []uint64, tops []edge) int64 {
	for len(tops) >= 4 {
		t := (*[4]edge)(tops[len(tops)-4:])
		if m := t[0].in(set) | t[1].in(set)<<1 | t[2].in(set)<<2 | t[3].in(set)<<3; m != 0 {
			return t[(bits.Len64(m)-1)&3].at()
		}
		tops = tops[:len(tops)-4]
	}
	for j := len(tops); j > 0; j-- {
		if t := tops[j-1]; t.in(set) != 0 {
			return t.at()
		}
	}
	return 0
}

// keepTops keeps the ends of what comes before the first change.
func (e *ejector) keepTops() {
	if e.from == 0 {
		e.tops = e.tops[:0]
		return
	}
	tops, last := e.tops, int64(e.order[e.from-1])
	n := 0
	for _, x := range tops {
		tops[n] = x
		k := x.buffer()
		n += 1 - int(uint64(last-int64(edgeAt(e.span[k].low, k)))>>63)
	}
	e.steps += int64(len(tops)) / 3
	e.tops = tops[:n]
}

// updateBegins walks down from the highest change.
func (e *ejector) updateBegins() {
	order, changed, clash, words := e.order, e.changed, e.p.clash, e.p.words
	computed := int64(0)
	for i := e.to - 1; i >= 0; i-- {
		v := order[i]
		if v.in(changed) != 0 {
			k := v.buffer()
			s := &e.span[k]
			row := clash[int(k)*words:][:words]
			computed++
			if low := e.beginAbove(row, order[i+1:]) - e.size[k]; low != s.low {
				s.low = low
				add(changed, row)
				v = edgeAt(low, k)
			}
		}
		j := i
		for ; j+1 < len(order) && order[j+1] < v; j++ {
			order[j] = order[j+1]
		}
		order[j] = v
	}
	e.steps += int64(e.to)/2 + computed*int64(3+e.p.words/8)
}

// beginAbove is the lowest begin of buffers in a set, or the capacity.
func (e *ejector) beginAbove(set []uint64, order []edge) int64 {
	for ; len(order) >= 4; order = order[4:] {
		t := (*[4]edge)(order)
		if m := t[0].in(set) | t[1].in(set)<<1 | t[2].in(set)<<2 | t[3].in(set)<<3; m != 0 {
			return t[bits.TrailingZeros64(m)&3].at()
		}
	}
	for _, x := range order {
		if x.in(set) != 0 {
			return x.at()
		}
	}
	return e.capacity
}
