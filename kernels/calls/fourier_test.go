// Tests of cuFFT's calls in pipelines: what is wrong with them, what they access, and transforms of any length on the CPU device.

package calls_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
)

const spectra = `version: 1
name: p
params: {n: 10, rows: 6}
buffers:
  x: {place: device, dtype: f32, shape: [rows, n], init: 1}
  d: {place: device, dtype: f64, shape: [rows, n], init: 1}
  c: {place: device, dtype: c64, shape: [rows, n], init: 1}
  e: {place: device, dtype: c64, shape: [rows, n], init: 1}
  h: {place: device, dtype: c64, shape: [rows, n/2 + 1], init: 1}
  v: {place: device, dtype: c64, shape: [n], init: 1}
  z: {place: device, dtype: c128, shape: [rows, n], init: 1}
nodes:
`

func parseSpectrum(node string) (*dag.Graph, error) {
	return file.Parse([]byte(spectra+"  - {name: t, "+node+"}\n"), file.Options{Name: "p.yaml", Library: kernels.Library()})
}

func TestMistakesInTransforms(t *testing.T) {
	for _, c := range []struct{ node, want string }{
		{"call: cufft.c2c, args: {x: c, y: c}", `argument y of call "cufft.c2c" overlaps x in memory, and y is written; c is c64 [6, 10] on line 7`},
		{"call: cufft.c2c, args: {x: c, y: h}", `argument y of call "cufft.c2c" is a matrix of 6 x 6; for x of 6 x 10 it must be 6 x 10; h is c64 [6, 6] on line 9`},
		{"call: cufft.r2c, args: {x: x, y: c}", `argument y of call "cufft.r2c" is a matrix of 6 x 10; for x of 6 x 10 it must be 6 x 6; c is c64 [6, 10] on line 7`},
		{"call: cufft.c2r, args: {x: c, y: x}", `argument x of call "cufft.c2r" is a matrix of 6 x 10; for y of 6 x 10 it must be 6 x 6; c is c64 [6, 10] on line 7`},
		{"call: cufft.c2c, args: {x: c, y: z}", `call "cufft.c2c": has no version for x c64, y c128; there are: c64; c128`},
		{"call: cufft.r2c, args: {x: d, y: h}", `call "cufft.r2c": has no version for x f64, y c64; there are: x f32, y c64; x f64, y c128; it fits with d as f32 (line 6)`},
		{"call: cufft.c2c, args: {x: v, y: c}", `argument x of call "cufft.c2c" must be a matrix, but "v" has 1 dimension; v is c64 [10] on line 10`},
		{"call: cufft.c2c, args: {dims: 3, x: c, y: e}", `argument dims of call "cufft.c2c" is 3; it must be 1 for the rows or 2 for the whole matrix`},
		{"call: cufft.r2c, args: {x: x(..)(1..9), y: h(..)(0..5)}", `argument x of call "cufft.r2c" begins at byte 4 of its buffer; cuFFT needs a multiple of 8; x is f32 [6, 10] on line 5`},
		{"call: cufft.r2c, args: {inverse: true, x: x, y: h}", `call "cufft.r2c" has no parameter "inverse"; it has dims, x, y`},
	} {
		_, err := parseSpectrum(c.node)
		require.Error(t, err, c.node)
		first, _, _ := strings.Cut(err.Error(), "\n")
		_, message, _ := strings.Cut(first, ": ")
		require.Equal(t, c.want, message, c.node)
	}
}

