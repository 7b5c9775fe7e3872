// The trees of expressions and slices, and the errors of the language.

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

// Unknown says which kind of name an Error did not find.
type Unknown uint8

const (
	NothingUnknown Unknown = iota
	UnknownVariable
	UnknownBuffer
	UnknownFunction
	SliceForNumber // a slice stands where a number is wanted
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

// Constant reports whether the expression is a plain literal, and its value.
func (e *Expr) Constant() (Value, bool) {
	if e == nil || e.Root == nil || e.Root.Op != Literal {
		return Value{}, false
	}
	return e.Root.Value, true
}

var operators = [...]struct {
	text string
	bind int
}{
	Literal: {"", bindAtom}, Variable: {"", bindAtom}, Call: {"", bindAtom}, Buffer: {"", bindAtom},
	Neg: {"-", bindSign}, Not: {"not ", bindNot},
	Add: {" + ", bindSum}, Sub: {" - ", bindSum}, Mul: {" * ", bindProduct}, Div: {" / ", bindProduct}, Mod: {" % ", bindProduct},
	Less: {" < ", bindCompare}, LessEq: {" <= ", bindCompare}, Greater: {" > ", bindCompare}, GreaterEq: {" >= ", bindCompare},
	Equal: {" == ", bindCompare}, NotEqual: {" != ", bindCompare}, And: {" and ", bindAnd}, Or: {" or ", bindOr},
}

// How tightly operators bind.
const (
	bindOr = 1 + iota
	bindAnd
	bindNot
	bindCompare
	bindSum
	bindProduct
	bindSign
	bindAtom
)

// SliceKind is the form of a slice.
type SliceKind uint8

// Slice is a buffer, or some of it along its first dimension and its second.
type Slice struct {
	Name    *Template
	Axis          // along the first dimension
	Columns *Axis // along the second; nil: all of it
	Offset  int   // of the name, in the text
}

// Axis is a slice along one dimension.
type Axis struct {
	Kind   SliceKind
	Lo, Hi *Term // nil where left out
	Halo   *Term // Part: how many elements more on each side; nil: none
}

type part struct {
	literal string
	term    *Term // nil: literal
}

// Template is text with variables: up.$i, $(i+1), $$ for a dollar.
type Template struct {
	Text  string
	parts []part
}

const (
	Whole  SliceKind = iota // x
	Bounds                  // x(Lo..Hi), each may be missing
	Part                    // x(Lo of Hi), x(Lo of Hi halo Halo)
)
