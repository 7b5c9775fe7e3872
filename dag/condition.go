// Conditions of loops and branches: expressions over numbers and single elements of device buffers, and their value.

package dag

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/dag/internal/operands"
)

// operandMark starts the names of operands: a letter that nobody types.
const operandMark = "ⁿ"

// OperandName is the variable of a condition's expression that stands for operand k.
func OperandName(k int) string { return fmt.Sprintf("%s%d", operandMark, k) }

// String returns the condition as written.
func (c *Condition) String() string {
	if c == nil {
		return ""
	}
	return c.Text
}

// ConditionNames is what the names of a condition stand for.
type ConditionNames interface {
	expr.Scope
	IsBuffer(name string) bool
	// Operand evaluates a buffer or slice.
	Operand(text string) (Range, DType, error)
}

// NewCondition reads a condition. An *expr.Error has the place in the text.
func NewCondition(text string, names ConditionNames) (*Condition, error) {
	if names == nil {
		return nil, &expr.Error{Message: "nobody knows the names in it"}
	}
	c := &Condition{Text: text}
	var rewritten strings.Builder
	var moved []shift
	at := 0
	for _, name := range operands.Find(text, names.IsBuffer) {
		r, dtype, err := names.Operand(text[name.Lo:name.Hi])
		if err != nil {
			return nil, &expr.Error{Offset: name.Lo, Message: err.Error()}
		}
		if problem := operandProblem(text[name.Lo:name.Hi], r, dtype); problem != "" {
			return nil, &expr.Error{Offset: name.Lo, Message: problem}
		}
		k := 0
		for k < len(c.Operands) && c.Operands[k] != r {
			k++
		}
		if k == len(c.Operands) {
			c.Operands, c.Types = append(c.Operands, r), append(c.Types, dtype)
		}
		rewritten.WriteString(text[at:name.Lo])
		moved = append(moved, shift{rewritten.Len(), name.Lo})
		rewritten.WriteString(OperandName(k))
		at = name.Hi
		moved = append(moved, shift{rewritten.Len(), name.Hi})
	}
	rewritten.WriteString(text[at:])
	free := make([]string, len(c.Operands))
	for k := range free {
		free[k] = OperandName(k)
	}
	e, err := expr.Parse(rewritten.String())
	if err == nil {
		e, err = e.Bind(names, free...)
	}
	if err == nil {
		c.Expr = e
		_, err = c.kind(e.Root)
	}
	if err == nil && len(c.Operands) == 0 {
		return nil, &expr.Error{Message: "the condition reads no device buffer, so it would be the same in every pass",
			Hint: "use times, or when for a decision at planning time"}
	}
	if err == nil && !c.isTruth(e.Root) {
		return nil, &expr.Error{Message: "the condition must be true or false, not a number", Hint: "compare it, as in " + text + " > 0"}
	}
	if err != nil {
		var wrong *expr.Error
		if errors.As(err, &wrong) {
			placed := *wrong
			placed.Offset = original(moved, wrong.Offset)
			return nil, &placed
		}
		return nil, err
	}
	return c, nil
}

// shift says that a place of the rewritten text was at another place of the original.
type shift struct{ to, from int }

// original is the place in the text as written.
func original(moved []shift, offset int) int {
	for k := len(moved) - 1; k >= 0; k-- {
		if offset >= moved[k].to {
			return moved[k].from + offset - moved[k].to
		}
	}
	return offset
}

// operandProblem says why a range cannot be an operand, or "".
func operandProblem(text string, r Range, dtype DType) string {
	switch {
	case r.Hi-r.Lo != dtype.Size():
		return fmt.Sprintf("a condition reads single elements, and %s has %d; write a slice such as x(0..1)", text, r.Bytes()/max(dtype.Size(), 1))
	case !dtype.isNumber():
		return fmt.Sprintf("%s is of type %s; conditions compute with single numbers", text, dtype)
	case dtype == U64:
		return fmt.Sprintf("%s is of type u64, which conditions cannot compute with; use i64", text)
	}
	return ""
}

// NumberKind is how a part of a condition is computed.
type NumberKind uint8

const (
	FloatNumber   NumberKind = iota // 64-bit float
	IntegerNumber                   // 64-bit integer
	TruthNumber                     // 0 or 1
)

// conditionFunctions are the functions that conditions can call.
const conditionFunctions = "abs, ceil, floor, max, min and sqrt"

// Kind returns how a term of the condition's expression is computed.
func (c *Condition) Kind(t *expr.Term) NumberKind {
	if c == nil {
		return FloatNumber
	}
	k, _ := c.kind(t)
	return k
}

func (c *Condition) isTruth(t *expr.Term) bool { return c.Kind(t) == TruthNumber }

