// Compiles a bound expression to a fast function of one variable. It falls back on Eval where it cannot be sure of the result.

package expr

import (
	"errors"
	"math"
)

// Function is an expression compiled for repeated evaluation over one integer variable. It gives what Eval gives, for every
// value: parts that are integers run in int64 with overflow checks, parts in which a float has entered in float64, and only
// fractions of fractions take the slow way, which may allocate. It may be used by many goroutines at once.
type Function struct {
	expr     *Expr
	variable string
	code     code
}

// code is one compiled term, in the form that its static type allows.
type code struct {
	kind     codeKind
	integer  func(i int64) (int64, bool) // integers and truth values; of a ratio, its numerator
	divisor  func(i int64) (int64, bool) // ratio
	float    func(i int64) (float64, bool)
	dynamic  func(i int64) (Value, bool)
	constant Value
	literal  bool
}

// codeKind is what is known of a term's values before any is computed.
type codeKind uint8

const (
	isInteger codeKind = iota
	isTruth
	isRatio // integer over integer, not reduced
	isFloat
	isDynamic
)

var errNotCompiled = errors.New("the function is not one that Compile made")

// Compile makes a function of the variable. All other variables must be bound and no len be left.
func (e *Expr) Compile(variable string) (*Function, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	var unbound *Term
	e.Walk(func(t *Term) {
		if unbound == nil && (t.Op == Buffer || t.Op == Variable && t.Name != variable) {
			unbound = t
		}
	})
	if unbound != nil {
		return nil, unknownVariable(unbound)
	}
	return &Function{expr: e, variable: variable, code: compile(e.Root)}, nil
}

// Float returns the value at i as a float64, truth values as 1 and 0. The error is an *Error.
func (f *Function) Float(i int64) (float64, error) {
	if f == nil || f.expr == nil {
		return 0, errNotCompiled
	}
	if v, ok := f.code.asFloat(i); ok {
		return v, nil
	}
	v, err := f.exact(i)
	return v.Float(), err
}

// Value returns the value at i. Buffers of 64-bit integers are filled from it, since a float64 would round them.
func (f *Function) Value(i int64) (Value, error) {
	if f == nil || f.expr == nil {
		return Value{}, errNotCompiled
	}
	if v, ok := f.code.asValue(i); ok {
		return v, nil
	}
	return f.exact(i)
}

func (f *Function) exact(i int64) (Value, error) {
	return f.expr.Eval(oneVariable{f.variable, i})
}

type oneVariable struct {
	name  string
	value int64
}

func (s oneVariable) Variable(name string) (Value, bool) { return Int(s.value), name == s.name }
func (s oneVariable) Shape(string) ([]int64, bool)       { return nil, false }

// asFloat evaluates any code as a float.
func (c *code) asFloat(i int64) (float64, bool) {
	switch c.kind {
	case isFloat:
		return c.float(i)
	case isInteger, isTruth:
		n, ok := c.integer(i)
		return float64(n), ok
	case isRatio:
		n, ok1 := c.integer(i)
		d, ok2 := c.divisor(i)
		const exact = 1 << 53
		if ok1 && ok2 && d != 0 && -exact <= n && n <= exact && -exact <= d && d <= exact {
			return positiveZero(float64(n) / float64(d)), true
		}
		return 0, false
	}
	v, ok := c.dynamic(i)
	return v.Float(), ok
}

// positiveZero removes the sign of 0/-1: an exact zero has none.
func positiveZero(f float64) float64 { return f + 0 }

func (c *code) asValue(i int64) (Value, bool) {
	switch c.kind {
	case isFloat:
		f, ok := c.float(i)
		return FloatValue(f), ok
	case isInteger:
		n, ok := c.integer(i)
		return Int(n), ok
	case isTruth:
		n, ok := c.integer(i)
		return BoolValue(n != 0), ok
	case isRatio:
		n, ok1 := c.integer(i)
		d, ok2 := c.divisor(i)
		if !ok1 || !ok2 || d == 0 {
			return Value{}, false
		}
		v, err := reduce(n, d)
		return v, err == nil
	}
	return c.dynamic(i)
}

