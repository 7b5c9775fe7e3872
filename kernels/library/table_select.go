// Rows of the kernels that move elements by index or by a condition, and of sums of segments.

package library

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
	"github.com/dagrun/dagrun/kernels/launch"
)

// moved makes the versions of a kernel that moves elements of 4 and 8 bytes as bits, and has indices or flags of a second type.
func moved(x dag.DType, small, large func(*libraryKernel) launch.Reference) (all []version) {
	for _, t := range []dag.DType{dag.F32, dag.F64, dag.I32, dag.I64} {
		v := version{bind{T: t, X: x, bits: 'T'}, small}
		if t.Size() == 8 {
			v.run = large
		}
		all = append(all, v)
	}
	return all
}

func selectRows() []row {
	// Two counters, then two words of 8 bytes for each tile and each group of 256 tiles.
	const chain = "scratch bytes[64 + 16*(ceil(n, 4096) + ceil(n, 1048576) + 3)]"
	atLeastOne := func(k *libraryKernel, v scalars, info *dag.LaunchInfo) {
		chained(k, v, info)
		info.Grid[0] = max(info.Grid[0], 1) // the count of nothing is written too
	}
	return []row{
		{name: "compact", doc: "y = the elements of x where keep is not 0, in their order, then zeros; count = how many they are",
			signature: "n i64 0..34359738368, keep in X[n], x in T[n], y out T[n], count out i64[1], " + chain, flops: "4*n", steps: fixed(34), launch: atLeastOne,
			versions: slices.Concat(moved(dag.I32, compacting[uint32, int32], compacting[uint64, int32]),
				moved(dag.U8, compacting[uint32, uint8], compacting[uint64, uint8]))},
		{name: "unique", doc: "y = the elements of x that differ from the one before them, then zeros; count = how many they are. Two NaNs do not differ, nor do 0 and -0",
			signature: "n i64 0..34359738368, x in T[n], y out T[n], count out i64[1], " + chain, flops: "4*n", steps: fixed(34), launch: atLeastOne,
			versions: []version{{bind{T: dag.F32}, differing[float32]}, {bind{T: dag.F64}, differing[float64]}, {bind{T: dag.I32}, differing[int32]},
				{bind{T: dag.I64}, differing[int64]}}},
		{name: "gather", doc: "y[i] = x[index[i]], and 0 where the index is not from 0 to m-1",
			signature: "n i64, m i64, index in X[n], x in T[m], y out T[n]", flops: "n", steps: fixed(12),
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				describe.Spread(info, v.of("n"), describe.BlockSize*4)
			},
			versions: slices.Concat(moved(dag.I32, gathering[uint32, int32], gathering[uint64, int32]),
				moved(dag.I64, gathering[uint32, int64], gathering[uint64, int64]))},
		{name: "scatter", doc: "y[index[i]] = x[i]; of several elements for one place the last wins, and indices that are not from 0 to m-1 are ignored",
			signature: "n i64, m i64, index in X[n], x in T[n], y inout T[m], scratch bytes[64 + 8*m]", flops: "4*n", steps: fixed(60),
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				describe.Spread(info, max(v.of("n"), v.of("m")), describe.BlockSize*16)
				info.Grid[0] = min(info.Grid[0], mostWaiting)
				if v.of("n") == 0 || v.of("m") == 0 {
					info.Grid[0] = 0
				}
				info.Fixed = true
			},
			versions: slices.Concat(moved(dag.I32, scattering[uint32, int32], scattering[uint64, int32]),
				moved(dag.I64, scattering[uint32, int64], scattering[uint64, int64]))},
		{name: "segment_sum", doc: "y[s] = the sum of x[offsets[s]] to x[offsets[s+1]-1]; offsets outside 0..n are moved to the nearest end",
			signature: "n i64, segments i64, offsets in X[segments+1], x in T[n], y out A[segments]", flops: "n", steps: segmentSteps,
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				each := int64(describe.BlockSize)
				if warpPerSegment(v.of("n"), v.of("segments")) {
					each /= 32
				}
				describe.Spread(info, v.of("segments"), each)
				info.Fixed = true
			},
			versions: []version{
				{bind{T: dag.F32, X: dag.I32}, segmentSum[float32, float32, int32]}, {bind{T: dag.F64, X: dag.I32}, segmentSum[float64, float64, int32]},
				{bind{T: dag.I32, X: dag.I32}, segmentSum[int32, int64, int32]},
				{bind{T: dag.F32, X: dag.I64}, segmentSum[float32, float32, int64]}, {bind{T: dag.F64, X: dag.I64}, segmentSum[float64, float64, int64]},
				{bind{T: dag.I32, X: dag.I64}, segmentSum[int32, int64, int64]},
			}},
	}
}

// segmentSteps are those of a segment of average length.
func segmentSteps(_ *libraryKernel, v scalars) float64 {
	each := float64(v.of("n")) / max(1, float64(v.of("segments")))
	if warpPerSegment(v.of("n"), v.of("segments")) {
		each /= 32
	}
	return 8 + 2*each
}
