// Go versions of products and triangular systems: plain loops, every product and every sum rounded once.

package calls

import (
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// grid is a matrix in memory, row by row.
type grid[T numbers.Element] struct {
	shape
	ld   int64
	data []T
}

// gridOf returns an argument that is a matrix.
func gridOf[T numbers.Element](a *arguments, name string) grid[T] {
	g := grid[T]{shape: shape{a.integer(name + ".rows"), a.integer(name + ".columns")}, ld: a.integer(name + ".ld")}
	if g.rows > 0 && g.columns > 0 {
		g.data = reference.Slice[T](a.of(name), (g.rows-1)*g.ld+g.columns)
	}
	return g
}

func (g *grid[T]) row(i int64) []T     { return g.data[i*g.ld : i*g.ld+g.columns] }
func (g *grid[T]) at(i, j int64) T     { return g.data[i*g.ld+j] }
func (g *grid[T]) set(i, j int64, x T) { g.data[i*g.ld+j] = x }

// flipped is the element at (i, j) of a matrix, or of the transposed one.
func (g *grid[T]) flipped(transposed bool, i, j int64) T {
	if transposed {
		return g.at(j, i)
	}
	return g.at(i, j)
}

// spanRows is how many rows of a result make a span.
const spanRows = 8

func rowSpans(name string) func(*arguments) int64 {
	return func(a *arguments) int64 { return reference.SpansOf(a.integer(name+".rows"), spanRows) }
}

func gemm[T numbers.Element](v *version) launch.Reference {
	return v.readingAll(rowSpans("c"), func(a *arguments, lo, hi int64) {
		c := gridOf[T](a, "c")
		multiply(a, c, product[T]{a: gridOf[T](a, "a"), b: gridOf[T](a, "b")}, lo, hi)
	})
}

// multiply computes spans of rows of c from a product whose factors are not flipped yet.
func multiply[T numbers.Element](a *arguments, c grid[T], p product[T], lo, hi int64) {
	p.ta, p.tb = a.truth("ta"), a.truth("tb")
	alpha, beta := reference.Scalar[T](a.of("alpha")), reference.Scalar[T](a.of("beta"))
	for first := lo * spanRows; first < min(hi*spanRows, c.rows); first += spanRows {
		last := min(first+spanRows, c.rows)
		sums := p.rows(first, last, c.columns)
		for i := first; i < last; i++ {
			combine(c.row(i), sums[(i-first)*c.columns:(i-first+1)*c.columns], alpha, beta)
		}
	}
}

// A span is one product of the batch.
func gemmBatched[T numbers.Element](v *version) launch.Reference {
	return v.readingAll(func(a *arguments) int64 { return a.integer("batches") }, func(a *arguments, lo, hi int64) {
		all, batches := [3]grid[T]{gridOf[T](a, "a"), gridOf[T](a, "b"), gridOf[T](a, "c")}, a.integer("batches")
		for k := lo; k < hi; k++ {
			var one [3]grid[T]
			for i := range all {
				one[i] = all[i].part(k, batches)
			}
			multiply(a, one[2], product[T]{a: one[0], b: one[1]}, 0, reference.SpansOf(one[2].rows, spanRows))
		}
	})
}

// part is one of equally many rows each.
func (g *grid[T]) part(k, parts int64) grid[T] {
	p := grid[T]{shape: shape{g.rows / parts, g.columns}, ld: g.ld}
	if p.rows > 0 && p.columns > 0 {
		p.data = g.data[k*p.rows*p.ld:][:(p.rows-1)*p.ld+p.columns]
	}
	return p
}

// combine sets c to alpha*sums + beta*c. With beta 0 the old c is not read, as it may be anything.
func combine[T numbers.Element](c, sums []T, alpha, beta T) {
	for j := range c {
		if x := T(alpha * sums[j]); beta == 0 {
			c[j] = x
		} else {
			c[j] = x + T(beta*c[j])
		}
	}
}

// product is a*b, where either may be transposed.
type product[T numbers.Element] struct {
	a, b   grid[T]
	ta, tb bool
}

// rows returns rows lo to hi of the product, of so many columns.
func (p *product[T]) rows(lo, hi, columns int64) []T {
	sums := make([]T, (hi-lo)*columns)
	k := p.a.shape.flip(p.ta).columns
	if p.tb {
		factor := make([]T, k)
		for i := lo; i < hi; i++ {
			for q := range factor {
				factor[q] = p.a.flipped(p.ta, i, int64(q))
			}
			for j := range columns {
				sums[(i-lo)*columns+j] = dot(factor, p.b.row(j))
			}
		}
		return sums
	}
	for q := range k {
		b := p.b.row(q)
		for i := lo; i < hi; i++ {
			x, sum := p.a.flipped(p.ta, i, q), sums[(i-lo)*columns:(i-lo+1)*columns]
			for j := range sum {
				sum[j] += T(x * b[j])
			}
		}
	}
	return sums
}

func dot[T numbers.Element](x, y []T) T {
	s := T(0)
	for q := range x {
		s += T(x[q] * y[q])
	}
	return s
}

func syrk[T numbers.Element](v *version) launch.Reference {
	return v.readingAll(rowSpans("c"), func(a *arguments, lo, hi int64) {
		c, factor, ta := gridOf[T](a, "c"), gridOf[T](a, "a"), a.truth("ta")
		p := product[T]{a: factor, b: factor, ta: ta, tb: !ta}
		alpha, beta := reference.Scalar[T](a.of("alpha")), reference.Scalar[T](a.of("beta"))
		upper := a.integer("uplo") != 0
		for i := lo * spanRows; i < min(hi*spanRows, c.rows); i++ {
			sums := p.rows(i, i+1, c.columns)
			if upper {
				combine(c.row(i)[i:], sums[i:], alpha, beta)
			} else {
				combine(c.row(i)[:i+1], sums[:i+1], alpha, beta)
			}
		}
	})
}

// triangle is a triangular matrix as a system sees it: transposed or not, with ones on its diagonal or not.
type triangle[T numbers.Element] struct {
	grid[T]
	transposed, unit, lower bool
}

func triangleOf[T numbers.Element](a *arguments) triangle[T] {
	ta := a.truth("ta")
	return triangle[T]{grid: gridOf[T](a, "a"), transposed: ta, unit: a.truth("unit"), lower: (a.integer("uplo") == 0) != ta}
}

// solved is what is left of a right-hand side, divided by the diagonal.
func (t *triangle[T]) solved(i int64, rest T) T {
	if t.unit {
		return rest
	}
	return rest / t.at(i, i)
}

func trsm[T numbers.Element](v *version) launch.Reference {
	spans := func(a *arguments) int64 {
		if a.integer("side") != 0 {
			return reference.SpansOf(a.integer("b.rows"), spanRows)
		}
		return reference.SpansOf(a.integer("b.columns"), 8*spanRows)
	}
	return v.inGo(spans, func(a *arguments, lo, hi int64) {
		t, b, alpha := triangleOf[T](a), gridOf[T](a, "b"), reference.Scalar[T](a.of("alpha"))
		if a.integer("side") != 0 {
			for i := lo * spanRows; i < min(hi*spanRows, b.rows); i++ {
				t.solveRow(b.row(i), alpha)
			}
			return
		}
		t.solveColumns(&b, alpha, lo*8*spanRows, min(hi*8*spanRows, b.columns))
	})
}

// solveRow solves x*t = alpha*x in place.
func (t *triangle[T]) solveRow(x []T, alpha T) {
	n := int64(len(x))
	for step := range n {
		j, from, to := step, int64(0), step
		if t.lower {
			j = n - 1 - step
			from, to = j+1, n
		}
		s := T(alpha * x[j])
		for p := from; p < to; p++ {
			s -= T(x[p] * t.flipped(t.transposed, p, j))
		}
		x[j] = t.solved(j, s)
	}
}

// solveColumns solves t*x = alpha*x in place, for columns left to right of x.
func (t *triangle[T]) solveColumns(x *grid[T], alpha T, left, right int64) {
	n := x.rows
	for step := range n {
		i, from, to := step, int64(0), step
		if !t.lower {
			i = n - 1 - step
			from, to = i+1, n
		}
		row := x.row(i)[left:right]
		for j := range row {
			row[j] = T(alpha * row[j])
		}
		for p := from; p < to; p++ {
			factor, other := t.flipped(t.transposed, i, p), x.row(p)[left:right]
			for j := range row {
				row[j] -= T(factor * other[j])
			}
		}
		for j := range row {
			row[j] = t.solved(i, row[j])
		}
	}
}