// floats returns the code as a function to float64 without a switch in it where possible.
func (c code) floats() func(int64) (float64, bool) {
	switch {
	case c.literal:
		f := c.constant.Float()
		return func(int64) (float64, bool) { return f, true }
	case c.kind == isFloat:
		return c.float
	case c.kind == isInteger || c.kind == isTruth:
		integer := c.integer
		return func(i int64) (float64, bool) {
			n, ok := integer(i)
			return float64(n), ok
		}
	}
	return c.asFloat
}

// integers returns the code as a function to int64 that fails where a value is not integral.
func (c code) integers() func(int64) (int64, bool) {
	if c.kind == isInteger || c.kind == isTruth {
		return c.integer
	}
	return func(i int64) (int64, bool) {
		v, ok := c.asValue(i)
		if !ok {
			return 0, false
		}
		return v.Int()
	}
}

func integerCode(f func(int64) (int64, bool)) code { return code{kind: isInteger, integer: f} }

func compile(t *Term) code {
	switch t.Op {
	case Literal:
		return literalCode(t.Value)
	case Variable:
		return integerCode(func(i int64) (int64, bool) { return i, true })
	case Call:
		return compileCall(t)
	}
	a := compile(t.Args[0])
	if t.Op == Neg {
		return compileArithmetic(Sub, literalCode(Int(0)), a, t)
	}
	if t.Op == Not {
		inner, ok := a.integer, a.kind == isTruth
		return truthCode(func(i int64) (int64, bool) {
			if !ok {
				return 0, false
			}
			b, ok := inner(i)
			return 1 - b, ok
		})
	}
	b := compile(t.Args[1])
	switch {
	case t.Op == And || t.Op == Or:
		if a.kind != isTruth || b.kind != isTruth {
			return truthCode(func(int64) (int64, bool) { return 0, false })
		}
		x, y, decides := a.integer, b.integer, int64(0)
		if t.Op == Or {
			decides = 1
		}
		return truthCode(func(i int64) (int64, bool) {
			if left, ok := x(i); !ok || left == decides {
				return left, ok
			}
			return y(i)
		})
	case t.Op >= Less && t.Op <= NotEqual:
		return compileComparison(t.Op, a, b)
	}
	return compileArithmetic(t.Op, a, b, t)
}

func truthCode(f func(int64) (int64, bool)) code { return code{kind: isTruth, integer: f} }

func literalCode(v Value) code {
	c := code{constant: v, literal: true}
	switch {
	case v.kind == Float:
		c.kind = isFloat
		c.float = func(int64) (float64, bool) { return v.f, true }
	case v.den == 0:
		if v.kind == Bool {
			c.kind = isTruth
		}
		c.integer = func(int64) (int64, bool) { return v.num, true }
	default:
		c.kind = isDynamic
		c.dynamic = func(int64) (Value, bool) { return v, true }
	}
	return c
}

func compileComparison(op Op, a, b code) code {
	truth := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	isInt := func(c code) bool { return c.kind == isInteger || c.kind == isTruth }
	if isInt(a) && isInt(b) {
		x, y := a.integer, b.integer
		return truthCode(func(i int64) (int64, bool) {
			m, ok1 := x(i)
			n, ok2 := y(i)
			order := 0
			if m < n {
				order = -1
			} else if m > n {
				order = 1
			}
			return truth(holds(op, order)), ok1 && ok2
		})
	}
	return truthCode(func(i int64) (int64, bool) {
		x, ok1 := a.asValue(i)
		y, ok2 := b.asValue(i)
		if !ok1 || !ok2 {
			return 0, false
		}
		return truth(holds(op, compare(x, y))), true
	})
}

func compileArithmetic(op Op, a, b code, t *Term) code {
	isInt := func(c code) bool { return c.kind == isInteger || c.kind == isTruth }
	switch {
	case a.kind == isFloat || b.kind == isFloat:
		if t.Op == Neg {
			x := b.floats()
			return code{kind: isFloat, float: func(i int64) (float64, bool) {
				v, ok := x(i)
				return -v, ok
			}}
		}
		return floatArithmetic(op, a.floats(), b.floats())
	case isInt(a) && isInt(b):
		return integerArithmetic(op, a.integer, b.integer)
	}
	return code{kind: isDynamic, dynamic: func(i int64) (Value, bool) {
		x, ok1 := a.asValue(i)
		y, ok2 := b.asValue(i)
		if !ok1 || !ok2 {
			return Value{}, false
		}
		if t.Op == Neg {
			v, err := negate(y)
			return v, err == nil
		}
		v, err := arithmetic(op, x, y)
		return v, err == nil
	}}
}

