// The Go version of a map program: each instruction runs over a chunk of elements before the next instruction. Its results equal the
// PTX's bit for bit.

package maps

import (
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/numbers"
	"github.com/dagrun/dagrun/kernels/internal/reference"
	"github.com/dagrun/dagrun/kernels/launch"
)

const mapChunk = 512

func (p *mapProgram) reference() launch.Reference {
	if p.double {
		return mapReference[float64](p)
	}
	return mapReference[float32](p)
}

// mapValues are the elements of a chunk as an instruction leaves them, in the one of both that fits its kind.
type mapValues[C float32 | float64] struct {
	floats []C
	whole  []int64
}

func (v mapValues[C]) first(count int64) mapValues[C] {
	if v.whole != nil {
		return mapValues[C]{whole: v.whole[:count]}
	}
	return mapValues[C]{floats: v.floats[:count]}
}

func mapReference[C float32 | float64](p *mapProgram) launch.Reference {
	return launch.Reference{Spans: reference.ElementwiseSpans, ReadsAll: true, Run: func(c *launch.Call, lo, hi int64) {
		n := reference.Integer(c.Args[0])
		values := make([]mapValues[C], len(p.code))
		for i, instr := range p.code {
			if instr.kind == mapFloat {
				values[i].floats = make([]C, mapChunk)
				fillFloats(p, instr, c, values[i].floats)
			} else {
				values[i].whole = make([]int64, mapChunk)
				fillWhole(p, instr, c, values[i].whole)
			}
		}
		to := min(hi*reference.ElementwiseSpan, n)
		for from := lo * reference.ElementwiseSpan; from < to; from += mapChunk {
			count := min(mapChunk, to-from)
			for i, instr := range p.code {
				switch r := values[i].first(count); {
				case instr.op == mapInput && r.whole != nil:
					loadElements(p.in[instr.a], c.Args[2+instr.a], n, from, r.whole)
				case instr.op == mapInput:
					loadElements(p.in[instr.a], c.Args[2+instr.a], n, from, r.floats)
				case instr.op > mapInput:
					mapValue(p, instr, r, values)
				}
			}
			if result := values[p.result].first(count); result.whole != nil {
				storeWhole(p.out, c.Args[1], n, from, result.whole)
			} else {
				storeElements(p.out, c.Args[1], n, from, result.floats)
			}
		}
	}}
}

// fillFloats sets all elements of what is the same for all.
func fillFloats[C float32 | float64](p *mapProgram, i mapInstr, c *launch.Call, to []C) {
	v := C(i.value)
	switch i.op {
	case mapConstant:
	case mapScalar:
		if a := c.Args[2+len(p.in)+int(i.a)]; p.scalars[i.a] == dag.F64 {
			v = C(reference.Scalar[float64](a))
		} else {
			v = C(reference.Scalar[int64](a))
		}
	case mapSingle:
		loadElements(p.in[i.a], c.Args[2+i.a], 1, 0, to[:1])
		v = to[0]
	default:
		return
	}
	for j := range to {
		to[j] = v
	}
}

func fillWhole(p *mapProgram, i mapInstr, c *launch.Call, to []int64) {
	v := i.whole
	switch i.op {
	case mapConstant:
	case mapScalar:
		v = reference.Scalar[int64](c.Args[2+len(p.in)+int(i.a)])
	case mapSingle:
		loadElements(p.in[i.a], c.Args[2+i.a], 1, 0, to[:1])
		v = to[0]
	default:
		return
	}
	for j := range to {
		to[j] = v
	}
}

// mapValue runs an instruction on a chunk.
func mapValue[C float32 | float64](p *mapProgram, i mapInstr, r mapValues[C], values []mapValues[C]) {
	count := int64(len(r.floats) + len(r.whole))
	a, b := values[i.a].first(count), values[i.b].first(count)
	kinds := [2]mapKind{p.code[i.a].kind, p.code[i.b].kind}
	switch {
	case i.op == mapSelect:
		mapSelected(r, a, b, values[i.c].first(count))
	case i.op == mapConvert && kinds[0] == mapUnsigned:
		for j, x := range a.whole {
			r.floats[j] = C(uint64(x))
		}
	case i.op == mapConvert:
		for j, x := range a.whole {
			r.floats[j] = C(x)
		}
	case a.whole != nil && r.whole != nil:
		for j, x := range a.whole {
			r.whole[j] = wholeOne(i.op, kinds[0], kinds[1], x, b.whole[j])
		}
	case a.whole != nil: // a truth that is wanted as a floating-point number
		for j, x := range a.whole {
			r.floats[j] = C(wholeOne(i.op, kinds[0], kinds[1], x, b.whole[j]))
		}
	case r.whole != nil: // one of floating-point numbers
		for j, x := range a.floats {
			r.whole[j] = int64(mapOne(i.op, x, b.floats[j]))
		}
	default:
		mapStep(i.op, r.floats, a.floats, b.floats)
	}
}

func mapStep[C float32 | float64](op mapOp, r, x, y []C) {
	x, y = x[:len(r)], y[:len(r)]
	switch op {
	case mapAdd:
		for i := range r {
			r[i] = x[i] + y[i]
		}
	case mapSub:
		for i := range r {
			r[i] = x[i] - y[i]
		}
	case mapMul:
		for i := range r {
			r[i] = C(x[i] * y[i])
		}
	case mapDiv:
		for i := range r {
			r[i] = x[i] / y[i]
		}
	default:
		for i := range r {
			r[i] = mapOne(op, x[i], y[i])
		}
	}
}

