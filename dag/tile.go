// Tiles: slices of a buffer's first two dimensions, as boxes of bytes.

package dag

import (
	"fmt"
	"math"

	"github.com/dagrun/dagrun/dag/expr"
)

// Tile reports whether the range has bytes between its rows that are not part of it.
func (r Range) Tile() bool { return r.Pitch != 0 }

// Box returns how many rows a tile has, and the bytes of each. Any other range is one row.
func (r Range) Box() (rows, width int64) {
	if r.Pitch <= 0 || r.Hi <= r.Lo {
		return 1, r.Hi - r.Lo
	}
	pitch := int64(r.Pitch)
	rows = (r.Hi-1)/pitch - r.Lo/pitch + 1
	return rows, r.Hi - r.Lo - (rows-1)*pitch
}

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

// extentOf is the range of some rows, and of each some positions along the second dimension.
func extentOf(id BufferID, b *Buffer, rows, columns expr.Span) (Range, error) {
	row := rowBytes(b)
	if len(b.Shape) < 2 || b.Shape[1] == 0 || columns == (expr.Span{Lo: 0, Hi: b.Shape[1]}) {
		return Range{Buffer: id, Lo: rows.Lo * row, Hi: rows.Hi * row}, nil
	}
	if row > maxPitch {
		return Range{Buffer: id}, fmt.Errorf("a row of %s has %d bytes; its columns can only be sliced up to %d", b.Name, row, maxPitch)
	}
	column := row / b.Shape[1]
	return rangeOf(id, row, box{rows.Lo, rows.Hi, columns.Lo * column, columns.Hi * column}), nil
}

// tileSpans returns the rows and columns of a range that is not whole rows; false if it has no such form.
func tileSpans(b *Buffer, r Range) (rows, columns expr.Span, ok bool) {
	row := rowBytes(b)
	if len(b.Shape) < 2 || row == 0 || r.Lo >= r.Hi || r.Pitch == 0 && r.Lo%row == 0 && r.Hi%row == 0 {
		return rows, columns, false
	}
	made, column := boxesIn(r, row), row/b.Shape[1]
	x := made.list[0]
	if made.count != 1 || x.left%column != 0 || x.right%column != 0 {
		return rows, columns, false
	}
	return expr.Span{Lo: x.top, Hi: x.bottom}, expr.Span{Lo: x.left / column, Hi: x.right / column}, true
}

// TileBox returns the rows of a tile and its columns, in steps along the first dimension and along the second; false for any other range.
func (p *Pipeline) TileBox(r Range) (rows, columns [2]int64, ok bool) {
	if p == nil || r.Pitch == 0 || p.rangeProblem(r) != nil {
		return rows, columns, false
	}
	y, x, ok := tileSpans(&p.Buffers[r.Buffer], r)
	return [2]int64{y.Lo, y.Hi}, [2]int64{x.Lo, x.Hi}, ok
}

// overlap is the smallest range or tile around the bytes that two ranges share.
func (p *Pipeline) overlap(a, b Range) Range {
	row := rowBytes(&p.Buffers[a.Buffer])
	if a.Pitch == 0 && b.Pitch == 0 || row == 0 {
		return Range{Buffer: a.Buffer, Lo: max(a.Lo, b.Lo), Hi: min(a.Hi, b.Hi)}
	}
	var shared box
	first, second := boxesIn(a, row), boxesIn(b, row)
	for _, x := range first.list[:first.count] {
		for _, y := range second.list[:second.count] {
			switch z := x.intersect(y); {
			case z.empty():
			case shared.empty():
				shared = z
			default:
				shared = shared.hull(z)
			}
		}
	}
	return rangeOf(a.Buffer, row, shared)
}

// setProblem says what is wrong with a memset, or nil. The devices fill the rows of a tile with patterns of up to four bytes.
func (p *Pipeline) setProblem(dst Range, bits uint64) error {
	if b := &p.Buffers[dst.Buffer]; dst.Tile() && b.DType.Component().Size() == 8 && bits>>32 != bits&math.MaxUint32 {
		return fmt.Errorf("%s is a tile of %s, which can only be filled with a value whose upper and lower four bytes are the same, such as 0", p.rangeText(dst), b.DType)
	}
	return nil
}

// tileProblem says what is wrong with a tile made by hand, or nil.
func tileProblem(b *Buffer, r Range) error {
	row := rowBytes(b)
	if int64(r.Pitch) != row {
		return fmt.Errorf("a tile of %q has rows %d bytes apart, but a row has %d", b.Name, r.Pitch, row)
	}
	if made := boxesIn(r, row); r.Lo >= r.Hi || r.Lo%row > (r.Hi-1)%row || rangeOf(r.Buffer, row, made.list[0]) != r {
		return fmt.Errorf("bytes %d to %d of %q are not a tile", r.Lo, r.Hi, b.Name)
	}
	return nil
}

