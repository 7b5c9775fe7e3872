// The mathematical functions that clang gets from dagrun's device headers, run by the CPU device and held against Go's.

package tests

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels/source/clang"
)

func TestDeviceHeadersCompute(t *testing.T) {
	compiler, err := clang.Open(clang.Options{})
	if err != nil {
		t.Skip(err)
	}
	type function struct {
		name    string
		lo, hi  float64
		of      func(x float64) float64
		allowed float64 // relative error, in units of 2^-53
	}
	functions := []function{
		{"exp(x)", -700, 700, math.Exp, 4}, {"exp2(x)", -1000, 1000, math.Exp2, 8}, {"exp10(x)", -300, 300, func(x float64) float64 { return math.Pow(10, x) }, 40},
		{"expm1(x)", -2, 2, math.Expm1, 8}, {"log(x)", 1e-300, 1e5, math.Log, 4}, {"log2(x)", 1e-3, 1e5, math.Log2, 8}, {"log10(x)", 1e-3, 1e5, math.Log10, 8},
		{"log1p(x)", -0.9, 10, math.Log1p, 8}, {"sin(x)", -10, 10, math.Sin, 8}, {"cos(x)", -10, 10, math.Cos, 8}, {"tan(x)", -1.5, 1.5, math.Tan, 10},
		{"asin(x)", -1, 1, math.Asin, 8}, {"acos(x)", -1, 0.7, math.Acos, 8}, {"atan(x)", -50, 50, math.Atan, 8}, {"atan2(x, 3.0)", -50, 50, func(x float64) float64 { return math.Atan2(x, 3) }, 8},
		{"atan2(x, -3.0)", -50, 50, func(x float64) float64 { return math.Atan2(x, -3) }, 8}, {"sinh(x)", -20, 20, math.Sinh, 10}, {"cosh(x)", -20, 20, math.Cosh, 10}, {"tanh(x)", -20, 20, math.Tanh, 10},
		{"asinh(x)", -50, 50, math.Asinh, 12}, {"acosh(x)", 1, 50, math.Acosh, 12}, {"atanh(x)", -0.99, 0.99, math.Atanh, 12}, {"cbrt(x)", -1e6, 1e6, math.Cbrt, 8},
		{"pow(x, 2.5)", 1e-3, 1e3, func(x float64) float64 { return x * x * math.Sqrt(x) }, 4}, {"pow(1.0001, x)", -1e5, 1e5, func(x float64) float64 { base := 1.0001; return math.Exp(x * math.Log1p(base-1)) }, 40},
		{"pow(x, -3.0)", -20, 20, func(x float64) float64 { return 1 / (x * x * x) }, 4}, {"hypot(x, 3.0)", -50, 50, func(x float64) float64 { return math.Hypot(x, 3) }, 4},
		{"fmod(x, 0.7)", -1e4, 1e4, func(x float64) float64 { return math.Mod(x, 0.7) }, 0}, {"remainder(x, 0.7)", -1e4, 1e4, func(x float64) float64 { return math.Remainder(x, 0.7) }, 0},
		{"round(x)", -5, 5, math.Round, 0}, {"rint(x)", -5, 5, math.RoundToEven, 0}, {"floor(x)", -5, 5, math.Floor, 0}, {"erf(x)", -4, 4, math.Erf, 8}, {"erfc(x)", -4, 10, math.Erfc, 400},
		{"tgamma(x)", 0.1, 50, math.Gamma, 20000}, {"lgamma(x)", 3, 50, func(x float64) float64 { v, _ := math.Lgamma(x); return v }, 20000},
		{"erfinv(x)", -0.99, 0.99, math.Erfinv, 400}, {"erfcinv(x)", 0.001, 1.999, math.Erfcinv, 4000}, {"sqrt(x)", 0, 1e5, math.Sqrt, 0}, {"rsqrt(x)", 0.1, 1e5, func(x float64) float64 { return 1 / math.Sqrt(x) }, 2},
		{"sinpi(x)", -0.45, 0.45, func(x float64) float64 { return math.Sin(math.Pi * x) }, 8}, {"nextafter(x, 9.0)", -5, 5, func(x float64) float64 { return math.Nextafter(x, 9) }, 0},
		{"ldexp(x, -3)", -5, 5, func(x float64) float64 { return x / 8 }, 0}, {"trunc(x)", -5, 5, math.Trunc, 0},
	}
	var code strings.Builder
	for i, f := range functions {
		fmt.Fprintf(&code, "extern \"C\" __global__ void f%d(const double *in, double *out, float *small) { int i = blockIdx.x * 128 + threadIdx.x; double x = in[i]; out[i] = %s; { float x = in[i]; small[i] = %s; } }\n", i, f.name, f.name)
	}
	r, err := compiler.Compile(context.Background(), clang.Source{Path: "functions.cu", Code: []byte(code.String())})
	require.NoError(t, err)
	p, err := simt.Load("functions.ptx", string(r.PTX))
	require.NoError(t, err)
	const n = 1024
	memory := make([]float64, 3*n)
	kept = memory // the stack moves
	for i, f := range functions {
		for k := range n {
			memory[k] = f.lo + (f.hi-f.lo)*(float64(k)+0.37)/n
		}
		kernel, err := p.Kernel(fmt.Sprintf("f%d", i))
		require.NoError(t, err, f.name)
		var args []simt.Arg
		for k := range 3 {
			args = append(args, simt.Arg{Bits: uint64(uintptr(unsafe.Pointer(&memory[k*n]))), Pointer: true, Bytes: 8 * n})
		}
		run, err := kernel.Start(simt.Launch{Grid: [3]uint32{n / 128, 1, 1}, Block: [3]uint32{128, 1, 1}, Args: args})
		require.NoError(t, err)
		run.Work()
		require.Nil(t, run.Fault(), "%s: %v", f.name, run.Fault())
		worst, at := 0.0, 0.0
		for k := range n {
			want := f.of(memory[k])
			if e := math.Abs(memory[n+k]-want) / math.Max(math.Abs(want), 1e-300) * 0x1p53; !(e <= worst) {
				worst, at = e, memory[k]
			}
		}
		assert.LessOrEqual(t, worst, f.allowed, "%s at %v", f.name, at)
		runtime.KeepAlive(memory)
	}
}

// kept is what must not lie on the stack.
var kept []float64
