// Rows of the kernels that need two phases, and of the Fourier transform.

package library

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/launch"
)

func phaseRows() []row {
	return []row{
		{name: "column_standardise", doc: "z = (x - mean) / standard deviation of each column; constant columns become 0",
			signature: "rows i64, cols i64, x in X[rows*cols], z out T[rows*cols], scratch bytes[64 + 16*cols + 16*cols*min(1056, ceil(rows*cols, 8192))]", flops: "6*rows*cols", steps: fixed(110),
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				cols := max(v.of("cols"), 1)
				high := launch.BlockSize / min(cols, launch.BlockSize)
				launch.Spread(info, v.of("rows"), high*8)
				info.Grid[0] = min(info.Grid[0], 132*8)
				if v.of("cols") == 0 {
					info.Grid[0] = 0
				}
				info.Fixed = true
			},
			versions: []version{
				{bind{T: dag.F32, X: dag.F32}, columnStandardise[float32, float32]},
				{bind{T: dag.F32, X: dag.I32}, columnStandardise[int32, float32]},
				{bind{T: dag.F64, X: dag.F64}, columnStandardise[float64, float64]},
			}},
		{name: "column_sums", doc: "sums = the sum of x - pivot for each column, then the sum of its squares; column_moments combines those of several parts of a matrix",
			signature: "rows i64, cols i64, pivot in T[cols], x in T[rows*cols], sums out f64[2*cols], scratch bytes[16 + 16*cols*min(1056, ceil(rows*cols, 8192))]", flops: "4*rows*cols", steps: fixed(30),
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				cols := max(v.of("cols"), 1)
				launch.Spread(info, v.of("rows"), max(1, (8192+cols-1)/cols))
				info.Grid[0] = max(1, min(info.Grid[0], 132*8))
				if v.of("cols") == 0 {
					info.Grid[0] = 0
				}
				info.Fixed = true
			},
			versions: []version{{bind{T: dag.F32}, columnSums[float32]}, {bind{T: dag.F64}, columnSums[float64]}, {bind{T: dag.I32}, columnSums[int32]}}},
		{name: "column_moments", doc: "mean and inverse = each column's mean and 1 / standard deviation, from what column_sums made of the parts of the matrix; inverse is 1 for a constant column",
			signature: "parts i64 1.., rows i64 1.., cols i64, pivot in X[cols], sums in f64[2*parts*cols], mean out T[cols], inverse out T[cols]", flops: "2*parts*cols", steps: fixed(12),
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				launch.Spread(info, v.of("cols"), launch.BlockSize)
			},
			versions: []version{
				{bind{T: dag.F32, X: dag.F32}, momentsOfParts[float32, float32]},
				{bind{T: dag.F32, X: dag.I32}, momentsOfParts[int32, float32]},
				{bind{T: dag.F64, X: dag.F64}, momentsOfParts[float64, float64]},
			}},
		{name: "histogram", doc: "out = how many elements are in each of the equal bins from low to high, which belongs to the last bin; other elements and NaNs are not counted. If low = high, elements equal to them are in the last bin; if low > high, or if either is NaN or infinite, nothing is counted",
			signature: "n i64, bins i64 1..8192, low T, high T, x in T[n], out out i64[bins], scratch bytes[16 + 4*bins*min(528, max(1, ceil(n, 2048)))]", flops: "4*n", steps: fixed(40),
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				info.Grid = [3]uint32{uint32(max(1, min(528, (v.of("n")+2047)/2048))), 1, 1}
				info.Block = [3]uint32{512, 1, 1}
				info.Fixed = true
			},
			versions: []version{{bind{T: dag.F32}, histogram[float32]}, {bind{T: dag.F64}, histogram[float64]}, {bind{T: dag.I32}, histogram[int32]}}},
		{name: "fft_stage", doc: "y = one of the log2(n) stages (half = 1, 2, 4, ... n/2) of batch Fourier transforms of n complex numbers, stored as pairs; inverse = 1 does not scale",
			signature: "n i64 2.., batch i64, half i64 1.., inverse i32 0..1, x in T[2*n*batch], y out T[2*n*batch]", flops: "17*n*batch", steps: fixed(12),
			check: powersOfTwo, launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				launch.Spread(info, v.of("n")/2*v.of("batch"), launch.BlockSize*2)
			},
			versions: both(fftStage[float32], fftStage[float64])},
	}
}

func powersOfTwo(v scalars) error {
	n, half := v.of("n"), v.of("half")
	switch {
	case n&(n-1) != 0:
		return launch.Wrong("n", "is %d; it must be a power of two", n)
	case half&(half-1) != 0 || half >= n:
		return launch.Wrong("half", "is %d; it must be a power of two below n", half)
	}
	return nil
}
