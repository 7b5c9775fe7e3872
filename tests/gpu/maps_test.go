// Elementwise expressions: what a platform computes against the Go version, to the bit.

package gpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/driver"
	"github.com/dagrun/dagrun/cudart/host"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
)

// mapOf makes the kernel of an elementwise expression. In it, a is a number, k a whole number and s a buffer of one element.
func mapOf(t testing.TB, text string, out, in dag.DType) dag.LaunchKernel {
	target, e, err := expr.ParseMap(text)
	require.NoError(t, err)
	spec := &dag.MapSpec{Text: text, Expr: e, Out: target, OutType: out}
	for _, name := range e.Variables() {
		switch name {
		case "a":
			spec.Scalars, spec.ScalarTypes = append(spec.Scalars, name), append(spec.ScalarTypes, dag.F64)
		case "k":
			spec.Scalars, spec.ScalarTypes = append(spec.Scalars, name), append(spec.ScalarTypes, dag.I64)
		default:
			spec.Inputs, spec.InTypes, spec.Single = append(spec.Inputs, name), append(spec.InTypes, in), append(spec.Single, name == "s")
		}
	}
	k, err := kernels.Library().Map(spec)
	require.NoError(t, err)
	return k
}

// launchOf is a launch of a map on n elements, which has no shape and no buffers yet.
func launchOf(k dag.LaunchKernel, n int64) *launched {
	if shaped, ok := k.(dag.ShapedKernel); ok {
		k = shaped.Form([]dag.Arg{{DType: dag.I64, Bits: uint64(n)}})
	}
	l := &launched{kernel: k, module: k.(interface{ Module() *launch.Module }).Module(), params: k.Params()}
	for i, param := range l.params {
		a := dag.Arg{IsBuffer: param.Buffer, Mode: param.Mode, DType: param.DType}
		switch {
		case i == 0:
			a.Bits = uint64(n)
		case param.Buffer:
			a.Range = dag.Range{Buffer: dag.BufferID(i), Hi: 1 << 50}
		case param.DType == dag.I64:
			a.Bits = uint64(1<<53 + 1)
		default:
			a.Bits = math.Float64bits(1.7)
		}
		l.args = append(l.args, a)
	}
	return l
}

// mapChecker runs an elementwise expression between two element types.
func mapChecker(t *testing.T, p cudart.Platform, counts ...int64) func(text string, out, in dag.DType) {
	b := newBench(t, p, 16<<20)
	return func(text string, out, in dag.DType) {
		k := mapOf(t, text, out, in)
		modules, loaded := map[string]cudart.Module{}, map[string]cudart.Kernel{} // by entry
		for _, n := range counts {
			for _, skew := range []int64{0, 1} {
				l := launchOf(k, n)
				entry := l.kernel.Entry()
				if modules[entry] == nil {
					module, err := p.Load(context.Background(), 0, l.module)
					require.NoError(t, err, "%s\n%s", text, l.module.Code)
					modules[entry], loaded[entry] = module, must[cudart.Kernel](t)(module.Kernel(entry))
				}
				l.describe(t, "map", sizes{"n": float64(n)}, skew, 1<<60, rand.New(rand.NewPCG(uint64(n), uint64(skew))))
				b.check(t, l, loaded[entry], fmt.Sprintf("%s from %s to %s, n=%d, slices %d elements off", text, in, out, n, skew))
			}
		}
		for _, module := range modules {
			require.NoError(t, module.Close())
		}
	}
}

// checkMaps runs elementwise expressions between all element types.
func checkMaps(t *testing.T, p cudart.Platform, count int64) {
	try := mapChecker(t, p, 0, 1, 1023, count)
	for _, text := range []string{"z = a*x + y", "z = -x / y - 0.5", "z = min(x, y, 1) - max(x, 0)", "z = floor(x) + ceil(y) + abs(x)", "z = x % y", "z = sqrt(y)",
		"z = exp(x)", "z = log(y)", "z = log2(y)", "z = sin(x) + cos(y)", "z = tanh(x)", "z = pow(y, x)", "z = pow(x, 3)", "z = 3", "z = a",
		"z = select(x > a, x, -y)", "z = select(x - floor(x), s, x) * s"} {
		try(text, dag.F32, dag.F32)
		try(text, dag.F64, dag.F64)
	}
	for out := dag.F16; out <= dag.Bool; out++ {
		for in := dag.F16; in <= dag.Bool; in++ {
			try("z = 30*x + a", out, in)
			try("z = select(x > s, x, s)", out, in)
		}
		try("z = 1e10*x", out, dag.F32)
		try("z = 200*sqrt(x)", out, dag.F32) // also NaN
	}
}

