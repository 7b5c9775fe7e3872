// A condition's expression as PTX: the same operations in the same order as dag.Condition.Holds, so that the bits are the same.

package conditions

import (
	"fmt"
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

// number is a value in a register: a 64-bit float, or a 64-bit integer, which is 0 or 1 for a truth value.
type number struct {
	register string
	float    bool
}

// condition computes the condition and returns the register that is 1 if it holds, and 0 otherwise. One that is not valid never holds.
func (w *writer) condition(c *dag.Condition) string {
	if c == nil || c.Expr.Check() != nil || len(c.Operands) != len(c.Types) || c.Kind(c.Expr.Root) != dag.TruthNumber {
		return w.literal(expr.BoolValue(false)).register
	}
	operands := make([]number, len(c.Operands))
	for k := range operands {
		operands[k] = w.operand(k, c.Types[k])
	}
	return w.term(c.Expr.Root, operands).register
}

// operand loads an operand.
func (w *writer) operand(k int, t dag.DType) number {
	at := w.temp("b64")
	w.line("ld.param.u64 %s, [p%d]", at, Parameters+k)
	w.line("cvta.to.global.u64 %s, %s", at, at)
	load := func(kind, register string) string {
		r := w.temp(register)
		w.line("ld.global.%s %s, [%s]", kind, r, at)
		return r
	}
	widened := func(from, r string) number {
		to := w.temp("b64")
		w.line("cvt.%s64.%s %s, %s", from[:1], from, to, r)
		return number{register: to}
	}
	float := func(from, r string) number {
		to := w.temp("f64")
		w.line("cvt.f64.%s %s, %s", from, to, r)
		return number{to, true}
	}
	switch t {
	case dag.F64:
		return number{load("f64", "f64"), true}
	case dag.F32:
		return float("f32", load("f32", "f32"))
	case dag.F16:
		narrow, single := load("b16", "b16"), w.temp("f32")
		w.line("cvt.f32.f16 %s, %s", single, narrow)
		return float("f32", single)
	case dag.BF16: // the upper half of an f32
		bits, single := w.temp("b32"), w.temp("f32")
		w.line("cvt.u32.u16 %s, %s", bits, load("u16", "b16"))
		w.line("shl.b32 %s, %s, 16", bits, bits)
		w.line("mov.b32 %s, %s", single, bits)
		return float("f32", single)
	case dag.Bool:
		is, truth := w.temp("pred"), w.temp("b64")
		w.line("setp.ne.u16 %s, %s, 0", is, load("u8", "b16"))
		w.line("selp.b64 %s, 1, 0, %s", truth, is)
		return number{register: truth}
	}
	kind := "u"
	if t.Signed() {
		kind = "s"
	}
	switch t.Size() {
	case 1: // extended by the load
		return widened(kind+"16", load(kind+"8", "b16"))
	case 2, 4:
		name := fmt.Sprintf("%s%d", kind, 8*t.Size())
		return widened(name, load(name, fmt.Sprintf("b%d", 8*t.Size())))
	}
	return number{register: load(kind+"64", "b64")}
}

// asFloat converts an integer.
func (w *writer) asFloat(n number) string {
	if n.float {
		return n.register
	}
	r := w.temp("f64")
	w.line("cvt.rn.f64.s64 %s, %s", r, n.register)
	return r
}

// integers and floats are the instructions of what is computed exactly and of what is not.
var (
	integers    = map[expr.Op]string{expr.Add: "add.s64", expr.Sub: "sub.s64", expr.Mul: "mul.lo.s64"}
	floats      = map[expr.Op]string{expr.Add: "add.rn.f64", expr.Sub: "sub.rn.f64", expr.Mul: "mul.rn.f64", expr.Div: "div.rn.f64"}
	comparisons = map[expr.Op]string{expr.Less: "lt", expr.LessEq: "le", expr.Greater: "gt", expr.GreaterEq: "ge", expr.Equal: "eq", expr.NotEqual: "ne"}
	logic       = map[expr.Op]string{expr.And: "and.b64", expr.Or: "or.b64"}
)

// term computes a term of the expression.
func (w *writer) term(t *expr.Term, operands []number) number {
	switch t.Op {
	case expr.Literal:
		return w.literal(t.Value)
	case expr.Variable:
		for k := range operands {
			if t.Name == dag.OperandName(k) {
				return operands[k]
			}
		}
	}
	args := make([]number, len(t.Args))
	exact := true
	for k, a := range t.Args {
		args[k] = w.term(a, operands)
		exact = exact && !args[k].float
	}
	if name, ok := comparisons[t.Op]; ok {
		return w.comparison(name, args[0], args[1], exact)
	}
	if name, ok := logic[t.Op]; ok {
		r := w.temp("b64")
		w.line("%s %s, %s, %s", name, r, args[0].register, args[1].register)
		return number{register: r}
	}
	if t.Op == expr.Not {
		r := w.temp("b64")
		w.line("xor.b64 %s, %s, 1", r, args[0].register)
		return number{register: r}
	}
	if t.Op == expr.Call && (t.Name == "min" || t.Name == "max") {
		return w.extremum(t.Name == "max", args, exact)
	}
	if exact && t.Op != expr.Div && t.Name != "sqrt" {
		return w.integer(t, args)
	}
	return w.float(t, args)
}

func (w *writer) literal(v expr.Value) number {
	if truth, ok := v.Bool(); ok {
		r := w.temp("b64")
		bit := 0
		if truth {
			bit = 1
		}
		w.line("mov.b64 %s, %d", r, bit)
		return number{register: r}
	}
	if num, den, ok := v.Ratio(); ok && den == 1 {
		r := w.temp("b64")
		w.line("mov.b64 %s, %d", r, uint64(num))
		return number{register: r}
	}
	r := w.temp("f64")
	w.line("mov.f64 %s, 0d%016X", r, math.Float64bits(v.Float()))
	return number{r, true}
}

// comparison is false if a float is a NaN: PTX's names without a u are those of ordered comparisons.
func (w *writer) comparison(name string, a, b number, exact bool) number {
	is, r := w.temp("pred"), w.temp("b64")
	if exact {
		w.line("setp.%s.s64 %s, %s, %s", name, is, a.register, b.register)
	} else {
		w.line("setp.%s.f64 %s, %s, %s", name, is, w.asFloat(a), w.asFloat(b))
	}
	w.line("selp.b64 %s, 1, 0, %s", r, is)
	return number{register: r}
}

// extremum takes the left number if the comparison says so, and the right one otherwise, for a NaN too.
func (w *writer) extremum(largest bool, args []number, exact bool) number {
	name := "lt"
	if largest {
		name = "gt"
	}
	best := args[0]
	if !exact {
		best = number{w.asFloat(best), true}
	}
	for _, a := range args[1:] {
		is := w.temp("pred")
		if exact {
			r := w.temp("b64")
			w.line("setp.%s.s64 %s, %s, %s", name, is, best.register, a.register)
			w.line("selp.b64 %s, %s, %s, %s", r, best.register, a.register, is)
			best = number{register: r}
			continue
		}
		other, r := w.asFloat(a), w.temp("f64")
		w.line("setp.%s.f64 %s, %s, %s", name, is, best.register, other)
		w.line("selp.f64 %s, %s, %s, %s", r, best.register, other, is)
		best = number{r, true}
	}
	return best
}

func (w *writer) integer(t *expr.Term, args []number) number {
	r, a := w.temp("b64"), args[0].register
	switch {
	case t.Op == expr.Neg:
		w.line("neg.s64 %s, %s", r, a)
	case t.Op == expr.Call && t.Name == "abs":
		w.line("abs.s64 %s, %s", r, a)
	case t.Op == expr.Call: // floor and ceil
		return args[0]
	default:
		w.line("%s %s, %s, %s", integers[t.Op], r, a, args[1].register)
	}
	return number{register: r}
}

func (w *writer) float(t *expr.Term, args []number) number {
	r, a := w.temp("f64"), w.asFloat(args[0])
	switch {
	case t.Op == expr.Neg:
		w.line("neg.f64 %s, %s", r, a)
	case t.Op != expr.Call:
		w.line("%s %s, %s, %s", floats[t.Op], r, a, w.asFloat(args[1]))
	case t.Name == "abs":
		w.line("abs.f64 %s, %s", r, a)
	case t.Name == "sqrt":
		w.line("sqrt.rn.f64 %s, %s", r, a)
	case t.Name == "floor":
		w.line("cvt.rmi.f64.f64 %s, %s", r, a)
	default:
		w.line("cvt.rpi.f64.f64 %s, %s", r, a)
	}
	return number{r, true}
}
