// References of dense products: each result sums in the order of k, every product added with one rounding.

package library

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// matrices are the operands of a product, already widened.
type matrices[C numbers.Element] struct {
	ta, tb  bool
	m, n, k int64
	a, b    []C
	lda     int64 // elements from one row of a to the next
	ldb     int64
}

const gemmRows = 8 // rows in a span

// rowsOf sums rows lo to hi into acc, which holds (hi-lo)*n elements.
func (p *matrices[C]) rowsOf(lo, hi int64, acc []C) {
	clear(acc)
	n, k := p.n, p.k
	if p.tb {
		for i := lo; i < hi; i++ {
			row := acc[(i-lo)*n : (i-lo+1)*n]
			for j := int64(0); j < n; j++ {
				b, s := p.b[j*p.ldb:j*p.ldb+k], C(0)
				for q := range k {
					s = numbers.FMA(p.at(i, q), b[q], s)
				}
				row[j] = s
			}
		}
		return
	}
	for i := lo; i < hi; i++ {
		row := acc[(i-lo)*n : (i-lo+1)*n]
		for q := range k {
			x, b := p.at(i, q), p.b[q*p.ldb:q*p.ldb+n]
			for j := range row {
				row[j] = numbers.FMA(x, b[j], row[j])
			}
		}
	}
}

func (p *matrices[C]) at(i, q int64) C {
	if p.ta {
		return p.a[q*p.lda+i]
	}
	return p.a[i*p.lda+q]
}

// operand returns a matrix's elements in the type that is computed in, and the elements from one row to the next; f16, bf16 and mixed
// types are widened, row by row, because what lies between the rows of a tile belongs to others.
func operand[C numbers.Element](t dag.DType, a launch.Arg, rows, cols, ld int64) (to []C, apart int64) {
	switch t {
	case dag.F16:
		return widenedRows[C](reference.Slice[uint16](a, spread(rows, cols, ld)), rows, cols, ld, func(h uint16) C { return C(dag.HalfToFloat32(h)) }), cols
	case dag.BF16:
		return widenedRows[C](reference.Slice[uint16](a, spread(rows, cols, ld)), rows, cols, ld, func(h uint16) C { return C(dag.BFloatToFloat32(h)) }), cols
	case dag.I32:
		return widenedRows[C](reference.Slice[int32](a, spread(rows, cols, ld)), rows, cols, ld, func(v int32) C { return C(v) }), cols
	}
	return reference.Slice[C](a, spread(rows, cols, ld)), ld
}

func widenedRows[C, T any](from []T, rows, cols, ld int64, widen func(T) C) []C {
	to := make([]C, 0, rows*cols)
	for i := range rows {
		if cols > 0 {
			for _, v := range from[i*ld : i*ld+cols] {
				to = append(to, widen(v))
			}
		}
	}
	return to
}

// operands reads both factors. The arguments of their row lengths begin at an index.
func (p *matrices[C]) operands(c *launch.Call, ta dag.DType, a launch.Arg, tb dag.DType, b launch.Arg, lengths int) {
	rows, cols := p.m, p.k
	if p.ta {
		rows, cols = cols, rows
	}
	p.a, p.lda = operand[C](ta, a, rows, cols, rowLength(c, lengths, cols))
	rows, cols = p.k, p.n
	if p.tb {
		rows, cols = cols, rows
	}
	p.b, p.ldb = operand[C](tb, b, rows, cols, rowLength(c, lengths+1, cols))
}

func storing[C numbers.Element](t dag.DType, a launch.Arg, n int64) (load func(i int64) C, store func(i int64, v C)) {
	switch t {
	case dag.F16:
		c := reference.Slice[uint16](a, n)
		return func(i int64) C { return C(dag.HalfToFloat32(c[i])) }, func(i int64, v C) { c[i] = dag.HalfFromFloat32(float32(v)) }
	case dag.BF16:
		c := reference.Slice[uint16](a, n)
		return func(i int64) C { return C(dag.BFloatToFloat32(c[i])) }, func(i int64, v C) { c[i] = dag.BFloatFromFloat32(float32(v)) }
	}
	c := reference.Slice[C](a, n)
	return func(i int64) C { return c[i] }, func(i int64, v C) { c[i] = v }
}

