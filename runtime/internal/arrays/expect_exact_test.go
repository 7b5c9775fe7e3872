// Tests that integers are filled, compared, added and printed exactly, compared with arithmetic of any size.

package arrays

import (
	"math"
	"math/big"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

func integers(values ...int64) []byte {
	memory := make([]byte, 8*len(values))
	for i, v := range values {
		dag.I64.Store(memory, int64(i), uint64(v))
	}
	return memory
}

func integerBuffer(t dag.DType, n int64, e *dag.Expect) *dag.Buffer {
	return &dag.Buffer{Name: "m", DType: t, Shape: []int64{n}, Bytes: n * t.Size(), Expect: e}
}

func perElement(t *testing.T, text string) *expr.Expr {
	e, err := expr.Parse(text)
	require.NoError(t, err)
	return e
}

const beyondFloats = 1<<53 + 1 // the first integer that a float64 cannot hold

func TestLargeIntegersAreNotRounded(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Files{}.Write(t.Context(), filepath.Join(dir, "want.npy"), dag.I64, []int64{2}, integers(beyondFloats, 7)))
	for name, e := range map[string]*dag.Expect{
		"value": {Kind: dag.ExpectValue, Value: expr.Int(beyondFloats)},
		"file":  {Kind: dag.ExpectFile, File: "want.npy"},
		"expr":  {Kind: dag.ExpectExpr, Expr: perElement(t, "9007199254740993 - i*9007199254740986")},
	} {
		second := int64(7)
		if name == "value" {
			second = beyondFloats
		}
		c, err := Files{Dir: dir}.CheckExpect(t.Context(), integerBuffer(dag.I64, 2, e), integers(beyondFloats, second), make([]byte, 64))
		require.NoError(t, err)
		require.True(t, c.OK, "%s: %s", name, c.First)
		c, err = Files{Dir: dir}.CheckExpect(t.Context(), integerBuffer(dag.I64, 2, e), integers(beyondFloats-1, second), make([]byte, 64))
		require.NoError(t, err)
		require.False(t, c.OK, name)
		require.Equal(t, "element [0] is 9007199254740992, want 9007199254740993", c.First, name)
		require.Equal(t, 1.0, c.Worst)
		tolerant := *e
		tolerant.ATol = 1
		c, err = Files{Dir: dir}.CheckExpect(t.Context(), integerBuffer(dag.I64, 2, &tolerant), integers(beyondFloats-1, second), make([]byte, 64))
		require.NoError(t, err)
		require.True(t, c.OK, name)
	}

	sum := &dag.Expect{Kind: dag.ExpectSum, Value: expr.Int(beyondFloats)}
	c, err := Files{}.CheckExpect(t.Context(), integerBuffer(dag.I64, 2, sum), integers(beyondFloats-1, 1), make([]byte, 64))
	require.NoError(t, err)
	require.True(t, c.OK)
	require.Equal(t, "sum 9007199254740993", c.Against)
	c, err = Files{}.CheckExpect(t.Context(), integerBuffer(dag.I64, 2, sum), integers(beyondFloats-1, 0), make([]byte, 64))
	require.NoError(t, err)
	require.Equal(t, "the sum is 9007199254740992, want 9007199254740993", c.First)
}

func TestUnsignedIntegersUseTheirWholeRange(t *testing.T) {
	memory := integers(-1, -1) // 2^64-1 twice
	e := &dag.Expect{Kind: dag.ExpectValue, Value: expr.Int(-1)}
	c, err := Files{}.CheckExpect(t.Context(), integerBuffer(dag.U64, 2, e), memory, make([]byte, 64))
	require.NoError(t, err)
	require.Equal(t, "element [0] is 18446744073709551615, want -1", c.First)
	require.Equal(t, math.Ldexp(1, 64), c.Worst)
	e = &dag.Expect{Kind: dag.ExpectSum, Value: expr.Int(0)}
	c, err = Files{}.CheckExpect(t.Context(), integerBuffer(dag.U64, 2, e), memory, make([]byte, 64))
	require.NoError(t, err)
	require.Equal(t, "the sum is 36893488147419103230, want 0", c.First)
	e = &dag.Expect{Kind: dag.ExpectSum, Value: expr.Int(-2)}
	c, err = Files{}.CheckExpect(t.Context(), integerBuffer(dag.I64, 2, e), memory, make([]byte, 64))
	require.NoError(t, err)
	require.True(t, c.OK)

	// A float above every uint64 equals none of them, although the largest rounds to it.
	e = &dag.Expect{Kind: dag.ExpectValue, Value: expr.FloatValue(math.Ldexp(1, 64))}
	c, err = Files{}.CheckExpect(t.Context(), integerBuffer(dag.U64, 2, e), memory, make([]byte, 64))
	require.NoError(t, err)
	require.EqualValues(t, 2, c.Wrong)
	require.Equal(t, 1.0, c.Worst)
	e.Value = expr.FloatValue(math.NaN())
	c, err = Files{}.CheckExpect(t.Context(), integerBuffer(dag.U64, 2, e), memory, make([]byte, 64))
	require.NoError(t, err)
	require.EqualValues(t, 2, c.Wrong)
}

