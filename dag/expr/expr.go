// The tree of an expression, and the errors of the language.

// Package expr is the expression language of pipeline files: exact rational arithmetic until a float enters.
//
// Values are exact fractions of two int64 until a float literal (one with a point or an exponent), sqrt, log2 or a pow with a
// fractional exponent enters; from there on they are float64. Overflow past int64, division by zero and float results that are
// not finite are errors at the place where they happen. Comparisons give true or false, which count as 1 and 0 in arithmetic;
// `and` and `or` do not look at their right side where the left decides.
//
// [Parse] reads an expression, [ParseMap] the elementwise form "y = a*x + b", [ParseSlice] a buffer with an optional slice, and
// [ParseTemplate] a name with $i or $(i+1) in it. [Expr.Bind] puts values in the place of variables, and [Expr.Compile] makes
// a function of the one that is left, fast enough to fill arrays of millions.
package expr

import "fmt"

// Limits of the language.
const (
	MaxDepth = 100     // of parentheses, calls and signs in each other
	MaxText  = 1 << 16 // bytes of one expression
)

// Expr is a parsed expression. Its Text survives for messages. It is immutable: one Expr may be used by many at once.
type Expr struct {
	Text string
	Root *Term

	parsed bool // by this package, so that the tree needs no check
}

// Term is one node of the tree. kernels/ walks it to generate code.
//
// A division of two exact numbers is an exact fraction, never C's integer division: code that computes in floating point must
// convert before it divides.
type Term struct {
	Op     Op
	Value  Value   // Literal
	Name   string  // Variable, Call; the name template of a Slice
	Args   []*Term // operands; of a Slice: see SliceKind
	Offset int     // byte offset in Text
	Slice  *Slice  // Slice: the buffer that len measures
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

// Unknown says which kind of name an Error did not find.
type Unknown uint8

const (
	NothingUnknown Unknown = iota
	UnknownVariable
	UnknownBuffer
	UnknownFunction
)

// Error is a mistake in an expression, or one that its evaluation met.
type Error struct {
	Offset  int    // byte offset in the text
	Message string // what is wrong
	Hint    string // a way out, or ""
	Unknown Unknown
	Name    string // what was not found, where Unknown says so
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "; " + e.Hint
}

func errorAt(offset int, hint, format string, args ...any) *Error {
	return &Error{Offset: offset, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Walk calls visit for every term of the expression, operands after their operator. It visits nothing of an expression in which
// Check finds a fault.
func (e *Expr) Walk(visit func(*Term)) {
	if visit != nil && e.Check() == nil {
		walk(e.Root, visit)
	}
}

func walk(t *Term, visit func(*Term)) {
	visit(t)
	for _, a := range t.Args {
		walk(a, visit)
	}
	if t.Slice != nil {
		t.Slice.walk(visit)
	}
}

// Variables returns the names of the free variables in order of first appearance.
func (e *Expr) Variables() []string {
	var names []string
	e.Walk(func(t *Term) {
		if t.Op != Variable {
			return
		}
		for _, n := range names {
			if n == t.Name {
				return
			}
		}
		names = append(names, t.Name)
	})
	return names
}

// Constant reports whether the expression is a plain literal, and its value.
func (e *Expr) Constant() (Value, bool) {
	if e == nil || e.Root == nil || e.Root.Op != Literal {
		return Value{}, false
	}
	return e.Root.Value, true
}
