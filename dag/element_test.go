// Tests of conversions of elements; 16-bit floats are tested exhaustively.

package dag

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/dag/expr"
)

func TestHalfRoundsToNearestEven(t *testing.T) {
	for h := 0; h < 1<<16; h++ {
		v := HalfToFloat32(uint16(h))
		if v != v {
			require.Equal(t, uint16(0x7fff), HalfFromFloat32(v), "as a GPU's conversion")
			continue
		}
		require.Equal(t, uint16(h), HalfFromFloat32(v), "f16 bits %#04x", h)
		if h&0x7fff >= 0x7bff {
			continue
		}
		next := HalfToFloat32(uint16(h) + 1)
		middle := (v + next) / 2
		even := uint16(h) + uint16(h&1)
		require.Equal(t, even, HalfFromFloat32(middle), "between %#04x and the next", h)
		require.Equal(t, uint16(h), HalfFromFloat32(math.Nextafter32(middle, v)), "just below the middle above %#04x", h)
		require.Equal(t, uint16(h)+1, HalfFromFloat32(math.Nextafter32(middle, next)), "just above the middle above %#04x", h)
	}
	require.Equal(t, uint16(0x7bff), HalfFromFloat32(65519.99))
	require.Equal(t, uint16(0x7c00), HalfFromFloat32(65520))
	require.Equal(t, uint16(0xfc00), HalfFromFloat32(float32(math.Inf(-1))))
}

func TestBFloatRoundsToNearestEven(t *testing.T) {
	for b := 0; b < 1<<16; b++ {
		v := BFloatToFloat32(uint16(b))
		if v != v {
			continue
		}
		require.Equal(t, uint16(b), BFloatFromFloat32(v), "bf16 bits %#04x", b)
	}
	require.Equal(t, uint16(0x3f80), BFloatFromFloat32(math.Float32frombits(0x3f808000)))
	require.Equal(t, uint16(0x3f82), BFloatFromFloat32(math.Float32frombits(0x3f818000)))
}

func TestElementsOfIntegersSaturate(t *testing.T) {
	for _, c := range []struct {
		t    DType
		v    float64
		bits uint64
	}{
		{I8, 127.9, 127}, {I8, 300, 127}, {I8, -300, 0x80}, {I8, -1, 0xff}, {I8, math.NaN(), 0},
		{U8, -1, 0}, {U8, 255.9, 255}, {U8, 256, 255}, {U64, math.Inf(1), math.MaxUint64}, {I64, 1e300, math.MaxInt64},
		{I64, -1e300, 1 << 63}, {Bool, 0.5, 1}, {U32, math.NaN(), 0},
	} {
		require.Equal(t, c.bits, c.t.FromFloat(c.v), "%v of %v", c.t, c.v)
	}
	for _, d := range []DType{I8, I16, I32, I64, U8, U16, U32, U64} { // at the first number that is too large, and at the last that is not too small
		n, top := uint(8*d.Size()), uint(8*d.Size())
		least := uint64(0)
		if d.Signed() {
			top, least = n-1, 1<<(n-1)
		}
		require.Equal(t, uint64(1)<<top-1, d.FromFloat(math.Ldexp(1, int(top))), "%v", d)
		require.Equal(t, uint64(1)<<(top-1), d.FromFloat(math.Ldexp(1, int(top)-1)), "%v", d)
		require.Equal(t, least, d.FromFloat(-math.Ldexp(1, int(top))), "%v", d)
		require.Equal(t, least, d.FromFloat(-math.Ldexp(1, int(top)+1)), "%v", d)
	}
	for d := F16; d <= U64; d++ {
		require.Equal(t, d <= F64, d.Float(), "%v", d)
		require.Equal(t, d >= I8 && d <= I64, d.Signed(), "%v", d)
		for _, truth := range []bool{false, true} {
			bits, err := d.Bits(expr.BoolValue(truth))
			require.NoError(t, err)
			require.Equal(t, map[bool]float64{true: 1}[truth], d.ToFloat(bits), "%v", d)
		}
	}
	for _, c := range []struct {
		t  DType
		v  int64
		ok bool
	}{{I8, 127, true}, {I8, 128, false}, {I8, -128, true}, {I8, -129, false}, {U8, 255, true}, {U8, 256, false}, {U8, -1, false}, {U64, -1, false}, {I64, math.MinInt64, true}, {Bool, 2, false}} {
		_, ok := c.t.fromInt(c.v)
		require.Equal(t, c.ok, ok, "%v of %d", c.t, c.v)
	}
}

