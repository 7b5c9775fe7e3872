// Quotients and remainders of integers by whole warps. Kernels mostly divide by a number that all lanes share, such as the width of a
// row, so that one division for the warp and a product for each lane are enough.

package simt

import (
	"math/bits"
)

// reciprocal is 2^64/d, rounded up. The upper half of its product with any number of 32 bits is that number's quotient, for d from 2 on
// (Lemire, Kaser and Kurz 2019).
func reciprocal(d uint32) uint64 { return ^uint64(0)/uint64(d) + 1 }

func shareUnsigned(D, A *lanes, d uint32, rest bool) {
	m := reciprocal(d)
	if rest {
		for i := range D {
			q, _ := bits.Mul64(m, A[i])
			D[i] = A[i] - q*uint64(d)
		}
		return
	}
	for i := range D {
		D[i], _ = bits.Mul64(m, A[i])
	}
}

func shareSigned(D, A *lanes, d int32, rest bool) {
	negative := d >> 31
	m := reciprocal(uint32(d^negative) - uint32(negative))
	for i := range D {
		a := int32(A[i])
		sign := a >> 31
		q64, _ := bits.Mul64(m, uint64(uint32(a^sign)-uint32(sign)))
		sign ^= negative
		q := int32(q64)
		q = q ^ sign - sign
		if rest {
			q = a - q*d
		}
		D[i] = uint64(uint32(q))
	}
}