func integerArithmetic(op Op, x, y func(int64) (int64, bool)) code {
	switch op {
	case Add:
		return integerCode(func(i int64) (int64, bool) {
			a, ok1 := x(i)
			b, ok2 := y(i)
			c, ok := addInt(a, b)
			return c, ok && ok1 && ok2
		})
	case Sub:
		return integerCode(func(i int64) (int64, bool) {
			a, ok1 := x(i)
			b, ok2 := y(i)
			c, ok := subInt(a, b)
			return c, ok && ok1 && ok2
		})
	case Mul:
		return integerCode(func(i int64) (int64, bool) {
			a, ok1 := x(i)
			b, ok2 := y(i)
			c, ok := mulInt(a, b)
			return c, ok && ok1 && ok2
		})
	case Mod:
		return integerCode(func(i int64) (int64, bool) {
			a, ok1 := x(i)
			b, ok2 := y(i)
			if !ok1 || !ok2 || b == 0 {
				return 0, false
			}
			return floorMod(a, b), true
		})
	}
	return code{kind: isRatio, integer: x, divisor: y}
}

func isFinite(f float64) bool { return f-f == 0 }

func floatArithmetic(op Op, x, y func(int64) (float64, bool)) code {
	var f func(int64) (float64, bool)
	switch op {
	case Add:
		f = func(i int64) (float64, bool) {
			a, ok1 := x(i)
			b, ok2 := y(i)
			c := a + b
			return c, ok1 && ok2 && isFinite(c)
		}
	case Sub:
		f = func(i int64) (float64, bool) {
			a, ok1 := x(i)
			b, ok2 := y(i)
			c := a - b
			return c, ok1 && ok2 && isFinite(c)
		}
	case Mul:
		f = func(i int64) (float64, bool) {
			a, ok1 := x(i)
			b, ok2 := y(i)
			c := a * b
			return c, ok1 && ok2 && isFinite(c)
		}
	case Div:
		f = func(i int64) (float64, bool) {
			a, ok1 := x(i)
			b, ok2 := y(i)
			c := a / b
			return c, ok1 && ok2 && b != 0 && isFinite(c)
		}
	default:
		f = func(i int64) (float64, bool) {
			a, ok1 := x(i)
			b, ok2 := y(i)
			if !ok1 || !ok2 || b == 0 {
				return 0, false
			}
			c := floatMod(a, b)
			return c, isFinite(c)
		}
	}
	return code{kind: isFloat, float: f}
}

func compileCall(t *Term) code {
	args := make([]code, len(t.Args))
	allInteger, anyFloat := true, false
	for k, a := range t.Args {
		args[k] = compile(a)
		allInteger = allInteger && (args[k].kind == isInteger || args[k].kind == isTruth)
		anyFloat = anyFloat || args[k].kind == isFloat
	}
	a := args[0]
	switch t.Name {
	case "floor", "ceil":
		return compileRound(a, t.Name == "ceil")
	case "min", "max":
		if len(args) == 2 && (allInteger || anyFloat) {
			return compileExtremum(a, args[1], allInteger, t.Name == "max")
		}
	case "abs":
		if allInteger {
			x := a.integer
			return integerCode(func(i int64) (int64, bool) {
				n, ok := x(i)
				if n < 0 {
					n = -n
				}
				return n, ok && n >= 0
			})
		}
		if anyFloat {
			x := a.float
			return code{kind: isFloat, float: func(i int64) (float64, bool) {
				v, ok := x(i)
				return math.Abs(v), ok
			}}
		}
	case "sqrt", "log2":
		x, root := a.floats(), t.Name == "sqrt"
		return code{kind: isFloat, float: func(i int64) (float64, bool) {
			v, ok := x(i)
			if root {
				return math.Sqrt(v), ok && v >= 0
			}
			return math.Log2(v), ok && v > 0
		}}
	case "pow":
		if anyFloat {
			x, y := a.floats(), args[1].floats()
			return code{kind: isFloat, float: func(i int64) (float64, bool) {
				v, ok1 := x(i)
				w, ok2 := y(i)
				p := math.Pow(v, w)
				return p, ok1 && ok2 && isFinite(p)
			}}
		}
		if n, ok := args[1].constant.Int(); ok && args[1].literal && n >= 0 && allInteger {
			x := a.integer
			return integerCode(func(i int64) (int64, bool) {
				base, ok := x(i)
				if !ok {
					return 0, false
				}
				v, err := power(Int(base), Int(n))
				return v.num, err == nil
			})
		}
	case "select":
		return compileSelect(args)
	case "rand":
		seed, counter, k := a.integers(), args[1].integers(), args[2].integers()
		return integerCode(func(i int64) (int64, bool) {
			s, ok1 := seed(i)
			c, ok2 := counter(i)
			n, ok3 := k(i)
			if !ok1 || !ok2 || !ok3 || n < 1 {
				return 0, false
			}
			return Rand(s, c, n), true
		})
	}
	return code{kind: isDynamic, dynamic: func(i int64) (Value, bool) {
		var few [3]Value
		values := few[:0]
		for k := range args {
			v, ok := args[k].asValue(i)
			if !ok {
				return Value{}, false
			}
			values = append(values, v.exact())
		}
		v, err := apply(t, values)
		return v, err == nil
	}}
}

