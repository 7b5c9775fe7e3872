// Rows of the kernels that need two phases, and of the Fourier transform.

package library

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

func phaseRows() []row {
	return []row{
		{name: "column_standardise", doc: "z = (x - mean) / standard deviation of each column; constant columns become 0",
			signature: "rows i64, cols i64, x in X[rows*cols], z out T[rows*cols], scratch bytes[64 + 16*cols + 512*ceil(cols, 256) + 16*cols*min(264, ceil(rows*cols, 8192))]", flops: "6*rows*cols", steps: fixed(110),
			launch: perColumnTile(0, applyElements), check: ownColumns(1), forms: byColumns(perColumnTile(0, applyElements), fixed(110)),
			versions: []version{
				{bind{T: dag.F32, X: dag.F32}, columnStandardise[float32, float32]},
				{bind{T: dag.F32, X: dag.I32}, columnStandardise[int32, float32]},
				{bind{T: dag.F64, X: dag.F64}, columnStandardise[float64, float64]},
			}},
		{name: "column_sums", doc: "sums = the sum of x - pivot for each column, then the sum of its squares; column_moments combines those of several parts of a matrix",
			signature: "rows i64, cols i64, pivot in T[cols], x in T[rows*cols], sums out f64[2*cols], scratch bytes[512*ceil(cols, 256) + 16*cols*min(264, ceil(rows*cols, 8192))]", flops: "4*rows*cols", steps: fixed(30),
			launch: perColumnTile(1, sumElements), check: ownColumns(1), forms: byColumns(perColumnTile(1, sumElements), fixed(30)),
			versions: []version{{bind{T: dag.F32}, columnSums[float32]}, {bind{T: dag.F64}, columnSums[float64]}, {bind{T: dag.I32}, columnSums[int32]}}},
		{name: "column_moments", doc: "mean and inverse = each column's mean and 1 / standard deviation, from what column_sums made of the parts of the matrix; inverse is 1 for a constant column",
			signature: "parts i64 1.., rows i64 1.., cols i64, pivot in X[cols], sums in f64[2*parts*cols], mean out T[cols], inverse out T[cols]",
			flops:     "2*parts*cols", steps: fixed(12),
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				describe.Spread(info, v.of("cols"), describe.BlockSize)
			},
			versions: []version{
				{bind{T: dag.F32, X: dag.F32}, momentsOfParts[float32, float32]},
				{bind{T: dag.F32, X: dag.I32}, momentsOfParts[int32, float32]},
				{bind{T: dag.F64, X: dag.F64}, momentsOfParts[float64, float64]},
			}},
		{name: "histogram", doc: "out = how many elements are in each of the equal bins from low to high, which belongs to the last bin; other elements and NaNs are not counted. If low = high, elements equal to them are in the last bin; if low > high, or if either is NaN or infinite, nothing is counted",
			signature: "n i64, bins i64 1..8192, low T, high T, x in T[n], out out i64[bins], scratch bytes[96 + 4*bins*min(132, max(1, ceil(n, 4096)))]",
			flops:     "4*n", steps: fixed(40),
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				blocks := (v.of("n") + 4095) / 4096
				info.Grid = [3]uint32{uint32(max(1, min(132, blocks))), 1, 1} // as many as run at once on a large GPU
				info.Block = [3]uint32{1024, 1, 1}
				info.Fixed = true
			},
			versions: []version{{bind{T: dag.F32}, histogram[float32]}, {bind{T: dag.F64}, histogram[float64]}, {bind{T: dag.I32}, histogram[int32]}}},
		{name: "fft_stage", doc: "y = one of the log2(n) stages (half = 1, 2, 4, ... n/2) of batch Fourier transforms of n complex numbers, stored as pairs; inverse = 1 does not scale",
			signature: "n i64 2.., batch i64, half i64 1.., inverse i32 0..1, x in T[2*n*batch], y out T[2*n*batch]", flops: "17*n*batch", steps: fixed(12),
			check: powersOfTwo, launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				describe.Divide(info, v.of("n")/2*v.of("batch"), describe.BlockSize*2, describe.BlockSize*4)
			},
			versions: both(fftStage[float32], fftStage[float64])},
	}
}

// perColumnTile gives each tile of columns, of at least so many elements, a block, and a matrix without rows a number of blocks.
func perColumnTile(empty, elements int64) geometry {
	return func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
		_, wide, _, high := columnStrips(v.of("rows"), v.of("cols"), elements)
		blocks, ok := product(wide, high)
		if !ok {
			blocks = columnTiles
		}
		info.Grid = [3]uint32{uint32(max(min(empty, wide), min(blocks, columnTiles))), 1, 1}
		info.Block = [3]uint32{reduceLanes, 1, 1}
		info.Fixed = true
	}
}

// byColumns are the forms for numbers of columns that are divisible by 4, and that are even. The kernel itself takes odd ones.
func byColumns(launch geometry, steps steps) []form {
	var forms []form
	for _, own := range []int64{4, 2} {
		forms = append(forms, form{name: fmt.Sprintf("by%d", own), launch: launch, steps: steps, check: ownColumns(own),
			suits: func(v scalars) bool { return v.of("cols")%own == 0 }})
	}
	return forms
}

// ownColumns refuses launches in which a thread does not have so many neighbouring columns.
func ownColumns(own int64) func(scalars) error {
	return func(v scalars) error {
		if cols := v.of("cols"); columnsOf(cols) != own {
			return describe.Wrong("cols", "is %d, for which the kernel has another form", cols)
		}
		return nil
	}
}

func powersOfTwo(v scalars) error {
	n, half := v.of("n"), v.of("half")
	switch {
	case n&(n-1) != 0:
		return describe.Wrong("n", "is %d; it must be a power of two", n)
	case half&(half-1) != 0 || half >= n:
		return describe.Wrong("half", "is %d; it must be a power of two below n", half)
	}
	return nil
}
