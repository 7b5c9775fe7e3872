// cuFFT: discrete Fourier transforms of the rows of a matrix, or of a matrix in both directions.

package calls

import (
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels/internal/describe"
)

// complexes are the versions for c64 and c128, and mixed those that also take the real numbers of that size.
var (
	complexes = []binding{{T: dag.C64}, {T: dag.C128}}
	mixed     = []binding{{T: dag.C64, R: dag.F32}, {T: dag.C128, R: dag.F64}}
)

func fourierCalls() []call {
	const scaled = " Nothing is scaled: there and back again multiplies by the number of elements."
	return []call{
		{
			name: "cufft.c2c", doc: "y = the discrete Fourier transform of each row of x, or with dims: 2 of the whole matrix",
			notes:  "inverse turns the sign of the exponent." + scaled,
			params: []param{flag("inverse"), dimensions(), in("x"), out("y")},
			types:  complexes, describe: describeC2C, run: runOf(c2c[float32], c2c[float64]),
		},
		{
			name: "cufft.r2c", doc: "y = the same of real numbers; y has the first n/2+1 columns, which determine the others",
			notes:  "y has x's rows, and n/2+1 columns for n columns of x." + scaled,
			params: []param{dimensions(), realOf(in("x")), out("y")},
			types:  mixed, describe: describeR2C, run: runOf(r2c[float32], r2c[float64]),
		},
		{
			name: "cufft.c2r", doc: "y = the inverse transform of x to real numbers; x has the first n/2+1 columns",
			notes:  "y has x's rows, and x has n/2+1 columns for n columns of y. Afterwards x holds nothing of use: cuFFT works in it." + scaled,
			params: []param{dimensions(), inout("x"), realOf(out("y"))},
			types:  mixed, describe: describeC2R, run: runOf(c2r[float32], c2r[float64]),
		},
	}
}

func out(name string) param { return param{name: name, kind: matrix, mode: dag.Write} }

// realOf makes the elements of a buffer real numbers.
func realOf(p param) param {
	p.real = true
	return p
}

func dimensions() param {
	usual := expr.Int(1)
	return param{name: "dims", kind: integer, usual: &usual}
}

func describeC2C(v *values, info *dag.LaunchInfo) error {
	if err := v.must("y", v.shape("x"), "for x of "+v.shape("x").String()); err != nil {
		return err
	}
	return v.fourier(info, v.shape("x"), v.shape("x"))
}

func describeR2C(v *values, info *dag.LaunchInfo) error {
	x := v.shape("x")
	half := shape{x.rows, halfOf(x.columns)}
	if err := v.must("y", half, "for x of "+x.String()); err != nil {
		return err
	}
	return v.fourier(info, x, half)
}

func describeC2R(v *values, info *dag.LaunchInfo) error {
	y := v.shape("y")
	half := shape{y.rows, halfOf(y.columns)}
	if err := v.must("x", half, "for y of "+y.String()); err != nil {
		return err
	}
	return v.fourier(info, y, half)
}

// halfOf is how many columns determine the transform of so many real numbers.
func halfOf(columns int64) int64 {
	if columns == 0 {
		return 0
	}
	return columns/2 + 1
}

// fourier describes transforms of a shape of which so many complex elements are kept.
func (v *values) fourier(info *dag.LaunchInfo, whole, kept shape) error {
	dims := v.integer("dims")
	if dims != 1 && dims != 2 {
		return describe.Wrong("dims", "is %d; it must be 1 for the rows or 2 for the whole matrix", dims)
	}
	for _, name := range []string{"x", "y"} {
		if first, whole := v.args[v.at(name)].Range.Lo, v.types.T.Size(); first%whole != 0 {
			return describe.Wrong(name, "begins at byte %d of its buffer; cuFFT needs a multiple of %d", first, whole)
		}
	}
	if whole.rows == 0 || whole.columns == 0 {
		nothing(info)
		return nil
	}
	elements := kept.rows * kept.columns
	largest, length := largestPrime(whole.columns), float64(whole.columns)
	if dims == 2 {
		largest, length = max(largest, largestPrime(whole.rows)), length*float64(whole.rows)
	}
	// What cuFFT 12 asks for at most, in copies of the complex elements: for large primes, those of a transform of up to four times the length, and
	// of real numbers only half of the elements are kept.
	copies := int64(2)
	switch {
	case largest > smallPrime && kept != whole:
		copies = 12
	case largest > smallPrime:
		copies = 8
	}
	info.Scratch = copies*elements*v.types.T.Size() + 1<<20
	info.Work.Flops = int64(5 * float64(elements) * math.Log2(max(2, length)))
	info.Work.Blocks, info.Work.Threads = max(1, elements/1024), 256
	return nil
}

// smallPrime is the largest prime for which cuFFT has no convolution of a longer transform.
const smallPrime = 127
