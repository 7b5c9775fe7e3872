// What rounding to float64 has lost, in numbers as long as it takes. Only the directed roundings of f64 need it: errors of this size may be
// too small, or too large, for a float64.

package simt

import (
	"math"
	"math/big"
)

const exactBits = 4400 // hold every product of two float64, and the sum of it and another float64

func exact(x float64) *big.Float { return new(big.Float).SetPrec(exactBits).SetFloat64(x) }

// finite says whether all are numbers and none is infinite.
func finite(all ...float64) bool {
	for _, x := range all {
		if x-x != 0 {
			return false
		}
	}
	return true
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

// missingFused has the sign of what v lacks of a*b + c.
func missingFused(a, b, c, v float64) float64 {
	if !finite(a, b, c) {
		return 0
	}
	whole := new(big.Float).SetPrec(exactBits).Mul(exact(a), exact(b))
	return float64(whole.Add(whole, exact(c)).Cmp(exact(v)))
}