func TestWhatTransformsAccess(t *testing.T) {
	for node, want := range map[string]string{
		"call: cufft.c2c, args: {x: c, y: e}":                                                 "in c, out e",
		"call: cufft.c2c, args: {inverse: true, dims: 2, x: c(0..3)(0..4), y: c(3..6)(4..8)}": "in c(0..3)(0..4), out c(3..6)(4..8)",
		"call: cufft.r2c, args: {x: x, y: h}":                                                 "in x, out h",
		"call: cufft.c2r, args: {x: h, y: x}":                                                 "inout h, out x",
	} {
		g, err := parseSpectrum(node)
		require.NoError(t, err, node)
		var list []string
		for _, a := range g.Accesses(0) {
			if b := &g.Buffers[a.Buffer]; !b.Scratch {
				list = append(list, a.Mode.String()+" "+g.RangeText(a.Range))
			}
		}
		require.Equal(t, want, strings.Join(list, ", "), node)
	}
	// Lengths with large primes are computed through longer ones.
	scratch := func(n int, node string) int64 {
		g, err := file.Parse([]byte(strings.Replace(spectra, "n: 10", fmt.Sprintf("n: %d", n), 1)+"  - {name: t, "+node+"}\n"), file.Options{Name: "p.yaml", Library: kernels.Library()})
		require.NoError(t, err)
		return g.Buffers[len(g.Buffers)-1].Bytes
	}
	require.Equal(t, int64(2*6*128*8+1<<20), scratch(128, "call: cufft.c2c, args: {x: c, y: e}"))
	require.Equal(t, int64(8*6*262*8+1<<20), scratch(262, "call: cufft.c2c, args: {x: c, y: e}"))
	require.Equal(t, int64(12*6*132*8+1<<20), scratch(262, "call: cufft.r2c, args: {x: x, y: h}"))
}

// transformed is the Go version's transform of one row.
func transformed(t *testing.T, x []complex128, inverse bool) []complex128 {
	t.Helper()
	calls := kernels.Library().(dag.CallLibrary).Calls()
	found, err := calls.Kernel("cufft.c2c", []dag.DType{dag.InvalidDType, dag.InvalidDType, dag.C128, dag.C128})
	require.NoError(t, err)
	k := found.(interface {
		Module() *launch.Module
		Params() []dag.KernelParam
		Entry() string
	})
	y := make([]complex128, len(x))
	call := &launch.Call{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	for _, p := range k.Params() {
		a := launch.Arg{}
		switch p.Name {
		case "inverse":
			if inverse {
				a.Bits = 1
			}
		case "dims", "x.rows", "y.rows":
			a.Bits = 1
		case "x":
			a = launch.Arg{Memory: unsafe.Pointer(unsafe.SliceData(x)), Bytes: int64(16 * len(x))}
		case "y":
			a = launch.Arg{Memory: unsafe.Pointer(unsafe.SliceData(y)), Bytes: int64(16 * len(y))}
		case "x.columns", "y.columns", "x.ld", "y.ld":
			a.Bits = uint64(len(x))
		}
		call.Args = append(call.Args, a)
	}
	reference := k.Module().References[k.Entry()]
	reference.Run(call, 0, reference.Spans(call))
	return y
}

// There and back again gives the numbers times their count, for every small length and for lengths of all kinds.
func TestTransformsOfEveryLengthComeBack(t *testing.T) {
	lengths := []int{343, 509, 512, 625, 961, 1000, 1021, 2048, 2187, 3721, 4093, 4096, 10007, 65536}
	for n := 1; n <= 200; n++ {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		x := make([]complex128, n)
		for k := range x {
			x[k] = complex(math.Sin(float64(3*k+1)), math.Cos(float64(k*k%101)))
		}
		y := transformed(t, x, false)
		var sum complex128
		power, powers := 0.0, 0.0
		for k := range x {
			sum += x[k]
			power += real(x[k])*real(x[k]) + imag(x[k])*imag(x[k])
			powers += real(y[k])*real(y[k]) + imag(y[k])*imag(y[k])
		}
		require.InDelta(t, 0, cmplx.Abs(sum-y[0]), 1e-12*float64(n), "the first is the sum, n = %d", n)
		require.InDelta(t, 1, powers/power/float64(n), 1e-12, "Parseval's equation, n = %d", n)
		for k, back := range transformed(t, y, true) {
			require.InDelta(t, 0, cmplx.Abs(back/complex(float64(n), 0)-x[k]), 2e-14*math.Log2(float64(n+1)), "n = %d, element %d", n, k)
		}
	}
}
