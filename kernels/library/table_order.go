// Rows of the kernels whose tiles follow each other: prefix sums and sorting.

package library

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

// mostWaiting is how many blocks a kernel has at most whose tiles wait for each other: all run at once on a large GPU.
const mostWaiting = 132 * 8

// orderTile is how many elements a block sorts or selects at a time.
const orderTile = 4096

// chained is a launch with a block for each tile, up to mostWaiting.
func chained(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
	describe.Spread(info, v.of("n"), orderTile)
	info.Grid[0] = min(info.Grid[0], mostWaiting)
	info.Fixed = true
}

// scannedTiles is a launch with a block for each tile.
func scannedTiles(k *libraryKernel, v scalars, info *dag.LaunchInfo) {
	tile := scanBlock / k.types.T.Size()
	info.Grid = [3]uint32{uint32((v.of("n") + tile - 1) / tile), 1, 1}
	info.Block = [3]uint32{describe.BlockSize, 1, 1}
	info.Fixed = true
}

func orderRows() []row {
	// Two counters, then words of 8 bytes for each tile of 65,536 bytes, each 32 of these, and each 1,024, twice as many for elements of 8 bytes.
	scan := "n i64 0..34359738368, x in T[n], y out T[n], scratch bytes[64 + 2*sizeof_T*(ceil(n*sizeof_T, 65536) + ceil(n*sizeof_T, 2097152) + ceil(n*sizeof_T, 67108864) + 1)]"
	// Counters and counts of digits, then a word for each digit of each tile, then the keys and values between the first move and the last, twice.
	const sort = "scratch bytes[16512 + ceil(n, 4096)*(2048 + 8192*sizeof_T + 8192*sizeof_X)]"
	passes := func(k *libraryKernel) int64 { return k.types.T.Size() }
	moving := func(k *libraryKernel, v scalars, info *dag.LaunchInfo) {
		tiles := (v.of("n") + orderTile - 1) / orderTile
		describe.Spread(info, tiles, 1)
		info.Grid[0] = min(info.Grid[0], mostWaiting)
		info.Fixed = true
	}
	sortSteps := func(k *libraryKernel, _ scalars) float64 { return 60 + 50*float64(passes(k)) }
	return []row{
		{name: "exclusive_scan", doc: "y[i] = x[0] + ... + x[i-1]", signature: scan, flops: "2*n", steps: fixed(30), launch: scannedTiles,
			versions: []version{{bind{T: dag.F32}, scanning[float32](false)}, {bind{T: dag.F64}, scanning[float64](false)}, {bind{T: dag.I32}, scanning[int32](false)}}},
		{name: "inclusive_scan", doc: "y[i] = x[0] + ... + x[i]", signature: scan, flops: "2*n", steps: fixed(30), launch: scannedTiles,
			versions: []version{{bind{T: dag.F32}, scanning[float32](true)}, {bind{T: dag.F64}, scanning[float64](true)}, {bind{T: dag.I32}, scanning[int32](true)}}},
		{name: "sort", doc: "y = the elements of x in ascending order, NaNs last; equal elements, such as 0 and -0, keep their order",
			signature: "n i64 0..4294967296, x in T[n], y out T[n], " + sort, flops: "40*n", steps: sortSteps, launch: moving, inPlace: true,
			versions: []version{{bind{T: dag.F32}, sorting[float32]}, {bind{T: dag.F64}, sorting[float64]}, {bind{T: dag.I32}, sorting[int32]},
				{bind{T: dag.I64}, sorting[int64]}, {bind{T: dag.U32}, sorting[uint32]}, {bind{T: dag.U64}, sorting[uint64]}}},
		{name: "sort_pairs", doc: "sorted = keys in the order of sort, and moved = values, each moved with its key",
			signature: "n i64 0..4294967296, keys in T[n], values in X[n], sorted out T[n], moved out X[n], " + sort, flops: "40*n", steps: sortSteps,
			launch: moving, inPlace: true,
			versions: slices.Concat(pairsBy[float32](dag.F32), pairsBy[float64](dag.F64), pairsBy[int32](dag.I32), pairsBy[int64](dag.I64), pairsBy[uint32](dag.U32),
				pairsBy[uint64](dag.U64))},
	}
}
