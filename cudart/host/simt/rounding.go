// How floats are rounded and what bits they have: the rounding of instructions, and floats of 16 bits and fewer.

package simt

import (
	"math"

	"github.com/dagrun/dagrun/internal/ptx"
)

// rounding is how a result is rounded, and how denormals and values outside [0, 1] are handled.
type rounding struct {
	mode ptx.Mod // ModRz, ModRm, ModRp; anything else rounds to nearest, ties to even
	ftz  bool
	sat  bool
	relu bool
	most bool // .satfinite: the greatest number instead of infinity
}

func roundingOf(f *ptx.Form) rounding {
	return rounding{mode: f.First(ptx.ModRn, ptx.ModRz, ptx.ModRm, ptx.ModRp, ptx.ModRna), ftz: f.Has(ptx.ModFtz), sat: f.Has(ptx.ModSat),
		relu: f.Has(ptx.ModRelu), most: f.Has(ptx.ModSatfinite)}
}

// plain reports whether results only round to nearest even.
func (r rounding) plain() bool { return !r.directed() && !r.ftz && !r.sat && !r.relu && !r.most }

func (r rounding) directed() bool {
	return r.mode == ptx.ModRz || r.mode == ptx.ModRm || r.mode == ptx.ModRp
}

const (
	nan16 = 0x7fff
	nan32 = 0x7fffffff
	nan64 = 0x7fffffffffffffff
	small = 0x1p-126 // the least normal float32
)

func float32Of(v uint64) float32 { return math.Float32frombits(uint32(v)) }
func float64Of(v uint64) float64 { return math.Float64frombits(v) }

// bits32 returns a float32 as a register holds it.
func bits32(v float32) uint64 {
	if v != v {
		return nan32
	}
	return uint64(math.Float32bits(v))
}

// bits64 returns a float64 as a register holds it.
func bits64(v float64) uint64 {
	if v != v {
		return nan64
	}
	return math.Float64bits(v)
}

