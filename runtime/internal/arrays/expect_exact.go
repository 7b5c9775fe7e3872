// Exact comparison of integer elements: 64-bit integers do not fit in a float64.

package arrays

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

// integer is a number between -(2^64-1) and 2^64-1, so that int64 and uint64 can be compared.
type integer struct {
	negative  bool
	magnitude uint64
}

func integerOf(n int64) integer {
	if n < 0 {
		return integer{true, -uint64(n)}
	}
	return integer{false, uint64(n)}
}

// integerElement returns an element of an integer type or a bool, given as its bits.
func integerElement(t dag.DType, element uint64) integer {
	if t.Signed() {
		shift := 64 - 8*uint(t.Size())
		return integerOf(int64(element<<shift) >> shift)
	}
	if t == dag.Bool && element != 0 {
		element = 1
	}
	return integer{false, element}
}

func (a integer) big() *big.Int {
	n := new(big.Int).SetUint64(a.magnitude)
	if a.negative {
		n.Neg(n)
	}
	return n
}

// distance returns |a-b|. If that exceeds the largest uint64, exact is the largest uint64 and only float has the value.
func (a integer) distance(b integer) (exact uint64, float float64) {
	if a.negative == b.negative {
		exact = max(a.magnitude, b.magnitude) - min(a.magnitude, b.magnitude)
		return exact, float64(exact)
	}
	exact, carry := bits.Add64(a.magnitude, b.magnitude, 0)
	if carry != 0 {
		return math.MaxUint64, float64(a.magnitude) + float64(b.magnitude)
	}
	return exact, float64(exact)
}

// within reports whether a distance is at most a tolerance, without rounding the distance.
func within(exact uint64, float, tolerance float64) bool {
	if tolerance >= 1<<64 {
		return float <= tolerance
	}
	return tolerance >= 0 && exact <= uint64(tolerance)
}

// wantedInteger is the expected value of an integer element: an integer, or a number that is not one (a fraction, a float), which an element
// can match only within the tolerance.
type wantedInteger struct {
	isInteger bool
	integer   integer
	other     expr.Value
}

// wantedValue turns the value of an expression into the expected value of an element.
func wantedValue(v expr.Value) wantedInteger {
	if truth, is := v.Bool(); is {
		if truth {
			return wantedInteger{isInteger: true, integer: integer{false, 1}}
		}
		return wantedInteger{isInteger: true}
	}
	if n, ok := v.Int(); ok {
		return wantedInteger{isInteger: true, integer: integerOf(n)}
	}
	if f := v.Float(); v.Kind() == expr.Float && f >= 1<<63 && f < 1<<64 {
		return wantedInteger{isInteger: true, integer: integer{false, uint64(f)}}
	}
	return wantedInteger{other: v}
}

// distance returns how far an element is from an expected number that is not a 64-bit integer; ok is false for NaN and infinities.
func (w *wantedInteger) distance(got integer) (float64, bool) {
	number := ratio(w.other)
	if number == nil {
		return 0, false
	}
	difference := new(big.Rat).SetInt(got.big())
	difference.Abs(difference.Sub(difference, number))
	f, _ := difference.Float64()
	return f, true
}

// ratio returns a value exactly, or nil if it is not finite.
func ratio(v expr.Value) *big.Rat {
	if num, den, ok := v.Ratio(); ok {
		return big.NewRat(num, den)
	}
	return new(big.Rat).SetFloat64(v.Float())
}

// integerSum adds 64-bit integers. The sum of up to 2^63 of them fits in 128 bits.
type integerSum struct{ high, low uint64 }

func (s *integerSum) add(n integer) {
	var carry uint64
	if n.negative {
		s.low, carry = bits.Sub64(s.low, n.magnitude, 0)
		s.high -= carry
		return
	}
	s.low, carry = bits.Add64(s.low, n.magnitude, 0)
	s.high += carry
}

func (s *integerSum) big() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(int64(s.high)), 64)
	return n.Add(n, new(big.Int).SetUint64(s.low))
}
