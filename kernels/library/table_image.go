// Rows of the kernels on pictures and grids, and of those that need two phases.

package library

import (
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/launch"
)

func imageRows() []row {
	conv := "rows i64 1.., cols i64 1.., in i64 1.., out i64 1.., size i64 1.., stride i64 1.., pad i64 0.., x in f32[rows*cols*in], weights in f32[out*size*size*in], y out f32[((rows+2*pad-size)/stride+1)*((cols+2*pad-size)/stride+1)*out]"
	convFlops := "2*out*size*size*in*((rows+2*pad-size)/stride+1)*((cols+2*pad-size)/stride+1)"
	// The same for some rows of a larger picture, which has rows of zeros only at its edges.
	convRows := strings.NewReplacer("pad i64 0..,", "pad i64 0.., above i64 0.., below i64 0..,", "rows+2*pad", "rows+above+below")
	return []row{
		{name: "gaussian_blur", doc: "y = x blurred by a Gaussian of the given diameter in points; points outside the picture count as zero", signature: "rows i64, cols i64, diameter i32 1..31, sigma T, x in T[rows*cols], y out T[rows*cols]", flops: "4*diameter*rows*cols",
			check: oddDiameter, launch: func(_ *libraryKernel, v values, info *dag.LaunchInfo) {
				blurred(info, v.of("rows"), v.of("cols"))
			},
			versions: both(gaussianBlur[float32](false), gaussianBlur[float64](false))},
		{name: "gaussian_blur_rows", doc: "gaussian_blur for some rows of a larger picture: x has `above` extra rows before them and `below` after, up to the radius of the blur or the edge of the picture",
			signature: "rows i64, cols i64, above i64 0..15, below i64 0..15, diameter i32 1..31, sigma T, x in T[(above+rows+below)*cols], y out T[rows*cols]", flops: "4*diameter*rows*cols",
			check: oddDiameter, launch: func(_ *libraryKernel, v values, info *dag.LaunchInfo) {
				blurred(info, v.of("rows"), v.of("cols"))
			},
			versions: both(gaussianBlur[float32](true), gaussianBlur[float64](true))},
		{name: "sobel", doc: "y = the magnitude of x's gradient (Sobel); points outside the picture count as zero", signature: "rows i64, cols i64, x in T[rows*cols], y out T[rows*cols]", flops: "15*rows*cols",
			launch: points, versions: both(byRows(sobel[float32](false)), byRows(sobel[float64](false)))},
		{name: "sobel_rows", doc: "sobel for some rows of a larger picture: x has `above` extra rows before them and `below` after, 0 at an edge of the picture",
			signature: "rows i64, cols i64, above i64 0..1, below i64 0..1, x in T[(above+rows+below)*cols], y out T[rows*cols]", flops: "15*rows*cols",
			launch: points, versions: both(byRows(sobel[float32](true)), byRows(sobel[float64](true)))},
		{name: "stencil5", doc: "y = x + alpha * (up + down + left + right - 4 * x); the border is copied", signature: "rows i64, cols i64, alpha T, x in T[rows*cols], y out T[rows*cols]", flops: "7*rows*cols",
			launch: points, versions: both(byRows(stencil5[float32](0)), byRows(stencil5[float64](0)))},
		{name: "stencil5_halo", doc: "stencil5 for some rows of a larger grid: x has an extra row above and below; the outer columns are copied", signature: "rows i64, cols i64, alpha T, x in T[(rows+2)*cols], y out T[rows*cols]", flops: "7*rows*cols",
			launch: points, versions: both(byRows(stencil5[float32](1)), byRows(stencil5[float64](1)))},
		{name: "stencil3", doc: "y = x + alpha * (left + right - 2 * x); the ends are copied", signature: "n i64, alpha T, x in T[n], y out T[n]", flops: "5*n",
			launch: func(_ *libraryKernel, v values, info *dag.LaunchInfo) {
				launch.Spread(info, v.of("n"), launch.BlockSize*4)
			}, versions: both(stencil3[float32], stencil3[float64])},
		{name: "conv2d", doc: "y = the convolution of a picture with channels last; weights are [out][size][size][in]", signature: conv, flops: convFlops,
			check: fits, launch: convolved, versions: []version{{bind{T: dag.F32}, conv2d(false, false)}}},
		{name: "conv2d_relu", doc: "conv2d with negative results replaced by zero", signature: conv, flops: convFlops,
			check: fits, launch: convolved, versions: []version{{bind{T: dag.F32}, conv2d(true, false)}}},
		{name: "conv2d_rows", doc: "conv2d for some rows of a larger picture: pad columns of zeros on both sides, `above` and `below` rows of zeros at the edges of the picture",
			signature: convRows.Replace(conv), flops: convRows.Replace(convFlops),
			check: fits, launch: convolved, versions: []version{{bind{T: dag.F32}, conv2d(false, true)}}},
		{name: "conv2d_relu_rows", doc: "conv2d_rows with negative results replaced by zero", signature: convRows.Replace(conv), flops: convRows.Replace(convFlops),
			check: fits, launch: convolved, versions: []version{{bind{T: dag.F32}, conv2d(true, true)}}},
		{name: "mean_pool", doc: "y = the mean of each size x size window, channels last", signature: "rows i64 1.., cols i64 1.., channels i64 1.., size i64 1.., stride i64 1.., x in T[rows*cols*channels], y out T[((rows-size)/stride+1)*((cols-size)/stride+1)*channels]", flops: "size*size*((rows-size)/stride+1)*((cols-size)/stride+1)*channels",
			check: fits, launch: func(_ *libraryKernel, v values, info *dag.LaunchInfo) {
				launch.Spread(info, ((v.of("rows")-v.of("size"))/v.of("stride")+1)*((v.of("cols")-v.of("size"))/v.of("stride")+1)*v.of("channels"), launch.BlockSize)
			}, versions: both(meanPool[float32], meanPool[float64])},
	}
}

