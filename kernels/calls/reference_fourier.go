// Go versions of Fourier transforms, of any length, computed in f64 whatever the element type. Every product and every sum is rounded once, so that
// results do not depend on the machine.

package calls

import (
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// point is a complex number. Go may fuse the operations of its own complex types.
type point struct{ re, im float64 }

func (p point) plus(q point) point  { return point{p.re + q.re, p.im + q.im} }
func (p point) minus(q point) point { return point{p.re - q.re, p.im - q.im} }

func (p point) times(q point) point {
	return point{float64(p.re*q.re) - float64(p.im*q.im), float64(p.re*q.im) + float64(p.im*q.re)}
}

// turned is the point on the unit circle after so many of n equal steps, clockwise.
func turned(step, n int64) point {
	s, c := numbers.SincosTurns64(float64(step%n) / float64(n))
	return point{c, -s}
}

// largestPrime is the largest prime factor of a number, 1 for 1.
func largestPrime(n int64) int64 {
	largest := int64(1)
	for p := int64(2); p*p <= n; p++ {
		for n%p == 0 {
			largest, n = p, n/p
		}
	}
	return max(largest, n)
}

// wave transforms sequences of one length.
type wave struct {
	n       int
	factors []int   // of n, none large
	roots   []point // the n points that divide the circle
	other   []point // to work in

	long   *wave // of a length with a large prime factor: one of a power of two, for a convolution with the chirp
	chirp  []point
	filter []point // the transform of the conjugate chirp
	sum    []point
}

// largeFactor is the first prime factor for which a convolution is taken.
const largeFactor = 64

func newWave(n int64) *wave {
	w := &wave{n: int(n), other: make([]point, n)}
	if largestPrime(n) >= largeFactor {
		w.convolve()
		return w
	}
	for rest, p := n, int64(4); rest > 1; {
		if rest%p == 0 {
			w.factors, rest = append(w.factors, int(p)), rest/p
			continue
		}
		switch p {
		case 4:
			p = 2
		case 2:
			p = 3
		default:
			p += 2
		}
	}
	w.roots = make([]point, n)
	for k := range w.roots {
		w.roots[k] = turned(int64(k), n)
	}
	return w
}

// convolve prepares a length with a large prime factor: jk = (j² + k² - (k-j)²)/2 makes the transform a convolution.
func (w *wave) convolve() {
	n, length := int64(w.n), int64(1)
	for length < 2*n-1 {
		length *= 2
	}
	w.long = newWave(length)
	w.chirp, w.filter, w.sum = make([]point, n), make([]point, length), make([]point, length)
	for k := range n {
		at := turned(k*k%(2*n), 2*n)
		w.chirp[k] = at
		w.filter[k] = point{at.re, -at.im}
		if k > 0 {
			w.filter[length-k] = w.filter[k]
		}
	}
	w.long.forward(w.filter)
}

// forward transforms x in place.
func (w *wave) forward(x []point) {
	if w.long == nil {
		copy(w.other, x)
		w.step(x, w.other, 1, w.factors)
		return
	}
	clear(w.sum)
	for k := range x {
		w.sum[k] = x[k].times(w.chirp[k])
	}
	w.long.forward(w.sum)
	for k := range w.sum {
		w.sum[k] = w.sum[k].times(w.filter[k])
	}
	w.long.inverse(w.sum)
	for k := range x {
		p := w.sum[k].times(w.chirp[k])
		x[k] = point{p.re / float64(len(w.sum)), p.im / float64(len(w.sum))}
	}
}

// inverse transforms x in place with the other sign. With real and imaginary parts exchanged, it is the forward transform.
func (w *wave) inverse(x []point) {
	for k, p := range x {
		x[k] = point{p.im, p.re}
	}
	w.forward(x)
	for k, p := range x {
		x[k] = point{p.im, p.re}
	}
}

// step transforms every stride-th element of x into y, by transforms of a part of them for each residue.
func (w *wave) step(y, x []point, stride int, factors []int) {
	if len(factors) == 0 {
		y[0] = x[0]
		return
	}
	p, m := factors[0], len(y)/factors[0]
	for q := range p {
		w.step(y[q*m:(q+1)*m], x[q*stride:], stride*p, factors[1:])
	}
	var terms [largeFactor]point
	for k := range m {
		for q := range p {
			terms[q] = y[q*m+k]
			if q > 0 && k > 0 {
				terms[q] = terms[q].times(w.roots[q*k*stride])
			}
		}
		switch p {
		case 2:
			y[k], y[k+m] = terms[0].plus(terms[1]), terms[0].minus(terms[1])
		case 4:
			even, odd := terms[0].plus(terms[2]), terms[1].plus(terms[3])
			across, side := terms[0].minus(terms[2]), terms[1].minus(terms[3])
			side = point{side.im, -side.re} // a quarter clockwise
			y[k], y[k+m], y[k+2*m], y[k+3*m] = even.plus(odd), across.plus(side), even.minus(odd), across.minus(side)
		default:
			for r := range p {
				sum := terms[0]
				for q := 1; q < p; q++ {
					sum = sum.plus(terms[q].times(w.roots[q*r%p*(w.n/p)]))
				}
				y[k+r*m] = sum
			}
		}
	}
}

// field is a matrix of complex or real numbers in memory, row by row.
type field[R float32 | float64] struct {
	shape
	parts int64 // 2 for complex numbers
	ld    int64
	data  []R
}

func fieldOf[R float32 | float64](a *arguments, name string, parts int64) field[R] {
	f := field[R]{shape: shape{a.integer(name + ".rows"), a.integer(name + ".columns")}, parts: parts, ld: a.integer(name + ".ld")}
	if f.rows > 0 && f.columns > 0 {
		f.data = reference.Slice[R](a.of(name), parts*((f.rows-1)*f.ld+f.columns))
	}
	return f
}

// load reads a row.
func (f *field[R]) load(row int64, to []point) {
	from := f.data[f.parts*row*f.ld:]
	for j := range f.columns {
		if f.parts == 1 {
			to[j] = point{re: float64(from[j])}
		} else {
			to[j] = point{float64(from[2*j]), float64(from[2*j+1])}
		}
	}
}

// store writes the first elements of a row.
func (f *field[R]) store(row int64, from []point) {
	to := f.data[f.parts*row*f.ld:]
	for j := range f.columns {
		if f.parts == 1 {
			to[j] = R(from[j].re)
		} else {
			to[2*j], to[2*j+1] = R(from[j].re), R(from[j].im)
		}
	}
}

// complete adds the columns of a row that follow from the first half, for real results.
func complete(row []point) {
	for j := len(row)/2 + 1; j < len(row); j++ {
		p := row[len(row)-j]
		row[j] = point{p.re, -p.im}
	}
}

// fourierSpans is how many parts transforms of rows have. Each computes the roots of unity anew.
const fourierSpans = 16

// transforms makes the Go version of a call. Real numbers have one part, complex ones two.
func transforms[R float32 | float64](v *version, partsOfX, partsOfY int64, inverse func(*arguments) bool) launch.Reference {
	spans := func(a *arguments) int64 {
		rows := a.integer("x.rows")
		if a.integer("dims") == 2 {
			return min(1, rows)
		}
		return min(fourierSpans, rows)
	}
	return v.readingAll(spans, func(a *arguments, lo, hi int64) {
		x, y := fieldOf[R](a, "x", partsOfX), fieldOf[R](a, "y", partsOfY)
		columns := max(x.columns, y.columns)
		if columns == 0 {
			return
		}
		back := inverse(a)
		across := newWave(columns)
		line := func(w *wave, row []point) {
			if back {
				w.inverse(row)
			} else {
				w.forward(row)
			}
		}
		if a.integer("dims") != 2 {
			count := spans(a)
			row := make([]point, columns)
			for i := lo * x.rows / count; i < hi*x.rows/count; i++ {
				x.load(i, row)
				if partsOfY == 1 {
					complete(row)
				}
				line(across, row)
				y.store(i, row)
			}
			return
		}
		all := make([]point, x.rows*columns)
		row := func(i int64) []point { return all[i*columns : (i+1)*columns] }
		down, column := newWave(x.rows), make([]point, x.rows)
		for i := range x.rows {
			if x.load(i, row(i)); partsOfY == 2 {
				line(across, row(i))
			}
		}
		for j := range min(x.columns, y.columns) {
			for i := range column {
				column[i] = all[int64(i)*columns+j]
			}
			line(down, column)
			for i := range column {
				all[int64(i)*columns+j] = column[i]
			}
		}
		for i := range x.rows {
			if partsOfY == 1 {
				complete(row(i))
				line(across, row(i))
			}
			y.store(i, row(i))
		}
	})
}

func never(*arguments) bool  { return false }
func always(*arguments) bool { return true }

func c2c[R float32 | float64](v *version) launch.Reference {
	return transforms[R](v, 2, 2, func(a *arguments) bool { return a.truth("inverse") })
}

func r2c[R float32 | float64](v *version) launch.Reference { return transforms[R](v, 1, 2, never) }

func c2r[R float32 | float64](v *version) launch.Reference { return transforms[R](v, 2, 1, always) }