func TestIntegersAreFilledExactly(t *testing.T) {
	for _, c := range []struct {
		t    dag.DType
		init dag.Init
		want []int64
	}{
		{dag.I64, dag.Init{Kind: dag.InitExpr, Expr: perElement(t, "9007199254740993 + i")}, []int64{beyondFloats, beyondFloats + 1, beyondFloats + 2}},
		{dag.I64, dag.Init{Kind: dag.InitExpr, Expr: perElement(t, "i/2 - 1")}, []int64{-1, 0, 0}},
		{dag.I64, dag.Init{Kind: dag.InitExpr, Expr: perElement(t, "i*1e300")}, []int64{0, math.MaxInt64, math.MaxInt64}},
		{dag.U64, dag.Init{Kind: dag.InitExpr, Expr: perElement(t, "9223372036854775807 - i")}, []int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - 2}},
		{dag.U64, dag.Init{Kind: dag.InitExpr, Expr: perElement(t, "0 - i")}, []int64{0, 0, 0}},
		{dag.I64, dag.Init{Kind: dag.InitExpr, Expr: perElement(t, "i < 2")}, []int64{1, 1, 0}},
		{dag.I64, dag.Init{Kind: dag.InitValue, Value: expr.Int(beyondFloats)}, []int64{beyondFloats, beyondFloats, beyondFloats}},
		{dag.I64, dag.Init{Kind: dag.InitRamp, A: 1 << 53, B: 1}, []int64{1 << 53, beyondFloats, beyondFloats + 1}},
		{dag.I64, dag.Init{Kind: dag.InitRamp, A: -(1 << 53), B: -1}, []int64{-(1 << 53), -beyondFloats, -beyondFloats - 1}},
		{dag.I64, dag.Init{Kind: dag.InitRamp, A: 1 << 62, B: 1 << 62}, []int64{1 << 62, math.MaxInt64, math.MaxInt64}},
		{dag.I64, dag.Init{Kind: dag.InitRamp, A: math.MinInt64, B: math.MinInt64}, []int64{math.MinInt64, math.MinInt64, math.MinInt64}},
		{dag.I64, dag.Init{Kind: dag.InitRamp, A: 0.5, B: 1}, []int64{0, 1, 2}},
	} {
		b := integerBuffer(c.t, 3, nil)
		b.Init = &c.init
		memory := make([]byte, 24)
		require.NoError(t, Files{}.Generate(t.Context(), b, memory))
		require.Equal(t, integers(c.want...), memory, "%+v", c.init)
	}
}

// Every comparison and sum agrees with arithmetic of any size.
func TestExactComparisonsAgreeWithBigNumbers(t *testing.T) {
	types := []dag.DType{dag.I8, dag.U8, dag.I32, dag.U32, dag.I64, dag.U64}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(types).Draw(t, "type")
		bits := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, math.MaxInt64, 1 << 63, math.MaxUint64, 1 << 53, beyondFloats})).Draw(t, "bits")
		memory := make([]byte, 8)
		kind.Store(memory, 0, bits)
		got, ok := new(big.Rat).SetString(kind.Text(kind.Load(memory, 0)))
		require.True(t, ok)
		want := rapid.OneOf(rapid.Map(rapid.Int64(), expr.Int), rapid.Map(rapid.Float64Range(-1e25, 1e25), expr.FloatValue),
			rapid.Custom(func(t *rapid.T) expr.Value {
				v, err := expr.Fraction(rapid.Int64Range(math.MinInt64+1, math.MaxInt64).Draw(t, "numerator"), rapid.Int64Range(1, 9).Draw(t, "denominator"))
				require.NoError(t, err)
				return v
			})).Draw(t, "want")
		tolerance := rapid.SampledFrom([]float64{0, 0.5, 1, 1000, 1e18, 1e20}).Draw(t, "tolerance")
		distance := new(big.Rat).Sub(got, ratio(want))
		distance.Abs(distance)
		bound := new(big.Rat).SetFloat64(tolerance)
		// The distance to a fraction is rounded to a float64, which may change the verdict exactly at the tolerance.
		rounded, _ := distance.Float64()
		if !distance.IsInt() && rounded == tolerance {
			t.Skip("on the edge")
		}
		e := &dag.Expect{Kind: rapid.SampledFrom([]dag.ExpectKind{dag.ExpectValue, dag.ExpectSum}).Draw(t, "kind"), Value: want, ATol: tolerance}
		c, err := Files{}.CheckExpect(t.Context(), integerBuffer(kind, 1, e), memory, make([]byte, 64))
		require.NoError(t, err)
		if distance.Cmp(bound) <= 0 {
			require.True(t, c.OK, "%s against %s", got, want)
		} else if rounded > tolerance {
			require.False(t, c.OK, "%s against %s", got, want)
		}
	})
}

func TestNumbersThatLookTheSameAreShownInFull(t *testing.T) {
	e := &dag.Expect{Kind: dag.ExpectValue, Value: expr.Int(1)}
	b := &dag.Buffer{Name: "m", DType: dag.F64, Shape: []int64{1}, Bytes: 8, Expect: e}
	c, err := Files{}.CheckExpect(t.Context(), b, elements(dag.F64, 1+1e-12), make([]byte, 64))
	require.NoError(t, err)
	require.Equal(t, "element [0] is 1.000000000001, want 1", c.First)
}
