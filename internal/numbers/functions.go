// Package numbers computes what the kernels compute, in Go, with the same bits: special functions, random numbers, and sums with
// one rounding.
//
// exp, log, sin, cos, tanh and erf follow library/cuda/math.cuh line by line and bit for bit. float32 products are converted before
// they are added, so that no compiler fuses them; float64 products are fused where the kernels do so.
package numbers

import (
	"math"
	"math/bits"
)

// Element is a type that references compute on directly. f16 and bf16 are widened to float32 first.
type Element interface{ float32 | float64 | int32 }

var (
	infinity32 = float32(math.Inf(1))
	nan32      = float32(math.NaN())
)

// horner evaluates a polynomial, highest power first, with each product rounded.
func horner32(x float32, coefficients ...float32) float32 {
	p := coefficients[0]
	for _, c := range coefficients[1:] {
		p = float32(p*x) + c
	}
	return p
}

func horner64(x float64, coefficients ...float64) float64 {
	p := coefficients[0]
	for _, c := range coefficients[1:] {
		p = math.FMA(p, x, c)
	}
	return p
}

func powerOfTwo32(k int32) float32 { return math.Float32frombits(uint32(k+127) << 23) }
func powerOfTwo64(k int32) float64 { return math.Float64frombits(uint64(k+1023) << 52) }

func exp32(x float32) float32 {
	switch {
	case x != x:
		return x
	case x > 88.72284:
		return infinity32
	case x < -103.97209:
		return 0
	}
	t := float32(x*1.44269504) + 12582912
	k := t - 12582912
	n := int32(math.Float32bits(t)) - 0x4b400000
	r := x - float32(k*0.693359375) - float32(k*-2.12194440e-4)
	p := float32(1.9875691500e-4)
	p = float32(p*r) + 1.3981999507e-3
	p = float32(p*r) + 8.3334519073e-3
	p = float32(p*r) + 4.1665795894e-2
	p = float32(p*r) + 1.6666665459e-1
	p = float32(p*r) + 5.0000001201e-1
	p = float32(p*float32(r*r)) + r + 1
	half := n >> 1
	return float32(float32(p*powerOfTwo32(half)) * powerOfTwo32(n-half))
}

func exp64(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 709.7827128933841:
		return math.Inf(1)
	case x < -745.1332191019412:
		return 0
	}
	t := math.FMA(x, 1.4426950408889634, 6755399441055744)
	k := t - 6755399441055744
	n := int32(math.Float64bits(t) - math.Float64bits(6755399441055744))
	r := math.FMA(-k, 0x1.a39ef35793c76p-33, math.FMA(-k, 0x1.62e42fee00000p-1, x))
	p := math.FMA(0x1.6124613a86d09p-33, r, 0x1.1eed8eff8d898p-29)
	p = math.FMA(p, r, 0x1.ae64567f544e4p-26)
	p = math.FMA(p, r, 0x1.27e4fb7789f5cp-22)
	p = math.FMA(p, r, 0x1.71de3a556c734p-19)
	p = math.FMA(p, r, 0x1.a01a01a01a01ap-16)
	p = math.FMA(p, r, 0x1.a01a01a01a01ap-13)
	p = math.FMA(p, r, 0x1.6c16c16c16c17p-10)
	p = math.FMA(p, r, 0x1.1111111111111p-7)
	p = math.FMA(p, r, 0x1.5555555555555p-5)
	p = math.FMA(p, r, 0x1.5555555555555p-3)
	p = math.FMA(p, r, 0.5)
	p = math.FMA(p, float64(r*r), r) + 1
	half := n >> 1
	return float64(float64(p*powerOfTwo64(half)) * powerOfTwo64(n-half))
}

