// The instructions of a map program, and how their values are computed.

package maps

import "github.com/dagrun/dagrun/dag"

// mapOp is one instruction of a program.
type mapOp uint8

const (
	mapConstant mapOp = iota // value
	mapScalar                // the a-th scalar
	mapSingle                // the only element of the a-th input
	mapInput                 // the element of the a-th input
	mapAdd
	mapSub
	mapMul
	mapDiv
	mapMin
	mapMax
	mapLess
	mapLessEq
	mapEqual
	mapNotEqual
	mapAnd
	mapOr
	mapPow
	mapSelect // b where a is not 0, else c
	mapNeg
	mapNot
	mapAbs
	mapFloor
	mapCeil
	mapConvert  // a whole number as a floating-point number
	mapQuotient // of whole numbers, rounded toward zero; by 0 it is 0, as are the next three
	mapFloored  // rounded down
	mapCeiled   // rounded up
	mapRemainder
	mapSqrt
	mapExp
	mapLog
	mapLog2
	mapSin
	mapCos
	mapTanh
)

// mapKind is how a value is computed.
type mapKind uint8

const (
	mapFloat    mapKind = iota // in the floating-point type of the program
	mapSigned                  // in i64
	mapUnsigned                // in u64
)

// calls reports whether an operation is a function of functions.cu.
func (op mapOp) calls() bool { return op >= mapExp || op == mapPow }

// truth reports whether the result is 1 or 0.
func (op mapOp) truth() bool { return op >= mapLess && op <= mapOr || op == mapNot }

// unary reports whether an operation has one operand.
func (op mapOp) unary() bool {
	return op >= mapNeg && op <= mapConvert || op >= mapSqrt
}

// mapInstr computes one value from earlier ones. a, b and c are the indices of their instructions; those that it has no use for are a.
type mapInstr struct {
	op      mapOp
	kind    mapKind // of the result
	a, b, c int32
	value   float64 // of a constant
	whole   int64   // the same for whole numbers
}

// String returns how PTX names the type of whole numbers.
func (k mapKind) String() string {
	if k == mapUnsigned {
		return "u64"
	}
	return "s64"
}

// wholeKind is the kind of an element or a number that is given to a map.
func wholeKind(t dag.DType) mapKind {
	switch {
	case t.Float():
		return mapFloat
	case t == dag.U64:
		return mapUnsigned
	}
	return mapSigned
}
