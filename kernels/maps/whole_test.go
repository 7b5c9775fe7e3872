// Whole numbers in maps: exact in 64 bits, and wrapping, against arithmetic of any size.

package maps_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
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
)

var integers = []dag.DType{dag.I8, dag.I16, dag.I32, dag.I64, dag.U8, dag.U16, dag.U32, dag.U64}

// column makes a buffer of numbers, of which each keeps its low bits.
func column(t dag.DType, v []int64) []byte {
	var b []byte
	for _, x := range v {
		b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(x))[:t.Size()]...)
	}
	return b
}

// number is an element as a number of any size.
func number(t dag.DType, b []byte, i int) *big.Int {
	var wide [8]byte
	size := int(t.Size())
	copy(wide[:], b[i*size:(i+1)*size])
	bits := binary.LittleEndian.Uint64(wide[:])
	if t.Signed() {
		return big.NewInt(int64(bits) << (64 - size*8) >> (64 - size*8))
	}
	return new(big.Int).SetUint64(bits)
}

// runMap computes a map from x and y with the number a = 3.
func runMap(t *testing.T, text string, out, ofX, ofY dag.DType, x, y []int64) []byte {
	target, e, err := expr.ParseMap(text)
	require.NoError(t, err)
	spec := &dag.MapSpec{Text: text, Expr: e, Out: target, OutType: out}
	result := make([]byte, len(x)*int(out.Size()))
	args := []launch.Arg{{Bits: uint64(len(x))}, {Memory: unsafe.Pointer(&result[0]), Bytes: int64(len(result))}}
	columns := map[string][]byte{"x": column(ofX, x), "y": column(ofY, y)}
	for _, name := range e.Variables() {
		if c := columns[name]; c != nil {
			spec.Inputs, spec.InTypes = append(spec.Inputs, name), append(spec.InTypes, map[string]dag.DType{"x": ofX, "y": ofY}[name])
			args = append(args, launch.Arg{Memory: unsafe.Pointer(&c[0]), Bytes: int64(len(c))})
		}
	}
	if strings.Contains(text, "a*") {
		spec.Scalars, spec.ScalarTypes = []string{"a"}, []dag.DType{dag.I64}
		args = append(args, launch.Arg{Bits: 3})
	}
	k, err := kernels.Library().Map(spec)
	require.NoError(t, err, text)
	m := k.(moduled).Module()
	_, err = ptx.Parse(string(m.Code))
	require.NoError(t, err, "%s\n%s", text, m.Code)
	m.References[k.Entry()].Run(&launch.Call{Args: args}, 0, 1)
	return result
}

func TestIntegersAreExactAndWrap(t *testing.T) {
	random := rand.New(rand.NewPCG(38, 4))
	var x, y []int64
	for _, a := range []int64{0, 1, -1, 2, 3, -7, 100, 9007199254740993, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		for _, b := range []int64{0, 1, -1, 2, 5, -3, math.MaxInt32, math.MaxInt64, math.MinInt64} {
			x, y = append(x, a), append(y, b)
		}
	}
	for range 200 {
		x, y = append(x, int64(random.Uint64()>>random.UintN(64))), append(y, int64(random.Uint64()>>random.UintN(64))-5)
	}
	truth := func(b bool) *big.Int {
		if b {
			return big.NewInt(1)
		}
		return big.NewInt(0)
	}
	made := func(f func(z, x, y *big.Int) *big.Int) func(x, y *big.Int) *big.Int {
		return func(x, y *big.Int) *big.Int { return f(new(big.Int), x, y) }
	}
	// rounded divides and rounds down, up or toward zero; by 0 it is 0.
	rounded := func(add int) func(x, y *big.Int) *big.Int {
		return func(x, y *big.Int) *big.Int {
			if y.Sign() == 0 {
				return new(big.Int)
			}
			q, r := new(big.Int).QuoRem(x, y, new(big.Int))
			if r.Sign() != 0 && (r.Sign()*y.Sign() < 0) == (add < 0) && add != 0 {
				q.Add(q, big.NewInt(int64(add)))
			}
			return q
		}
	}
	maps := map[string]func(x, y *big.Int) *big.Int{
		"z = x + y":              made((*big.Int).Add),
		"z = x - y":              made((*big.Int).Sub),
		"z = x * y":              made((*big.Int).Mul),
		"z = x":                  func(x, y *big.Int) *big.Int { return x },
		"z = -x":                 func(x, y *big.Int) *big.Int { return new(big.Int).Neg(x) },
		"z = abs(x)":             func(x, y *big.Int) *big.Int { return new(big.Int).Abs(x) },
		"z = floor(x) + ceil(y)": made((*big.Int).Add),
		"z = a*x + 9007199254740993": func(x, y *big.Int) *big.Int {
			z := new(big.Int).Mul(x, big.NewInt(3))
			return z.Add(z, big.NewInt(9007199254740993))
		},
		"z = pow(x, 5) - pow(y, 0)": func(x, y *big.Int) *big.Int {
			return new(big.Int).Sub(new(big.Int).Exp(x, big.NewInt(5), nil), big.NewInt(1))
		},
		"z = (x < y) + 2*(x >= y) + 4*(x == y) + 8*(x != y)": func(x, y *big.Int) *big.Int {
			z := new(big.Int).Add(truth(x.Cmp(y) < 0), new(big.Int).Mul(big.NewInt(2), truth(x.Cmp(y) >= 0)))
			return z.Add(z, big.NewInt(8-4*truth(x.Cmp(y) == 0).Int64()))
		},
		"z = select(x <= y and not (y == 3 or x), x, 7)": func(x, y *big.Int) *big.Int {
			if x.Cmp(y) <= 0 && y.Cmp(big.NewInt(3)) != 0 && x.Sign() == 0 {
				return x
			}
			return big.NewInt(7)
		},
	}
	// Of a signed and an unsigned number, these compute with the low 64 bits of both.
	alike := map[string]func(x, y *big.Int) *big.Int{
		"z = x / y":        rounded(0),
		"z = floor(x / y)": rounded(-1),
		"z = ceil(x / y)":  rounded(1),
		"z = x % y": func(x, y *big.Int) *big.Int {
			z := new(big.Int).Mul(rounded(-1)(x, y), y)
			if y.Sign() == 0 {
				return z
			}
			return z.Sub(x, z)
		},
		"z = min(x, y) * max(x, 2)": func(x, y *big.Int) *big.Int {
			low, high := x, x
			if y.Cmp(x) < 0 {
				low = y
			}
			if high.Cmp(big.NewInt(2)) < 0 {
				high = big.NewInt(2)
			}
			return new(big.Int).Mul(low, high)
		},
	}
	check := func(text string, want func(x, y *big.Int) *big.Int, out, ofX, ofY dag.DType) {
		got := runMap(t, text, out, ofX, ofY, x, y)
		first, second := column(ofX, x), column(ofY, y)
		for i := range x {
			w := want(number(ofX, first, i), number(ofY, second, i))
			low := new(big.Int).And(w, new(big.Int).SetUint64(math.MaxUint64>>(64-8*out.Size())))
			g := number(out, got, i)
			g.And(g, new(big.Int).SetUint64(math.MaxUint64>>(64-8*out.Size())))
			require.Equal(t, low.String(), g.String(), "%s from %s and %s to %s at x = %s, y = %s", text, ofX, ofY, out, number(ofX, first, i), number(ofY, second, i))
		}
	}
	for _, out := range integers {
		for k, ofX := range integers {
			for text, want := range maps {
				check(text, want, out, ofX, integers[(k+int(out))%len(integers)])
			}
			for text, want := range alike {
				check(text, want, out, ofX, ofX)
			}
		}
	}
	check("z = x / y", rounded(0), dag.I64, dag.I32, dag.U32)
}