// Log32 is the natural logarithm in float32.
func Log32(x float32) float32 {
	switch {
	case x == 0:
		return -infinity32
	case !(x > 0):
		return nan32
	case x == infinity32:
		return x
	}
	e := int32(0)
	if x < 1.17549435e-38 {
		x *= 33554432
		e = -25
	}
	b := int32(math.Float32bits(x)) - 0x3f3504f3
	e += b >> 23
	z := math.Float32frombits(uint32(b&0x7fffff+0x3f3504f3)) - 1
	s, k := float32(z*z), float32(e)
	p := float32(7.0376836292e-2)
	p = float32(p*z) + -1.1514610310e-1
	p = float32(p*z) + 1.1676998740e-1
	p = float32(p*z) + -1.2420140846e-1
	p = float32(p*z) + 1.4249322787e-1
	p = float32(p*z) + -1.6668057665e-1
	p = float32(p*z) + 2.0000714765e-1
	p = float32(p*z) + -2.4999993993e-1
	p = float32(p*z) + 3.3333331174e-1
	p = float32(float32(p*z)*s) + float32(k*-2.12194440e-4) - float32(0.5*s)
	return z + p + float32(k*0.693359375)
}

// Log64 is the natural logarithm in float64.
func Log64(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case !(x > 0):
		return math.NaN()
	case math.IsInf(x, 1):
		return x
	}
	e := int32(0)
	if x < 2.2250738585072014e-308 {
		x *= 18014398509481984
		e = -54
	}
	b := int64(math.Float64bits(x)) - 0x3fe6a09e667f3bcd
	e += int32(b >> 52)
	f := math.Float64frombits(uint64(b&0xfffffffffffff+0x3fe6a09e667f3bcd)) - 1
	k := float64(e)
	s := f / (2 + f)
	z, h := float64(s*s), float64(float64(0.5*f)*f)
	p := math.FMA(1.479819860511658591e-01, z, 1.531383769920937332e-01)
	p = math.FMA(p, z, 1.818357216161805012e-01)
	p = math.FMA(p, z, 2.222219843214978396e-01)
	p = math.FMA(p, z, 2.857142874366239149e-01)
	p = math.FMA(p, z, 3.999999999940941908e-01)
	p = math.FMA(p, z, 6.666666666666735130e-01)
	p = float64(p * z)
	return math.FMA(k, 0x1.62e42fee00000p-1, f-(h-math.FMA(s, h+p, float64(k*0x1.a39ef35793c76p-33))))
}

// twoOverPi is the bits of 2/pi after 64 zero bits.
var twoOverPi = [22]uint64{
	0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
	0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
	0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
	0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
	0xf0cfbc209af4361d, 0xa9e391615ee61b08,
}

// reduced subtracts the nearest multiple of pi/2 and returns which one, modulo 4.
func reduced(x float64) (r float64, quadrant int32) {
	b := math.Float64bits(x)
	e := int32(b >> 52 & 0x7ff)
	if e < 1023+22 {
		t := math.FMA(x, 0x1.45f306dc9c883p-1, 6755399441055744)
		k := t - 6755399441055744
		r = math.FMA(-k, -0x1.f1976b7ed8fbcp-110, math.FMA(-k, 0x1.1a62633145c07p-54, math.FMA(-k, 0x1.921fb54442d18p+0, x)))
		return r, int32(math.Float64bits(t)) & 3
	}
	if e == 0x7ff {
		return math.NaN(), 0
	}
	m := b&0xfffffffffffff | 0x10000000000000
	from := e - 1023 - 52 - 2 + 64
	word, shift := from>>6, uint(from&63)
	var w [4]uint64
	copy(w[:], twoOverPi[word:])
	for i := range 3 {
		w[i] = w[i]<<shift | w[i+1]>>(64-shift)
	}
	low := m * w[1]
	over, _ := bits.Mul64(m, w[2])
	mid, carry := bits.Add64(low, over, 0)
	over, _ = bits.Mul64(m, w[1])
	high := m*w[0] + over + carry
	quadrant = int32((high+0x2000000000000000)>>62) & 3
	high = high<<2 | mid>>62
	mid <<= 2
	part := float64(float64(int64(high))*0x1p-64) + float64(float64(mid)*0x1p-128)
	r = float64(part * 0x1.921fb54442d18p+0)
	if int64(b) < 0 {
		return -r, -quadrant & 3
	}
	return r, quadrant
}

