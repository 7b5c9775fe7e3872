// Blocked algorithms on tiles of one buffer depend on each other as those with a buffer for each tile do.

package dag

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

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