// toOdd rounds the exact value v + rest, where rest is smaller than v's last bit, so that a second rounding to fewer bits is correct.
func toOdd(v, rest float64) float64 {
	if rest == 0 || rest != rest || math.IsInf(v, 0) || v != v {
		return v
	}
	b := math.Float64bits(v)
	if b&1 != 0 {
		return v
	}
	if v == 0 {
		return math.Copysign(math.SmallestNonzeroFloat64, rest)
	}
	if (rest > 0) == (v > 0) {
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}

// sum returns a + b and its rounding error.
func sum(a, b float64) (v, rest float64) {
	v = a + b
	t := v - a
	return v, (a - (v - t)) + (b - t)
}

// fusedExact returns a*b + c, rounded to odd, for factors whose product is exact in float64.
func fusedExact(a, b, c float64) float64 {
	p := float64(a * b)
	if math.IsInf(p, 0) || math.IsInf(c, 0) {
		return p + c
	}
	return toOdd(sum(p, c))
}

// narrow32 rounds a value to a float32. The value is exact or was rounded to odd.
func narrow32(v float64, r rounding) uint64 {
	if v != v {
		if r.sat {
			return 0
		}
		return nan32
	}
	f := float32(v)
	if r.directed() && float64(f) != v {
		f = directed32(f, v, r.mode)
	}
	if r.ftz && f > -small && f < small {
		f = float32(math.Copysign(0, float64(f)))
	}
	if r.sat {
		f = saturated(f)
	}
	if r.relu && f < 0 {
		f = 0
	}
	return uint64(math.Float32bits(f))
}

func saturated[T float32 | float64](f T) T {
	switch {
	case !(f > 0): // -0 and NaN become 0 too
		return 0
	case f > 1:
		return 1
	}
	return f
}

// directed32 corrects a float32 that was rounded to nearest.
func directed32(f float32, v float64, mode ptx.Mod) float32 {
	up, down := float32(math.Inf(1)), float32(math.Inf(-1))
	switch mode {
	case ptx.ModRz:
		if v > 0 && float64(f) > v || v < 0 && float64(f) < v {
			return math.Nextafter32(f, 0)
		}
	case ptx.ModRm:
		if float64(f) > v {
			return math.Nextafter32(f, down)
		}
	case ptx.ModRp:
		if float64(f) < v {
			return math.Nextafter32(f, up)
		}
	}
	return f
}

// directed64 corrects a float64 that was rounded to nearest. rest has the sign of the rounding error.
func directed64(v, rest float64, mode ptx.Mod) float64 {
	if rest == 0 || rest != rest || v != v {
		return v
	}
	if math.IsInf(v, 0) {
		if mode == ptx.ModRz || mode == ptx.ModRm && v > 0 || mode == ptx.ModRp && v < 0 {
			return math.Copysign(math.MaxFloat64, v)
		}
		return v
	}
	switch mode {
	case ptx.ModRz:
		if v > 0 && rest < 0 || v < 0 && rest > 0 {
			return math.Nextafter(v, 0)
		}
	case ptx.ModRm:
		if rest < 0 {
			return math.Nextafter(v, math.Inf(-1))
		}
	case ptx.ModRp:
		if rest > 0 {
			return math.Nextafter(v, math.Inf(1))
		}
	}
	return v
}

// flush replaces a denormal float32 by zero.
func flush(f float32) float32 {
	if f > -small && f < small {
		return float32(math.Copysign(0, float64(f)))
	}
	return f
}

// Small formats: the width of exponent and fraction.
type format struct{ exponent, fraction int }

var (
	half  = format{5, 10}
	brain = format{8, 7}
)

func formatOf(t ptx.Type) (format, bool) {
	switch t {
	case ptx.F16, ptx.F16X2:
		return half, true
	case ptx.BF16, ptx.BF16X2:
		return brain, true
	}
	return format{}, false
}

// widen returns the value of a small float.
func (f format) widen(v uint64) float64 {
	bias := 1<<(f.exponent-1) - 1
	sign := v >> (f.exponent + f.fraction) & 1
	e := int(v >> f.fraction & (1<<f.exponent - 1))
	m := v & (1<<f.fraction - 1)
	var x float64
	switch {
	case e == 1<<f.exponent-1 && m != 0:
		return math.NaN()
	case e == 1<<f.exponent-1:
		x = math.Inf(1)
	case e == 0:
		x = math.Ldexp(float64(m), 1-bias-f.fraction)
	default:
		x = math.Ldexp(float64(m|1<<f.fraction), e-bias-f.fraction)
	}
	if sign != 0 {
		return -x
	}
	return x
}

// read is widen, but .ftz takes denormals as zero.
func (f format) read(v uint64, r rounding) float64 {
	if r.ftz && v>>f.fraction&(1<<f.exponent-1) == 0 {
		v &= 1 << (f.exponent + f.fraction)
	}
	return f.widen(v)
}

// narrow rounds to a small float.
func (f format) narrow(v float64, r rounding) uint64 {
	if v != v {
		if r.sat {
			return 0
		}
		return nan16
	}
	if r.sat {
		v = saturated(v)
	}
	if r.relu && v < 0 {
		v = 0
	}
	bias := 1<<(f.exponent-1) - 1
	sign := uint64(0)
	if math.Signbit(v) {
		sign = 1 << (f.exponent + f.fraction)
		v = -v
	}
	infinite := uint64(1<<f.exponent-1) << f.fraction
	if math.IsInf(v, 0) {
		if r.most {
			infinite--
		}
		return sign | infinite
	}
	if v == 0 {
		return sign
	}
	_, e := math.Frexp(v) // v = m * 2^e, m in [0.5, 1)
	e = max(e-1, 1-bias)
	scaled := math.Ldexp(v, f.fraction-e) // in units of the last place
	n := math.Floor(scaled)
	rest := scaled - n
	away := false
	switch r.mode {
	case ptx.ModRz:
	case ptx.ModRm:
		away = rest > 0 && sign != 0
	case ptx.ModRp:
		away = rest > 0 && sign == 0
	case ptx.ModRna:
		away = rest >= 0.5
	default:
		away = rest > 0.5 || rest == 0.5 && math.Mod(n, 2) == 1
	}
	if away {
		n++
	}
	m := uint64(n)
	var out uint64
	if m >= 1<<f.fraction {
		if m == 1<<(f.fraction+1) {
			m >>= 1
			e++
		}
		out = uint64(e+bias)<<f.fraction | m&(1<<f.fraction-1)
	} else {
		out = m
	}
	if r.ftz && out>>f.fraction == 0 {
		out = 0
	}
	if out >= infinite {
		out = infinite
		if r.most || r.mode == ptx.ModRz || r.mode == ptx.ModRm && sign == 0 || r.mode == ptx.ModRp && sign != 0 {
			out--
		}
	}
	return sign | out
}
