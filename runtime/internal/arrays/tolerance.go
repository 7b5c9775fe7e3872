// Comparing a buffer with another device's: how far apart two elements may be.

package arrays

import "github.com/dagrun/dagrun/dag"

// Comparison begins the check of a buffer against what another device computed. It returns the buffer as the numbers to compare.
func Comparison(b *dag.Buffer, against string, rtol, atol float64) (Check, *dag.Buffer) {
	numbers := asNumbers(b)
	return Check{Buffer: b.Name, Elements: count(numbers.Shape), complex: b.DType.Complex(), Against: against, RTol: rtol, ATol: atol}, numbers
}

// Tolerance returns the tolerance that the buffer declares, or else one of its type that allows for another order of operations.
func Tolerance(b *dag.Buffer) (rtol, atol float64) {
	if e := b.Expect; e != nil && (e.RTol != 0 || e.ATol != 0) {
		return e.RTol, e.ATol
	}
	return ElementTolerance(b.DType)
}

// ElementTolerance allows for another order of operations.
func ElementTolerance(t dag.DType) (rtol, atol float64) {
	switch t.Component() {
	case dag.F16:
		return 2e-3, 1e-4
	case dag.BF16:
		return 1.6e-2, 1e-3
	case dag.F32:
		return 1e-5, 1e-6
	case dag.F64:
		return 1e-12, 1e-14
	}
	return 0, 0
}
