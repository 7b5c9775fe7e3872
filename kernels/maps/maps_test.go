// Tests of elementwise expressions: their meaning against float64 arithmetic, the shape of their PTX, and refusals.

package maps_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/ptx"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/launch"
	"github.com/dagrun/dagrun/kernels/maps"
)

// mapOf makes the kernel of an expression. Names in types are its inputs; other names are scalars.
func mapOf(t testing.TB, text string, types map[string]dag.DType) (dag.LaunchKernel, *dag.MapSpec, error) {
	out, e, err := expr.ParseMap(text)
	require.NoError(t, err)
	spec := &dag.MapSpec{Text: text, Expr: e, Out: out, OutType: types[out]}
	for _, name := range e.Variables() {
		if in, ok := types[name]; ok {
			spec.Inputs, spec.InTypes = append(spec.Inputs, name), append(spec.InTypes, in)
		} else {
			spec.Scalars = append(spec.Scalars, name)
		}
	}
	k, err := kernels.Library().Map(spec)
	return k, spec, err
}

type moduled interface{ Module() *launch.Module }

func TestMapMeansWhatItSays(t *testing.T) {
	const n = 1301
	random := rand.New(rand.NewPCG(5, 6))
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], y[i] = float64(float32(random.Float64()*8-4)), float64(float32(random.Float64()*3+0.1))
	}
	const a = 2.5
	for text, want := range map[string]func(x, y float64) float64{
		"z = a*x + y":                       func(x, y float64) float64 { return a*x + y },
		"z = -x / (y - 0.05)":               func(x, y float64) float64 { return -x / (y - 0.05) },
		"z = min(x, y, 1) - max(x, 0)":      func(x, y float64) float64 { return min(x, y, 1) - max(x, 0) },
		"z = floor(x) + ceil(y)":            func(x, y float64) float64 { return math.Floor(x) + math.Ceil(y) },
		"z = x % y":                         func(x, y float64) float64 { return x - math.Floor(x/y)*y },
		"z = sqrt(y) + abs(x)":              func(x, y float64) float64 { return math.Sqrt(y) + math.Abs(x) },
		"z = exp(x) * log(y)":               func(x, y float64) float64 { return math.Exp(x) * math.Log(y) },
		"z = log2(y) - tanh(x)":             func(x, y float64) float64 { return math.Log2(y) - math.Tanh(x) },
		"z = sin(x)*sin(x) + cos(x)*cos(x)": func(x, y float64) float64 { return 1 },
		"z = pow(y, x)":                     func(x, y float64) float64 { return math.Pow(y, x) },
		"z = pow(x, 3) + pow(y, -2)":        func(x, y float64) float64 { return x*x*x + 1/(y*y) },
		"z = 3":                             func(x, y float64) float64 { return 3 },
		"z = x":                             func(x, y float64) float64 { return x },
		"z = a":                             func(x, y float64) float64 { return a },
	} {
		for _, element := range []dag.DType{dag.F32, dag.F64} {
			k, spec, err := mapOf(t, text, map[string]dag.DType{"x": element, "y": element, "z": element})
			require.NoError(t, err, text)
			call := &launch.Call{Args: []launch.Arg{{Bits: n}, memoryOf(element, make([]float64, n))}}
			for _, name := range spec.Inputs {
				call.Args = append(call.Args, memoryOf(element, map[string][]float64{"x": x, "y": y}[name]))
			}
			for range spec.Scalars {
				call.Args = append(call.Args, launch.Arg{Bits: math.Float64bits(a)})
			}
			r := k.(moduled).Module().References[k.Entry()]
			r.Run(call, 0, r.Spans(call))
			tolerance := map[dag.DType]float64{dag.F32: 2e-6, dag.F64: 1e-14}[element]
			for i := range x {
				w, got := want(x[i], y[i]), elementOf(element, call.Args[1], i)
				if math.Abs(got-w) > tolerance*(math.Abs(w)+10) {
					t.Fatalf("%s in %s at x=%v y=%v: %v, want %v", text, element, x[i], y[i], got, w)
				}
			}
		}
	}
}