// Tile is columns left to right, counted along a buffer's second dimension, of its rows lo to hi: a(lo..hi)(left..right) of a pipeline file.
func (b *Builder) Tile(buffer BufferID, lo, hi, left, right int64) Range {
	return b.cut(buffer, b.span(buffer, 0, lo, hi), b.span(buffer, 1, left, right))
}

// PartTile is part i of k even parts of the rows and part j of l even parts of the columns: a(i of k)(j of l) of a pipeline file.
func (b *Builder) PartTile(buffer BufferID, i, k, j, l int64) Range {
	return b.cut(buffer, b.part(buffer, 0, i, k, 0), b.part(buffer, 1, j, l, 0))
}

// HaloTile is PartTile with up to halo more rows and columns on each side, as far as the buffer has them.
func (b *Builder) HaloTile(buffer BufferID, i, k, j, l, halo int64) Range {
	return b.cut(buffer, b.part(buffer, 0, i, k, halo), b.part(buffer, 1, j, l, halo))
}

// HaloPart is Part with up to halo more rows on each side, as far as the buffer has them: x(i of k halo 1) of a pipeline file.
func (b *Builder) HaloPart(buffer BufferID, i, k, halo int64) Range {
	return b.strip(buffer, b.part(buffer, 0, i, k, halo))
}

// span checks elements lo to hi along dimension 0 or 1 of a buffer; nil where they are wrong.
func (b *Builder) span(id BufferID, dimension int, lo, hi int64) *expr.Span {
	buffer, what := b.BufferAt(id), "slice"
	if dimension > 0 {
		what = "columns"
	}
	if !b.sliced(buffer, dimension) {
		return nil
	}
	problem := ""
	switch length := buffer.Shape[dimension]; {
	case lo < 0 || hi < 0:
		problem = fmt.Sprintf("%s %d..%d of %s: bounds must not be negative", what, lo, hi, buffer.Name)
	case lo > hi:
		problem = fmt.Sprintf("%s %d..%d of %s: the first bound is after the second", what, lo, hi, buffer.Name)
		if dimension == 0 {
			problem = fmt.Sprintf("slice %d..%d of %s is reversed", lo, hi, buffer.Name)
		}
	case hi > length:
		problem = fmt.Sprintf("%s %d..%d of %s: there are only %d", what, lo, hi, buffer.Name, length)
		if dimension == 0 {
			problem = fmt.Sprintf("slice %d..%d of %s goes past its end (%d)", lo, hi, buffer.Name, length)
		}
	default:
		return &expr.Span{Lo: lo, Hi: hi}
	}
	b.wrong("buffer", buffer.Name, problem, "")
	return nil
}

// part checks part i of k along dimension 0 or 1 of a buffer; nil where it is wrong.
func (b *Builder) part(id BufferID, dimension int, i, k, halo int64) *expr.Span {
	buffer := b.BufferAt(id)
	if !b.sliced(buffer, dimension) {
		return nil
	}
	problem := ""
	switch {
	case k < 1:
		problem = fmt.Sprintf("part %d of %d of %s: there must be at least one part", i, k, buffer.Name)
	case i < 0 || i >= k:
		problem = fmt.Sprintf("part %d of %d of %s: parts count from 0 to %d", i, k, buffer.Name, k-1)
	case halo < 0:
		problem = fmt.Sprintf("part %d of %d of %s with a halo of %d: it must not be negative", i, k, buffer.Name, halo)
	default:
		span := expr.PartOf(buffer.Shape[dimension], i, k, halo)
		return &span
	}
	b.wrong("buffer", buffer.Name, problem, "")
	return nil
}

// sliced reports whether a buffer has a dimension that can be sliced.
func (b *Builder) sliced(buffer *Buffer, dimension int) bool {
	if dimension < len(buffer.Shape) {
		return true
	}
	problem := buffer.Name + " is a scalar and cannot be sliced"
	if len(buffer.Shape) == 1 {
		problem = buffer.Name + " has one dimension, so it has no columns"
	}
	b.wrong("buffer", buffer.Name, problem, "")
	return false
}

// strip is some rows of a buffer; nil rows were wrong.
func (b *Builder) strip(id BufferID, rows *expr.Span) Range {
	if rows == nil {
		return Range{Buffer: id}
	}
	row := rowBytes(b.BufferAt(id))
	return Range{Buffer: id, Lo: rows.Lo * row, Hi: rows.Hi * row}
}

// cut is some rows and columns of a buffer; nil ones were wrong.
func (b *Builder) cut(id BufferID, rows, columns *expr.Span) Range {
	if rows == nil || columns == nil {
		return Range{Buffer: id}
	}
	buffer := b.BufferAt(id)
	r, err := extentOf(id, buffer, *rows, *columns)
	if err != nil {
		b.wrong("buffer", buffer.Name, err.Error(), "")
	}
	return r
}
