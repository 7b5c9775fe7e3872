// Package maps makes kernels from elementwise expressions such as "z = a*x + y".
//
// An expression becomes one straight-line program, from which the PTX and the Go reference are made. So a map needs a driver,
// but no compiler.
package maps

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/library/ptx"
)

// mapKernel is the kernel of an expression.
type mapKernel struct {
	entry   string
	module  *launch.Module
	params  []dag.KernelParam
	program *mapProgram
}

// Entry returns the kernel's name. It contains a hash of the code, so that equal kernels have equal names.
func (k *mapKernel) Entry() string { return k.entry }

// Params returns n, the output, the inputs and the scalars.
func (k *mapKernel) Params() []dag.KernelParam { return k.params }

// Module returns the module with the entry.
func (k *mapKernel) Module() *launch.Module { return k.module }

// Maker makes kernels from expressions and caches them, so that equal map nodes share one module. The zero value is ready to use;
// any number of goroutines may use it.
type Maker struct {
	made sync.Map // *mapKernel by mapKey
}

// Map makes the kernel of an expression. It computes in f32 if all elements are f32, f16, bf16 or integers of at most 16 bits,
// otherwise in f64. A result that is stored as an integer is truncated toward zero and clamped to the type's range.
func (m *Maker) Map(spec *dag.MapSpec) (dag.LaunchKernel, error) {
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	key := mapKey(spec)
	if k, ok := m.made.Load(key); ok {
		return k.(*mapKernel), nil
	}
	p, err := compileMap(spec)
	if err != nil {
		return nil, err
	}
	body := p.ptx(mapEntryPlaceholder)
	k := &mapKernel{entry: fmt.Sprintf("dagrun_map_%x", sha256.Sum256([]byte(body)))[:27], program: p}
	k.params = append(k.params, dag.KernelParam{Name: "n", DType: dag.I64, Size: 8},
		dag.KernelParam{Name: spec.Out, DType: spec.OutType, Buffer: true, Mode: dag.Write, Size: 8})
	for i, name := range spec.Inputs {
		k.params = append(k.params, dag.KernelParam{Name: name, DType: spec.InTypes[i], Buffer: true, Mode: dag.Read, Size: 8})
	}
	for _, name := range spec.Scalars {
		k.params = append(k.params, dag.KernelParam{Name: name, DType: dag.F64, Size: 8})
	}
	k.module = &launch.Module{Name: "map " + spec.Text, Kind: launch.PTX,
		Code:       ptx.Complete(strings.ReplaceAll(body, mapEntryPlaceholder, k.entry)),
		References: map[string]launch.Reference{k.entry: p.reference()}}
	made, _ := m.made.LoadOrStore(key, k)
	return made.(*mapKernel), nil
}

// checkSpec refuses what nothing can be made of.
func checkSpec(spec *dag.MapSpec) error {
	switch {
	case spec == nil:
		return errors.New("there is nothing to compute")
	case spec.OutType.Size() == 0:
		return errors.New("the output has no element type")
	case len(spec.Inputs) != len(spec.InTypes):
		return fmt.Errorf("there are %d inputs, but the types of %d", len(spec.Inputs), len(spec.InTypes))
	case spec.Single != nil && len(spec.Single) != len(spec.Inputs):
		return fmt.Errorf("there are %d inputs, but it is said of %d whether they have one element", len(spec.Inputs), len(spec.Single))
	}
	for i, t := range spec.InTypes {
		if t.Size() == 0 {
			return fmt.Errorf("the input %q has no element type", spec.Inputs[i])
		}
	}
	return spec.Expr.Check()
}

const mapEntryPlaceholder = "ENTRY"

// mapKey identifies a map by its tree, names and types. For a map that was made before, computing this key is all the work.
func mapKey(spec *dag.MapSpec) string {
	b := make([]byte, 0, 256)
	name := func(name string, t dag.DType) {
		b = append(append(b, name...), 0, byte(t))
	}
	name(spec.Out, spec.OutType)
	for i, in := range spec.Inputs {
		name(in, spec.InTypes[i])
		if spec.Single != nil && spec.Single[i] {
			b = append(b, 1)
		}
	}
	for _, scalar := range spec.Scalars {
		name(scalar, dag.InvalidDType)
	}
	var term func(t *expr.Term)
	term = func(t *expr.Term) {
		b = append(b, byte(t.Op), byte(len(t.Args)), byte(len(t.Args)>>8))
		if t.Op == expr.Literal {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(t.Value.Float()))
		}
		name(t.Name, dag.InvalidDType)
		for _, a := range t.Args {
			term(a)
		}
	}
	term(spec.Expr.Root)
	return string(b)
}

// Describe implements [dag.LaunchKernel].
func (k *mapKernel) Describe(args []dag.Arg) (dag.LaunchInfo, error) {
	info := dag.LaunchInfo{HasHint: true, Extents: make([]int64, len(args))}
	if err := launch.CheckKinds(k.params, args); err != nil {
		return info, err
	}
	n := launch.IntegerValue(args[0])
	if n < 0 {
		return info, launch.Wrong("n", "is %d; it must be at least 0", n)
	}
	for i, p := range k.params {
		if !p.Buffer {
			continue
		}
		size, count, single := p.DType.Size(), n, i > 1 && k.program.single[i-2]
		if single {
			count = min(n, 1)
		}
		if have := (args[i].Range.Hi - args[i].Range.Lo) / size; count > have {
			return info, launch.Wrong(p.Name, "needs %s, but its slice has only %d", launch.CountElements(count), have)
		}
		info.Extents[i] = count
		info.Work.Bytes += count * size
		if a, out := args[i].Range, args[1].Range; i > 1 && a.Buffer == out.Buffer && (a.Lo != out.Lo || single && n > 1) &&
			a.Lo < out.Lo+n*k.params[1].DType.Size() && out.Lo < a.Lo+count*size {
			return info, launch.Wrong(p.Name, "overlaps %s in memory, and %s is written", k.params[1].Name, k.params[1].Name)
		}
	}
	info.Work.Flops = n * k.program.flops
	launch.Spread(&info, n, launch.BlockSize*mapUnroll)
	info.Work.Blocks, info.Work.Threads = int64(info.Grid[0]), int32(info.Block[0])
	return info, nil
}

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
	case i.op >= mapExp || i.op == mapPow:
		p.flops += 25
	case i.op >= mapAdd:
		p.flops++
	}
	return at
}

var mapBinary = map[expr.Op]mapOp{expr.Add: mapAdd, expr.Sub: mapSub, expr.Mul: mapMul, expr.Div: mapDiv,
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
		quotient := p.emit(mapInstr{op: mapFloor, a: p.emit(mapInstr{op: mapDiv, a: args[0], b: args[1]})})
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

// integerRange is the range that a result is clamped to before it becomes an integer; hi is exclusive.
func integerRange(t dag.DType) (lo, hi float64) {
	bits := int(t.Size() * 8)
	if t.Signed() {
		return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
	}
	return 0, math.Ldexp(1, bits)
}
