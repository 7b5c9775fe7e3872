// Conversions: cvt between integers and floats of every width.

package simt

import (
	"math"

	"github.com/dagrun/dagrun/internal/ptx"
)

// conversion returns a cvt of one value, or nil if it is not supported.
func conversion(f *ptx.Form) func1 {
	if g := tinyConversion(f); g != nil {
		return g
	}
	if len(f.Types) != 2 {
		return nil
	}
	to, from := f.Types[0], f.Types[1]
	r := roundingOf(f)
	_, toSmall := formatOf(to)
	_, fromSmall := formatOf(from)
	toFloat, fromFloat := to == ptx.F32 || to == ptx.F64 || toSmall, from == ptx.F32 || from == ptx.F64 || fromSmall
	switch {
	case !known(to) || !known(from):
		return nil
	case toFloat && fromFloat:
		return floatToFloat(f, to, from, r)
	case toFloat:
		return integerToFloat(to, from, r)
	case fromFloat:
		return floatToInteger(f, to, from, r)
	}
	n, width := to.Bits(), from.Bits()
	return func(a uint64) uint64 {
		v := truncate(a, width)
		if from.Signed() {
			v = uint64(signExtend(a, width))
		}
		if r.sat {
			return clampInteger(v, from.Signed(), to)
		}
		return truncate(v, n)
	}
}

// known reports whether cvt of one value supports a type.
func known(t ptx.Type) bool {
	switch t {
	case ptx.U8, ptx.U16, ptx.U32, ptx.U64, ptx.S8, ptx.S16, ptx.S32, ptx.S64, ptx.B8, ptx.B16, ptx.B32, ptx.B64, ptx.F16, ptx.BF16, ptx.F32, ptx.F64, ptx.TF32:
		return t != ptx.TF32
	}
	return false
}

// clampInteger clamps a number to the range of a type.
func clampInteger(v uint64, signed bool, to ptx.Type) uint64 {
	n := to.Bits()
	if to.Signed() {
		low, high := int64(-1)<<(n-1), int64(1)<<(n-1)-1
		if !signed && v > uint64(high) {
			return truncate(uint64(high), n)
		}
		return truncate(uint64(min(max(int64(v), low), high)), n)
	}
	if signed && int64(v) < 0 {
		return 0
	}
	return min(v, truncate(^uint64(0), n))
}

// widened returns the value of a float register as a float64, which is always exact.
func widened(t ptx.Type, ftz bool) func(uint64) float64 {
	if s, small := formatOf(t); small {
		return s.widen // cvt flushes only denormals of f32
	}
	if t == ptx.F64 {
		return float64Of
	}
	if ftz {
		return func(a uint64) float64 { return float64(flush(float32Of(a))) }
	}
	return func(a uint64) float64 { return float64(float32Of(a)) }
}

// narrowed rounds a float64 to a float type.
func narrowed(t ptx.Type, r rounding) func(float64) uint64 {
	if s, small := formatOf(t); small {
		r.ftz = false
		return func(v float64) uint64 { return s.narrow(v, r) }
	}
	if t == ptx.F64 {
		return func(v float64) uint64 {
			if r.sat {
				return math.Float64bits(saturated(v))
			}
			return bits64(v)
		}
	}
	return func(v float64) uint64 { return narrow32(v, r) }
}

func floatToFloat(f *ptx.Form, to, from ptx.Type, r rounding) func1 {
	in, out := widened(from, r.ftz), narrowed(to, r)
	if whole := wholeRounding(f); whole != nil {
		return func(a uint64) uint64 { return out(whole(in(a))) }
	}
	if to == from && r.plain() {
		n := to.Bits()
		return func(a uint64) uint64 { return truncate(a, n) }
	}
	return func(a uint64) uint64 { return out(in(a)) }
}

// wholeRounding returns the function for .rni, .rzi, .rmi or .rpi, or nil.
func wholeRounding(f *ptx.Form) func(float64) float64 {
	switch f.First(ptx.ModRni, ptx.ModRzi, ptx.ModRmi, ptx.ModRpi) {
	case ptx.ModRni:
		return math.RoundToEven
	case ptx.ModRzi:
		return math.Trunc
	case ptx.ModRmi:
		return math.Floor
	case ptx.ModRpi:
		return math.Ceil
	}
	return nil
}