// products computes the rows of a product on all cores. It is one span, because operands may have to be widened first.
func products[C numbers.Element](p *matrices[C], lower bool, finish func(i, j int64, sum C)) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(*launch.Call, int64, int64) {
		parallel(reference.SpansOf(p.m, gemmRows), func(s int64) {
			lo, hi := s*gemmRows, min((s+1)*gemmRows, p.m)
			acc := make([]C, (hi-lo)*p.n)
			p.rowsOf(lo, hi, acc)
			for i := lo; i < hi; i++ {
				for j := range p.n {
					if !lower || j <= i {
						finish(i, j, acc[(i-lo)*p.n+j])
					}
				}
			}
		})
	}}
}

func scaledSum[C numbers.Element](alpha, sum, beta C, old func() C) C {
	if beta == 0 {
		return C(alpha * sum)
	}
	return C(alpha*sum) + C(beta*old())
}

func gemm[C numbers.Element](k *libraryKernel) launch.Reference {
	t := k.types.T
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		p := &matrices[C]{ta: reference.Integer(c.Args[0]) != 0, tb: reference.Integer(c.Args[1]) != 0, m: reference.Integer(c.Args[2]),
			n: reference.Integer(c.Args[3]), k: reference.Integer(c.Args[4])}
		p.operands(c, t, c.Args[6], t, c.Args[7], 10)
		alpha, beta, ld := reference.Scalar[C](c.Args[5]), reference.Scalar[C](c.Args[8]), rowLength(c, 12, p.n)
		load, store := storing[C](t, c.Args[9], spread(p.m, p.n, ld))
		products(p, false, func(i, j int64, sum C) {
			store(i*ld+j, scaledSum(alpha, sum, beta, func() C { return load(i*ld + j) }))
		}).Run(c, 0, 1)
	}}
}

func matmul[C numbers.Element](k *libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		p := &matrices[C]{ta: reference.Integer(c.Args[0]) != 0, tb: reference.Integer(c.Args[1]) != 0, m: reference.Integer(c.Args[2]),
			n: reference.Integer(c.Args[3]), k: reference.Integer(c.Args[4])}
		p.operands(c, k.types.X, c.Args[5], k.types.T, c.Args[6], 8)
		ld := rowLength(c, 10, p.n)
		_, store := storing[C](k.types.T, c.Args[7], spread(p.m, p.n, ld))
		products(p, false, func(i, j int64, sum C) { store(i*ld+j, sum) }).Run(c, 0, 1)
	}}
}

// matmulStandardised takes tb, m, n, k, a, mean, inverse, b, c.
func matmulStandardised[C numbers.Element](k *libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		p := &matrices[C]{tb: reference.Integer(c.Args[0]) != 0, m: reference.Integer(c.Args[1]), n: reference.Integer(c.Args[2]), k: reference.Integer(c.Args[3])}
		p.operands(c, k.types.X, c.Args[4], k.types.T, c.Args[7], len(c.Args))
		mean, inverse := reference.Slice[C](c.Args[5], p.k), reference.Slice[C](c.Args[6], p.k)
		a := p.a
		p.a = make([]C, p.m*p.k)
		for i, v := range a {
			p.a[i] = C((v - mean[int64(i)%p.k]) * inverse[int64(i)%p.k])
		}
		_, store := storing[C](k.types.T, c.Args[8], p.m*p.n)
		products(p, false, func(i, j int64, sum C) { store(i*p.n+j, sum) }).Run(c, 0, 1)
	}}
}

func syrk[C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{Spans: reference.OneSpan, Run: func(c *launch.Call, _, _ int64) {
		n, k := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
		lda, ldc := rowLength(c, 6, k), rowLength(c, 7, n)
		a, to := reference.Slice[C](c.Args[3], spread(n, k, lda)), reference.Slice[C](c.Args[5], spread(n, n, ldc))
		alpha, beta := reference.Scalar[C](c.Args[2]), reference.Scalar[C](c.Args[4])
		products(&matrices[C]{tb: true, m: n, n: n, k: k, a: a, b: a, lda: lda, ldb: lda}, true, func(i, j int64, sum C) {
			to[i*ldc+j] = scaledSum(alpha, sum, beta, func() C { return to[i*ldc+j] })
		}).Run(c, 0, 1)
	}}
}