func phaseRows() []row {
	return []row{
		{name: "column_standardise", doc: "z = (x - mean) / standard deviation of each column; constant columns become 0",
			signature: "rows i64, cols i64, x in X[rows*cols], z out T[rows*cols], scratch bytes[64 + 16*cols + 16*cols*min(1056, ceil(rows*cols, 8192))]", flops: "6*rows*cols",
			launch: func(_ *libraryKernel, v values, info *dag.LaunchInfo) {
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
			signature: "rows i64, cols i64, pivot in T[cols], x in T[rows*cols], sums out f64[2*cols], scratch bytes[16 + 16*cols*min(1056, ceil(rows*cols, 8192))]", flops: "4*rows*cols",
			launch: func(_ *libraryKernel, v values, info *dag.LaunchInfo) {
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
			signature: "parts i64 1.., rows i64 1.., cols i64, pivot in X[cols], sums in f64[2*parts*cols], mean out T[cols], inverse out T[cols]", flops: "2*parts*cols",
			launch: func(_ *libraryKernel, v values, info *dag.LaunchInfo) {
				launch.Spread(info, v.of("cols"), launch.BlockSize)
			},
			versions: []version{
				{bind{T: dag.F32, X: dag.F32}, momentsOfParts[float32, float32]},
				{bind{T: dag.F32, X: dag.I32}, momentsOfParts[int32, float32]},
				{bind{T: dag.F64, X: dag.F64}, momentsOfParts[float64, float64]},
			}},
		{name: "exclusive_scan", doc: "y[i] = x[0] + ... + x[i-1]", signature: "n i64 0..34359738368, x in T[n], y out T[n], scratch bytes[64 + 8*ceil(n, 4096)]", flops: "2*n",
			launch: func(_ *libraryKernel, v values, info *dag.LaunchInfo) {
				launch.Spread(info, v.of("n"), scanTile)
				info.Grid[0] = min(info.Grid[0], 132*8)
				info.Fixed = true
			},
			versions: []version{{bind{T: dag.F32}, exclusiveScan[float32]}, {bind{T: dag.F64}, exclusiveScan[float64]}, {bind{T: dag.I32}, exclusiveScan[int32]}}},
		{name: "histogram", doc: "out = how many elements are in each of the equal bins from low to high, which belongs to the last bin; other elements and NaNs are not counted. If low = high, elements equal to them are in the last bin; if low > high, or if either is NaN or infinite, nothing is counted",
			signature: "n i64, bins i64 1..8192, low T, high T, x in T[n], out out i64[bins], scratch bytes[16 + 4*bins*min(528, max(1, ceil(n, 2048)))]", flops: "4*n",
			launch: func(_ *libraryKernel, v values, info *dag.LaunchInfo) {
				info.Grid = [3]uint32{uint32(max(1, min(528, (v.of("n")+2047)/2048))), 1, 1}
				info.Block = [3]uint32{512, 1, 1}
				info.Fixed = true
			},
			versions: []version{{bind{T: dag.F32}, histogram[float32]}, {bind{T: dag.F64}, histogram[float64]}, {bind{T: dag.I32}, histogram[int32]}}},
		{name: "fft_stage", doc: "y = one of the log2(n) stages (half = 1, 2, 4, ... n/2) of batch Fourier transforms of n complex numbers, stored as pairs; inverse = 1 does not scale",
			signature: "n i64 2.., batch i64, half i64 1.., inverse i32 0..1, x in T[2*n*batch], y out T[2*n*batch]", flops: "17*n*batch",
			check: powersOfTwo, launch: func(_ *libraryKernel, v values, info *dag.LaunchInfo) {
				launch.Spread(info, v.of("n")/2*v.of("batch"), launch.BlockSize*2)
			},
			versions: both(fftStage[float32], fftStage[float64])},
	}
}

func oddDiameter(v values) error {
	if d := v.of("diameter"); d%2 == 0 {
		return launch.Wrong("diameter", "is %d; it must be odd", d)
	}
	return nil
}

// fits checks that the window is not larger than the picture.
func fits(v values) error {
	rows, cols := padded(v)
	if size := v.of("size"); size > rows || size > cols {
		return launch.Wrong("size", "is %d; the picture is %d x %d", size, rows, cols)
	}
	return nil
}

// padded is the size of the picture including the zeros around it.
func padded(v values) (rows, cols int64) {
	rows, cols = v.of("rows"), v.of("cols")
	if v.k.index("pad") >= 0 {
		rows, cols = rows+2*v.of("pad"), cols+2*v.of("pad")
	}
	if v.k.index("above") >= 0 {
		rows = v.of("rows") + v.of("above") + v.of("below")
	}
	return rows, cols
}

func powersOfTwo(v values) error {
	n, half := v.of("n"), v.of("half")
	switch {
	case n&(n-1) != 0:
		return launch.Wrong("n", "is %d; it must be a power of two", n)
	case half&(half-1) != 0 || half >= n:
		return launch.Wrong("half", "is %d; it must be a power of two below n", half)
	}
	return nil
}

// points gives each thread a few points of a grid.
func points(_ *libraryKernel, v values, info *dag.LaunchInfo) {
	n, ok := product(v.of("rows"), v.of("cols"))
	if !ok {
		n = 1 << 62
	}
	launch.Spread(info, n, launch.BlockSize*2)
}

func convolved(_ *libraryKernel, v values, info *dag.LaunchInfo) {
	rows, cols := padded(v)
	high, wide := (rows-v.of("size"))/v.of("stride")+1, (cols-v.of("size"))/v.of("stride")+1
	launch.Spread(info, high*wide*((v.of("out")+7)/8), launch.BlockSize)
}

// blurred gives a block several tiles, because each block computes the weights again.
func blurred(info *dag.LaunchInfo, rows, cols int64) {
	squares(info, rows, cols, 32, launch.MaxBlocks)
}
