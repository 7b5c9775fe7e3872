// Table rows of the kernels that work on the rows of a matrix.

package library

import (
	"fmt"
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

func rowRows() []row {
	return []row{
		{name: "row_max", doc: "y = the largest element of each row, ignoring NaNs", signature: "rows i64, cols i64, x in T[rows*cols], y out T[rows]",
			flops: "rows*cols", steps: rowSteps(1),
			launch: perRow(shortRow, warpRow), check: columns(warpRow+1, longRow), forms: append(rowForms(rowSteps(1)), long()),
			versions: both(byRows(rowMax[float32]), byRows(rowMax[float64]))},
		{name: "row_sum", doc: "y = the sum of each row", signature: "rows i64, cols i64, x in T[rows*cols], y out T[rows]", flops: "rows*cols", steps: rowSteps(1),
			launch: perRow(shortRow, warpRow), check: columns(warpRow+1, longRow), forms: append(rowForms(rowSteps(1)), long()),
			versions: both(byRows(rowSum[float32]), byRows(rowSum[float64]))},
		{name: "row_log_sum_exp", doc: "y = log(sum of exp(x - most)) + most for each row, where most holds the row maxima",
			signature: "rows i64, cols i64, x in T[rows*cols], most in T[rows], y out T[rows]", flops: "22*rows*cols", steps: rowSteps(22),
			launch: perRow(shortRow, warpRow), check: columns(warpRow+1, mostColumns), forms: rowForms(rowSteps(22)), inPlace: true,
			versions: both(byRows(rowLogSumExp[float32]), byRows(rowLogSumExp[float64]))},
		{name: "row_normalise", doc: "x = exp(x - l[row])", signature: "rows i64, cols i64, l in T[rows], x inout T[rows*cols]",
			flops: "21*rows*cols", steps: rowSteps(21),
			launch: perRow(shortRow, warpRow), forms: []form{ofColumns("few", 1, 16, perRow(shortRow, warpRow), rowSteps(21))},
			versions: both(byRows(rowNormalise[float32]), byRows(rowNormalise[float64]))},
		{name: "softmax", doc: "y = exp(x) divided by its sum over the row, without overflow", signature: "rows i64, cols i64, x in T[rows*cols], y out T[rows*cols]",
			flops: "45*rows*cols", steps: rowSteps(45),
			launch: perRow(softmaxShortRow, softmaxWarpRow), check: columns(4097, mostColumns), forms: softmaxForms(), inPlace: true,
			versions: both(byRows(softmax[float32]), byRows(softmax[float64]))},
		{name: "row_argmax", doc: "y = the column of the first largest element of each row, ignoring NaNs; -1 if there is none",
			signature: "rows i64, cols i64 0..2147483647, x in T[rows*cols], y out i32[rows]", flops: "rows*cols", steps: rowSteps(1),
			launch: perRow(shortRow, warpRow), check: columns(warpRow+1, mostColumns), forms: rowForms(rowSteps(1)),
			versions: both(byRows(rowArgmax[float32]), byRows(rowArgmax[float64]))},
		{name: "row_argmax_sum", doc: "y = the column of the first largest element of each row of a + b",
			signature: "rows i64, cols i64 0..2147483647, a in T[rows*cols], b in T[rows*cols], y out i32[rows]", flops: "2*rows*cols", steps: rowSteps(2),
			launch: perRow(shortRow, warpRow), check: columns(warpRow+1, mostColumns), forms: rowForms(rowSteps(2)),
			versions: both(byRows(rowArgmaxSum[float32]), byRows(rowArgmaxSum[float64]))},
		{name: "add_bias", doc: "x = x + bias[col]", signature: "rows i64, cols i64, bias in T[cols], x inout T[rows*cols]", flops: "rows*cols", steps: rowSteps(1),
			launch: perRow(shortRow, warpRow), forms: []form{ofColumns("few", 1, 16, perRow(shortRow, warpRow), rowSteps(1))},
			versions: both(byRows(addBias[float32]), byRows(addBias[float64]))},
		{name: "concat", doc: "z = x and y side by side: each row has m elements of x, then n of y",
			signature: "rows i64, m i64, n i64, x in T[rows*m], y in T[rows*n], z out T[rows*(m+n)]",
			steps:     fixed(11), launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				describe.Divide(info, v.of("rows")*(v.of("m")+v.of("n")), describe.BlockSize*4, describe.BlockSize*16)
			},
			versions: []version{{bind{T: dag.F32}, concatenating[float32]}, {bind{T: dag.F64}, concatenating[float64]}, {bind{T: dag.I32}, concatenating[int32]}}},
	}
}

const mostColumns = math.MaxInt64

// columns refuses launches with more or fewer columns, as their number may change after a form was loaded.
func columns(least, most int64) func(scalars) error {
	return func(v scalars) error {
		if cols := v.of("cols"); cols < least || cols > most {
			return describe.Wrong("cols", "is %d, for which the kernel has another form", cols)
		}
		return nil
	}
}

// ofColumns is a form for numbers of columns.
func ofColumns(name string, least, most int64, launch geometry, steps steps) form {
	return form{name: name, launch: launch, steps: steps, check: columns(least, most),
		suits: func(v scalars) bool { return v.of("cols") >= least && v.of("cols") <= most }}
}

// rowForms are the forms for rows that a block is not needed for: few go through shared memory, of some each has a thread, and if there are many rows,
// warps take several at a time of up to 256 columns.
func rowForms(steps steps) []form {
	geometry := perRow(shortRow, warpRow)
	forms := []form{ofColumns("few", 1, 16, geometry, steps), ofColumns("some", 0, shortRow, geometry, steps)}
	for _, most := range []int64{64, 128, 256} {
		several := ofColumns(fmt.Sprintf("to%d", most), shortRow+1, most, geometry, steps)
		suits := several.suits
		several.suits = func(v scalars) bool { return suits(v) && v.of("rows") > describe.MaxBlocks*describe.BlockSize/32 }
		forms = append(forms, several)
	}
	return append(forms, ofColumns("warp", shortRow+1, warpRow, geometry, steps))
}

// softmaxForms are the forms for rows that stay in registers or, in f64, in shared memory. Each has room for so many columns.
func softmaxForms() []form {
	geometry, steps := perRow(softmaxShortRow, softmaxWarpRow), rowSteps(45)
	forms := []form{ofColumns("few", 0, softmaxShortRow, geometry, steps)}
	for _, most := range []int64{32, 64, 128, 256, softmaxWarpRow, 768, 1024, 1536, 2048, 4096} {
		least := int64(softmaxShortRow + 1) // a warp for each row
		if most > softmaxWarpRow {
			least = softmaxWarpRow + 1 // a block
		}
		forms = append(forms, ofColumns(fmt.Sprintf("to%d", most), least, most, geometry, steps))
	}
	return forms
}

// long is the form for very long rows, whose parts have a block each.
func long() form {
	return form{name: "long", scratch: fmt.Sprintf("scratch bytes[8*rows + sizeof_T*rows*ceil(cols, %d)]", rowPart), steps: rowSteps(1),
		check: columns(longRow+1, mostColumns), suits: func(v scalars) bool { return v.of("cols") > longRow },
		launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
			tasks, ok := product(v.of("rows"), (v.of("cols")-1)/rowPart+1)
			if !ok {
				tasks = describe.MaxBlocks
			}
			describe.Spread(info, tasks, 1)
			info.Fixed = true
		},
	}
}
