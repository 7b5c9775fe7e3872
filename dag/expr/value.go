// Values: exact fractions of two int64, floats and truth values, and their operators.

package expr

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Value is the result of an expression. The zero Value is the integer 0.
type Value struct {
	kind Kind
	num  int64 // Rational: numerator; Bool: 0 or 1
	den  int64 // Rational: denominator - 1, so that the zero Value is 0/1
	f    float64
}

// Kind is the kind of a Value.
type Kind uint8

const (
	Rational Kind = iota // exact; an integer where the denominator is 1
	Float
	Bool
)

// What arithmetic can meet. Evaluation turns these into an Error with a place.
var (
	ErrOverflow  = errors.New("overflow: the result does not fit in 64 bits")
	ErrDivZero   = errors.New("division by zero")
	ErrNotFinite = errors.New("overflow: the result is not a finite number")
)

// Int makes an integer.
func Int(v int64) Value { return Value{num: v} }

// FloatValue makes a float.
func FloatValue(v float64) Value { return Value{kind: Float, f: v} }

// BoolValue makes a truth value.
func BoolValue(v bool) Value {
	if v {
		return Value{kind: Bool, num: 1}
	}
	return Value{kind: Bool}
}

// Fraction makes num/den in lowest terms; den must not be 0.
func Fraction(num, den int64) (Value, error) {
	if den == 0 {
		return Value{}, ErrDivZero
	}
	return reduce(num, den)
}

// Kind returns what kind of value it is.
func (v Value) Kind() Kind { return v.kind }

// Int returns the value as an integer; ok is false where it is not integral, does not fit or is a truth value.
func (v Value) Int() (n int64, ok bool) {
	switch v.kind {
	case Rational:
		return v.num, v.den == 0
	case Float:
		// The conversion of a float outside int64 differs between processors.
		if !(v.f >= -1<<63 && v.f < 1<<63) {
			return 0, false
		}
		n = int64(v.f)
		return n, float64(n) == v.f
	}
	return 0, false
}

// Float returns the value as a float64; true is 1 and false is 0.
func (v Value) Float() float64 {
	if v.kind == Float {
		return v.f
	}
	if v.den == 0 {
		return float64(v.num)
	}
	return ratioFloat(v.num, v.den+1)
}

// ratioFloat rounds num/den once, also where the two do not fit a float's 53 bits.
func ratioFloat(num, den int64) float64 {
	const exact = 1 << 53
	if -exact <= num && num <= exact && den <= exact {
		return float64(num) / float64(den)
	}
	f, _ := big.NewRat(num, den).Float64()
	return f
}

// Bool returns a truth value; ok is false for a number.
func (v Value) Bool() (b, ok bool) { return v.num != 0, v.kind == Bool }

// Ratio returns numerator and denominator of an exact value; ok is false for floats and truth values.
func (v Value) Ratio() (num, den int64, ok bool) { return v.num, v.den + 1, v.kind == Rational }

// Plain writes a value as people do: an integral float without its point.
func (v Value) Plain() string {
	if n, ok := v.Int(); ok {
		return fmt.Sprint(n)
	}
	if v.kind == Float {
		return fmt.Sprint(v.f)
	}
	return v.String()
}

// String returns the value as the language writes it: 12, 1/3, 2.0, 1e-06, true. Read again it gives the same value.
func (v Value) String() string {
	switch v.kind {
	case Bool:
		return strconv.FormatBool(v.num != 0)
	case Float:
		format := byte('g')
		if a := math.Abs(v.f); a == 0 || a >= 1e-4 && a < 1e15 {
			format = 'f'
		}
		s := strconv.FormatFloat(v.f, format, -1, 64)
		if !strings.ContainsAny(s, ".eIN") {
			s += ".0"
		}
		return s
	}
	s := strconv.FormatInt(v.num, 10)
	if v.den != 0 {
		s += "/" + strconv.FormatInt(v.den+1, 10)
	}
	return s
}

// exact returns a truth value as the integer it counts as.
func (v Value) exact() Value {
	if v.kind == Bool {
		v.kind = Rational
	}
	return v
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// signed gives a magnitude its sign back; ok is false where it does not fit.
func signed(m uint64, negative bool) (int64, bool) {
	if negative {
		return int64(-m), m <= 1<<63
	}
	return int64(m), m < 1<<63
}

// reduce makes num/den in lowest terms with a positive denominator.
func reduce(num, den int64) (Value, error) {
	if den == 1 {
		return Value{num: num}, nil
	}
	g := gcd(magnitude(num), magnitude(den))
	n, ok1 := signed(magnitude(num)/g, (num < 0) != (den < 0))
	d, ok2 := signed(magnitude(den)/g, false)
	if !ok1 || !ok2 {
		return Value{}, ErrOverflow
	}
	return Value{num: n, den: d - 1}, nil
}

func finite(f float64) (Value, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return Value{}, ErrNotFinite
	}
	return Value{kind: Float, f: f}, nil
}

