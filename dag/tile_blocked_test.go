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

func TestBlockedAlgorithmsOnTilesDependAsOnBuffers(t *testing.T) {
	const k, tile = 7, 3
	product := func(b *Builder, at func(m, i, j int64) Range) {
		for i := range int64(k) {
			for j := range int64(k) {
				for p := range int64(k) {
					b.Task(fmt.Sprintf("gemm.%d.%d.%d", i, j, p), at(0, i, p).In(), at(1, p, j).In(), at(2, i, j).InOut())
				}
			}
		}
		for i := range int64(k) {
			for j := range int64(k) {
				b.Task(fmt.Sprintf("feed.%d.%d", i, j), at(2, i, j).In(), at(0, i, j).Out())
			}
		}
	}
	algorithms := map[string]func(b *Builder, at func(m, i, j int64) Range){
		"product": product,
		"cholesky": func(b *Builder, at func(m, i, j int64) Range) {
			declareCholesky(b, k, func(i, j int64) Range { return at(0, i, j) })
		},
	}
	for name, declare := range algorithms {
		one := New(name)
		all := one.Device("all", F32, 3*k*tile+1, k*tile+2)
		declare(one, func(m, i, j int64) Range {
			return one.Tile(all, (m*k+i)*tile, (m*k+i+1)*tile, j*tile, (j+1)*tile)
		})
		many := New(name)
		buffers := map[[3]int64]BufferID{}
		declare(many, func(m, i, j int64) Range {
			at := [3]int64{m, i, j}
			if _, ok := buffers[at]; !ok {
				buffers[at] = many.Device(fmt.Sprintf("b%d.%d.%d", m, i, j), F32, tile, tile)
			}
			return many.Whole(buffers[at])
		})
		tiles, err := one.Graph()
		require.NoError(t, err)
		separate, err := many.Graph()
		require.NoError(t, err)
		require.Equal(t, closure(separate), closure(tiles), name)
		require.Equal(t, len(separate.Edges()), len(tiles.Edges()), name)
		for _, e := range tiles.Edges() {
			require.EqualValues(t, tile*tile*4, tiles.EdgeRange(e).Bytes(), "%s: an edge is about its tile", name)
		}
	}
}
