// Table rows of the kernels that work on the rows of a matrix.

package library

import (
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/launch"
)

func rowRows() []row {
	return []row{
		{name: "row_max", doc: "y = the largest element of each row, ignoring NaNs", signature: "rows i64, cols i64, x in T[rows*cols], y out T[rows]", flops: "rows*cols", steps: rowSteps(1),
			launch: perRow(shortRow, warpRow), forms: []form{few(rowSteps(1)), long()}, versions: both(byRows(rowMax[float32]), byRows(rowMax[float64]))},
		{name: "row_sum", doc: "y = the sum of each row", signature: "rows i64, cols i64, x in T[rows*cols], y out T[rows]", flops: "rows*cols", steps: rowSteps(1),
			launch: perRow(shortRow, warpRow), forms: []form{few(rowSteps(1)), long()}, versions: both(byRows(rowSum[float32]), byRows(rowSum[float64]))},
		{name: "row_log_sum_exp", doc: "y = log(sum of exp(x - most)) + most for each row, where most holds the row maxima",
			signature: "rows i64, cols i64, x in T[rows*cols], most in T[rows], y out T[rows]", flops: "22*rows*cols", steps: rowSteps(22),
			launch: perRow(shortRow, warpRow), forms: []form{few(rowSteps(22))}, inPlace: true, versions: both(byRows(rowLogSumExp[float32]), byRows(rowLogSumExp[float64]))},
		{name: "row_normalise", doc: "x = exp(x - l[row])", signature: "rows i64, cols i64, l in T[rows], x inout T[rows*cols]", flops: "21*rows*cols", steps: rowSteps(21),
			launch: perRow(shortRow, warpRow), forms: []form{few(rowSteps(21))}, versions: both(byRows(rowNormalise[float32]), byRows(rowNormalise[float64]))},
		{name: "softmax", doc: "y = exp(x) divided by its sum over the row, without overflow", signature: "rows i64, cols i64, x in T[rows*cols], y out T[rows*cols]", flops: "45*rows*cols", steps: rowSteps(45),
			launch: perRow(softmaxShortRow, softmaxWarpRow), forms: []form{few(rowSteps(45))}, inPlace: true, versions: both(byRows(softmax[float32]), byRows(softmax[float64]))},
		{name: "row_argmax", doc: "y = the column of the first largest element of each row, ignoring NaNs; -1 if there is none",
			signature: "rows i64, cols i64 0..2147483647, x in T[rows*cols], y out i32[rows]", flops: "rows*cols", steps: rowSteps(1),
			launch: perRow(shortRow, warpRow), forms: []form{few(rowSteps(1))}, versions: both(byRows(rowArgmax[float32]), byRows(rowArgmax[float64]))},
		{name: "row_argmax_sum", doc: "y = the column of the first largest element of each row of a + b",
			signature: "rows i64, cols i64 0..2147483647, a in T[rows*cols], b in T[rows*cols], y out i32[rows]", flops: "2*rows*cols", steps: rowSteps(2),
			launch: perRow(shortRow, warpRow), forms: []form{few(rowSteps(2))}, versions: both(byRows(rowArgmaxSum[float32]), byRows(rowArgmaxSum[float64]))},
		{name: "add_bias", doc: "x = x + bias[col]", signature: "rows i64, cols i64, bias in T[cols], x inout T[rows*cols]", flops: "rows*cols", steps: rowSteps(1),
			launch: perRow(shortRow, warpRow), forms: []form{few(rowSteps(1))}, versions: both(byRows(addBias[float32]), byRows(addBias[float64]))},
		{name: "concat", doc: "z = x and y side by side: each row has m elements of x, then n of y", signature: "rows i64, m i64, n i64, x in T[rows*m], y in T[rows*n], z out T[rows*(m+n)]",
			steps: fixed(11), launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				launch.Spread(info, v.of("rows")*(v.of("m")+v.of("n")), launch.BlockSize*4)
			},
			versions: []version{{bind{T: dag.F32}, concatenating[float32]}, {bind{T: dag.F64}, concatenating[float64]}, {bind{T: dag.I32}, concatenating[int32]}}},
	}
}

// few computes rows of up to 16 elements.
func few(steps steps) form {
	const most = 16
	return form{name: "few", launch: perRow(most, most), steps: steps,
		suits: func(v scalars) bool { return v.of("cols") > 0 && v.of("cols") <= most },
		check: func(v scalars) error {
			if cols := v.of("cols"); cols == 0 || cols > most {
				return launch.Wrong("cols", "is %d, but this form of the kernel computes 1 to %d columns", cols, most)
			}
			return nil
		},
	}
}

// long computes the parts of long rows in a block each.
func long() form {
	return form{name: "long", scratch: fmt.Sprintf("scratch bytes[8*rows + sizeof_T*rows*ceil(cols, %d)]", rowPart), steps: rowSteps(1),
		suits: func(v scalars) bool { return v.of("cols") > longRow },
		check: func(v scalars) error {
			if cols := v.of("cols"); cols <= longRow {
				return launch.Wrong("cols", "is %d, but this form of the kernel computes more than %d columns", cols, longRow)
			}
			return nil
		},
		launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
			tasks, ok := product(v.of("rows"), (v.of("cols")-1)/rowPart+1)
			if !ok {
				tasks = launch.MaxBlocks
			}
			launch.Spread(info, tasks, 1)
			info.Fixed = true
		},
	}
}
