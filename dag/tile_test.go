// Tests of tiles: their hazards against a comparison of every pair of nodes byte by byte, the calls that make them, and blocked algorithms, which depend on each other as those with a buffer for each tile do.

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

// closure returns for each node the set of nodes that must come after it, joins left out.
func closure(g *Graph) []map[NodeID]bool {
	after := make([]map[NodeID]bool, g.Vertices())
	sequence := g.Sequence()
	for k := len(sequence) - 1; k >= 0; k-- {
		i := sequence[k]
		after[i] = map[NodeID]bool{}
		for _, to := range g.Succs(i) {
			if !g.IsJoin(to) {
				after[i][to] = true
			}
			for j := range after[to] {
				after[i][j] = true
			}
		}
	}
	return after[:g.Len()]
}

// blocked declare algorithms on k x k tiles of up to three matrices.
var blocked = map[string]func(b *Builder, k int64, at func(m, i, j int64) Range){
	"product": func(b *Builder, k int64, at func(m, i, j int64) Range) {
		for i := range k {
			for j := range k {
				for p := range k {
					b.Task(fmt.Sprintf("gemm.%d.%d.%d", i, j, p), at(0, i, p).In(), at(1, p, j).In(), at(2, i, j).InOut())
				}
			}
		}
		for i := range k {
			for j := range k {
				b.Task(fmt.Sprintf("feed.%d.%d", i, j), at(2, i, j).In(), at(0, i, j).Out())
			}
		}
	},
	"cholesky": func(b *Builder, k int64, at func(m, i, j int64) Range) {
		declareCholesky(b, k, func(i, j int64) Range { return at(0, i, j) })
	},
	"lu": func(b *Builder, k int64, at func(m, i, j int64) Range) {
		for p := range k {
			b.Task(fmt.Sprintf("getrf.%d", p), at(0, p, p).InOut())
			for i := p + 1; i < k; i++ {
				b.Task(fmt.Sprintf("row.%d.%d", p, i), at(0, p, p).In(), at(0, p, i).InOut())
				b.Task(fmt.Sprintf("column.%d.%d", p, i), at(0, p, p).In(), at(0, i, p).InOut())
			}
			for i := p + 1; i < k; i++ {
				for j := p + 1; j < k; j++ {
					b.Task(fmt.Sprintf("update.%d.%d.%d", p, i, j), at(0, i, p).In(), at(0, p, j).In(), at(0, i, j).InOut())
				}
			}
		}
	},
}

func TestBlockedAlgorithmsOnTilesDependAsOnBuffers(t *testing.T) {
	for name, declare := range blocked {
		// Tiles of equal size and of unequal size, taller than wide and wider than tall, down to single rows and columns.
		for _, c := range []struct{ k, rows, columns int64 }{{1, 5, 5}, {2, 3, 9}, {3, 1, 1}, {5, 4, 3}, {7, 3, 3}, {7, 1, 4}} {
			for _, more := range []int64{0, 2} {
				one, many := New(name), New(name)
				all := one.Device("all", F32, 3*c.k*c.rows+more, c.k*c.columns+more)
				declare(one, c.k, func(m, i, j int64) Range { return one.PartTile(all, m*c.k+i, 3*c.k, j, c.k) })
				buffers := map[[3]int64]BufferID{}
				declare(many, c.k, func(m, i, j int64) Range {
					at := [3]int64{m, i, j}
					if _, ok := buffers[at]; !ok {
						buffers[at] = many.Device(fmt.Sprintf("b%d.%d.%d", m, i, j), F32, c.rows, c.columns)
					}
					return many.Whole(buffers[at])
				})
				tiles, err := one.Graph()
				require.NoError(t, err)
				separate, err := many.Graph()
				require.NoError(t, err)
				require.Equal(t, closure(separate), closure(tiles), "%s %+v", name, c)
				require.Equal(t, len(separate.Edges()), len(tiles.Edges()), "%s %+v", name, c)
				for _, e := range tiles.Edges() {
					require.Contains(t, []int64{c.rows, c.rows + 1}, tiles.EdgeRange(e).Bytes()/4/max(columnsOf(tiles, e), 1), "%s %+v: an edge is about its tile", name, c)
				}
			}
		}
	}
}

// columnsOf is how many columns the bytes of an edge have.
func columnsOf(g *Graph, e Edge) int64 {
	rows, width := g.EdgeRange(e).Box()
	if rows == 1 {
		width = min(width, rowBytes(&g.Buffers[e.Buffer]))
	}
	return width / 4
}
