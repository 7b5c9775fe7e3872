// Rows of the kernels on pictures and grids.

package library

import (
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

func imageRows() []row {
	conv := "rows i64 1.., cols i64 1.., in i64 1.., out i64 1.., size i64 1.., stride i64 1.., pad i64 0.., x in f32[rows*cols*in], weights in f32[out*size*size*in], y out f32[((rows+2*pad-size)/stride+1)*((cols+2*pad-size)/stride+1)*out]"
	convFlops := "2*out*size*size*in*((rows+2*pad-size)/stride+1)*((cols+2*pad-size)/stride+1)"
	// The same for some rows of a larger picture, which has rows of zeros only at its edges.
	convRows := strings.NewReplacer("pad i64 0..,", "pad i64 0.., above i64 0.., below i64 0..,", "rows+2*pad", "rows+above+below")
	return []row{
		{name: "gaussian_blur", doc: "y = x blurred by a Gaussian of the given diameter in points; points outside the picture count as zero",
			signature: "rows i64, cols i64, diameter i32 1..31, sigma T, x in T[rows*cols], y out T[rows*cols]", flops: "4*diameter*rows*cols", steps: fixed(27),
			check: oddDiameter, launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				blurred(info, v.of("rows"), v.of("cols"))
			},
			versions: both(gaussianBlur[float32](false), gaussianBlur[float64](false))},
		{name: "gaussian_blur_rows", doc: "gaussian_blur for some rows of a larger picture: x has `above` extra rows before them and `below` after, up to the radius of the blur or the edge of the picture",
			signature: "rows i64, cols i64, above i64 0..15, below i64 0..15, diameter i32 1..31, sigma T, x in T[(above+rows+below)*cols], y out T[rows*cols]",
			flops:     "4*diameter*rows*cols", steps: fixed(27),
			check: oddDiameter, launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				blurred(info, v.of("rows"), v.of("cols"))
			},
			versions: both(gaussianBlur[float32](true), gaussianBlur[float64](true))},
		{name: "sobel", doc: "y = the magnitude of x's gradient (Sobel); points outside the picture count as zero",
			signature: "rows i64, cols i64, x in T[rows*cols], y out T[rows*cols]", flops: "15*rows*cols", steps: fixed(8),
			launch: points, versions: both(byRows(sobel[float32](false)), byRows(sobel[float64](false)))},
		{name: "sobel_rows", doc: "sobel for some rows of a larger picture: x has `above` extra rows before them and `below` after, 0 at an edge of the picture",
			signature: "rows i64, cols i64, above i64 0..1, below i64 0..1, x in T[(above+rows+below)*cols], y out T[rows*cols]", flops: "15*rows*cols", steps: fixed(8),
			launch: points, versions: both(byRows(sobel[float32](true)), byRows(sobel[float64](true)))},
		{name: "stencil5", doc: "y = x + alpha * (up + down + left + right - 4 * x); the border is copied",
			signature: "rows i64, cols i64, alpha T, x in T[rows*cols], y out T[rows*cols]", flops: "7*rows*cols", steps: fixed(7),
			launch: points, versions: both(byRows(stencil5[float32](0)), byRows(stencil5[float64](0)))},
		{name: "stencil5_halo", doc: "stencil5 for some rows of a larger grid: x has an extra row above and below; the outer columns are copied",
			signature: "rows i64, cols i64, alpha T, x in T[(rows+2)*cols], y out T[rows*cols]", flops: "7*rows*cols", steps: fixed(7),
			launch: points, versions: both(byRows(stencil5[float32](1)), byRows(stencil5[float64](1)))},
		{name: "stencil3", doc: "y = x + alpha * (left + right - 2 * x); the ends are copied", signature: "n i64, alpha T, x in T[n], y out T[n]",
			flops: "5*n", steps: fixed(7),
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				describe.Divide(info, v.of("n"), describe.BlockSize*4, describe.BlockSize*16)
			}, versions: both(stencil3[float32], stencil3[float64])},
		{name: "conv2d", doc: "y = the convolution of a picture with channels last; weights are [out][size][size][in]", signature: conv, flops: convFlops,
			steps: convolutionSteps,
			check: fits, launch: convolved, versions: []version{{bind{T: dag.F32}, conv2d(false, false)}}},
		{name: "conv2d_relu", doc: "conv2d with negative results replaced by zero", signature: conv, flops: convFlops, steps: convolutionSteps,
			check: fits, launch: convolved, versions: []version{{bind{T: dag.F32}, conv2d(true, false)}}},
		{name: "conv2d_rows", doc: "conv2d for some rows of a larger picture: pad columns of zeros on both sides, `above` and `below` rows of zeros at the edges of the picture",
			signature: convRows.Replace(conv), flops: convRows.Replace(convFlops), steps: convolutionSteps,
			check: fits, launch: convolved, versions: []version{{bind{T: dag.F32}, conv2d(false, true)}}},
		{name: "conv2d_relu_rows", doc: "conv2d_rows with negative results replaced by zero", signature: convRows.Replace(conv), flops: convRows.Replace(convFlops),
			steps: convolutionSteps,
			check: fits, launch: convolved, versions: []version{{bind{T: dag.F32}, conv2d(true, true)}}},
		{name: "mean_pool", doc: "y = the mean of each size x size window, channels last",
			signature: "rows i64 1.., cols i64 1.., channels i64 1.., size i64 1.., stride i64 1.., x in T[rows*cols*channels], y out T[((rows-size)/stride+1)*((cols-size)/stride+1)*channels]", flops: "size*size*((rows-size)/stride+1)*((cols-size)/stride+1)*channels", steps: poolSteps,
			check: fits, launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				describe.Spread(info, ((v.of("rows")-v.of("size"))/v.of("stride")+1)*((v.of("cols")-v.of("size"))/v.of("stride")+1)*v.of("channels"), describe.BlockSize)
			}, versions: both(meanPool[float32], meanPool[float64])},
	}
}

func oddDiameter(v scalars) error {
	if d := v.of("diameter"); d%2 == 0 {
		return describe.Wrong("diameter", "is %d; it must be odd", d)
	}
	return nil
}

// fits checks that the window is not larger than the picture.
func fits(v scalars) error {
	rows, cols := paddedSize(v)
	if size := v.of("size"); size > rows || size > cols {
		return describe.Wrong("size", "is %d; the picture is %d x %d", size, rows, cols)
	}
	return nil
}

// paddedSize is the size of the picture including the zeros around it.
func paddedSize(v scalars) (rows, cols int64) {
	rows, cols = v.of("rows"), v.of("cols")
	if v.k.index("pad") >= 0 {
		rows, cols = rows+2*v.of("pad"), cols+2*v.of("pad")
	}
	if v.k.index("above") >= 0 {
		rows = v.of("rows") + v.of("above") + v.of("below")
	}
	return rows, cols
}

func convolved(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
	rows, cols := paddedSize(v)
	high, wide := (rows-v.of("size"))/v.of("stride")+1, (cols-v.of("size"))/v.of("stride")+1
	describe.Divide(info, high*wide*((v.of("out")+7)/8), describe.BlockSize, describe.BlockSize*32)
}

// blurred gives a block several tiles, because each block computes the weights again.
func blurred(info *dag.LaunchInfo, rows, cols int64) {
	squares(info, rows, cols, 32, describe.MaxBlocks)
}
