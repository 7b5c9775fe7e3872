// Rows of the kernels on matrices, dense and sparse.

package library

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

func denseRows() []row {
	return []row{
		{name: "gemm", doc: "c = alpha * a * b + beta * c, row-major; ta = 1 if a is stored transposed (k x m), tb = 1 if b is (n x k)",
			signature: "ta i32 0..1, tb i32 0..1, m i64, n i64, k i64, alpha S, a in T[m*k], b in T[k*n], beta S, c inout T[m*n]", flops: "2*m*n*k",
			steps: productSteps("k"), launch: inTiles("m", "n", 64), forms: productForms(),
			matrices: []matrix{stored("a", "ta", "m", "k"), stored("b", "tb", "k", "n"), shaped("c", "m", "n")},
			versions: []version{{bind{T: dag.F16}, gemm[float32]}, {bind{T: dag.BF16}, gemm[float32]}, {bind{T: dag.F32}, gemm[float32]},
				{bind{T: dag.F64}, gemm[float64]}}},
		{name: "matmul", doc: "c = a * b, row-major; ta = 1 if a is stored transposed (k x m), tb = 1 if b is (n x k)",
			signature: "ta i32 0..1, tb i32 0..1, m i64, n i64, k i64, a in X[m*k], b in T[k*n], c out T[m*n]", flops: "2*m*n*k", steps: productSteps("k"),
			launch: inTiles("m", "n", 64), forms: productForms(),
			matrices: []matrix{stored("a", "ta", "m", "k"), stored("b", "tb", "k", "n"), shaped("c", "m", "n")},
			versions: []version{{bind{T: dag.F32, X: dag.F32}, matmul[float32]}, {bind{T: dag.F64, X: dag.F64}, matmul[float64]},
				{bind{T: dag.F32, X: dag.I32}, matmul[float32]}}},
		{name: "matmul_standardised", doc: "c = z * b, where z = (a - mean) * inverse column by column; tb = 1 if b is stored transposed (n x k)",
			signature: "tb i32 0..1, m i64, n i64, k i64, a in X[m*k], mean in T[k], inverse in T[k], b in T[k*n], c out T[m*n]", flops: "2*m*n*k",
			steps: productSteps("k"), launch: inTiles("m", "n", 64), forms: productForms(),
			versions: []version{{bind{T: dag.F32, X: dag.F32}, matmulStandardised[float32]}, {bind{T: dag.F64, X: dag.F64}, matmulStandardised[float64]},
				{bind{T: dag.F32, X: dag.I32}, matmulStandardised[float32]}}},
		{name: "gemv", doc: "y = alpha * a * x + beta * y; a is m x n, row-major", signature: "m i64, n i64, alpha T, a in T[m*n], x in T[n], beta T, y inout T[m]",
			flops: "2*m*n", steps: gemvSteps,
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				describe.Spread(info, v.of("m"), describe.BlockSize/32*2)
				info.Fixed = true
			}, versions: both(gemv[float32], gemv[float64])},
		{name: "transpose", doc: "y = x transposed; x is rows x cols", signature: "rows i64, cols i64, x in T[rows*cols], y out T[rows*cols]",
			matrices: []matrix{shaped("x", "rows", "cols"), shaped("y", "cols", "rows")},
			steps:    fixed(8), launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				squares(info, v.of("rows"), v.of("cols"), 32, 32*132)
			},
			versions: []version{{bind{T: dag.F16}, transposing[uint16]}, {bind{T: dag.BF16}, transposing[uint16]}, {bind{T: dag.F32}, transposing[float32]},
				{bind{T: dag.F64}, transposing[float64]}, {bind{T: dag.I32}, transposing[int32]}}},
		{name: "spmv_csr", doc: "y = a * x for a sparse matrix in compressed rows (CSR); offsets are where the rows start, relative to the first; every column must be below cols",
			signature: "rows i64, cols i64, nnz i64 0..2147483647, offsets in i32[rows+1], columns in i32[nnz], values in X[nnz], x in T[cols], y out T[rows]",
			flops:     "2*nnz", steps: sparseSteps,
			launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
				each := int64(describe.BlockSize)
				if v.of("nnz") > v.of("rows")*8 {
					each /= 32
				}
				describe.Spread(info, v.of("rows"), each)
				info.Fixed = true
			},
			versions: []version{{bind{T: dag.F32, X: dag.F32}, spmv[float32, float32]}, {bind{T: dag.F32, X: dag.I32}, spmv[int32, float32]},
				{bind{T: dag.F64, X: dag.F64}, spmv[float64, float64]}}},
		{name: "potrf", doc: "a = its Cholesky factor in the lower triangle; the upper triangle is unchanged. NaN if a is not positive definite",
			signature: "n i64 0..512, a inout T[n*n]", flops: "n*n*n/3", steps: factorSteps, launch: oneBlock("n"), matrices: []matrix{shaped("a", "n", "n")},
			versions: both(potrf[float32], potrf[float64])},
		{name: "trsm", doc: "x = x * inverse(transpose(l)); l is lower triangular, n x n, and x is m x n",
			signature: "m i64, n i64 0..512, l in T[n*n], x inout T[m*n]", flops: "m*n*n", steps: solveSteps,
			matrices: []matrix{shaped("l", "n", "n"), shaped("x", "m", "n")},
			launch: func(k *libraryKernel, v scalars, info *dag.LaunchInfo) {
				describe.Spread(info, v.of("m"), 64/k.types.T.Size())
				if v.of("n") == 0 {
					info.Grid[0] = 0
				}
				info.Fixed = true
			}, versions: both(trsm[float32], trsm[float64])},
		{name: "syrk", doc: "c = alpha * a * transpose(a) + beta * c in the lower triangle; a is n x k",
			signature: "n i64, k i64, alpha T, a in T[n*k], beta T, c inout T[n*n]", flops: "n*n*k", steps: productSteps("k"),
			launch: inTiles("n", "n", 64), forms: []form{largeTiles("n", "n")}, matrices: []matrix{shaped("a", "n", "k"), shaped("c", "n", "n")},
			versions: both(syrk[float32], syrk[float64])},
	}
}

