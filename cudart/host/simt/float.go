// Floating-point arithmetic. f16 and bf16 are computed in float64 and rounded once. Every NaN result is PTX's canonical NaN.

package simt

import (
	"math"
	"math/big"

	"github.com/dagrun/dagrun/kernels/ptx"
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
	return rounding{mode: f.First(ptx.ModRn, ptx.ModRz, ptx.ModRm, ptx.ModRp, ptx.ModRna), ftz: f.Has(ptx.ModFtz), sat: f.Has(ptx.ModSat), relu: f.Has(ptx.ModRelu), most: f.Has(ptx.ModSatfinite)}
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

// operation is a floating-point operation of two operands.
type operation uint8

const (
	addition operation = iota
	subtraction
	multiplication
	division
)

// exactly does an operation on float64 and returns the result and its rounding error.
func (o operation) exactly(a, b float64) (v, rest float64) {
	switch o {
	case addition:
		return sum(a, b)
	case subtraction:
		return sum(a, -b)
	case multiplication:
		v = a * b
		return v, math.FMA(a, b, -v)
	}
	v = a / b
	rest = math.FMA(-v, b, a)
	if math.Signbit(b) {
		rest = -rest
	}
	return v, rest
}

// floatBinary is add, sub, mul or div of a type.
func floatBinary(t ptx.Type, o operation, r rounding) func2 {
	if t == ptx.F32X2 {
		one := floatBinary(ptx.F32, o, r)
		return func(a, b uint64) uint64 { return one(lowWord(a), lowWord(b)) | one(a>>32, b>>32)<<32 }
	}
	if f, small := formatOf(t); small {
		one := func(a, b uint64) uint64 {
			v, rest := o.exactly(f.read(a, r), f.read(b, r))
			return f.narrow(toOdd(v, rest), r)
		}
		if t == ptx.F16X2 || t == ptx.BF16X2 {
			return halves(one)
		}
		return func(a, b uint64) uint64 { return one(a&0xffff, b&0xffff) }
	}
	if t == ptx.F64 {
		if r.directed() {
			return func(a, b uint64) uint64 {
				p, q := float64Of(a), float64Of(b)
				v, _ := o.exactly(p, q)
				return bits64(directed64(r.zero(o, v, p, q), o.missing(p, q, v), r.mode))
			}
		}
		return func(a, b uint64) uint64 {
			v, _ := o.exactly(float64Of(a), float64Of(b))
			return bits64(v)
		}
	}
	if r.plain() {
		switch o {
		case addition:
			return func(a, b uint64) uint64 { return bits32(float32Of(a) + float32Of(b)) }
		case subtraction:
			return func(a, b uint64) uint64 { return bits32(float32Of(a) - float32Of(b)) }
		case multiplication:
			return func(a, b uint64) uint64 { return bits32(float32Of(a) * float32Of(b)) }
		}
		return func(a, b uint64) uint64 { return bits32(float32Of(a) / float32Of(b)) }
	}
	return func(a, b uint64) uint64 {
		p, q := float32Of(a), float32Of(b)
		if r.ftz {
			p, q = flush(p), flush(q)
		}
		v, rest := o.exactly(float64(p), float64(q))
		return narrow32(toOdd(r.zero(o, v, float64(p), float64(q)), rest), r)
	}
}

// zero gives a sum that is zero its sign: rounding down, it is negative unless both terms are positive zeros.
func (r rounding) zero(o operation, v, a, b float64) float64 {
	if o == subtraction {
		b = -b
	}
	if v == 0 && r.mode == ptx.ModRm && o <= subtraction && (math.Signbit(a) || math.Signbit(b)) {
		return math.Copysign(0, -1)
	}
	return v
}

// lowWord is the lower half of a 64-bit value.
func lowWord(v uint64) uint64 { return uint64(uint32(v)) }

// floatFused is fma (and mad on floats).
func floatFused(t ptx.Type, r rounding) func3 {
	if t == ptx.F32X2 {
		one := floatFused(ptx.F32, r)
		return func(a, b, c uint64) uint64 {
			return one(lowWord(a), lowWord(b), lowWord(c)) | one(a>>32, b>>32, c>>32)<<32
		}
	}
	if f, small := formatOf(t); small {
		one := func(a, b, c uint64) uint64 { return f.narrow(fusedExact(f.read(a, r), f.read(b, r), f.read(c, r)), r) }
		if t == ptx.F16X2 || t == ptx.BF16X2 {
			return func(a, b, c uint64) uint64 {
				return one(a&0xffff, b&0xffff, c&0xffff) | one(a>>16&0xffff, b>>16&0xffff, c>>16&0xffff)<<16
			}
		}
		return func(a, b, c uint64) uint64 { return one(a&0xffff, b&0xffff, c&0xffff) }
	}
	if t == ptx.F64 {
		return func(a, b, c uint64) uint64 {
			p, q, s := float64Of(a), float64Of(b), float64Of(c)
			v := math.FMA(p, q, s)
			if r.directed() {
				if rest := missingFused(p, q, s, v); rest != 0 {
					v = directed64(v, rest, r.mode)
				} else {
					v = r.zero(addition, v, p*q, s)
				}
			}
			return bits64(v)
		}
	}
	if r.plain() {
		return func(a, b, c uint64) uint64 {
			return bits32(float32(fusedExact(float64(float32Of(a)), float64(float32Of(b)), float64(float32Of(c)))))
		}
	}
	return func(a, b, c uint64) uint64 {
		p, q, s := float32Of(a), float32Of(b), float32Of(c)
		if r.ftz {
			p, q, s = flush(p), flush(q), flush(s)
		}
		v := fusedExact(float64(p), float64(q), float64(s))
		return narrow32(r.zero(addition, v, float64(p)*float64(q), float64(s)), r)
	}
}

// magnitudes says whether min and max compare magnitudes, and which sign their result has.
type magnitudes uint8

const (
	noMagnitudes       magnitudes = iota
	plainMagnitudes               // .abs
	magnitudesWithSign            // .xorsign.abs: the product of the signs
)

func magnitudesOf(f *ptx.Form) magnitudes {
	switch {
	case f.Has(ptx.ModXorsign):
		return magnitudesWithSign
	case f.Has(ptx.ModAbs):
		return plainMagnitudes
	}
	return noMagnitudes
}

// floatMinMax is min or max. A number wins over NaN, unless spread is set, and -0 is less than 0.
func floatMinMax(t ptx.Type, least, spread, ftz bool, of magnitudes) func2 {
	choose := func(a, b float64) float64 {
		switch {
		case a != a && b != b:
			return math.NaN()
		case a != a:
			if spread {
				return a
			}
			return b
		case b != b:
			if spread {
				return b
			}
			return a
		}
		if least {
			return math.Min(a, b)
		}
		return math.Max(a, b)
	}
	pick := choose
	if of != noMagnitudes {
		pick = func(a, b float64) float64 {
			v := choose(math.Abs(a), math.Abs(b))
			if of == magnitudesWithSign && math.Signbit(a) != math.Signbit(b) {
				v = -v
			}
			return v
		}
	}
	r := rounding{ftz: ftz}
	if f, small := formatOf(t); small {
		one := func(a, b uint64) uint64 { return f.narrow(pick(f.read(a, r), f.read(b, r)), r) }
		if t == ptx.F16X2 || t == ptx.BF16X2 {
			return halves(one)
		}
		return func(a, b uint64) uint64 { return one(a&0xffff, b&0xffff) }
	}
	if t == ptx.F64 {
		return func(a, b uint64) uint64 { return bits64(pick(float64Of(a), float64Of(b))) }
	}
	return func(a, b uint64) uint64 {
		p, q := float32Of(a), float32Of(b)
		if ftz {
			p, q = flush(p), flush(q)
		}
		return bits32(float32(pick(float64(p), float64(q))))
	}
}

// floatUnary returns an instruction of one source on floats, or nil. Approximate ones are computed in float64 and rounded once.
func floatUnary(f *ptx.Form) func1 {
	t := f.Type()
	r := roundingOf(f)
	if small, ok := formatOf(t); ok {
		return smallUnary(f, small, t, r)
	}
	if t == ptx.F64 {
		return wideUnary(f, r)
	}
	in := float32Of
	if r.ftz {
		in = func(v uint64) float32 { return flush(float32Of(v)) }
	}
	through := func(g func(float64) float64) func1 {
		return func(a uint64) uint64 { return narrow32(g(float64(in(a))), rounding{ftz: r.ftz}) }
	}
	switch f.Op {
	case ptx.OpAbs:
		return func(a uint64) uint64 { return bits32(float32(math.Abs(float64(in(a))))) }
	case ptx.OpNeg:
		return func(a uint64) uint64 { return bits32(-in(a)) }
	case ptx.OpRcp:
		return func(a uint64) uint64 { return narrow32(toOdd(division.exactly(1, float64(in(a)))), r) }
	case ptx.OpSqrt:
		return func(a uint64) uint64 {
			x := float64(in(a))
			v := math.Sqrt(x)
			return narrow32(toOdd(v, math.FMA(-v, v, x)), r)
		}
	case ptx.OpRsqrt:
		return through(func(x float64) float64 { return 1 / math.Sqrt(x) })
	case ptx.OpSin:
		return through(math.Sin)
	case ptx.OpCos:
		return through(math.Cos)
	case ptx.OpEx2:
		return through(math.Exp2)
	case ptx.OpLg2:
		return through(math.Log2)
	case ptx.OpTanh:
		return through(math.Tanh)
	}
	return nil
}

func wideUnary(f *ptx.Form, r rounding) func1 {
	switch f.Op {
	case ptx.OpAbs:
		return func(a uint64) uint64 { return a &^ (1 << 63) }
	case ptx.OpNeg:
		return func(a uint64) uint64 { return a ^ 1<<63 }
	case ptx.OpRcp:
		if f.Has(ptx.ModApprox) { // rcp.approx.ftz.f64 works on the upper half
			return func(a uint64) uint64 { return bits64(1/float64Of(a&^0xffffffff)) &^ 0xffffffff }
		}
		return func(a uint64) uint64 {
			x := float64Of(a)
			v := 1 / x
			if r.directed() {
				v = directed64(v, division.missing(1, x, v), r.mode)
			}
			return bits64(v)
		}
	case ptx.OpSqrt:
		return func(a uint64) uint64 {
			x := float64Of(a)
			v := math.Sqrt(x)
			if r.directed() {
				v = directed64(v, math.FMA(-v, v, x), r.mode)
			}
			return bits64(v)
		}
	case ptx.OpRsqrt:
		if f.Has(ptx.ModFtz) {
			return func(a uint64) uint64 { return bits64(1/math.Sqrt(float64Of(a&^0xffffffff))) &^ 0xffffffff }
		}
		return func(a uint64) uint64 { return bits64(1 / math.Sqrt(float64Of(a))) }
	}
	return nil
}

func smallUnary(f *ptx.Form, s format, t ptx.Type, r rounding) func1 {
	var g func(float64) float64
	switch f.Op {
	case ptx.OpAbs, ptx.OpNeg:
		sign := uint64(0x8000)
		if t == ptx.F16X2 || t == ptx.BF16X2 {
			sign = 0x80008000
		}
		g := func(a uint64) uint64 { return a &^ sign }
		if f.Op == ptx.OpNeg {
			g = func(a uint64) uint64 { return a ^ sign }
		}
		if !r.ftz {
			return g
		}
		flushed := func(a uint64) uint64 {
			if a>>s.fraction&(1<<s.exponent-1) == 0 {
				return a & 0x8000
			}
			return a
		}
		return func(a uint64) uint64 { return g(flushed(a&0xffff) | flushed(a>>16&0xffff)<<16) }
	case ptx.OpEx2:
		g = math.Exp2
	case ptx.OpTanh:
		g = math.Tanh
	default:
		return nil
	}
	one := func(a uint64) uint64 { return s.narrow(g(s.read(a, r)), r) }
	if t == ptx.F16X2 || t == ptx.BF16X2 {
		return func(a uint64) uint64 { return one(a&0xffff) | one(a>>16&0xffff)<<16 }
	}
	return func(a uint64) uint64 { return one(a & 0xffff) }
}

// floatCompare is the comparison of a setp or set on floats.
func floatCompare(mod ptx.Mod, t ptx.Type, ftz bool) func(a, b uint64) bool {
	in := float64Of
	if f, small := formatOf(t); small {
		in = func(v uint64) float64 { return f.read(v, rounding{ftz: ftz}) }
	} else if t == ptx.F32 {
		in = func(v uint64) float64 {
			if ftz {
				return float64(flush(float32Of(v)))
			}
			return float64(float32Of(v))
		}
	}
	either := func(f func(a, b float64) bool, unordered bool) func(a, b uint64) bool {
		return func(a, b uint64) bool {
			p, q := in(a), in(b)
			if p != p || q != q {
				return unordered
			}
			return f(p, q)
		}
	}
	switch mod {
	case ptx.ModEq:
		return either(func(a, b float64) bool { return a == b }, false)
	case ptx.ModNe:
		return either(func(a, b float64) bool { return a != b }, false)
	case ptx.ModLt:
		return either(func(a, b float64) bool { return a < b }, false)
	case ptx.ModLe:
		return either(func(a, b float64) bool { return a <= b }, false)
	case ptx.ModGt:
		return either(func(a, b float64) bool { return a > b }, false)
	case ptx.ModGe:
		return either(func(a, b float64) bool { return a >= b }, false)
	case ptx.ModEqu:
		return either(func(a, b float64) bool { return a == b }, true)
	case ptx.ModNeu:
		return either(func(a, b float64) bool { return a != b }, true)
	case ptx.ModLtu:
		return either(func(a, b float64) bool { return a < b }, true)
	case ptx.ModLeu:
		return either(func(a, b float64) bool { return a <= b }, true)
	case ptx.ModGtu:
		return either(func(a, b float64) bool { return a > b }, true)
	case ptx.ModGeu:
		return either(func(a, b float64) bool { return a >= b }, true)
	case ptx.ModNum:
		return either(func(_, _ float64) bool { return true }, false)
	case ptx.ModNan:
		return either(func(_, _ float64) bool { return false }, true)
	}
	return nil
}

// testProperty is testp.
func testProperty(f *ptx.Form) func(a uint64) bool {
	wide := f.Type() == ptx.F64
	return func(a uint64) bool {
		v, least := float64(float32Of(a)), float64(small)
		if wide {
			v, least = float64Of(a), 0x1p-1022
		}
		magnitude := math.Abs(v)
		switch f.First(ptx.ModFinite, ptx.ModInfinite, ptx.ModNumber, ptx.ModNotanumber, ptx.ModNormal, ptx.ModSubnormal) {
		case ptx.ModFinite:
			return v == v && !math.IsInf(v, 0)
		case ptx.ModInfinite:
			return math.IsInf(v, 0)
		case ptx.ModNumber:
			return v == v
		case ptx.ModNotanumber:
			return v != v
		case ptx.ModNormal:
			return magnitude >= least && !math.IsInf(v, 0)
		}
		return magnitude > 0 && magnitude < least
	}
}

// missing has the sign of what a result lacks.
func (o operation) missing(a, b, v float64) float64 {
	if !finite(a, b) || o == division && b == 0 {
		return 0
	}
	switch o {
	case addition:
		return missingFused(a, 1, b, v)
	case subtraction:
		return missingFused(a, 1, -b, v)
	case multiplication:
		return missingFused(a, b, 0, v)
	}
	if math.IsInf(v, 0) {
		return -v
	}
	// a - v*b has the sign of what is missing times that of b.
	product := new(big.Float).SetPrec(exactBits).Mul(exact(v), exact(b))
	return float64(exact(a).Cmp(product)) * math.Copysign(1, b)
}
