// What rounding to float64 has lost, in numbers as long as it takes. Only the directed roundings of f64 need it: errors of this size may be
// too small, or too large, for a float64.

package simt

import (
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

// missingFused has the sign of what v lacks of a*b + c.
func missingFused(a, b, c, v float64) float64 {
	if !finite(a, b, c) {
		return 0
	}
	whole := new(big.Float).SetPrec(exactBits).Mul(exact(a), exact(b))
	return float64(whole.Add(whole, exact(c)).Cmp(exact(v)))
}