// operand returns the number of the operand that a variable stands for, or -1.
func (c *Condition) operand(name string) int {
	for k := range c.Operands {
		if name == OperandName(k) {
			return k
		}
	}
	return -1
}

// kind checks a term too.
func (c *Condition) kind(t *expr.Term) (NumberKind, error) {
	if t == nil {
		return FloatNumber, errors.New("a term of the expression is nil")
	}
	kinds := make([]NumberKind, len(t.Args))
	exact := true
	for k, a := range t.Args {
		var err error
		if kinds[k], err = c.kind(a); err != nil {
			return FloatNumber, err
		}
		exact = exact && kinds[k] != FloatNumber
	}
	number := FloatNumber
	if exact {
		number = IntegerNumber
	}
	switch t.Op {
	case expr.Literal:
		if _, truth := t.Value.Bool(); truth {
			return TruthNumber, nil
		}
		if _, den, ok := t.Value.Ratio(); ok && den == 1 {
			return IntegerNumber, nil
		}
		return FloatNumber, nil
	case expr.Variable:
		k := c.operand(t.Name)
		if k < 0 || k >= len(c.Types) {
			return FloatNumber, &expr.Error{Offset: t.Offset, Message: fmt.Sprintf("unknown name %q", t.Name)}
		}
		switch d := c.Types[k]; {
		case d == Bool:
			return TruthNumber, nil
		case d.Float():
			return FloatNumber, nil
		}
		return IntegerNumber, nil
	case expr.Neg, expr.Add, expr.Sub, expr.Mul:
		return number, nil
	case expr.Div:
		return FloatNumber, nil
	case expr.Less, expr.LessEq, expr.Greater, expr.GreaterEq, expr.Equal, expr.NotEqual:
		return TruthNumber, nil
	case expr.And, expr.Or, expr.Not:
		for k := range kinds {
			if kinds[k] != TruthNumber {
				return FloatNumber, &expr.Error{Offset: t.Args[k].Offset, Message: "this must be true or false, not a number", Hint: "compare it, as in x > 0"}
			}
		}
		return TruthNumber, nil
	case expr.Call:
		switch t.Name {
		case "sqrt":
			return FloatNumber, nil
		case "abs", "ceil", "floor", "max", "min":
			return number, nil
		}
		return FloatNumber, &expr.Error{Offset: t.Offset, Message: fmt.Sprintf("conditions cannot call %s; they can call %s", t.Name, conditionFunctions)}
	case expr.Mod:
		return FloatNumber, &expr.Error{Offset: t.Offset, Message: "conditions cannot compute with %"}
	}
	return FloatNumber, &expr.Error{Offset: t.Offset, Message: "this is not possible in a condition"}
}

// problem says what is wrong with a condition made by hand, or nil.
func (c *Condition) problem(p *Pipeline, device int32) error {
	if len(c.Operands) == 0 || len(c.Operands) != len(c.Types) {
		return fmt.Errorf("it has %d operands and %d types", len(c.Operands), len(c.Types))
	}
	for k, r := range c.Operands {
		if err := p.rangeProblem(r); err != nil {
			return err
		}
		b := &p.Buffers[r.Buffer]
		switch {
		case b.Place != Device:
			return fmt.Errorf("%q is in host memory; a condition reads device buffers", b.Name)
		case b.Device != device:
			return fmt.Errorf("%q is on device %d, and the node on device %d", b.Name, b.Device, device)
		case b.DType != c.Types[k]:
			return fmt.Errorf("%q is of type %s, not %s", b.Name, b.DType, c.Types[k])
		}
		if problem := operandProblem(p.rangeText(r), r, b.DType); problem != "" {
			return errors.New(problem)
		}
	}
	if err := c.Expr.Check(); err != nil {
		return err
	}
	kind, err := c.kind(c.Expr.Root)
	if err == nil && kind != TruthNumber {
		err = errors.New("it must be true or false, not a number")
	}
	return err
}

// quantity is a value while a condition is computed.
type quantity struct {
	kind    NumberKind
	integer int64 // also a truth value
	float   float64
}

func (n quantity) asFloat() float64 {
	if n.kind == FloatNumber {
		return n.float
	}
	return float64(n.integer)
}

func truthNumber(b bool) quantity {
	if b {
		return quantity{kind: TruthNumber, integer: 1}
	}
	return quantity{kind: TruthNumber}
}

// Holds computes the condition. load returns the bits of operand k.
func (c *Condition) Holds(load func(k int) uint64) bool {
	if c == nil || load == nil || c.Expr.Check() != nil {
		return false
	}
	if kind, err := c.kind(c.Expr.Root); err != nil || kind != TruthNumber {
		return false
	}
	return c.compute(c.Expr.Root, load).integer != 0
}

