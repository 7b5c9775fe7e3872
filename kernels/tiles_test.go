// Tests of kernels on tiles as pipelines use them: which form of a kernel is launched, with which row lengths, and what is refused.

package kernels_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
)

// square declares a matrix of 12 x 12, and what a test adds.
func square(declare func(b *dag.Builder, a dag.BufferID)) (*dag.Graph, error) {
	b := dag.New("tiles")
	b.Use(kernels.Library())
	a := b.Device("a", dag.F32, 12, 12)
	declare(b, a)
	return b.Graph()
}

func TestTilesGetTheirRowLength(t *testing.T) {
	_, err := square(func(b *dag.Builder, a dag.BufferID) {
		c := b.Device("c", dag.F32, 4, 3)
		b.Kernel("mm", "gemm", dag.Args{0, 1, 4, 3, 4, 1, b.PartTile(a, 0, 3, 1, 3), b.Tile(a, 9, 12, 4, 8), 0, b.Whole(c)})
		b.Kernel("rows", "gemm", dag.Args{0, 0, 4, 12, 4, 1, b.Whole(c), b.Part(a, 0, 3), 1, b.Part(a, 2, 3)})
	})
	require.ErrorContains(t, err, "argument a of kernel \"gemm\" needs 16 elements (m*k), but its slice has only 12")
	g, err := square(func(b *dag.Builder, a dag.BufferID) {
		c, d := b.Device("c", dag.F32, 4, 3), b.Device("d", dag.F32, 4, 4)
		b.Kernel("mm", "gemm", dag.Args{0, 1, 4, 3, 4, 1, b.PartTile(a, 0, 3, 1, 3), b.Tile(a, 9, 12, 4, 8), 0, b.Whole(c)})
		b.Kernel("rows", "gemm", dag.Args{0, 0, 4, 12, 4, 1, b.Whole(d), b.Part(a, 0, 3), 1, b.Part(a, 2, 3)})
	})
	require.NoError(t, err)
	tiles, rows := g.Nodes[0].Launch, g.Nodes[1].Launch
	require.Equal(t, "dagrun_gemm_ld_thin12_f32", tiles.Kernel.Entry())
	require.Len(t, tiles.Args, 13)
	for i, ld := range []uint64{12, 12, 0} {
		require.Equal(t, dag.Arg{DType: dag.I64, Bits: ld}, tiles.Args[10+i])
	}
	require.Equal(t, "dagrun_gemm_thin12_f32", rows.Kernel.Entry(), "whole rows are no tiles")
	require.Len(t, rows.Args, 10)
	// The accesses are the tiles themselves, so the second node is about other bytes than the first.
	for i, want := range []dag.Range{{Buffer: 0, Lo: 16, Hi: 3*48 + 32, Pitch: 48}, {Buffer: 0, Lo: 9*48 + 16, Hi: 11*48 + 32, Pitch: 48}} {
		require.Equal(t, want, g.Accesses(0)[i].Range)
	}
}

func TestTilesThatKernelsRefuse(t *testing.T) {
	for _, c := range []struct {
		want    string
		declare func(b *dag.Builder, a dag.BufferID)
	}{
		{`argument a of kernel "gemm" is a matrix of 4 x 3, but its tile has 4 x 4`, func(b *dag.Builder, a dag.BufferID) {
			b.Kernel("n", "gemm", dag.Args{0, 0, 4, 4, 3, 1, b.PartTile(a, 0, 3, 0, 3), b.Tile(a, 0, 3, 4, 8), 0, b.PartTile(a, 1, 3, 1, 3)})
		}},
		{`argument b of kernel "gemm" is a matrix of 3 x 4, but its tile has 4 x 3`, func(b *dag.Builder, a dag.BufferID) {
			b.Kernel("n", "gemm", dag.Args{1, 1, 4, 3, 4, 1, b.PartTile(a, 0, 3, 0, 3), b.Tile(a, 4, 8, 4, 7), 0, b.Tile(a, 0, 4, 8, 11)})
		}},
		{`argument c of kernel "gemm" overlaps a in memory, and c is written`, func(b *dag.Builder, a dag.BufferID) {
			b.Kernel("n", "gemm", dag.Args{0, 0, 4, 4, 4, 1, b.Tile(a, 0, 4, 0, 4), b.Tile(a, 0, 4, 8, 12), 0, b.Tile(a, 3, 7, 3, 7)})
		}},
		{`argument y of kernel "transpose" is a matrix of 5 x 3, but its tile has 3 x 5`, func(b *dag.Builder, a dag.BufferID) {
			b.Kernel("n", "transpose", dag.Args{3, 5, b.Tile(a, 0, 3, 0, 5), b.Tile(a, 5, 8, 0, 5)})
		}},
		{`argument x of kernel "gemv" needs contiguous elements, but`, func(b *dag.Builder, a dag.BufferID) {
			b.Kernel("n", "gemv", dag.Args{4, 4, 1, b.Part(a, 0, 3), b.Tile(a, 4, 8, 0, 1), 0, b.Part(a, 2, 3)})
		}},
		{`argument a of kernel "gemv" needs contiguous elements, but`, func(b *dag.Builder, a dag.BufferID) {
			b.Kernel("n", "gemv", dag.Args{4, 4, 1, b.PartTile(a, 0, 3, 0, 3), b.Part(a, 1, 3), 0, b.Part(a, 2, 3)})
		}},
		{`takes 2 arguments (n, a), got 3`, func(b *dag.Builder, a dag.BufferID) {
			b.Kernel("n", "potrf", dag.Args{4, b.PartTile(a, 0, 3, 0, 3), 12})
		}},
	} {
		_, err := square(c.declare)
		require.ErrorContains(t, err, c.want)
	}
}