func TestMapsOfIntegersAndOthers(t *testing.T) {
	x, y := []int64{7, -7, 9007199254740993, 200}, []int64{2, 2, 2, 0}
	f64 := func(text string, ofX dag.DType) []float64 {
		b := runMap(t, text, dag.F64, ofX, dag.I64, x, y)
		return unsafe.Slice((*float64)(unsafe.Pointer(&b[0])), len(x))
	}
	assert.Equal(t, []float64{3.5, -3.5, 4503599627370496, math.Inf(1)}, f64("z = x / y", dag.I64), "a quotient is a fraction")
	assert.Equal(t, []float64{8.5, -5.5, 9007199254740994, 201.5}, f64("z = x + 1 + 0.5", dag.I64))
	assert.Equal(t, []float64{49, 49, 18014398509481985, 40000}, f64("z = x*x", dag.I64), "the product wraps before it is converted")
	assert.Equal(t, []float64{7, 18446744073709551609, 9007199254740992, 200}, f64("z = x", dag.U64))
	assert.Equal(t, []float64{1, 0, 1, 1}, f64("z = x > 0", dag.I64))
	i32 := func(text string) []int32 {
		b := runMap(t, text, dag.I32, dag.I64, dag.I64, x, y)
		return unsafe.Slice((*int32)(unsafe.Pointer(&b[0])), len(x))
	}
	assert.Equal(t, []int32{7, -7, 1, 200}, i32("z = x"), "wraps")
	assert.Equal(t, []int32{7, -7, math.MaxInt32, 200}, i32("z = 1.0*x"), "a floating-point number is clamped")
	assert.Equal(t, []int32{2, 2, 4, 14}, i32("z = sqrt(abs(x)) * (x < 300) + 4*(x > 300)"))
	assert.Equal(t, []int32{1, 0, 1, 1}, i32("z = select(0.5, x > 0, 1.5)"))
	b := runMap(t, "z = x / 400", dag.Bool, dag.I16, dag.I64, x, y)
	assert.Equal(t, "[1 1 1 1]", fmt.Sprint(b), "a fraction is not 0")
}

func TestMapsRefuseTypesOfNumbers(t *testing.T) {
	_, e, err := expr.ParseMap("z = a*x")
	require.NoError(t, err)
	spec := dag.MapSpec{Expr: e, Out: "z", OutType: dag.I32, Inputs: []string{"x"}, InTypes: []dag.DType{dag.I32}, Scalars: []string{"a"}, ScalarTypes: []dag.DType{dag.F32}}
	_, err = kernels.Library().Map(&spec)
	assert.EqualError(t, err, `the number "a" is of type f32; it must be f64 or i64`)
	spec.ScalarTypes = []dag.DType{}
	_, err = kernels.Library().Map(&spec)
	assert.EqualError(t, err, "there are 1 numbers, but the types of 0")
}
