// Tiles: slices of a buffer's first two dimensions, as boxes of bytes.

package dag

import "math"

// Overlaps reports whether two ranges share a byte.
func (r Range) Overlaps(other Range) bool {
	return r.Buffer == other.Buffer && r.Lo < other.Hi && other.Lo < r.Hi && boxesOf(r).meet(boxesOf(other))
}

// box is some rows of a matrix of bytes, and of each the same columns.
type box struct{ top, bottom, left, right int64 }

func (b box) empty() bool { return b.top >= b.bottom || b.left >= b.right }

func (b box) intersect(c box) box {
	return box{max(b.top, c.top), min(b.bottom, c.bottom), max(b.left, c.left), min(b.right, c.right)}
}

// hull is the smallest box around two, which are not empty.
func (b box) hull(c box) box {
	return box{min(b.top, c.top), max(b.bottom, c.bottom), min(b.left, c.left), max(b.right, c.right)}
}

// boxes are up to three boxes one below the other: a range of bytes that starts and ends within rows is three.
type boxes struct {
	pitch int64
	list  [3]box
	count int
}

// boxesOf cuts a range into boxes of its own pitch. A range that is no tile has one row and no pitch.
func boxesOf(r Range) boxes {
	if r.Pitch == 0 {
		return boxes{count: 1, list: [3]box{{0, 1, r.Lo, r.Hi}}}
	}
	return boxesIn(r, int64(r.Pitch))
}

// boxesIn cuts a range into boxes in rows of pitch bytes, from the first row on.
func boxesIn(r Range, pitch int64) boxes {
	b := boxes{pitch: pitch}
	if r.Lo >= r.Hi {
		return b
	}
	top, left := r.Lo/pitch, r.Lo%pitch
	last, right := (r.Hi-1)/pitch, (r.Hi-1)%pitch+1
	add := func(x box) {
		if !x.empty() {
			b.list[b.count] = x
			b.count++
		}
	}
	switch {
	case r.Pitch != 0 || top == last || left == 0 && right == pitch:
		add(box{top, last + 1, left, right})
	default:
		whole := box{top, last + 1, 0, pitch}
		if left > 0 {
			add(box{top, top + 1, left, pitch})
			whole.top++
		}
		if right < pitch {
			whole.bottom--
		}
		add(whole)
		if right < pitch {
			add(box{last, last + 1, 0, right})
		}
	}
	return b
}

// meet reports whether any two boxes share a byte, whatever their pitches. At least one of them has none or both have the same.
func (b boxes) meet(c boxes) bool {
	pitch := max(b.pitch, c.pitch)
	b, c = b.of(pitch), c.of(pitch)
	for _, x := range b.list[:b.count] {
		for _, y := range c.list[:c.count] {
			if !x.intersect(y).empty() {
				return true
			}
		}
	}
	return false
}

// of cuts boxes without a pitch into rows.
func (b boxes) of(pitch int64) boxes {
	if b.pitch == pitch || pitch == 0 {
		return b
	}
	return boxesIn(Range{Lo: b.list[0].left, Hi: b.list[0].right}, pitch)
}

// rangeOf is a box of a buffer's bytes in the one form that it has: as a tile, or as bytes that follow each other.
func rangeOf(id BufferID, pitch int64, b box) Range {
	if b.empty() {
		at := b.top * pitch
		return Range{Buffer: id, Lo: at, Hi: at}
	}
	r := Range{Buffer: id, Lo: b.top*pitch + b.left, Hi: (b.bottom-1)*pitch + b.right}
	if b.bottom-b.top > 1 && b.right-b.left < pitch {
		r.Pitch = int32(pitch)
	}
	return r
}

// maxPitch is how many bytes a row of a buffer may have whose columns are sliced; copies of tiles on a GPU have the same limit.
const maxPitch = math.MaxInt32