func integerToFloat(to, from ptx.Type, r rounding) func1 {
	out := narrowed(to, r)
	width, signed := from.Bits(), from.Signed()
	return func(a uint64) uint64 {
		negative := false
		v := truncate(a, width)
		if signed && signExtend(a, width) < 0 {
			negative = true
			v = uint64(-signExtend(a, width))
		}
		high, low := float64(v>>32)*(1<<32), float64(uint32(v))
		if negative {
			high, low = -high, -low
		}
		w, rest := sum(high, low)
		if to == ptx.F64 {
			if r.directed() {
				w = directed64(w, rest, r.mode)
			}
			return out(w)
		}
		return out(toOdd(w, rest))
	}
}

// floatToInteger clamps the result to the range of the type.
func floatToInteger(f *ptx.Form, to, from ptx.Type, r rounding) func1 {
	in, whole := widened(from, r.ftz), wholeRounding(f)
	if whole == nil {
		whole = math.Trunc
	}
	n := to.Bits()
	return func(a uint64) uint64 {
		v := whole(in(a))
		if v != v {
			if n == 64 || from == ptx.F64 { // as PTX defines
				return 1 << (n - 1)
			}
			return 0
		}
		if to.Signed() {
			low, high := -math.Ldexp(1, n-1), math.Ldexp(1, n-1)
			switch {
			case v < low:
				return truncate(uint64(1)<<(n-1), n)
			case v >= high:
				return uint64(1)<<(n-1) - 1
			}
			return truncate(uint64(int64(v)), n)
		}
		switch {
		case v <= 0:
			return 0
		case v >= math.Ldexp(1, n):
			return truncate(^uint64(0), n)
		}
		return uint64(v)
	}
}

// The formats of eight bits. e4m3 has no infinity: its one pattern of ones is no number.
var (
	tiny4 = format{4, 3}
	tiny5 = format{5, 2}
)

func tinyOf(t ptx.Type) (format, bool) {
	switch t {
	case ptx.E4M3X2, ptx.E4M3:
		return tiny4, true
	case ptx.E5M2X2, ptx.E5M2:
		return tiny5, true
	}
	return format{}, false
}

// widenTiny is the value of a number of eight bits.
func (f format) widenTiny(v uint64) float64 {
	if f == tiny4 && v>>3&15 == 15 && v&7 != 7 { // ordinary numbers, where other formats have infinity
		x := math.Ldexp(float64(8|v&7), 5)
		if v>>7&1 != 0 {
			return -x
		}
		return x
	}
	return f.widen(v)
}

// narrowTiny rounds to a format of eight bits; what is too large becomes the largest number.
func (f format) narrowTiny(v float64, relu bool) uint64 {
	switch {
	case v != v:
		return 0x7f
	case relu && v < 0:
		v = 0
	}
	sign := uint64(0)
	if math.Signbit(v) {
		sign, v = 0x80, -v
	}
	if f == tiny5 {
		return sign | f.narrow(min(v, 57344), rounding{})
	}
	if v < 240 {
		return sign | f.narrow(v, rounding{})
	}
	n := uint64(math.RoundToEven(min(v, 448) / 16)) // from 240 to 256 and to 448 in steps of 16 and 32
	if n > 15 {
		n = uint64(math.RoundToEven(min(v, 448) / 32))
		return sign | 15<<3 | (n - 8)
	}
	return sign | 14<<3 | (n - 8)
}

// packedFormats are those of four and six bits, which have neither infinities nor NaN. They lie in pairs: of four bits in a
// byte, of six bits in two bytes with zeros above each.
var packedFormats = map[ptx.Type]struct {
	format
	step int // bits from one number to the next
}{
	ptx.E2M1X2: {format{2, 1}, 4},
	ptx.E2M3X2: {format{2, 3}, 8},
	ptx.E3M2X2: {format{3, 2}, 8},
}

// finite is the value of a number in a format without infinities.
func (f format) finite(v uint64) float64 {
	bias := 1<<(f.exponent-1) - 1
	e, m := int(v>>f.fraction&(1<<f.exponent-1)), v&(1<<f.fraction-1)
	x := math.Ldexp(float64(m), 1-bias-f.fraction)
	if e > 0 {
		x = math.Ldexp(float64(m|1<<f.fraction), e-bias-f.fraction)
	}
	if v>>(f.exponent+f.fraction)&1 != 0 {
		return -x
	}
	return x
}

