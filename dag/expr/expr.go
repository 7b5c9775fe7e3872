// Package expr is the expression language of pipeline files: exact rational arithmetic until a float enters.
package expr

// Value is the result of an expression. The zero Value is the integer 0.
type Value struct {
	kind Kind
	num  int64 // Int, Rational: numerator; Bool: 0 or 1
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

// Int makes an integer.
func Int(v int64) Value { return Value{num: v} }

// FloatValue makes a float.
func FloatValue(v float64) Value { return Value{kind: Float, f: v} }

// Kind returns what kind of value it is.
func (v Value) Kind() Kind { return v.kind }

// Int returns the value as an integer; ok is false where it is not integral.
func (v Value) Int() (n int64, ok bool) {
	switch v.kind {
	case Rational:
		return v.num, v.den == 0
	case Float:
		n = int64(v.f)
		return n, float64(n) == v.f
	}
	return 0, false
}

// Float returns the value as a float64.
func (v Value) Float() float64 {
	if v.kind == Float {
		return v.f
	}
	return float64(v.num) / float64(v.den+1)
}

// Expr is a parsed expression. Its Text and position survive for messages.
type Expr struct {
	Text string
	Root *Term
}

// Term is one node of the tree. kernels/ walks it to generate code.
type Term struct {
	Op     Op
	Value  Value   // Literal
	Name   string  // Variable, Call
	Args   []*Term // operands
	Offset int     // byte offset in Text
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
)