func sincosNear64(r float64) (s, c float64) {
	z := float64(r * r)
	p := math.FMA(1.58962301576546568060e-10, z, -2.50507477628578072866e-8)
	p = math.FMA(p, z, 2.75573136213857245213e-6)
	p = math.FMA(p, z, -1.98412698295895385996e-4)
	p = math.FMA(p, z, 8.33333333332211858878e-3)
	p = math.FMA(p, z, -1.66666666666666307295e-1)
	q := math.FMA(-1.13585365213876817300e-11, z, 2.08757008419747316778e-9)
	q = math.FMA(q, z, -2.75573141792967388112e-7)
	q = math.FMA(q, z, 2.48015872888517045348e-5)
	q = math.FMA(q, z, -1.38888888888730564116e-3)
	q = math.FMA(q, z, 4.16666666666665929218e-2)
	return math.FMA(float64(p*z), r, r), math.FMA(q, float64(z*z), math.FMA(-0.5, z, 1))
}

func sincosNear32(r float32) (s, c float32) {
	z := float32(r * r)
	p := float32(float32(-1.9515295891e-4)*z) + 8.3321608736e-3
	p = float32(p*z) + -1.6666654611e-1
	q := float32(float32(2.443315711809948e-5)*z) + -1.388731625493765e-3
	q = float32(q*z) + 4.166664568298827e-2
	return float32(float32(p*z)*r) + r, float32(q*float32(z*z)) - float32(0.5*z) + 1
}

func turn[C Element](quadrant int32, s, c C) (C, C) {
	if quadrant&1 != 0 {
		s, c = c, s
	}
	if quadrant&2 != 0 {
		s = -s
	}
	if (quadrant+1)&2 != 0 {
		c = -c
	}
	return s, c
}

func sincos64(x float64) (s, c float64) {
	r, quadrant := reduced(x)
	s, c = sincosNear64(r)
	return turn(quadrant, s, c)
}

func sincos32(x float32) (s, c float32) {
	r, quadrant := reduced(float64(x))
	s, c = sincosNear32(float32(r))
	return turn(quadrant, s, c)
}

// SincosTurns32 is the sine and cosine of 2*pi*u for a u in [0, 1].
func SincosTurns32(u float32) (s, c float32) {
	v := float32(u * 4)
	t := v + 12582912
	s, c = sincosNear32(float32((v - (t - 12582912)) * 1.57079637))
	return turn(int32(math.Float32bits(t))&3, s, c)
}

// SincosTurns64 is the same in float64.
func SincosTurns64(u float64) (s, c float64) {
	v := float64(u * 4)
	t := v + 6755399441055744
	s, c = sincosNear64(float64((v - (t - 6755399441055744)) * 0x1.921fb54442d18p+0))
	return turn(int32(math.Float64bits(t))&3, s, c)
}

