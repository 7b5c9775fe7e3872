// Tests of tiles: their hazards against a comparison of every pair of nodes byte by byte, and the calls that make them.

package dag

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// holds reports whether a byte of the buffer is in a range, by walking its rows.
func holds(r Range, x int64) bool {
	if r.Pitch == 0 {
		return r.Lo <= x && x < r.Hi
	}
	width := (r.Hi-r.Lo-1)%int64(r.Pitch) + 1
	for at := r.Lo; at < r.Hi; at += int64(r.Pitch) {
		if at <= x && x < at+width {
			return true
		}
	}
	return false
}

// widen adds a byte to the hull of some: to a range, or in a buffer with tiles to a box.
func widen(p *Pipeline, buffer BufferID, lo, hi int64, tile bool, x int64) (int64, int64, bool) {
	pitch := int64(0)
	for _, a := range p.accesses {
		if a.Buffer == buffer && a.Pitch != 0 {
			pitch = int64(a.Pitch)
		}
	}
	if pitch == 0 {
		return min(lo, x), max(hi, x+1), false
	}
	top, bottom, left, right := lo/pitch, (hi-1)/pitch, lo%pitch, (hi-1)%pitch
	if !tile && bottom > top {
		left, right = 0, pitch-1
	}
	top, bottom, left, right = min(top, x/pitch), max(bottom, x/pitch), min(left, x%pitch), max(right, x%pitch)
	return top*pitch + left, bottom*pitch + right + 1, bottom > top && right-left+1 < pitch
}

// drawTiles declares random tasks on matrices of bytes: even tiles, tiles with a halo, any boxes, rows, whole buffers, and ranges that
// begin and end within rows.
func drawTiles(t *rapid.T, b *Builder) {
	const rows, columns = 6, 8
	var buffers []BufferID
	for i := range rapid.IntRange(1, 2).Draw(t, "buffers") {
		buffers = append(buffers, b.Device(fmt.Sprintf("b%d", i), U8, rows, columns/2, 2))
	}
	shapes := rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 1, 7, rapid.ID[int]).Draw(t, "shapes")
	for i := range rapid.IntRange(1, 14).Draw(t, "nodes") {
		var accesses []Access
		for range rapid.IntRange(0, 4).Draw(t, "accesses") {
			buffer := rapid.SampledFrom(buffers).Draw(t, "buffer")
			number := func(most int64) int64 { return rapid.Int64Range(0, most).Draw(t, "number") }
			var r Range
			switch rapid.SampledFrom(shapes).Draw(t, "shape") {
			case 0:
				r = b.PartTile(buffer, number(1), 2, number(1), 2)
			case 1:
				r = b.HaloTile(buffer, number(2), 3, number(1), 2, number(2))
			case 2:
				top, left := number(rows), number(columns/2)
				r = b.Tile(buffer, top, top+number(rows-top), left, left+number(columns/2-left))
			case 3:
				r = b.HaloPart(buffer, number(2), 3, number(1))
			case 4:
				r = b.Whole(buffer)
			case 5:
				lo := number(rows * columns)
				r = Range{Buffer: buffer, Lo: lo, Hi: lo + number(rows*columns-lo)}
			default:
				column := number(columns/2 - 1)
				r = b.Tile(buffer, 0, rows, column, column+1)
			}
			accesses = append(accesses, Access{r, Mode(rapid.IntRange(1, 3).Draw(t, "mode"))})
		}
		b.Task(fmt.Sprintf("n%d", i), accesses...)
	}
}

func TestHazardsOfTilesAgreeWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New("random")
		drawTiles(t, b)
		checkHazards(t, b)
	})
}

// Where the cells of a grid would be too many, each line is cut on its own.
func TestHazardsOfTilesWithoutAGridAgreeWithBruteForce(t *testing.T) {
	limit := mostCells
	defer func() { mostCells = limit }()
	mostCells = func(int64) int64 { return 0 }
	rapid.Check(t, func(t *rapid.T) {
		b := New("random")
		drawTiles(t, b)
		checkHazards(t, b)
	})
}

func TestRangesOverlapAsTheirBytesDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := New("random")
		drawTiles(t, b)
		for i, x := range b.pipeline.accesses {
			rows, width := x.Box()
			count := int64(0)
			for at := range b.pipeline.Buffers[x.Buffer].Bytes {
				if holds(x.Range, at) {
					count++
				}
			}
			require.Equal(t, count, x.Bytes())
			require.Equal(t, count, rows*width)
			for _, y := range b.pipeline.accesses[:i] {
				shared := false
				for at := range b.pipeline.Buffers[x.Buffer].Bytes {
					shared = shared || x.Buffer == y.Buffer && holds(x.Range, at) && holds(y.Range, at)
				}
				require.Equal(t, shared, x.Overlaps(y.Range), "%v and %v", x, y)
				require.Equal(t, shared, y.Overlaps(x.Range), "%v and %v", y, x)
			}
		}
	})
}