// A product that is computed row by row has blocks of thinThreads threads, at most two of them for each multiprocessor of a large GPU. tallRows are
// enough rows to occupy one.
const thinThreads, mostThin, tallRows = 128, 132 * 2, 32768

// inTiles gives each block of threads a square tile of the result.
func inTiles(rows, cols string, tile int64) geometry {
	return func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
		squares(info, v.of(rows), v.of(cols), tile, 1<<20)
	}
}

// largeTiles computes products with so many results that tiles of 128 x 128 occupy a large GPU.
func largeTiles(rows, cols string) form {
	return form{name: "large", f32: true, tiles: true, launch: inTiles(rows, cols, 128), steps: productSteps("k"), suits: func(v scalars) bool {
		m, n := v.of(rows), v.of(cols)
		return m > 64 && n > 64 && (m+127)/128*((n+127)/128) >= 132
	}}
}

// productForms are the ways to compute a product in f32. One whose result has few columns is computed row by row: up to 16 columns always, up to 64 if
// there are enough rows to occupy a large GPU and the matrices are no tiles of larger ones.
func productForms() []form {
	return []form{thin("thin12", 12, 0, 64), thin("thin16", 16, 0, 64), thin("thin32", 32, tallRows, 64), thin("thin64", 64, tallRows, 32), largeTiles("m", "n")}
}

// thin computes a product of up to most columns, if it has at least some rows, row by row: each warp has some rows at a time.
func thin(name string, most, least, rows int64) form {
	const apart = 1 << 24 // rows of a are nearer than so many elements
	transposed := func(v scalars) bool { return v.k.index("ta") >= 0 && v.of("ta") != 0 }
	long := func(v scalars) bool { return v.of("k") >= apart || v.k.index("lda") >= 0 && v.of("lda") >= apart }
	return form{name: name, f32: true, tiles: least == 0,
		suits: func(v scalars) bool { return v.of("n") <= most && v.of("m") >= least && !transposed(v) && !long(v) },
		check: func(v scalars) error {
			if v.of("n") > most {
				return describe.Wrong("n", "is %d, but this form of the kernel computes at most %d columns", v.of("n"), most)
			}
			if transposed(v) {
				return describe.Wrong("ta", "is %d, but this form of the kernel computes only with 0", v.of("ta"))
			}
			if long(v) {
				return describe.Wrong("k", "is %d, but this form of the kernel computes with rows of less than %d elements", v.of("k"), apart)
			}
			return nil
		},
		launch: func(_ *libraryKernel, v scalars, info *dag.LaunchInfo) {
			describe.Spread(info, v.of("m"), rows)
			info.Grid[0], info.Block[0] = min(info.Grid[0], mostThin), thinThreads
			if v.of("n") == 0 {
				info.Grid[0] = 0
			}
			info.Fixed = true
		},
		steps: func(_ *libraryKernel, v scalars) float64 { return 0.9 * float64(v.of("k")) }, // number by number
	}
}
