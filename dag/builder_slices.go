// Slices, parts and tiles of buffers declared by Go calls.

package dag

import (
	"fmt"

	"github.com/dagrun/dagrun/dag/expr"
)

// Whole is all of a buffer.
func (b *Builder) Whole(buffer BufferID) Range {
	return Range{Buffer: buffer, Lo: 0, Hi: b.BufferAt(buffer).Bytes}
}

// Slice is elements lo (included) to hi (excluded) of a buffer, counted along its first dimension.
func (b *Builder) Slice(buffer BufferID, lo, hi int64) Range {
	return b.strip(buffer, b.span(buffer, 0, lo, hi))
}

// Part is part i of k even parts of a buffer's first dimension; where it does not divide, the first parts are one longer.
func (b *Builder) Part(buffer BufferID, i, k int64) Range {
	return b.strip(buffer, b.part(buffer, 0, i, k, 0))
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

// noSpan stands for a span that was wrong, and was reported.
var noSpan = expr.Span{Lo: -1, Hi: -1}

// span checks elements lo to hi along dimension 0 or 1 of a buffer; noSpan where they are wrong.
func (b *Builder) span(id BufferID, dimension int, lo, hi int64) expr.Span {
	buffer, what := b.BufferAt(id), "slice"
	if dimension > 0 {
		what = "columns"
	}
	if !b.sliced(buffer, dimension) {
		return noSpan
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
		return expr.Span{Lo: lo, Hi: hi}
	}
	b.wrong("buffer", buffer.Name, problem, "")
	return noSpan
}

// part checks part i of k along dimension 0 or 1 of a buffer; noSpan where it is wrong.
func (b *Builder) part(id BufferID, dimension int, i, k, halo int64) expr.Span {
	buffer := b.BufferAt(id)
	if !b.sliced(buffer, dimension) {
		return noSpan
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
		return expr.PartOf(buffer.Shape[dimension], i, k, halo)
	}
	b.wrong("buffer", buffer.Name, problem, "")
	return noSpan
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

// strip is some rows of a buffer, or nothing of it for noSpan.
func (b *Builder) strip(id BufferID, rows expr.Span) Range {
	if rows == noSpan {
		return Range{Buffer: id}
	}
	row := rowBytes(b.BufferAt(id))
	return Range{Buffer: id, Lo: rows.Lo * row, Hi: rows.Hi * row}
}

// cut is some rows and columns of a buffer, or nothing of it for noSpan.
func (b *Builder) cut(id BufferID, rows, columns expr.Span) Range {
	if rows == noSpan || columns == noSpan {
		return Range{Buffer: id}
	}
	buffer := b.BufferAt(id)
	r, err := b.pipeline.Extent(id, rows, columns)
	if err != nil {
		b.wrong("buffer", buffer.Name, err.Error(), "")
	}
	return r
}

// In, Out and InOut are accesses of a whole buffer. For a slice see Range.In, Range.Out and Range.InOut.
func (b *Builder) In(buffer BufferID) Access { return b.Whole(buffer).In() }

func (b *Builder) Out(buffer BufferID) Access { return b.Whole(buffer).Out() }

func (b *Builder) InOut(buffer BufferID) Access { return b.Whole(buffer).InOut() }