// gemv sums as the kernel's warps do: element j of a row goes to sum j%4 of lane j/4%32.
func gemv[C numbers.Element](*libraryKernel) launch.Reference {
	return launch.Reference{
		Spans: func(c *launch.Call) int64 {
			return reference.SpansOf(reference.Integer(c.Args[0]), rowSpan(reference.Integer(c.Args[1])))
		},
		Run: func(c *launch.Call, lo, hi int64) {
			m, n := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
			alpha, beta := reference.Scalar[C](c.Args[2]), reference.Scalar[C](c.Args[5])
			a, x, y := reference.Slice[C](c.Args[3], m*n), reference.Slice[C](c.Args[4], n), reference.Slice[C](c.Args[6], m)
			for i := lo * rowSpan(n); i < min(hi*rowSpan(n), m); i++ {
				var s [128]C
				for j, v := range a[i*n : (i+1)*n] {
					s[j%128] = numbers.FMA(v, x[j], s[j%128])
				}
				var lane [32]C
				for l := range lane {
					lane[l] = (s[l*4] + s[l*4+1]) + (s[l*4+2] + s[l*4+3])
				}
				for half := 16; half > 0; half /= 2 {
					for l := range half {
						lane[l] += lane[l+half]
					}
				}
				y[i] = scaledSum(alpha, lane[0], beta, func() C { return y[i] })
			}
		},
	}
}

func transposing[T any](*libraryKernel) launch.Reference {
	const span = 32
	return launch.Reference{
		Spans: func(c *launch.Call) int64 { return reference.SpansOf(reference.Integer(c.Args[0]), span) },
		Run: func(c *launch.Call, lo, hi int64) {
			rows, cols := reference.Integer(c.Args[0]), reference.Integer(c.Args[1])
			ldx, ldy := rowLength(c, 4, cols), rowLength(c, 5, rows)
			x, y := reference.Slice[T](c.Args[2], spread(rows, cols, ldx)), reference.Slice[T](c.Args[3], spread(cols, rows, ldy))
			from, to := lo*span, min(hi*span, rows)
			for j := range cols {
				for i := from; i < to; i++ {
					y[j*ldy+i] = x[i*ldx+j]
				}
			}
		},
	}
}

// spmv sums the rows of a sparse matrix; arguments rows, cols, nnz, offsets, columns, values, x, y.
func spmv[V int32 | float32 | float64, C numbers.Element](*libraryKernel) launch.Reference {
	const span = 1 << 13
	return launch.Reference{
		Spans: func(c *launch.Call) int64 { return reference.SpansOf(reference.Integer(c.Args[0]), span) },
		Run: func(c *launch.Call, lo, hi int64) {
			rows, cols, nnz := reference.Integer(c.Args[0]), reference.Integer(c.Args[1]), reference.Integer(c.Args[2])
			offsets, columns := reference.Slice[int32](c.Args[3], rows+1), reference.Slice[int32](c.Args[4], nnz)
			values, x, y := reference.Slice[V](c.Args[5], nnz), reference.Slice[C](c.Args[6], cols), reference.Slice[C](c.Args[7], rows)
			for i := lo * span; i < min(hi*span, rows); i++ {
				from, to := offsets[i]-offsets[0], offsets[i+1]-offsets[0]
				if nnz <= rows*8 {
					var s C
					for j := from; j < to; j++ {
						s = numbers.FMA(C(values[j]), x[columns[j]], s)
					}
					y[i] = s
					continue
				}
				var lane [32]C
				for j := from; j < to; j++ {
					l := (j - from) % 32
					lane[l] = numbers.FMA(C(values[j]), x[columns[j]], lane[l])
				}
				for half := 16; half > 0; half /= 2 {
					for l := range half {
						lane[l] += lane[l+half]
					}
				}
				y[i] = lane[0]
			}
		},
	}
}