// wholeMaps are computed as whole numbers where elements are integers. Elements and the number k are so large that they wrap.
var wholeMaps = []string{"z = k*x + y", "z = (x - y)*(x + k) - pow(x, 7)", "z = x / y", "z = floor(x / y) + ceil(k / y) - ceil(y / k)", "z = x % y + x % 10 - y % -7",
	"z = min(x, y, 5) + max(x, -3) - max(-k, y)", "z = select(x < y, x, -y) + (x <= s) + 2*(x == y) + 4*(x != 3) + 8*(x and not y or s > 2) + 16*(x < -k) + 32*(y > k)", "z = abs(x) - abs(y)", "z = 0.5*x + k"}

// checkWholeMaps runs them between element types.
func checkWholeMaps(try func(text string, out, in dag.DType), outputs, inputs []dag.DType) {
	for _, text := range wholeMaps {
		for _, out := range outputs {
			for _, in := range inputs {
				try(text, out, in)
			}
		}
	}
}

var allIntegers = []dag.DType{dag.I8, dag.I16, dag.I32, dag.I64, dag.U8, dag.U16, dag.U32, dag.U64, dag.Bool}

func TestMapsOfWholeNumbers(t *testing.T) {
	try := mapChecker(t, open(t), 1, 1023, 20_001)
	checkWholeMaps(try, append(allIntegers, dag.F16, dag.BF16, dag.F32, dag.F64), allIntegers)
	checkWholeMaps(try, []dag.DType{dag.I32, dag.U64}, []dag.DType{dag.F32})
}

func TestMapsOfWholeNumbersInterpreted(t *testing.T) {
	try := mapChecker(t, interpreter(t, simt.CheckFull), 1, 1200)
	checkWholeMaps(try, []dag.DType{dag.I32, dag.U64, dag.F64}, []dag.DType{dag.I64, dag.U64, dag.I8})
	checkWholeMaps(try, []dag.DType{dag.I64, dag.F32, dag.Bool}, []dag.DType{dag.I32, dag.U8, dag.Bool})
	checkWholeMaps(try, []dag.DType{dag.U16}, []dag.DType{dag.F32})
}

func TestMaps(t *testing.T) {
	p := open(t)
	checkMaps(t, p, 300_001)
	mapChecker(t, p, 2_500_001)("z = 30*x + a", dag.U8, dag.U8) // blocks make more than one turn
}

func TestMapsOnCPU(t *testing.T) {
	p := must[*host.Platform](t)(host.Open(host.Options{}))
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	checkMaps(t, p, 2000)
}

// TestMapsInterpreted runs maps' PTX without a GPU.
func TestMapsInterpreted(t *testing.T) {
	try := mapChecker(t, interpreter(t, simt.CheckFull), 0, 1, 1023, 2500)
	for _, element := range []dag.DType{dag.F32, dag.F64, dag.F16, dag.BF16, dag.I32, dag.U8} {
		try("z = a*x + y", element, element)
		try("z = select(x > a, x, -y)", element, element)
		try("z = select(x - s, s, x) * s", dag.F64, element)
		try("z = 1e10*x", element, dag.F32)
		try("z = 200*sqrt(x)", element, dag.F32)
	}
	for _, element := range []dag.DType{dag.F32, dag.F64, dag.BF16, dag.U8} { // with functions, few elements have a short form
		try("z = 30*sin(x) - exp(s)*y", element, element)
		try("z = tanh(a)", element, element)
	}
	for _, element := range []dag.DType{dag.I8, dag.I16, dag.U16} {
		try("z = 1e10*x", element, dag.F32)
		try("z = 200*sqrt(x)", element, dag.F32)
	}
}

// BenchmarkMaps measures maps at sizes from a few blocks to many, as BenchmarkKernels measures kernels.
func BenchmarkMaps(b *testing.B) {
	p, err := driver.Open(driver.Options{Compilers: &kernels.Compilers{}})
	if err != nil {
		b.Skipf("NO GPU: %v", err)
	}
	defer p.Close()
	for _, element := range []dag.DType{dag.F32, dag.F64, dag.F16, dag.U8} {
		for _, m := range [][2]string{{"axpy", "z = a*x + y"}, {"sines", "z = sin(0.9*cos(1.1*sin(x)))"}} {
			for _, n := range []int64{1 << 22, 10_000_000, 1 << 24, 1 << 28} {
				b.Run(fmt.Sprintf("%s_%s/%d", m[0], element, n), func(b *testing.B) {
					l := launchOf(mapOf(b, m[1], element, element), n)
					benchmarkLaunch(b, p, m[0], l.describe(b, m[0], nil, 0, 0, nil), nil)
				})
			}
		}
	}
}
