// The graph to spread, and spaces: the bytes of a buffer in an order in which tiles are few ranges.

package placement

import (
	"slices"
	"sort"

	"github.com/dagrun/dagrun/dag"
)

// Free is the device of a node that may run anywhere.
const Free = -1

// level is the graph, or a body of a loop or branch.
type level struct {
	graph *dag.Graph
	first int32 // the number of its first node
	owner int32 // the number of the loop or branch that it is a body of; -1 for the graph itself
}

// Problem is a graph to spread.
type Problem struct {
	Graph   *dag.Graph
	Devices int
	Fixed   []int32 // by number of a node: where it has to run, or Free

	levels  []level           // the graph and all bodies
	inner   map[int32][]int32 // by number of a loop or branch: its bodies, by their places in levels
	nodes   int32             // in all levels
	unit    []int32           // by node of the graph itself: Fixed if no loop or branch is divided
	around  bool              // the graph is a body of a loop
	stays   []bool            // by buffer: it is not copied, because it is host memory or its device was asked for
	keep    []bool            // by buffer: its contents are of use after the last replay
	written []bool            // by buffer: some node writes it
	spaces  []space
	early   []bool // by buffer: some byte is read before it is written, so it needs its contents when a replay begins
}

// interval is a half-open range of places in a space.
type interval struct{ lo, hi int64 }

// space numbers the bytes of a buffer. Without tiles these are the bytes themselves. With tiles, rows that every access uses in the same way are
// a band, which counts as one row: a tile is then as many intervals as it has bands.
type space struct {
	pitch int64   // bytes of a row; 0: the bytes themselves
	cuts  []int64 // where bands begin, in rows; the last is the number of rows
}

// findSpaces finds the space of each buffer.
func findSpaces(p *Problem) []space {
	g := p.Graph
	list := make([]space, len(g.Buffers))
	each := func(visit func(r dag.Range)) {
		for k := range p.levels {
			l := &p.levels[k]
			for i := range l.graph.Nodes {
				for _, a := range l.graph.Accesses(dag.NodeID(i)) {
					visit(a.Range)
				}
				if c := l.graph.Nodes[i].Control; c != nil && c.Condition != nil {
					for _, r := range c.Condition.Operands {
						visit(r)
					}
				}
			}
		}
	}
	each(func(r dag.Range) {
		if r.Pitch != 0 {
			list[r.Buffer].pitch = int64(r.Pitch)
		}
	})
	each(func(r dag.Range) {
		if s := &list[r.Buffer]; s.pitch > 0 && r.Lo < r.Hi {
			s.cut(r)
		}
	})
	for k := range list {
		if s := &list[k]; s.pitch > 0 {
			s.cuts = append(s.cuts, 0, g.Buffers[k].Bytes/s.pitch)
			slices.Sort(s.cuts)
			s.cuts = slices.Compact(s.cuts)
		}
	}
	return list
}

// cut makes bands begin and end where a range does. Rows that it uses in part are bands of their own, unless it is a tile.
func (s *space) cut(r dag.Range) {
	first, end := r.Lo/s.pitch, (r.Hi+s.pitch-1)/s.pitch
	s.cuts = append(s.cuts, first, end)
	if r.Pitch != 0 {
		return
	}
	if r.Lo%s.pitch != 0 {
		s.cuts = append(s.cuts, first+1)
	}
	if r.Hi%s.pitch != 0 {
		s.cuts = append(s.cuts, end-1)
	}
}

// place is where a byte at the beginning of a band, or in a band of one row, lies in the space.
func (s *space) place(byte int64) int64 {
	band := sort.Search(len(s.cuts), func(k int) bool { return s.cuts[k] > byte/s.pitch }) - 1
	return int64(band)*s.pitch + byte%s.pitch
}

// size is how many places there are.
func (s *space) size(bytes int64) int64 {
	if s.pitch == 0 {
		return bytes
	}
	return int64(len(s.cuts)-1) * s.pitch
}

