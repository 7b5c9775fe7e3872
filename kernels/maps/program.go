// The program of an expression: a straight line of instructions, from which the PTX and the Go reference are made.
//
// Where a map reads or writes integers, its whole numbers are computed as such, in 64 bits, so that they are exact and wrap. Other values, and all
// values of maps without integers, are floating-point numbers.

package maps

import (
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

// mapProgram is an expression as a list of instructions; result is the index of the last value.
type mapProgram struct {
	double  bool // floating-point numbers are f64
	exact   bool // whole numbers are computed as such
	code    []mapInstr
	result  int32
	out     dag.DType
	in      []dag.DType
	single  []bool // by input
	scalars []dag.DType
	flops   int64
	known   map[mapInstr]int32
	names   map[string]mapInstr
}

// calls reports whether the program calls functions.
func (p *mapProgram) calls() bool {
	return slices.ContainsFunc(p.code, func(c mapInstr) bool { return c.op.calls() })
}

// single reports whether every value of a type is exact in f32.
func single(t dag.DType) bool {
	switch t {
	case dag.F32, dag.F16, dag.BF16, dag.I8, dag.U8, dag.I16, dag.U16, dag.Bool:
		return true
	}
	return false
}

func compileMap(spec *dag.MapSpec) (*mapProgram, error) {
	p := &mapProgram{double: !single(spec.OutType), exact: spec.Integers(), out: spec.OutType, in: spec.InTypes, single: make([]bool, len(spec.Inputs)),
		scalars: make([]dag.DType, len(spec.Scalars)), known: map[mapInstr]int32{}, names: map[string]mapInstr{}}
	element := func(i mapInstr, t dag.DType) mapInstr {
		if p.exact {
			i.kind = wholeKind(t)
		}
		return i
	}
	for i, name := range spec.Inputs {
		p.double = p.double || !single(spec.InTypes[i])
		op := mapInput
		if spec.Single != nil && spec.Single[i] {
			p.single[i], op = true, mapSingle
		}
		p.names[name] = element(mapInstr{op: op, a: int32(i)}, spec.InTypes[i])
	}
	for i, name := range spec.Scalars {
		if p.scalars[i] = dag.F64; spec.ScalarTypes != nil {
			p.scalars[i] = spec.ScalarTypes[i]
		}
		p.names[name] = element(mapInstr{op: mapScalar, a: int32(i)}, p.scalars[i])
	}
	rounded := mapDiv
	if p.exact && !p.out.Float() && p.out != dag.Bool {
		rounded = mapQuotient
	}
	result, err := p.rounded(spec.Expr.Root, rounded)
	if err != nil {
		return nil, err
	}
	if p.out.Float() {
		result = p.float(result)
	}
	p.keep(result)
	return p, nil
}

// keep leaves out the instructions that the result does not need, and counts the others.
func (p *mapProgram) keep(result int32) {
	needed := make([]bool, len(p.code))
	needed[result] = true
	for i := len(p.code) - 1; i >= 0; i-- {
		if c := p.code[i]; needed[i] && c.op > mapInput {
			needed[c.a], needed[c.b], needed[c.c] = true, true, true
		}
	}
	moved, code := make([]int32, len(p.code)), p.code[:0]
	for i, c := range p.code {
		if !needed[i] {
			continue
		}
		moved[i] = int32(len(code))
		if c.op > mapInput {
			c.a, c.b, c.c = moved[c.a], moved[c.b], moved[c.c]
		}
		switch {
		case c.op.calls():
			p.flops += 25
		case c.op >= mapAdd:
			p.flops++
		}
		code = append(code, c)
	}
	p.code, p.result, p.known, p.names = code, moved[result], nil, nil
}

// emit adds an instruction, or returns an equal earlier one.
func (p *mapProgram) emit(i mapInstr) int32 {
	if i.op > mapInput && i.op.unary() {
		i.b = i.a
	}
	if i.op > mapInput && i.op != mapSelect {
		i.c = i.a
	}
	if at, ok := p.known[i]; ok {
		return at
	}
	p.code = append(p.code, i)
	at := int32(len(p.code) - 1)
	if i.value == i.value {
		p.known[i] = at
	}
	return at
}

// float returns a value as a floating-point number.
func (p *mapProgram) float(at int32) int32 {
	i := p.code[at]
	switch {
	case i.kind == mapFloat:
		return at
	case i.op == mapConstant:
		return p.constant(float64(i.whole))
	case i.op <= mapInput || i.op.truth():
		i.kind = mapFloat
		return p.emit(i)
	}
	return p.emit(mapInstr{op: mapConvert, a: at})
}

func (p *mapProgram) constant(v float64) int32 {
	if !p.double {
		v = float64(float32(v))
	}
	return p.emit(mapInstr{op: mapConstant, value: v})
}

// together returns values as floating-point numbers if one of them is one, and the kind of what is computed from them.
func (p *mapProgram) together(args ...int32) ([]int32, mapKind) {
	kind := mapSigned
	for _, a := range args {
		switch k := p.code[a].kind; {
		case k == mapFloat:
			kind = mapFloat
		case k == mapUnsigned && kind == mapSigned:
			kind = mapUnsigned
		}
	}
	if kind == mapFloat {
		for i := range args {
			args[i] = p.float(args[i])
		}
	}
	return args, kind
}

// operation computes a value from others: a whole number from whole numbers. One of constants is a constant.
func (p *mapProgram) operation(op mapOp, args ...int32) int32 {
	args, kind := p.together(args...)
	i := mapInstr{op: op, kind: kind, a: args[0]}
	if len(args) > 1 {
		i.b = args[1]
	}
	if kind == mapFloat {
		if op.truth() && p.exact {
			i.kind = mapSigned
		}
		return p.emit(i)
	}
	if op.truth() {
		i.kind = mapSigned
	}
	a, b := p.code[i.a], p.code[i.b]
	if a.op == mapConstant && (len(args) == 1 || b.op == mapConstant) {
		return p.emit(mapInstr{op: mapConstant, kind: mapSigned, whole: wholeOne(op, mapSigned, mapSigned, a.whole, b.whole)})
	}
	return p.emit(i)
}

var mapBinary = map[expr.Op]mapOp{expr.Add: mapAdd, expr.Sub: mapSub, expr.Mul: mapMul,
	expr.Less: mapLess, expr.LessEq: mapLessEq, expr.Equal: mapEqual, expr.NotEqual: mapNotEqual, expr.And: mapAnd, expr.Or: mapOr}

var mapFunctions = map[string]mapOp{"min": mapMin, "max": mapMax, "pow": mapPow, "select": mapSelect, "abs": mapAbs, "floor": mapFloor, "ceil": mapCeil,
	"sqrt": mapSqrt, "exp": mapExp, "log": mapLog, "log2": mapLog2, "sin": mapSin, "cos": mapCos, "tanh": mapTanh}

func (p *mapProgram) term(t *expr.Term) (int32, error) {
	switch t.Op {
	case expr.Literal:
		if v, ok := literalInt(t.Value); ok && p.exact {
			return p.emit(mapInstr{op: mapConstant, kind: mapSigned, whole: v}), nil
		}
		return p.constant(t.Value.Float()), nil
	case expr.Variable:
		i, ok := p.names[t.Name]
		if !ok {
			return 0, fmt.Errorf("unknown name %q", t.Name)
		}
		return p.emit(i), nil
	}
	rounded := mapDiv
	if t.Op == expr.Call && t.Name == "floor" {
		rounded = mapFloored
	} else if t.Op == expr.Call && t.Name == "ceil" {
		rounded = mapCeiled
	}
	var args []int32
	for _, a := range t.Args {
		i, err := p.rounded(a, rounded)
		if err != nil {
			return 0, err
		}
		args = append(args, i)
	}
	if op, ok := mapBinary[t.Op]; ok {
		return p.operation(op, args...), nil
	}
	switch t.Op {
	case expr.Div:
		return p.divide(p.float(args[0]), p.float(args[1])), nil
	case expr.Neg:
		return p.operation(mapNeg, args[0]), nil
	case expr.Not:
		return p.operation(mapNot, args[0]), nil
	case expr.Greater:
		return p.operation(mapLess, args[1], args[0]), nil
	case expr.GreaterEq:
		return p.operation(mapLessEq, args[1], args[0]), nil
	case expr.Mod:
		return p.remainder(args[0], args[1]), nil
	case expr.Call:
		return p.call(t.Name, args)
	}
	return 0, fmt.Errorf("%q cannot be used in a map", t.Name)
}

// rounded computes a term whose result is rounded in that way. The quotient of whole numbers is a floating-point number, unless it is rounded at once.
func (p *mapProgram) rounded(t *expr.Term, op mapOp) (int32, error) {
	if t.Op != expr.Div || op == mapDiv || !p.exact {
		return p.term(t)
	}
	a, err := p.term(t.Args[0])
	if err != nil {
		return 0, err
	}
	b, err := p.term(t.Args[1])
	if err != nil {
		return 0, err
	}
	if args, kind := p.together(a, b); kind == mapFloat {
		return p.divide(args[0], args[1]), nil
	}
	return p.operation(op, a, b), nil
}

func (p *mapProgram) call(name string, args []int32) (int32, error) {
	op, ok := mapFunctions[name]
	if !ok {
		return 0, fmt.Errorf("%s cannot be used in a map", name)
	}
	a := args[0]
	switch op {
	case mapMin, mapMax:
		args, _ = p.together(args...)
		for a = args[0]; len(args) > 1; args = args[1:] {
			a = p.operation(op, a, args[1])
		}
		return a, nil
	case mapSelect:
		chosen, kind := p.together(args[1], args[2])
		return p.emit(mapInstr{op: op, kind: kind, a: a, b: chosen[0], c: chosen[1]}), nil
	case mapFloor, mapCeil:
		if p.code[a].kind != mapFloat {
			return a, nil
		}
	case mapAbs:
		return p.operation(op, a), nil
	case mapPow:
		if to := p.code[args[1]]; p.code[a].kind != mapFloat && to.op == mapConstant && to.kind != mapFloat && to.whole >= 0 {
			return p.power(a, to.whole), nil
		}
		return p.emit(mapInstr{op: op, a: p.float(a), b: p.float(args[1])}), nil
	}
	return p.emit(mapInstr{op: op, a: p.float(a)}), nil
}

// literalInt returns a literal that is written as a whole number.
func literalInt(v expr.Value) (int64, bool) {
	if b, ok := v.Bool(); ok && b {
		return 1, true
	}
	n, ok := v.Int()
	return n, v.Kind() == expr.Bool || ok && v.Kind() == expr.Rational
}

// power multiplies a whole number with itself.
func (p *mapProgram) power(a int32, to int64) int32 {
	r := p.emit(mapInstr{op: mapConstant, kind: mapSigned, whole: 1})
	for one := true; to > 0; to >>= 1 {
		if to&1 != 0 && one {
			r, one = a, false
		} else if to&1 != 0 {
			r = p.operation(mapMul, r, a)
		}
		if to > 1 {
			a = p.operation(mapMul, a, a)
		}
	}
	return r
}

// remainder has the sign of the divisor.
func (p *mapProgram) remainder(a, b int32) int32 {
	args, kind := p.together(a, b)
	if kind != mapFloat {
		return p.operation(mapRemainder, args...)
	}
	quotient := p.emit(mapInstr{op: mapFloor, a: p.divide(args[0], args[1])})
	return p.operation(mapSub, args[0], p.operation(mapMul, quotient, args[1]))
}

// divide divides a by b. Dividing by a constant power of two is multiplying by its inverse, to the bit, and takes a GPU and its compiler a fraction
// of the time.
func (p *mapProgram) divide(a, b int32) int32 {
	if by := p.code[b]; by.op == mapConstant {
		inverse := 1 / by.value
		if part, _ := math.Frexp(by.value); math.Abs(part) == 0.5 && !math.IsInf(inverse, 0) && (p.double || float64(float32(inverse)) == inverse) {
			return p.emit(mapInstr{op: mapMul, a: a, b: p.emit(mapInstr{op: mapConstant, value: inverse})})
		}
	}
	return p.emit(mapInstr{op: mapDiv, a: a, b: b})
}

// integerRange is the range that a result is clamped to before it becomes an integer; hi is exclusive.
func integerRange(t dag.DType) (lo, hi float64) {
	bits := int(t.Size() * 8)
	if t.Signed() {
		return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
	}
	return 0, math.Ldexp(1, bits)
}