func (c *Condition) compute(t *expr.Term, load func(k int) uint64) quantity {
	switch t.Op {
	case expr.Literal:
		return literalNumber(t.Value)
	case expr.Variable:
		return operandNumber(c.Types[c.operand(t.Name)], load(c.operand(t.Name)))
	}
	var args [2]quantity
	for k := range min(len(t.Args), 2) {
		args[k] = c.compute(t.Args[k], load)
	}
	a, b := args[0], args[1]
	exact := a.kind != FloatNumber && (len(t.Args) < 2 || b.kind != FloatNumber)
	switch t.Op {
	case expr.Not:
		return truthNumber(a.integer == 0)
	case expr.And:
		return truthNumber(a.integer != 0 && b.integer != 0)
	case expr.Or:
		return truthNumber(a.integer != 0 || b.integer != 0)
	case expr.Less, expr.LessEq, expr.Greater, expr.GreaterEq, expr.Equal, expr.NotEqual:
		if exact {
			return truthNumber(compared(t.Op, a.integer, b.integer))
		}
		return truthNumber(compared(t.Op, a.asFloat(), b.asFloat()))
	}
	if t.Op == expr.Call && len(t.Args) > 2 { // min and max of many
		for k := 1; k < len(t.Args); k++ {
			a = extremum(t.Name == "max", a, c.compute(t.Args[k], load), c.Kind(t))
		}
		return a
	}
	if t.Op == expr.Call && (t.Name == "min" || t.Name == "max") && len(t.Args) == 2 {
		return extremum(t.Name == "max", a, b, c.Kind(t))
	}
	if exact && t.Op != expr.Div && t.Name != "sqrt" {
		return quantity{kind: IntegerNumber, integer: integerOperation(t, a.integer, b.integer)}
	}
	return quantity{float: floatOperation(t, a.asFloat(), b.asFloat())}
}

func literalNumber(v expr.Value) quantity {
	if truth, ok := v.Bool(); ok {
		return truthNumber(truth)
	}
	if num, den, ok := v.Ratio(); ok && den == 1 {
		return quantity{kind: IntegerNumber, integer: num}
	}
	return quantity{float: v.Float()}
}

func operandNumber(t DType, bits uint64) quantity {
	switch {
	case t == Bool:
		return truthNumber(bits&0xff != 0)
	case t.Float():
		return quantity{float: t.ToFloat(bits)}
	case t.Signed():
		shift := 64 - 8*uint(t.Size())
		return quantity{kind: IntegerNumber, integer: int64(bits<<shift) >> shift}
	}
	return quantity{kind: IntegerNumber, integer: int64(bits)}
}

// compared is a comparison that is false for NaN.
func compared[T int64 | float64](op expr.Op, a, b T) bool {
	switch op {
	case expr.Less:
		return a < b
	case expr.LessEq:
		return a <= b
	case expr.Greater:
		return a > b
	case expr.GreaterEq:
		return a >= b
	case expr.Equal:
		return a == b
	}
	return a < b || a > b
}

// extremum is a < b ? a : b, or with a > b, so that a NaN on the left gives b.
func extremum(largest bool, a, b quantity, kind NumberKind) quantity {
	if kind == IntegerNumber {
		x, y := a.integer, b.integer
		if largest == (x > y) {
			return quantity{kind: IntegerNumber, integer: x}
		}
		return quantity{kind: IntegerNumber, integer: y}
	}
	x, y := a.asFloat(), b.asFloat()
	if largest && x > y || !largest && x < y {
		return quantity{float: x}
	}
	return quantity{float: y}
}

func integerOperation(t *expr.Term, a, b int64) int64 {
	switch {
	case t.Op == expr.Neg:
		return -a
	case t.Op == expr.Add:
		return a + b
	case t.Op == expr.Sub:
		return a - b
	case t.Op == expr.Mul:
		return a * b
	case t.Name == "abs" && a < 0:
		return -a
	}
	return a // abs, floor, ceil, min and max of one
}

func floatOperation(t *expr.Term, a, b float64) float64 {
	switch t.Op {
	case expr.Neg:
		return -a
	case expr.Add:
		return float64(a + b)
	case expr.Sub:
		return float64(a - b)
	case expr.Mul:
		return float64(a * b)
	case expr.Div:
		return float64(a / b)
	}
	switch t.Name {
	case "abs":
		return math.Abs(a)
	case "sqrt":
		return math.Sqrt(a)
	case "floor":
		return math.Floor(a)
	case "ceil":
		return math.Ceil(a)
	}
	return a // min and max of one
}
