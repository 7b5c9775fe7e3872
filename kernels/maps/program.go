// The program of an expression: a straight line of instructions, from which the PTX and the Go reference are made.

package maps

import (
	"fmt"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
)

// mapOp is one instruction of a program.
type mapOp uint8

const (
	mapConstant mapOp = iota // value
	mapScalar                // the a-th scalar
	mapSingle                // the only element of the a-th input
	mapInput                 // the element of the a-th input
	mapAdd
	mapSub
	mapMul
	mapDiv
	mapMin
	mapMax
	mapLess
	mapLessEq
	mapEqual
	mapNotEqual
	mapAnd
	mapOr
	mapPow
	mapSelect // b where a is not 0, else c
	mapNeg
	mapNot
	mapAbs
	mapFloor
	mapCeil
	mapSqrt
	mapExp
	mapLog
	mapLog2
	mapSin
	mapCos
	mapTanh
)

// calls reports whether an operation is a function of functions.cu.
func (op mapOp) calls() bool { return op >= mapExp || op == mapPow }

// mapInstr computes one value from earlier ones. a, b and c are the indices of their instructions.
type mapInstr struct {
	op      mapOp
	a, b, c int32
	value   float64
}

// mapProgram is an expression as a list of instructions; result is the index of the last value.
type mapProgram struct {
	double  bool // computed in f64
	code    []mapInstr
	result  int32
	out     dag.DType
	in      []dag.DType
	single  []bool // by input
	scalars int
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
	p := &mapProgram{double: !single(spec.OutType), out: spec.OutType, in: spec.InTypes, single: make([]bool, len(spec.Inputs)), scalars: len(spec.Scalars), known: map[mapInstr]int32{}, names: map[string]mapInstr{}}
	for i, name := range spec.Inputs {
		p.double = p.double || !single(spec.InTypes[i])
		p.names[name] = mapInstr{op: mapInput, a: int32(i)}
		if spec.Single != nil && spec.Single[i] {
			p.single[i], p.names[name] = true, mapInstr{op: mapSingle, a: int32(i)}
		}
	}
	for i, name := range spec.Scalars {
		p.names[name] = mapInstr{op: mapScalar, a: int32(i)}
	}
	var err error
	p.result, err = p.term(spec.Expr.Root)
	return p, err
}

// emit adds an instruction, or returns an equal earlier one.
func (p *mapProgram) emit(i mapInstr) int32 {
	if at, ok := p.known[i]; ok {
		return at
	}
	p.code = append(p.code, i)
	at := int32(len(p.code) - 1)
	if i.value == i.value {
		p.known[i] = at
	}
	switch {
	case i.op.calls():
		p.flops += 25
	case i.op >= mapAdd:
		p.flops++
	}
	return at
}

var mapBinary = map[expr.Op]mapOp{expr.Add: mapAdd, expr.Sub: mapSub, expr.Mul: mapMul,
	expr.Less: mapLess, expr.LessEq: mapLessEq, expr.Equal: mapEqual, expr.NotEqual: mapNotEqual, expr.And: mapAnd, expr.Or: mapOr}

var mapFunctions = map[string]mapOp{"min": mapMin, "max": mapMax, "pow": mapPow, "select": mapSelect, "abs": mapAbs, "floor": mapFloor, "ceil": mapCeil,
	"sqrt": mapSqrt, "exp": mapExp, "log": mapLog, "log2": mapLog2, "sin": mapSin, "cos": mapCos, "tanh": mapTanh}

func (p *mapProgram) term(t *expr.Term) (int32, error) {
	switch t.Op {
	case expr.Literal:
		v := t.Value.Float()
		if !p.double {
			v = float64(float32(v))
		}
		return p.emit(mapInstr{op: mapConstant, value: v}), nil
	case expr.Variable:
		i, ok := p.names[t.Name]
		if !ok {
			return 0, fmt.Errorf("unknown name %q", t.Name)
		}
		return p.emit(i), nil
	}
	var args []int32
	for _, a := range t.Args {
		i, err := p.term(a)
		if err != nil {
			return 0, err
		}
		args = append(args, i)
	}
	if t.Op == expr.Div {
		return p.divide(args[0], args[1]), nil
	}
	if op, ok := mapBinary[t.Op]; ok {
		return p.emit(mapInstr{op: op, a: args[0], b: args[1]}), nil
	}
	switch t.Op {
	case expr.Neg:
		return p.emit(mapInstr{op: mapNeg, a: args[0]}), nil
	case expr.Not:
		return p.emit(mapInstr{op: mapNot, a: args[0]}), nil
	case expr.Greater:
		return p.emit(mapInstr{op: mapLess, a: args[1], b: args[0]}), nil
	case expr.GreaterEq:
		return p.emit(mapInstr{op: mapLessEq, a: args[1], b: args[0]}), nil
	case expr.Mod: // with the sign of the divisor
		quotient := p.emit(mapInstr{op: mapFloor, a: p.divide(args[0], args[1])})
		return p.emit(mapInstr{op: mapSub, a: args[0], b: p.emit(mapInstr{op: mapMul, a: quotient, b: args[1]})}), nil
	case expr.Call:
		op, ok := mapFunctions[t.Name]
		if !ok {
			return 0, fmt.Errorf("%s cannot be used in a map", t.Name)
		}
		if op == mapMin || op == mapMax {
			at := args[0]
			for _, b := range args[1:] {
				at = p.emit(mapInstr{op: op, a: at, b: b})
			}
			return at, nil
		}
		i := mapInstr{op: op, a: args[0]}
		if op == mapPow {
			i.b = args[1]
		}
		if op == mapSelect {
			i.b, i.c = args[1], args[2]
		}
		return p.emit(i), nil
	}
	return 0, fmt.Errorf("%q cannot be used in a map", t.Name)
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
