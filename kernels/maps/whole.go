// Arithmetic of whole numbers in the Go version of a map: exact in 64 bits, and wrapping.

package maps

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

// wholeOne computes one whole number from others of those kinds. An unsigned number is in the same bits.
func wholeOne(op mapOp, ofA, ofB mapKind, a, b int64) int64 {
	switch op {
	case mapAdd:
		return a + b
	case mapSub:
		return a - b
	case mapMul:
		return a * b
	case mapMin:
		if wholeLess(ofB, ofA, b, a) {
			return b
		}
		return a
	case mapMax:
		if wholeLess(ofA, ofB, a, b) {
			return b
		}
		return a
	case mapLess:
		return truth[int64](wholeLess(ofA, ofB, a, b))
	case mapLessEq:
		return truth[int64](!wholeLess(ofB, ofA, b, a))
	case mapEqual:
		return truth[int64](wholeEqual(ofA, ofB, a, b))
	case mapNotEqual:
		return truth[int64](!wholeEqual(ofA, ofB, a, b))
	case mapAnd:
		return truth[int64](a != 0 && b != 0)
	case mapOr:
		return truth[int64](a != 0 || b != 0)
	case mapNot:
		return truth[int64](a == 0)
	case mapNeg:
		return -a
	case mapAbs:
		if ofA == mapSigned && a < 0 {
			return -a
		}
		return a
	}
	if b == 0 {
		return 0
	}
	if ofA == mapUnsigned || ofB == mapUnsigned {
		return int64(unsignedQuotient(op, uint64(a), uint64(b)))
	}
	return signedQuotient(op, a, b)
}

func truth[C float32 | float64 | int64 | uint8](b bool) C {
	if b {
		return 1
	}
	return 0
}

// wholeLess compares a signed with an unsigned number by their values.
func wholeLess(ofA, ofB mapKind, a, b int64) bool {
	switch {
	case ofA == mapSigned && ofB == mapSigned:
		return a < b
	case ofA == mapSigned && a < 0:
		return true
	case ofB == mapSigned && b < 0:
		return false
	}
	return uint64(a) < uint64(b)
}

func wholeEqual(ofA, ofB mapKind, a, b int64) bool { return a == b && (ofA == ofB || a >= 0) }

func unsignedQuotient(op mapOp, a, b uint64) uint64 {
	switch {
	case op == mapRemainder:
		return a % b
	case op == mapCeiled && a%b != 0:
		return a/b + 1
	}
	return a / b
}

func signedQuotient(op mapOp, a, b int64) int64 {
	q, left := a/b, a%b
	switch down := left != 0 && left^b < 0; {
	case op == mapRemainder && down:
		return left + b
	case op == mapRemainder:
		return left
	case op == mapFloored && down:
		return q - 1
	case op == mapCeiled && left != 0 && !down:
		return q + 1
	}
	return q
}

// storeWhole stores the low bits.
func storeWhole(t dag.DType, a launch.Arg, n, from int64, v []int64) {
	switch {
	case t == dag.Bool:
		to := reference.Slice[uint8](a, n)[from:]
		for i, x := range v {
			to[i] = truth[uint8](x != 0)
		}
	case t.Size() == 1:
		storeLow[uint8](a, n, from, v)
	case t.Size() == 2:
		storeLow[uint16](a, n, from, v)
	case t.Size() == 4:
		storeLow[uint32](a, n, from, v)
	default:
		storeLow[uint64](a, n, from, v)
	}
}

func storeLow[T uint8 | uint16 | uint32 | uint64](a launch.Arg, n, from int64, v []int64) {
	to := reference.Slice[T](a, n)[from:]
	for i, x := range v {
		to[i] = T(x)
	}
}