func TestElementsLoadAsStored(t *testing.T) {
	for d := F16; d <= Bool; d++ {
		memory := make([]byte, 4*d.Size())
		for i, v := range []float64{0, 1, 1, 0} {
			d.Store(memory, int64(i), d.FromFloat(v))
		}
		for i, v := range []float64{0, 1, 1, 0} {
			require.Equal(t, v, d.ToFloat(d.Load(memory, int64(i))), "%v element %d", d, i)
		}
	}
}

// Elements are loaded and stored where they lie, and nothing else is touched: neither their neighbours nor what is outside.
func TestElementsLieNextToEachOther(t *testing.T) {
	for _, dtype := range []DType{U8, Bool, F16, I32, F64} {
		size := dtype.Size()
		for bytes := range int64(18) {
			for i := int64(-2); i < 20; i++ {
				memory := make([]byte, bytes)
				for k := range memory {
					memory[k] = byte(k + 1)
				}
				want := slices.Clone(memory)
				old := uint64(0)
				if inside := i >= 0 && (i+1)*size <= bytes; inside {
					for k := size - 1; k >= 0; k-- {
						old = old<<8 | uint64(memory[i*size+k])
						want[i*size+k] = byte(0xf0 + k)
					}
				}
				require.Equal(t, old, dtype.Load(memory, i), "%s %d of %d bytes", dtype, i, bytes)
				dtype.Store(memory, i, 0xf7f6f5f4f3f2f1f0)
				require.Equal(t, want, memory, "%s %d of %d bytes", dtype, i, bytes)
			}
		}
	}
}

// The text of an element is its value, down to the least and the largest.
func TestTextsOfElements(t *testing.T) {
	for _, c := range []struct {
		dtype DType
		bits  uint64
		want  string
	}{
		{I8, 0x80, "-128"}, {I8, 0x7f, "127"}, {I8, 0xff01, "1"}, {I16, 0x8000, "-32768"}, {I32, 0x80000000, "-2147483648"}, {I64, 1 << 63, "-9223372036854775808"},
		{U8, 255, "255"}, {U64, 1<<64 - 1, "18446744073709551615"}, {Bool, 0, "false"}, {Bool, 1, "true"}, {Bool, 256, "false"},
		{F32, uint64(math.Float32bits(0.1)), "0.1"}, {F64, math.Float64bits(0.1), "0.1"}, {F64, math.Float64bits(1.0 / 3), "0.3333333333333333"},
		{F32, uint64(math.Float32bits(1.0 / 3)), "0.33333334"}, {F16, 0x3c00, "1"}, {BF16, 0x3f80, "1"}, {F32, uint64(math.Float32bits(1e30)), "1e+30"},
	} {
		require.Equal(t, c.want, c.dtype.Text(c.bits), "%s %#x", c.dtype, c.bits)
	}
}

// A value becomes the element nearest to it, floats exactly where they can, and integers truncated and within their type.
func TestElementsFromValues(t *testing.T) {
	third, large := expr.FloatValue(1.0/3), expr.FloatValue(1e30)
	half, err := expr.Parse("1/2")
	require.NoError(t, err)
	v, err := half.Eval(builderScope{New("p")})
	require.NoError(t, err)
	for _, c := range []struct {
		dtype DType
		value expr.Value
		want  string
	}{
		{F64, v, "0.5"}, {F32, v, "0.5"}, {I32, v, "0"}, {F64, third, "0.3333333333333333"}, {I32, third, "0"}, {I32, expr.FloatValue(-2.7), "-2"}, {I8, expr.FloatValue(2.7), "2"},
		{U8, large, "255"}, {I8, large, "127"}, {I8, expr.FloatValue(-1e30), "-128"}, {I8, expr.Int(-128), "-128"}, {I8, expr.Int(-129), "-128"}, {I8, expr.Int(128), "127"}, {U8, expr.Int(-1), "0"},
		{U8, expr.Int(256), "255"}, {U8, expr.Int(255), "255"}, {U64, large, "18446744073709551615"}, {I64, large, "9223372036854775807"}, {I64, expr.Int(math.MinInt64), "-9223372036854775808"},
		{U8, expr.FloatValue(256), "255"}, {U8, expr.FloatValue(255), "255"}, {I8, expr.FloatValue(127), "127"}, {I8, expr.FloatValue(128), "127"}, {I8, expr.FloatValue(-128), "-128"},
		{U8, expr.FloatValue(math.NaN()), "0"}, {I8, expr.FloatValue(math.NaN()), "0"}, {Bool, expr.Int(0), "false"}, {Bool, expr.Int(7), "true"}, {Bool, third, "true"}, {F16, expr.Int(2048), "2048"},
	} {
		require.Equal(t, c.want, c.dtype.Text(c.dtype.FromValue(c.value)), "%s of %s", c.dtype, c.value.Plain())
	}
	require.Zero(t, Vector(F32, 2).FromFloat(1))
}