func memoryOf(t dag.DType, v []float64) launch.Arg {
	if t == dag.F64 {
		c := append([]float64(nil), v...)
		return launch.Arg{Memory: unsafe.Pointer(&c[0]), Bytes: int64(len(c)) * 8}
	}
	c := make([]float32, len(v))
	for i := range c {
		c[i] = float32(v[i])
	}
	return launch.Arg{Memory: unsafe.Pointer(&c[0]), Bytes: int64(len(c)) * 4}
}

func elementOf(t dag.DType, a launch.Arg, i int) float64 {
	if t == dag.F64 {
		return unsafe.Slice((*float64)(a.Memory), i+1)[i]
	}
	return float64(unsafe.Slice((*float32)(a.Memory), i+1)[i])
}

func TestMapToIntegers(t *testing.T) {
	x := []float64{-3.9, 3.9, 1e10, -1e10, math.NaN(), 255.5, -0.5, 1e300}
	for _, c := range []struct {
		out  dag.DType
		want []int64
	}{
		{dag.I8, []int64{-3, 3, 127, -128, 0, 127, 0, 127}},
		{dag.U8, []int64{0, 3, 255, 0, 0, 255, 0, 255}},
		{dag.I32, []int64{-3, 3, math.MaxInt32, math.MinInt32, 0, 255, 0, math.MaxInt32}},
		{dag.I64, []int64{-3, 3, 1e10, -1e10, 0, 255, 0, math.MaxInt64}},
		{dag.U64, []int64{0, 3, 1e10, 0, 0, 255, 0, -1}},
		{dag.Bool, []int64{1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		k, _, err := mapOf(t, "z = x", map[string]dag.DType{"x": dag.F64, "z": c.out})
		require.NoError(t, err)
		out := make([]byte, 8*len(x))
		call := &launch.Call{Args: []launch.Arg{{Bits: uint64(len(x))}, {Memory: unsafe.Pointer(&out[0]), Bytes: int64(len(out))}, memoryOf(dag.F64, x)}}
		r := k.(moduled).Module().References[k.Entry()]
		r.Run(call, 0, r.Spans(call))
		for i, w := range c.want {
			size := int(c.out.Size())
			var got uint64
			for j := size - 1; j >= 0; j-- {
				got = got<<8 | uint64(out[i*size+j])
			}
			mask := uint64(1)<<(size*8-1)<<1 - 1
			assert.Equal(t, uint64(w)&mask, got, "%v as %s", x[i], c.out)
		}
	}
}

func TestMapOfHostileValues(t *testing.T) {
	values := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 65, math.NaN(), math.Inf(1), math.Inf(-1), 1e308, -1e308, 5e-324, 1e-40, 3e38, -3e38, 1 << 31, 1 << 63, 1 << 53, -0.5}
	for _, text := range []string{"z = pow(x, a)", "z = pow(a, x)", "z = sin(x) * cos(x)", "z = exp(x) + log(x) + log2(x)", "z = tanh(x) + x % a", "z = floor(x) / a - ceil(x)"} {
		for _, out := range []dag.DType{dag.Bool, dag.I8, dag.U8, dag.I16, dag.U16, dag.I32, dag.U32, dag.I64, dag.U64, dag.F16, dag.BF16, dag.F32, dag.F64} {
			for _, in := range []dag.DType{dag.F32, dag.F64} {
				k, _, err := mapOf(t, text, map[string]dag.DType{"x": in, "z": out})
				require.NoError(t, err)
				for _, a := range values {
					result := make([]byte, 8*len(values))
					call := &launch.Call{Args: []launch.Arg{{Bits: uint64(len(values))}, {Memory: unsafe.Pointer(&result[0]), Bytes: int64(len(values)) * out.Size()},
						memoryOf(in, values), {Bits: math.Float64bits(a)}}}
					r := k.(moduled).Module().References[k.Entry()]
					require.NotPanics(t, func() { r.Run(call, 0, r.Spans(call)) }, "%s, %s of %s, a = %v", text, out, in, a)
				}
			}
		}
	}
}

func TestDividingByAPowerOfTwoMultiplies(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	x := []float64{0, math.Copysign(0, -1), 1, 3, math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, 1.5e-320, 2.3e-308, math.MaxFloat64, 1e-45, 4.2e-45, 1.2e-38, math.MaxFloat32}
	for range 1000 {
		x = append(x, math.Float64frombits(random.Uint64()))
	}
	for by, multiplies := range map[string][2]bool{ // in f32 and f64
		"2": {true, true}, "-8": {true, true}, "0.25": {true, true}, "3": {}, "1e-320": {}, "0": {}, "pow2(100)": {true, true}, "pow2(-140)": {false, true}, "pow2(140)": {true, true}, "pow2(1023)": {true, true}, "pow2(-1074)": {}} {
		var e float64
		if _, err := fmt.Sscanf(by, "pow2(%g)", &e); err == nil {
			by = strconv.FormatFloat(math.Ldexp(1, int(e)), 'g', -1, 64)
		}
		c, err := strconv.ParseFloat(by, 64)
		require.NoError(t, err)
		for k, element := range []dag.DType{dag.F32, dag.F64} {
			if element == dag.F32 && (float64(float32(c)) != c || math.Abs(c) < 0x1p-149) {
				continue
			}
			kernel, _, err := mapOf(t, "z = x / "+by, map[string]dag.DType{"x": element, "z": element})
			require.NoError(t, err)
			m := kernel.(moduled).Module()
			require.Equal(t, multiplies[k], !strings.Contains(string(m.Code), "div."), "x / %s in %s", by, element)
			call := &launch.Call{Args: []launch.Arg{{Bits: uint64(len(x))}, memoryOf(element, make([]float64, len(x))), memoryOf(element, x)}}
			r := m.References[kernel.Entry()]
			r.Run(call, 0, r.Spans(call))
			for i := range x {
				want, got := x[i]/c, elementOf(element, call.Args[1], i)
				if element == dag.F32 {
					want = float64(float32(x[i]) / float32(c))
				}
				require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%v / %s in %s", x[i], by, element)
			}
		}
	}
}

func TestFewElementsHaveAShortForm(t *testing.T) {
	formOf := func(text string, n int64) (whole, form dag.LaunchKernel) {
		whole, _, err := mapOf(t, text, map[string]dag.DType{"x": dag.F64, "z": dag.F64})
		require.NoError(t, err)
		shaped, ok := whole.(dag.ShapedKernel)
		require.True(t, ok)
		return whole, shaped.Form([]dag.Arg{{DType: dag.I64, Bits: uint64(n)}, {IsBuffer: true}, {IsBuffer: true}})
	}
	calls := func(k dag.LaunchKernel) int { return strings.Count(string(k.(moduled).Module().Code), "call.uni") }
	for n, count := range map[int64]int{0: 1, 1: 1, 1 << 16: 1, 1<<16 + 1: 5, -1: 1} {
		whole, form := formOf("z = sin(x)", n)
		require.Equal(t, count, calls(form), "%d elements", n)
		require.Equal(t, whole.Params(), form.Params())
		require.Equal(t, count == 5, form == whole)
	}
	whole, form := formOf("z = sqrt(x)", 1)
	require.Same(t, whole, form, "without functions")
	_, form = formOf("z = sin(x)", 3000)
	info, err := form.Describe([]dag.Arg{{DType: dag.I64, Bits: 3000}, {IsBuffer: true, Mode: dag.Write, DType: dag.F64, Range: dag.Range{Buffer: 0, Hi: 24000}}, {IsBuffer: true, Mode: dag.Read, DType: dag.F64, Range: dag.Range{Buffer: 1, Hi: 24000}}})
	require.NoError(t, err)
	require.Equal(t, [3]uint32{12, 1, 1}, info.Grid, "a thread for each element")
}

func TestMapModules(t *testing.T) {
	f := map[string]dag.DType{"x": dag.F32, "z": dag.F32}
	out, e, err := expr.ParseMap("z = exp(x) + sin(x)")
	require.NoError(t, err)
	spec := &dag.MapSpec{Text: "z = exp(x) + sin(x)", Expr: e, Out: out, OutType: dag.F32, Inputs: []string{"x"}, InTypes: []dag.DType{dag.F32}}
	l := kernels.Library()
	a, err := l.Map(spec)
	require.NoError(t, err)
	b, err := l.Map(spec)
	require.NoError(t, err)
	assert.Same(t, a, b, "equal maps share a module")
	code := string(a.(moduled).Module().Code)
	for _, part := range []string{".version ", ".visible .entry " + a.Entry() + "(", ".func  (.param .b32 func_retval0) dagrun_function_exp_f32(", "dagrun_function_sin_f32(", "two_over_pi["} {
		assert.Contains(t, code, part)
	}
	assert.NotContains(t, code, "tanh")
	assert.Less(t, strings.Index(code, ".func"), strings.Index(code, ".entry"), "functions stand before their callers")

	k, _, err := mapOf(t, "z = 2*x", f)
	require.NoError(t, err)
	slice := func(id int32, lo, hi int64) dag.Arg {
		return dag.Arg{IsBuffer: true, DType: dag.F32, Range: dag.Range{Buffer: dag.BufferID(id), Lo: lo, Hi: hi}}
	}
	n := func(v int64) dag.Arg { return dag.Arg{DType: dag.I64, Bits: uint64(v)} }
	info, err := k.Describe([]dag.Arg{n(8), slice(0, 0, 32), slice(0, 0, 32)})
	require.NoError(t, err)
	assert.Equal(t, dag.Work{Bytes: 64, Flops: 8, Blocks: 1, Threads: 256, Steps: 4.25}, info.Work)
	_, err = k.Describe([]dag.Arg{n(8), slice(0, 0, 32), slice(0, 4, 36)})
	assert.EqualError(t, err, "argument x overlaps z in memory, and z is written")
	_, err = k.Describe([]dag.Arg{n(9), slice(0, 0, 32), slice(1, 0, 36)})
	assert.EqualError(t, err, "argument z needs 9 elements, but its slice has only 8")
}

func BenchmarkMap(b *testing.B) {
	types := map[string]dag.DType{"x": dag.F32, "y": dag.F32, "z": dag.F32}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := mapOf(b, "z = a*x + exp(y)", types); err != nil {
			b.Fatal(err)
		}
	}
}