func mapSelected[C float32 | float64](r, condition, x, y mapValues[C]) {
	choose := func(j int) bool {
		if condition.whole != nil {
			return condition.whole[j] != 0
		}
		return condition.floats[j] != 0
	}
	for j := range r.floats {
		if r.floats[j] = y.floats[j]; choose(j) {
			r.floats[j] = x.floats[j]
		}
	}
	for j := range r.whole {
		if r.whole[j] = y.whole[j]; choose(j) {
			r.whole[j] = x.whole[j]
		}
	}
}

func mapOne[C float32 | float64](op mapOp, a, b C) C {
	switch op {
	case mapMin:
		if b < a {
			return b
		}
		return a
	case mapMax:
		if a < b {
			return b
		}
		return a
	case mapLess:
		return truth[C](a < b)
	case mapLessEq:
		return truth[C](a <= b)
	case mapEqual:
		return truth[C](a == b)
	case mapNotEqual:
		return truth[C](a != b)
	case mapAnd:
		return truth[C](a != 0 && b != 0)
	case mapOr:
		return truth[C](a != 0 || b != 0)
	case mapNot:
		return truth[C](a == 0)
	case mapNeg:
		return -a
	case mapAbs:
		return numbers.Abs(a)
	case mapFloor:
		return C(math.Floor(float64(a)))
	case mapCeil:
		return C(math.Ceil(float64(a)))
	case mapSqrt:
		return numbers.Sqrt(a)
	case mapPow:
		return C(numbers.Pow64(float64(a), float64(b)))
	case mapExp:
		return numbers.Exp(a)
	case mapLog:
		return numbers.Log(a)
	case mapLog2:
		return C(numbers.Log2Of64(float64(a)))
	case mapSin:
		return numbers.Sin(a)
	case mapCos:
		return numbers.Cos(a)
	}
	return numbers.Tanh(a)
}

func convertAll[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64, C float32 | float64 | int64](a launch.Arg, n,
	from int64, to []C) {
	for i, v := range reference.Slice[T](a, n)[from:][:len(to)] {
		to[i] = C(v)
	}
}

func loadElements[C float32 | float64 | int64](t dag.DType, a launch.Arg, n, from int64, to []C) {
	switch t {
	case dag.F32:
		convertAll[float32](a, n, from, to)
	case dag.F64:
		convertAll[float64](a, n, from, to)
	case dag.F16, dag.BF16:
		widen := dag.HalfToFloat32
		if t == dag.BF16 {
			widen = dag.BFloatToFloat32
		}
		for i, h := range reference.Slice[uint16](a, n)[from:][:len(to)] {
			to[i] = C(widen(h))
		}
	case dag.I8:
		convertAll[int8](a, n, from, to)
	case dag.I16:
		convertAll[int16](a, n, from, to)
	case dag.I32:
		convertAll[int32](a, n, from, to)
	case dag.I64:
		convertAll[int64](a, n, from, to)
	case dag.U8, dag.Bool:
		convertAll[uint8](a, n, from, to)
	case dag.U16:
		convertAll[uint16](a, n, from, to)
	case dag.U32:
		convertAll[uint32](a, n, from, to)
	case dag.U64:
		convertAll[uint64](a, n, from, to)
	}
}

func storeElements[C float32 | float64](t dag.DType, a launch.Arg, n, from int64, v []C) {
	switch t {
	case dag.F32:
		to := reference.Slice[float32](a, n)[from:]
		for i, x := range v {
			to[i] = float32(x)
		}
	case dag.F64:
		to := reference.Slice[float64](a, n)[from:]
		for i, x := range v {
			to[i] = float64(x)
		}
	case dag.F16, dag.BF16:
		narrow := dag.HalfFromFloat32
		if t == dag.BF16 {
			narrow = dag.BFloatFromFloat32
		}
		to := reference.Slice[uint16](a, n)[from:]
		for i, x := range v {
			to[i] = narrow(float32(x))
		}
	case dag.Bool:
		to := reference.Slice[uint8](a, n)[from:]
		for i, x := range v {
			to[i] = truth[uint8](x != 0)
		}
	case dag.I8:
		storeIntegers[int8](t, a, n, from, v)
	case dag.I16:
		storeIntegers[int16](t, a, n, from, v)
	case dag.I32:
		storeIntegers[int32](t, a, n, from, v)
	case dag.I64:
		storeIntegers[int64](t, a, n, from, v)
	case dag.U8:
		storeIntegers[uint8](t, a, n, from, v)
	case dag.U16:
		storeIntegers[uint16](t, a, n, from, v)
	case dag.U32:
		storeIntegers[uint32](t, a, n, from, v)
	case dag.U64:
		storeIntegers[uint64](t, a, n, from, v)
	}
}

// storeIntegers truncates toward zero. NaN becomes 0; values outside the type's range are clamped to it.
func storeIntegers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64, C float32 | float64](t dag.DType, a launch.Arg, n, from int64, v []C) {
	lo, hi := integerRange(t)
	var ends [2]T
	if ends[1] = ^T(0); t.Signed() {
		ends[0] = T(1) << (t.Size()*8 - 1)
		ends[1] = ^ends[0]
	}
	to := reference.Slice[T](a, n)[from:]
	for i, x := range v {
		switch d := float64(x); {
		case d != d:
			to[i] = 0
		case d < lo:
			to[i] = ends[0]
		case d >= hi:
			to[i] = ends[1]
		case t == dag.U64:
			to[i] = T(uint64(d))
		default:
			to[i] = T(int64(d))
		}
	}
}