// of returns the intervals of a range.
func (s *space) of(r dag.Range, list []interval) []interval {
	switch {
	case r.Lo >= r.Hi:
		return list
	case s.pitch == 0:
		return append(list, interval{r.Lo, r.Hi})
	case r.Pitch == 0:
		return append(list, interval{s.place(r.Lo), s.placeEnd(r.Hi)})
	}
	left, right := r.Lo%s.pitch, (r.Hi-1)%s.pitch+1
	first := s.place(r.Lo) / s.pitch
	for band := first; s.cuts[band] < (r.Hi+s.pitch-1)/s.pitch; band++ {
		list = append(list, interval{band*s.pitch + left, band*s.pitch + right})
	}
	return list
}

// placeEnd is where the place of the byte before this one ends.
func (s *space) placeEnd(byte int64) int64 {
	if byte%s.pitch == 0 {
		band := sort.Search(len(s.cuts), func(k int) bool { return s.cuts[k] >= byte/s.pitch })
		return int64(band) * s.pitch
	}
	return s.place(byte-1) + 1
}

// ranges returns the bytes of an interval as ranges and tiles.
func (s *space) ranges(b dag.BufferID, x interval) []dag.Range {
	if s.pitch == 0 {
		return []dag.Range{{Buffer: b, Lo: x.lo, Hi: x.hi}}
	}
	var list []dag.Range
	for lo := x.lo; lo < x.hi; {
		band := lo / s.pitch
		hi := min(x.hi, (band+1)*s.pitch)
		if lo%s.pitch == 0 { // as many whole bands as there are
			if whole := x.hi / s.pitch; whole > band {
				list = append(list, dag.Range{Buffer: b, Lo: s.cuts[band] * s.pitch, Hi: s.cuts[whole] * s.pitch})
				lo = whole * s.pitch
				continue
			}
		}
		list = append(list, s.box(b, s.cuts[band], s.cuts[band+1], lo-band*s.pitch, hi-band*s.pitch))
		lo = hi
	}
	return list
}

// box is a range of rows and columns.
func (s *space) box(b dag.BufferID, top, bottom, left, right int64) dag.Range {
	r := dag.Range{Buffer: b, Lo: top*s.pitch + left, Hi: (bottom-1)*s.pitch + right}
	if bottom-top > 1 && right-left < s.pitch {
		r.Pitch = int32(s.pitch)
	}
	return r
}

// bytes returns how many bytes an interval has.
func (s *space) bytes(x interval) int64 {
	if s.pitch == 0 {
		return x.hi - x.lo
	}
	n := int64(0)
	for lo := x.lo; lo < x.hi; {
		band := lo / s.pitch
		hi := min(x.hi, (band+1)*s.pitch)
		n += (hi - lo) * (s.cuts[band+1] - s.cuts[band])
		lo = hi
	}
	return n
}

// below joins two ranges of which the second lies right below the first, in the same columns.
func (s *space) below(a, b dag.Range) (dag.Range, bool) {
	if a.Pitch == 0 && b.Pitch == 0 && a.Hi == b.Lo && (s.pitch == 0 || a.Lo%s.pitch == 0 && b.Lo%s.pitch == 0) {
		return dag.Range{Buffer: a.Buffer, Lo: a.Lo, Hi: b.Hi}, true
	}
	if s.pitch == 0 {
		return a, false
	}
	top, left, right := a.Lo/s.pitch, a.Lo%s.pitch, (a.Hi-1)%s.pitch+1
	middle, bottom := (a.Hi-1)/s.pitch+1, (b.Hi-1)/s.pitch+1
	oneRow := func(r dag.Range) bool { return r.Pitch != 0 || r.Lo/s.pitch == (r.Hi-1)/s.pitch }
	if !oneRow(a) || !oneRow(b) || b.Lo/s.pitch != middle || b.Lo%s.pitch != left || (b.Hi-1)%s.pitch+1 != right {
		return a, false
	}
	return s.box(a.Buffer, top, bottom, left, right), true
}
