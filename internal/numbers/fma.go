// a*b + c rounded once in float32, which Go has only for float64.

package numbers

import "math"

// FMA32 is a*b + c rounded once. The product is exact in float64, so the only danger is rounding twice. That goes wrong only if the first
// rounding lands in the middle between two float32 values, or where the result is subnormal.
func FMA32(a, b, c float32) float32 {
	p, d := float64(a)*float64(b), float64(c)
	s := p + d
	if u := math.Float64bits(s); u&0x1fffffff != 0x10000000 && u<<1 >= 0x3820<<49 {
		return float32(s)
	}
	return fma32Near(p, d, s)
}

// fma32Near keeps the rounding error of the sum in the last bit (rounding to odd), which makes the second rounding correct.
func fma32Near(p, d, s float64) float32 {
	t := s - p
	lost := float64(p-float64(s-t)) + float64(d-t)
	if lost != 0 && math.Float64bits(s)&1 == 0 {
		if (lost > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}

// FMA is a*b + c rounded once.
func FMA[C Element](a, b, c C) C {
	switch v := any(a).(type) {
	case float32:
		return C(FMA32(v, float32(b), float32(c)))
	case float64:
		return C(math.FMA(v, float64(b), float64(c)))
	}
	return a*b + c
}
