// Conversions: cvt between integers and floats of every width.

package simt

import (
	"math"

	"github.com/dagrun/dagrun/kernels/ptx"
)

// conversion returns a cvt of one value, or nil if it is not supported.
func conversion(f *ptx.Form) func1 {
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
		if n == 64 {
			low, high = math.MinInt64, math.MaxInt64
		}
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
		return s.widen
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

// packing returns a cvt of two values into one register, such as cvt.rn.f16x2.f32, or nil. The first source is the upper half.
func packing(f *ptx.Form) func2 {
	if len(f.Types) != 2 || f.Types[1] != ptx.F32 {
		return nil
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
