// Evaluation of expressions and slices, and substitution of variables: exact but slow. function.go must give the same values.

package expr

import (
	"errors"
	"math"
)

// Scope knows the names that an expression may use.
type Scope interface {
	// Variable returns the value of a param or a loop variable.
	Variable(name string) (Value, bool)
	// Shape returns the shape of a buffer: no dimensions for a single element.
	Shape(buffer string) (shape []int64, ok bool)
}

// Empty is a Scope without names.
type Empty struct{}

// Variable finds nothing.
func (Empty) Variable(string) (Value, bool) { return Value{}, false }

// Shape finds nothing.
func (Empty) Shape(string) ([]int64, bool) { return nil, false }

// Eval computes the expression. The error is an *Error, except for an expression in which Check finds a fault.
func (e *Expr) Eval(scope Scope) (Value, error) {
	if err := e.scoped(scope); err != nil {
		return Value{}, err
	}
	v, err := eval(e.Root, scope)
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

func evalInt(t *Term, scope Scope, what string) (int64, error) {
	v, err := eval(t, scope)
	if err != nil {
		return 0, err
	}
	n, xerr := Integral(v, t.Offset, what)
	if xerr != nil {
		return 0, xerr
	}
	return n, nil
}

// Integral returns v as an integer. Where it is none the error, at offset, says that what needs one and names ceil and floor.
func Integral(v Value, offset int, what string) (int64, *Error) {
	if n, ok := v.Int(); ok {
		return n, nil
	}
	switch {
	case v.kind == Bool:
		return 0, errorAt(offset, "", "%s must be an integer, not %s", what, v)
	case v.kind == Float && math.Abs(v.f) >= 1<<63:
		return 0, errorAt(offset, "", "%s does not fit in 64 bits: %s", what, v)
	}
	return 0, errorAt(offset, "use floor(...) or ceil(...)", "%s must be an integer, not %s", what, v)
}

func eval(t *Term, scope Scope) (Value, error) {
	switch t.Op {
	case Literal:
		return t.Value, nil
	case Variable:
		if v, ok := scope.Variable(t.Name); ok {
			return v, nil
		}
		return Value{}, unknownVariable(t)
	case Call:
		return call(t, scope)
	case And, Or:
		left, err := truth(t.Args[0], scope)
		if err != nil || left == (t.Op == Or) {
			return BoolValue(left), err
		}
		right, err := truth(t.Args[1], scope)
		return BoolValue(right), err
	case Not:
		b, err := truth(t.Args[0], scope)
		return BoolValue(!b), err
	}
	a, err := eval(t.Args[0], scope)
	if err != nil {
		return Value{}, err
	}
	if t.Op == Neg {
		v, err := negate(a)
		return v, placed(err, t)
	}
	b, err := eval(t.Args[1], scope)
	if err != nil {
		return Value{}, err
	}
	if t.Op >= Less && t.Op <= NotEqual {
		return BoolValue(holds(t.Op, compare(a, b))), nil
	}
	v, err := arithmetic(t.Op, a, b)
	return v, placed(err, t)
}

func unknownVariable(t *Term) *Error {
	err := errorAt(t.Offset, "", "unknown name %q", shorten(t.Name))
	err.Unknown, err.Name = UnknownVariable, t.Name
	return err
}

// placed gives an error of arithmetic the place of its operator.
func placed(err error, t *Term) error {
	if err == nil {
		return nil
	}
	var here *Error
	if errors.As(err, &here) {
		return err
	}
	return errorAt(t.Offset, "", "%s", err)
}

func truth(t *Term, scope Scope) (bool, error) {
	v, err := eval(t, scope)
	if err != nil {
		return false, err
	}
	b, ok := v.Bool()
	if !ok {
		return false, notTruth(t, v)
	}
	return b, nil
}

func notTruth(t *Term, v Value) *Error {
	return errorAt(t.Offset, "compare it, as in n > 0", "expected true or false, not the number %s", v)
}

func call(t *Term, scope Scope) (Value, error) {
	if measures(t.Name) {
		return measure(t.Name, t.Args[0], scope)
	}
	if t.Name == "select" { // only one of the two values is computed
		first, err := truth(t.Args[0], scope)
		if err != nil {
			return Value{}, err
		}
		return eval(t.Args[selected(first)], scope)
	}
	var few [3]Value
	args := few[:0]
	for _, a := range t.Args {
		v, err := eval(a, scope)
		if err != nil {
			return Value{}, err
		}
		args = append(args, v.exact())
	}
	return apply(t, args)
}

// selected is the index of the argument of select that its condition chooses.
func selected(condition bool) int {
	if condition {
		return 1
	}
	return 2
}

// apply computes a function of evaluated arguments.
func apply(t *Term, args []Value) (Value, error) {
	a := args[0]
	switch t.Name {
	case "min", "max":
		isFloat := false
		for _, v := range args {
			isFloat = isFloat || v.kind == Float
		}
		best := a
		for _, v := range args[1:] {
			if c := compare(v, best); c < 0 && t.Name == "min" || c > 0 && t.Name == "max" {
				best = v
			}
		}
		if isFloat {
			best = FloatValue(best.Float())
		}
		return best, nil
	case "abs":
		if a.kind == Float {
			return FloatValue(math.Abs(a.f)), nil
		}
		if a.num >= 0 {
			return a, nil
		}
		v, err := negate(a)
		return v, placed(err, t)
	case "floor", "ceil":
		v, err := round(a, t.Name == "ceil")
		return v, placed(err, t)
	case "pow":
		v, err := power(a, args[1])
		if err == ErrNotFinite && a.Float() < 0 && math.Floor(args[1].Float()) != args[1].Float() {
			return Value{}, errorAt(t.Offset, "", "pow of the negative number %s with a fractional exponent", a)
		}
		if err == ErrNotFinite && a.Float() == 0 {
			err = ErrDivZero
		}
		return v, placed(err, t)
	case "rand":
		return random(t, args)
	}
	x := a.Float()
	switch t.Name {
	case "sqrt":
		if x < 0 {
			return Value{}, errorAt(t.Offset, "", "sqrt of the negative number %s", a)
		}
		x = math.Sqrt(x)
	case "log2":
		if x <= 0 {
			return Value{}, errorAt(t.Offset, "", "log2 of %s, which is not above 0", a)
		}
		x = math.Log2(x)
	case "log":
		if x <= 0 {
			return Value{}, errorAt(t.Offset, "", "log of %s, which is not above 0", a)
		}
		x = math.Log(x)
	case "exp":
		x = math.Exp(x)
	case "sin":
		x = math.Sin(x)
	case "cos":
		x = math.Cos(x)
	case "tanh":
		x = math.Tanh(x)
	}
	v, err := finite(x)
	return v, placed(err, t)
}

func random(t *Term, args []Value) (Value, error) {
	var n [3]int64
	for k, what := range [...]string{"the seed of rand", "the counter of rand", "the range of rand"} {
		v, err := Integral(args[k], t.Args[k].Offset, what)
		if err != nil {
			return Value{}, err
		}
		n[k] = v
	}
	if n[2] < 1 {
		return Value{}, errorAt(t.Args[2].Offset, "", "the range of rand must be above 0, not %d", n[2])
	}
	return Int(Rand(n[0], n[1], n[2])), nil
}

// measure computes len, rows, cols or ld of a buffer or a slice.
func measure(function string, t *Term, scope Scope) (Value, error) {
	name, err := t.Slice.Name.Expand(scope)
	if err != nil {
		return Value{}, err
	}
	shape, ok := scope.Shape(name)
	switch {
	case !ok:
		err := errorAt(t.Offset, "", "unknown buffer %q", shorten(name))
		err.Unknown, err.Name = UnknownBuffer, name
		return Value{}, err
	case len(shape) == 0 && function == "len":
		return Value{}, errorAt(t.Offset, "", "%s is a single element, it has no length", name)
	case len(shape) == 0 && function == "rows":
		return Value{}, errorAt(t.Offset, "", "%s is a single element, it has no rows", name)
	case len(shape) < 2 && function != "len" && function != "rows":
		return Value{}, errorAt(t.Offset, "", "%s has fewer than two dimensions, so it has no rows of columns", name)
	}
	rows, columns, err := t.Slice.Extent(scope, name, shape)
	if err != nil {
		return Value{}, err
	}
	n, factors := rows.Len(), []int64(nil)
	switch {
	case function == "cols":
		n = columns.Len()
	case function == "ld":
		n, factors = 1, shape[1:]
	case function == "len" && t.Slice.Columns != nil: // of a tile: all of its elements
		factors = append([]int64{columns.Len()}, shape[2:]...)
	}
	for _, f := range factors {
		if f > 0 && n > math.MaxInt64/f {
			return Value{}, errorAt(t.Offset, "", "%s of %s does not fit in 64 bits", function, name)
		}
		n *= f
	}
	return Int(n), nil
}

// Bind puts the values of all variables but the free ones in their place, and those of len, and folds what is constant then.
// An unknown variable is an *Error, and so is a folded part that cannot be computed, unless and, or or select may never reach it.
func (e *Expr) Bind(scope Scope, free ...string) (*Expr, error) {
	if err := e.scoped(scope); err != nil {
		return nil, err
	}
	b := binder{scope: scope, free: free}
	root, err := b.bind(e.Root, true)
	if err != nil {
		return nil, err
	}
	return &Expr{Text: e.Text, Root: root, parsed: true}, nil
}

// lazy reports whether all operands but the first are computed only if the first one says so.
func (t *Term) lazy() bool {
	return t.Op == And || t.Op == Or || t.Op == Call && t.Name == "select"
}

type binder struct {
	scope Scope
	free  []string
}

// bind copies t. Surely says that the term is computed whenever the expression is.
func (b *binder) bind(t *Term, surely bool) (*Term, error) {
	switch t.Op {
	case Literal:
		return t, nil
	case Variable:
		if v, ok := b.scope.Variable(t.Name); ok {
			return &Term{Op: Literal, Value: v, Offset: t.Offset}, nil
		}
		for _, name := range b.free {
			if name == t.Name {
				return t, nil
			}
		}
		return nil, unknownVariable(t)
	}
	if t.Op == Call && measures(t.Name) {
		v, err := measure(t.Name, t.Args[0], b.scope)
		if err != nil {
			return nil, err
		}
		return &Term{Op: Literal, Value: v, Offset: t.Offset}, nil
	}
	bound := *t
	bound.Args = make([]*Term, len(t.Args))
	constant := true
	for i, a := range t.Args {
		var err error
		if bound.Args[i], err = b.bind(a, surely && (i == 0 || !t.lazy())); err != nil {
			return nil, err
		}
		constant = constant && bound.Args[i].Op == Literal
	}
	if !constant {
		return &bound, nil
	}
	v, err := eval(&bound, Empty{})
	if err != nil {
		if surely {
			return nil, err
		}
		return &bound, nil
	}
	return &Term{Op: Literal, Value: v, Offset: t.Offset}, nil
}

// scoped is Check for what looks names up.
func (e *Expr) scoped(scope Scope) error {
	if scope == nil {
		return errors.New("there is no scope to look names up in")
	}
	return e.Check()
}

// Extent evaluates the slice of a buffer of that shape, nil for a single element: the rows, which are the positions along the first
// dimension, and the columns, which are those along the second. Columns are all there are unless the slice has a second part; a
// buffer of one dimension has one. Errors carry the place of the bound. Name is for messages.
func (s *Slice) Extent(scope Scope, name string, shape []int64) (rows, columns Span, err error) {
	columns.Hi = 1
	if err := s.checkAlone(); err != nil {
		return rows, columns, err
	}
	if scope == nil {
		return rows, columns, errors.New("there is no scope to look names up in")
	}
	if len(shape) > 1 {
		columns.Hi = shape[1]
	}
	if len(shape) == 0 {
		if s.Kind != Whole {
			return rows, columns, errorAt(s.Offset, "", "%s is a single element, it has no slices", name)
		}
		return Span{0, 1}, columns, nil
	}
	if rows, err = s.along(&s.Axis, scope, name, shape[0]); err != nil || s.Columns == nil {
		return rows, columns, err
	}
	if len(shape) == 1 {
		return rows, columns, errorAt(s.Offset, "slice it once, or declare it with a shape of two dimensions", "%s has one dimension, so it has no columns", name)
	}
	columns, err = s.along(s.Columns, scope, name, shape[1])
	return rows, columns, err
}

// along evaluates one dimension of the slice.
func (s *Slice) along(a *Axis, scope Scope, name string, length int64) (Span, error) {
	lo, hi := int64(0), length
	if a.Kind == Whole {
		return Span{lo, hi}, nil
	}
	var err error
	if a.Lo != nil {
		if lo, err = evalInt(a.Lo, scope, "a slice"); err != nil {
			return Span{}, err
		}
	}
	if a.Hi != nil {
		if hi, err = evalInt(a.Hi, scope, "a slice"); err != nil {
			return Span{}, err
		}
	}
	if a.Kind == Part {
		return s.part(a, scope, name, length, lo, hi)
	}
	offset := func(t *Term) int {
		if t == nil {
			return s.Offset
		}
		return t.Offset
	}
	what, has := "slice %d..%d is outside %s, which has %d", "slice of %s starts at %d, before its first element"
	if a == s.Columns {
		what, has = "columns %d..%d are outside %s, which has %d", "columns of %s start at %d, before the first"
	}
	switch {
	case lo < 0:
		return Span{}, errorAt(offset(a.Lo), "", has, name, lo)
	case hi > length:
		return Span{}, errorAt(offset(a.Hi), "", what, lo, hi, name, length)
	case lo > length:
		return Span{}, errorAt(offset(a.Lo), "", what, lo, hi, name, length)
	case lo > hi:
		return Span{}, errorAt(offset(a.Lo), s.swapped(a, a.Lo != nil && a.Hi != nil), "slice %d..%d of %s is reversed", lo, hi, name)
	}
	return Span{lo, hi}, nil
}

// part evaluates part i of k, widened by its halo and clipped to the buffer.
func (s *Slice) part(a *Axis, scope Scope, name string, length, part, parts int64) (Span, error) {
	if parts < 1 {
		return Span{}, errorAt(a.Hi.Offset, s.swapped(a, part > 0 || a.Hi.Op != Literal), "%s cannot be cut into %d parts", name, parts)
	}
	if part < 0 || part >= parts {
		return Span{}, errorAt(a.Lo.Offset, s.swapped(a, part > parts), "part %d of %d: parts are numbered 0 to %d", part, parts, parts-1)
	}
	halo := int64(0)
	if a.Halo != nil {
		var err error
		if halo, err = evalInt(a.Halo, scope, "a halo"); err != nil {
			return Span{}, err
		}
		if halo < 0 {
			return Span{}, errorAt(a.Halo.Offset, "", "a halo of %d; it must not be negative", halo)
		}
	}
	return PartOf(length, part, parts, halo), nil
}

// Expand puts the variables' values in.
func (t *Template) Expand(scope Scope) (string, error) {
	if plain, ok := t.Plain(); ok {
		return plain, nil
	}
	if scope == nil {
		return "", errors.New("there is no scope to look names up in")
	}
	var b []byte
	for _, p := range t.parts {
		if p.term == nil {
			b = append(b, p.literal...)
			continue
		}
		v, err := eval(p.term, scope)
		if err != nil {
			return "", err
		}
		if n, ok := v.Int(); ok {
			v = Int(n)
		}
		b = append(b, v.String()...)
	}
	return string(b), nil
}