func TestMapsAreJoined(t *testing.T) {
	types := map[string]dag.DType{"x": dag.F32, "y": dag.F32, "z": dag.F32}
	module := func(text string) (*launch.Module, string) {
		k, _, err := mapOf(t, text, types)
		require.NoError(t, err)
		return k.(moduled).Module(), k.Entry()
	}
	var modules []*launch.Module
	var entries []string
	for _, text := range []string{"z = x/3 + 1", "y = x*x", "z = x - 2", "y = x - 2", "z = x/3 + 1"} {
		m, entry := module(text)
		modules, entries = append(modules, m), append(entries, entry)
	}
	require.Equal(t, entries[2], entries[3], "names are not part of the code")
	called, _ := module("z = sin(x)")
	require.Empty(t, called.Body, "functions take long to compile")
	joined := maps.Join(append([]*launch.Module{called, nil}, modules...))
	assert.Equal(t, "map z = x/3 + 1, and 2 more", joined.Name)
	assert.Len(t, joined.References, 3)
	parsed, err := ptx.Parse(string(joined.Code))
	require.NoError(t, err)
	var found []string
	for _, id := range parsed.Entries() {
		found = append(found, parsed.Functions[id].Name)
	}
	assert.Equal(t, []string{entries[0], entries[1], entries[2]}, found)
	for k, m := range modules {
		assert.Contains(t, string(joined.Code), m.Body)
		assert.Contains(t, joined.References, entries[k])
	}
	assert.Equal(t, joined.Code, maps.Join([]*launch.Module{joined, modules[2]}).Code)

	var short []*launch.Module
	for _, text := range []string{"z = sin(x)", "z = sin(x)*cos(y)"} {
		k, _, err := mapOf(t, text, types)
		require.NoError(t, err)
		short = append(short, k.(dag.ShapedKernel).Form([]dag.Arg{{DType: dag.I64, Bits: 1}}).(moduled).Module())
	}
	joined = maps.Join(append(short, modules[0]))
	assert.Equal(t, "map z = sin(x), and 2 more", joined.Name)
	parsed, err = ptx.Parse(string(joined.Code))
	require.NoError(t, err)
	assert.Len(t, parsed.Entries(), 3)
	assert.Equal(t, 1, strings.Count(string(joined.Code), "dagrun_function_sin_f32(\n"), "functions are there once")
}
