// Rows of the reductions to one number.

package library

import (
	"math"

	"github.com/dagrun/dagrun/dag"
)

// reduceScratch is a counter, then a state of at most 16 bytes for each tile.
const reduceScratch = "scratch bytes[16 + 16*min(1056, ceil(n, 4096))]"

func reduceRows() []row {
	one, two := "n i64, x in T[n], out out A[1], "+reduceScratch, "n i64, x in T[n], y in T[n], out out A[1], "+reduceScratch
	kept := "n i64, x in T[n], out out S[1], " + reduceScratch
	return []row{
		{name: "reduce_sum", doc: "out = the sum of x", signature: one, flops: "n", steps: reductionSteps, launch: byTiles,
			versions: summing(1, firstOf[float32], firstOf[float64], firstOf[int64], nil, nil)},
		{name: "reduce_min", doc: "out = the smallest element of x, ignoring NaNs; infinity or the largest integer if there is none", signature: kept, flops: "n",
			steps: reductionSteps, launch: byTiles,
			versions: extremes(less[float32], less[float64], less[int32], math.Inf(1), math.MaxInt32)},
		{name: "reduce_max", doc: "out = the largest element of x, ignoring NaNs; minus infinity or the smallest integer if there is none", signature: kept,
			flops: "n", steps: reductionSteps, launch: byTiles,
			versions: extremes(greater[float32], greater[float64], greater[int32], math.Inf(-1), math.MinInt32)},
		{name: "argmax", doc: "out = the index of the first largest element of x, ignoring NaNs; -1 if there is none",
			signature: "n i64, x in T[n], out out i64[1], " + reduceScratch, flops: "n", steps: reductionSteps, launch: byTiles,
			versions: []version{{bind{T: dag.F32}, argmax[float32]}, {bind{T: dag.F64}, argmax[float64]}, {bind{T: dag.I32}, argmax[int32]}}},
		{name: "dot", doc: "out = the sum of x * y", signature: two, flops: "2*n", steps: reductionSteps, launch: byTiles,
			versions: summing(2, times[float32], times[float64], times[int64], nil, nil)},
		{name: "sum_difference", doc: "out = the sum of x - y", signature: two, flops: "2*n", steps: reductionSteps, launch: byTiles,
			versions: summing(2, difference[float32], difference[float64], difference[int64], nil, nil)},
		{name: "norm", doc: "out = the square root of the sum of x * x", signature: one, flops: "2*n", steps: reductionSteps, launch: byTiles,
			versions: summing(1, times[float32], times[float64], nil, squareRoot32, squareRoot64)},
	}
}