func tanh32(x float32) float32 {
	a := x
	if x < 0 {
		a = -x
	}
	if !(a > 0.625) {
		z := float32(x * x)
		p := horner32(z, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
		return float32(float32(p*z)*x) + x
	}
	r := 1 - 2/(exp32(a+a)+1)
	if x < 0 {
		return -r
	}
	return r
}

func tanh64(x float64) float64 {
	a := x
	if x < 0 {
		a = -x
	}
	if !(a > 0.625) {
		z := float64(x * x)
		p := horner64(z, -9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
		q := horner64(z, z+1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3)
		return math.FMA(float64(x*z), p/q, x)
	}
	r := 1 - 2/(exp64(a+a)+1)
	if x < 0 {
		return -r
	}
	return r
}

func erf32(x float32) float32 {
	a := x
	if x < 0 {
		a = -x
	}
	r := float32(1)
	switch {
	case !(a >= 1):
		z := float32(x * x)
		p := erfOdd32[6]
		for i := 5; i >= 0; i-- {
			p = float32(p*z) + erfOdd32[i]
		}
		return float32(p * x)
	case a < 4:
		k := int32(a)
		t := a - (float32(k) + 0.5)
		r = erfPiece32[k-1][8]
		for i := 7; i >= 0; i-- {
			r = float32(r*t) + erfPiece32[k-1][i]
		}
	}
	if x < 0 {
		return -r
	}
	return r
}

func erf64(x float64) float64 {
	a := x
	if x < 0 {
		a = -x
	}
	r := 1.0
	switch {
	case !(a >= 1):
		z := float64(x * x)
		p := erfOdd64[12]
		for i := 11; i >= 0; i-- {
			p = math.FMA(p, z, erfOdd64[i])
		}
		return float64(p * x)
	case a < 6:
		k := int32(a)
		t := a - (float64(k) + 0.5)
		r = erfPiece64[k-1][18]
		for i := 17; i >= 0; i-- {
			r = math.FMA(r, t, erfPiece64[k-1][i])
		}
	}
	if x < 0 {
		return -r
	}
	return r
}

// Exp and the functions below pick the version for their type; an int32 is computed in float64.
func Exp[C Element](x C) C { return apply(x, exp32, exp64) }

// Log is the natural logarithm.
func Log[C Element](x C) C { return apply(x, Log32, Log64) }

// Tanh is the hyperbolic tangent.
func Tanh[C Element](x C) C { return apply(x, tanh32, tanh64) }

// Erf is the error function.
func Erf[C Element](x C) C { return apply(x, erf32, erf64) }

// Sqrt is the square root.
func Sqrt[C Element](x C) C { return apply(x, Sqrt32, math.Sqrt) }

// Sin is the sine.
func Sin[C Element](x C) C {
	return apply(x, func(x float32) float32 { s, _ := sincos32(x); return s }, func(x float64) float64 { s, _ := sincos64(x); return s })
}

// Cos is the cosine.
func Cos[C Element](x C) C {
	return apply(x, func(x float32) float32 { _, c := sincos32(x); return c }, func(x float64) float64 { _, c := sincos64(x); return c })
}

// apply picks by type; an int32 is computed in float64.
func apply[C Element](x C, f func(float32) float32, d func(float64) float64) C {
	switch v := any(x).(type) {
	case float32:
		return C(f(v))
	case float64:
		return C(d(v))
	}
	return C(d(float64(x)))
}

// Sqrt32 is the square root. Rounded to float64 first and then to float32 it is still correctly rounded.
func Sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// Log2Of64 is the logarithm to base 2 in float64.
func Log2Of64(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return Log64(x)
	}
	e := int32(0)
	if x < 2.2250738585072014e-308 {
		x *= 18014398509481984
		e = -54
	}
	b := int64(math.Float64bits(x)) - 0x3fe6a09e667f3bcd
	e += int32(b >> 52)
	m := math.Float64frombits(uint64(b&0xfffffffffffff + 0x3fe6a09e667f3bcd))
	return math.FMA(Log64(m), 1.4426950408889634, float64(e))
}

// Pow64 is x to the power of y, as power() of cuda/math.cuh.
func Pow64(x, y float64) float64 {
	whole := float64(y+6755399441055744) - 6755399441055744
	a := y
	if y < 0 {
		a = -y
	}
	if whole == y && a <= 64 {
		r, p := 1.0, x
		for n := int32(a); n != 0; n >>= 1 {
			if n&1 != 0 {
				r = float64(r * p)
			}
			p = float64(p * p)
		}
		if y < 0 {
			return 1 / r
		}
		return r
	}
	switch {
	case x == 1:
		return 1
	case x == 0 && y < 0:
		return math.Inf(1)
	case x == 0 && y > 0:
		return 0
	case x == 0:
		return math.NaN()
	}
	odd := whole == y && a < 9007199254740992 && int64(a)&1 != 0
	if x < 0 && whole != y && a < 4503599627370496 {
		return math.NaN()
	}
	b := x
	if x < 0 {
		b = -x
	}
	r := exp64(float64(y * Log64(b)))
	if x < 0 && odd {
		return -r
	}
	return r
}

// Abs is the magnitude; a negative zero loses its sign.
func Abs[C Element](x C) C {
	switch v := any(x).(type) {
	case float32:
		return C(math.Float32frombits(math.Float32bits(v) &^ (1 << 31)))
	case float64:
		return C(math.Abs(v))
	}
	if x < 0 {
		return -x
	}
	return x
}
