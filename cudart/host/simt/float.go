// Floating-point arithmetic. f16 and bf16 are computed in float64 and rounded once. Every NaN result is PTX's canonical NaN.

package simt

import (
	"math"
	"math/big"

	"github.com/dagrun/dagrun/internal/ptx"
)

// operation is a floating-point operation of two operands.
type operation uint8

const (
	addition operation = iota
	subtraction
	multiplication
	division
)

// exactly does an operation on float64 and returns the result and its rounding error, of quotients none.
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
	return a / b, 0 // of values of 24 bits or fewer: it is exact, or not near anything that is rounded to
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