// toFinite rounds to a format without infinities: to nearest, ties to even; what is too large, and NaN, becomes the greatest number.
func (f format) toFinite(v float64, relu bool) uint64 {
	greatest := uint64(1)<<(f.exponent+f.fraction) - 1
	switch {
	case v != v:
		return greatest
	case relu && v < 0:
		return 0
	}
	sign := uint64(0)
	if math.Signbit(v) {
		sign, v = greatest+1, -v
	}
	best := uint64(0)
	for code := range greatest + 1 {
		near, far := math.Abs(f.finite(code)-v), math.Abs(f.finite(best)-v)
		if near < far || near == far && code&1 == 0 {
			best = code
		}
	}
	if v > f.finite(greatest) {
		best = greatest
	}
	return sign | best
}

// tinyConversion is a cvt between two numbers of eight bits and two f16, or rounds to tf32; nil if it is neither.
func tinyConversion(f *ptx.Form) func1 {
	if len(f.Types) != 2 {
		return nil
	}
	to, from := f.Types[0], f.Types[1]
	relu := f.Has(ptx.ModRelu)
	if s, ok := tinyOf(from); ok && to == ptx.F16X2 {
		return func(a uint64) uint64 {
			low := half.narrow(s.widenTiny(a&0xff), rounding{relu: relu})
			return half.narrow(s.widenTiny(a>>8&0xff), rounding{relu: relu})<<16 | low
		}
	}
	if s, ok := tinyOf(to); ok && from == ptx.F16X2 {
		return func(a uint64) uint64 {
			return s.narrowTiny(half.widen(a>>16&0xffff), relu)<<8 | s.narrowTiny(half.widen(a&0xffff), relu)
		}
	}
	if s, ok := packedFormats[from]; ok && to == ptx.F16X2 {
		return func(a uint64) uint64 {
			mask := uint64(2)<<(s.exponent+s.fraction) - 1
			low := half.narrow(s.finite(a&mask), rounding{relu: relu})
			return half.narrow(s.finite(a>>s.step&mask), rounding{relu: relu})<<16 | low
		}
	}
	if to == ptx.TF32 && from == ptx.F32 {
		r := roundingOf(f)
		return func(a uint64) uint64 {
			v := float64(float32Of(a))
			if v != v {
				return nan32
			}
			return format{8, 10}.narrow(v, r) << 13
		}
	}
	return nil
}

// packingIntegers is cvt.pack: two integers, each clamped to a narrow type, and above them what a third one has in its lower bits.
func packingIntegers(f *ptx.Form) func3 {
	if len(f.Types) < 2 || f.Types[1] != ptx.S32 || f.Types[0].Bits() > 16 {
		return nil
	}
	to := f.Types[0]
	n := to.Bits()
	return func(a, b, c uint64) uint64 {
		high := clampInteger(uint64(int64(int32(a))), true, to)
		low := clampInteger(uint64(int64(int32(b))), true, to)
		return truncate(c<<(2*n)|high<<n|low, 32)
	}
}

// packing returns a cvt of two values into one register, such as cvt.rn.f16x2.f32, or nil. The first source is the upper half.
func packing(f *ptx.Form) func2 {
	if len(f.Types) != 2 || f.Types[1] != ptx.F32 {
		return nil
	}
	if s, tiny := tinyOf(f.Types[0]); tiny {
		relu := f.Has(ptx.ModRelu)
		return func(a, b uint64) uint64 {
			return s.narrowTiny(float64(float32Of(a)), relu)<<8 | s.narrowTiny(float64(float32Of(b)), relu)
		}
	}
	if s, small := packedFormats[f.Types[0]]; small {
		relu := f.Has(ptx.ModRelu)
		return func(a, b uint64) uint64 {
			return s.toFinite(float64(float32Of(a)), relu)<<s.step | s.toFinite(float64(float32Of(b)), relu)
		}
	}
	s, ok := formatOf(f.Types[0])
	if !ok || f.Types[0] != ptx.F16X2 && f.Types[0] != ptx.BF16X2 {
		return nil
	}
	r := roundingOf(f)
	return func(a, b uint64) uint64 {
		return s.narrow(float64(float32Of(a)), r)<<16 | s.narrow(float64(float32Of(b)), r)
	}
}
