// Sets of bytes for the proof of loops and branches: ranges and tiles that share no bytes.

package proof

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// byteSet is a set of bytes: disjoint ranges by buffer and place. Neighbours are joined in buffers without tiles.
type byteSet []dag.Range

// of returns which of the set's ranges belong to a buffer, and whether some are tiles.
func (s byteSet) of(id dag.BufferID) (first, end int, tiles bool) {
	for first < len(s) && s[first].Buffer < id {
		first++
	}
	for end = first; end < len(s) && s[end].Buffer == id; end++ {
		tiles = tiles || s[end].Pitch != 0
	}
	return first, end, tiles
}

// add puts the bytes of a range into the set.
func (s *byteSet) add(r dag.Range) {
	if r.Lo >= r.Hi {
		return
	}
	list := *s
	first, end, tiles := list.of(r.Buffer)
	if tiles || r.Pitch != 0 {
		*s = slices.Insert(list, end, (byteSet{r}).without(&list)...)
		inOrder((*s)[first : end+len(*s)-len(list)])
		return
	}
	for first < end && list[first].Hi < r.Lo {
		first++
	}
	last := first
	for last < end && list[last].Lo <= r.Hi {
		r.Lo, r.Hi = min(r.Lo, list[last].Lo), max(r.Hi, list[last].Hi)
		last++
	}
	*s = slices.Replace(list, first, last, r)
}

// without returns the bytes that another set does not have.
func (s byteSet) without(other *byteSet) byteSet {
	var rest byteSet
	for _, r := range s {
		pieces := []dag.Range{r}
		first, end, _ := other.of(r.Buffer)
		for _, o := range (*other)[first:end] {
			if o.Hi <= r.Lo || r.Hi <= o.Lo {
				continue
			}
			var left []dag.Range
			for _, p := range pieces {
				left = remove(left, p, o)
			}
			pieces = left
		}
		rest = append(rest, pieces...)
	}
	inOrder(rest)
	return rest
}

// inOrder sorts ranges that share no bytes, of which removing has left some in another order.
func inOrder(list []dag.Range) {
	slices.SortFunc(list, func(a, b dag.Range) int { return cmp.Or(cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.Lo, b.Lo)) })
}

// remove appends the bytes of r that o does not have, as ranges and tiles.
func remove(list []dag.Range, r, o dag.Range) []dag.Range {
	add := func(p dag.Range) {
		if p.Lo < p.Hi {
			list = append(list, p)
		}
	}
	if o.Hi <= r.Lo || r.Hi <= o.Lo {
		add(r)
		return list
	}
	if r.Pitch == 0 && o.Pitch == 0 {
		add(dag.Range{Buffer: r.Buffer, Lo: r.Lo, Hi: min(r.Hi, o.Lo)})
		add(dag.Range{Buffer: r.Buffer, Lo: max(r.Lo, o.Hi), Hi: r.Hi})
		return list
	}
	pitch := int64(max(r.Pitch, o.Pitch))
	for _, x := range patches(r, pitch) {
		left := []patch{x}
		for _, y := range patches(o, pitch) {
			var next []patch
			for _, p := range left {
				next = p.without(next, y)
			}
			left = next
		}
		for _, p := range left {
			piece := dag.Range{Buffer: r.Buffer, Lo: p.top*pitch + p.left, Hi: (p.bottom-1)*pitch + p.right}
			if p.bottom-p.top > 1 && p.right-p.left < pitch {
				piece.Pitch = int32(pitch)
			}
			add(piece)
		}
	}
	return list
}

// patch is some rows, and of each the same columns.
type patch struct{ top, bottom, left, right int64 }

// patches are the rows of a tile, or those that bytes which follow each other begin, fill and end.
func patches(r dag.Range, pitch int64) []patch {
	first, last := r.Lo/pitch, (r.Hi-1)/pitch
	from, to := r.Lo-first*pitch, r.Hi-last*pitch
	if r.Pitch != 0 || first == last {
		return []patch{{first, last + 1, from, to}}
	}
	list := []patch{{first, first + 1, from, pitch}}
	if last > first+1 {
		list = append(list, patch{first + 1, last, 0, pitch})
	}
	return append(list, patch{last, last + 1, 0, to})
}

// without appends the parts of a patch that another one does not have: above it, below it, and beside it.
func (p patch) without(list []patch, o patch) []patch {
	top, bottom, left, right := max(p.top, o.top), min(p.bottom, o.bottom), max(p.left, o.left), min(p.right, o.right)
	if top >= bottom || left >= right {
		return append(list, p)
	}
	for _, part := range [4]patch{{p.top, top, p.left, p.right}, {bottom, p.bottom, p.left, p.right}, {top, bottom, p.left, left}, {top, bottom, right, p.right}} {
		if part.top < part.bottom && part.left < part.right {
			list = append(list, part)
		}
	}
	return list
}

// both returns the bytes that both sets have.
func (s byteSet) both(other *byteSet) byteSet {
	missing := s.without(other)
	return s.without(&missing)
}

// outside returns the first bytes that another set does not have.
func (s byteSet) outside(other *byteSet) (dag.Range, bool) {
	rest := s.without(other)
	if len(rest) == 0 {
		return dag.Range{}, false
	}
	return rest[0], true
}