// compileSelect keeps the type of the two values where they have the same.
func compileSelect(args []code) code {
	condition, a, b := args[0].asTruth, args[1], args[2]
	switch {
	case a.kind == b.kind && a.kind == isInteger:
		return integerCode(choose(condition, a.integer, b.integer))
	case a.kind == b.kind && a.kind == isTruth:
		return truthCode(choose(condition, a.integer, b.integer))
	case a.kind == b.kind && a.kind == isFloat:
		return code{kind: isFloat, float: choose(condition, a.floats(), b.floats())}
	}
	return code{kind: isDynamic, dynamic: choose(condition, a.asValue, b.asValue)}
}

// choose computes x where the condition holds, else y.
func choose[T any](condition func(int64) (bool, bool), x, y func(int64) (T, bool)) func(int64) (T, bool) {
	return func(i int64) (T, bool) {
		first, ok := condition(i)
		switch {
		case !ok:
			var none T
			return none, false
		case first:
			return x(i)
		}
		return y(i)
	}
}

// asTruth evaluates a condition. What is a number is none.
func (c *code) asTruth(i int64) (value, ok bool) {
	switch c.kind {
	case isTruth:
		n, ok := c.integer(i)
		return n != 0, ok
	case isDynamic:
		v, ok := c.dynamic(i)
		value, truth := v.Bool()
		return value, ok && truth
	}
	return false, false
}

func compileRound(a code, up bool) code {
	switch a.kind {
	case isInteger, isTruth:
		return integerCode(a.integer)
	case isRatio:
		x, y := a.integer, a.divisor
		return integerCode(func(i int64) (int64, bool) {
			n, ok1 := x(i)
			d, ok2 := y(i)
			// A fraction of the least int64 may not fit once its signs are settled.
			if !ok1 || !ok2 || d == 0 || n == math.MinInt64 || d == math.MinInt64 {
				return 0, false
			}
			q, _ := floorDiv(n, d)
			if up && n%d != 0 {
				q++
			}
			return q, true
		})
	}
	return integerCode(func(i int64) (int64, bool) {
		v, ok := a.asValue(i)
		if !ok {
			return 0, false
		}
		v, err := round(v, up)
		return v.num, err == nil
	})
}

func compileExtremum(a, b code, allInteger, largest bool) code {
	if allInteger {
		x, y := a.integer, b.integer
		return integerCode(func(i int64) (int64, bool) {
			m, ok1 := x(i)
			n, ok2 := y(i)
			if largest == (n > m) && n != m {
				m = n
			}
			return m, ok1 && ok2
		})
	}
	x, y := a.floats(), b.floats()
	return code{kind: isFloat, float: func(i int64) (float64, bool) {
		m, ok1 := x(i)
		n, ok2 := y(i)
		if largest && n > m || !largest && n < m {
			m = n
		}
		return m, ok1 && ok2
	}}
}