func addInt(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func subInt(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

func mulInt(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	c, ok := signed(lo, (a < 0) != (b < 0))
	return c, ok && hi == 0
}

// floorDiv rounds towards minus infinity; b must not be 0. It fails for the one quotient that does not fit.
func floorDiv(a, b int64) (int64, bool) {
	if b == -1 {
		return -a, a != math.MinInt64
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q, true
}

// floorMod has the sign of b; b must not be 0.
func floorMod(a, b int64) int64 {
	if b == -1 {
		return 0
	}
	r := a % b
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

func floatMod(a, b float64) float64 {
	r := math.Mod(a, b)
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

func rat(v Value) *big.Rat { return big.NewRat(v.num, v.den+1) }

func fromRat(r *big.Rat) (Value, error) {
	if !r.Num().IsInt64() || !r.Denom().IsInt64() {
		return Value{}, ErrOverflow
	}
	return Value{num: r.Num().Int64(), den: r.Denom().Int64() - 1}, nil
}

// arithmetic computes one of + - * / %.
func arithmetic(op Op, a, b Value) (Value, error) {
	a, b = a.exact(), b.exact()
	if a.kind == Float || b.kind == Float {
		x, y := a.Float(), b.Float()
		switch op {
		case Add:
			x += y
		case Sub:
			x -= y
		case Mul:
			x *= y
		default:
			if y == 0 {
				return Value{}, ErrDivZero
			}
			if op == Div {
				x /= y
			} else {
				x = floatMod(x, y)
			}
		}
		return finite(x)
	}
	if (op == Div || op == Mod) && b.num == 0 {
		return Value{}, ErrDivZero
	}
	if a.den == 0 && b.den == 0 {
		var c int64
		ok := true
		switch op {
		case Add:
			c, ok = addInt(a.num, b.num)
		case Sub:
			c, ok = subInt(a.num, b.num)
		case Mul:
			c, ok = mulInt(a.num, b.num)
		case Mod:
			c = floorMod(a.num, b.num)
		case Div:
			return reduce(a.num, b.num)
		}
		if !ok {
			return Value{}, ErrOverflow
		}
		return Value{num: c}, nil
	}
	// Fractions are rare and short; big.Rat reports an overflow only where the reduced result does not fit.
	x, y := rat(a), rat(b)
	switch op {
	case Add:
		x.Add(x, y)
	case Sub:
		x.Sub(x, y)
	case Mul:
		x.Mul(x, y)
	case Div:
		x.Quo(x, y)
	case Mod:
		q := new(big.Rat).Quo(x, y)
		f := new(big.Int).Div(q.Num(), q.Denom()) // Euclidean with a positive divisor: floor
		x.Sub(x, y.Mul(y, new(big.Rat).SetInt(f)))
	}
	return fromRat(x)
}

// compare returns -1, 0 or 1.
func compare(a, b Value) int {
	a, b = a.exact(), b.exact()
	if a.kind == Float || b.kind == Float {
		x, y := a.Float(), b.Float()
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	if a.den == b.den {
		switch {
		case a.num < b.num:
			return -1
		case a.num > b.num:
			return 1
		}
		return 0
	}
	return rat(a).Cmp(rat(b))
}

func holds(op Op, order int) bool {
	switch op {
	case Less:
		return order < 0
	case LessEq:
		return order <= 0
	case Greater:
		return order > 0
	case GreaterEq:
		return order >= 0
	case Equal:
		return order == 0
	}
	return order != 0
}

func negate(v Value) (Value, error) {
	v = v.exact()
	if v.kind == Float {
		return Value{kind: Float, f: -v.f}, nil
	}
	if v.num == math.MinInt64 {
		return Value{}, ErrOverflow
	}
	v.num = -v.num
	return v, nil
}

// round computes floor or ceil. An integral float that fits becomes an exact integer, so that ceil(n*0.5) can be a shape.
func round(v Value, up bool) (Value, error) {
	v = v.exact()
	if v.kind == Float {
		f := math.Floor(v.f)
		if up {
			f = math.Ceil(v.f)
		}
		n, ok := FloatValue(f).Int()
		if !ok {
			return Value{}, ErrOverflow
		}
		return Int(n), nil
	}
	if v.den == 0 {
		return v, nil
	}
	q, _ := floorDiv(v.num, v.den+1)
	if up {
		q++ // v is not integral here
	}
	return Int(q), nil
}

// power computes a to the b: exact where a is exact and b an exact integer.
func power(a, b Value) (Value, error) {
	a, b = a.exact(), b.exact()
	if a.kind == Float || b.kind == Float || b.den != 0 {
		return finite(math.Pow(a.Float(), b.Float()))
	}
	if b.num < 0 {
		if a.num == 0 {
			return Value{}, ErrDivZero
		}
		inverse, err := arithmetic(Div, Int(1), a)
		if err != nil {
			return Value{}, err
		}
		a = inverse
	}
	result, n := Int(1), magnitude(b.num)
	if a.den == 0 && (a.num == 1 || a.num == 0 || a.num == -1) {
		switch {
		case n == 0 || a.num == 1 || a.num == -1 && n%2 == 0:
			return Int(1), nil
		}
		return a, nil
	}
	// Any other base leaves 64 bits within 63 doublings, so this loop is short.
	for err := error(nil); ; {
		if n&1 != 0 {
			if result, err = arithmetic(Mul, result, a); err != nil {
				return Value{}, err
			}
		}
		if n >>= 1; n == 0 {
			return result, nil
		}
		if a, err = arithmetic(Mul, a, a); err != nil {
			return Value{}, err
		}
	}
}

// Op is what a Term does.
type Op uint8

const (
	Literal Op = iota
	Variable
	Call // Name over Args: min max ceil floor abs pow sqrt log2 len rand, and in map expressions exp log sin cos tanh
	Neg
	Not
	Add
	Sub
	Mul
	Div
	Mod
	Less
	LessEq
	Greater
	GreaterEq
	Equal
	NotEqual
	And
	Or
	Buffer // the argument of len: Slice
)
