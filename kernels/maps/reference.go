// The Go version of a map program: each instruction runs over a chunk of elements before the next instruction. Its results equal the
// PTX's bit for bit.

package maps

import (
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/internal/numbers"
)

const mapChunk = 512

func (p *mapProgram) reference() launch.Reference {
	if p.double {
		return mapReference[float64](p)
	}
	return mapReference[float32](p)
}

func mapReference[C float32 | float64](p *mapProgram) launch.Reference {
	return launch.Reference{Spans: launch.ElementwiseSpans, Run: func(c *launch.Call, lo, hi int64) {
		n := launch.Integer(c.Args[0])
		values := make([][]C, len(p.code))
		memory := make([]C, len(p.code)*mapChunk)
		for i, instr := range p.code {
			values[i] = memory[i*mapChunk : (i+1)*mapChunk]
			var v C
			switch instr.op {
			case mapConstant:
				v = C(instr.value)
			case mapScalar:
				v = C(launch.Scalar[float64](c.Args[2+len(p.in)+int(instr.a)]))
			case mapSingle:
				loadElements(p.in[instr.a], c.Args[2+instr.a], 1, 0, values[i][:1])
				v = values[i][0]
			default:
				continue
			}
			for j := range values[i] {
				values[i][j] = v
			}
		}
		to := min(hi*launch.ElementwiseSpan, n)
		for from := lo * launch.ElementwiseSpan; from < to; from += mapChunk {
			count := min(mapChunk, to-from)
			for i, instr := range p.code {
				r := values[i][:count]
				switch {
				case instr.op == mapInput:
					loadElements(p.in[instr.a], c.Args[2+instr.a], n, from, r)
				case instr.op == mapSelect:
					mapSelected(r, values[instr.a][:count], values[instr.b][:count], values[instr.c][:count])
				case instr.op > mapInput:
					mapStep(instr.op, r, values[instr.a][:count], values[instr.b][:count])
				}
			}
			storeElements(p.out, c.Args[1], n, from, values[p.result][:count])
		}
	}}
}

func truth[C float32 | float64](b bool) C {
	if b {
		return 1
	}
	return 0
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

func mapSelected[C float32 | float64](r, condition, x, y []C) {
	for i := range r {
		if r[i] = y[i]; condition[i] != 0 {
			r[i] = x[i]
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

func convertAll[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64, C float32 | float64](a launch.Arg, n, from int64, to []C) {
	for i, v := range launch.Slice[T](a, n)[from:][:len(to)] {
		to[i] = C(v)
	}
}

func loadElements[C float32 | float64](t dag.DType, a launch.Arg, n, from int64, to []C) {
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
		for i, h := range launch.Slice[uint16](a, n)[from:][:len(to)] {
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
		to := launch.Slice[float32](a, n)[from:]
		for i, x := range v {
			to[i] = float32(x)
		}
	case dag.F64:
		to := launch.Slice[float64](a, n)[from:]
		for i, x := range v {
			to[i] = float64(x)
		}
	case dag.F16, dag.BF16:
		narrow := dag.HalfFromFloat32
		if t == dag.BF16 {
			narrow = dag.BFloatFromFloat32
		}
		to := launch.Slice[uint16](a, n)[from:]
		for i, x := range v {
			to[i] = narrow(float32(x))
		}
	case dag.Bool:
		to := launch.Slice[uint8](a, n)[from:]
		for i, x := range v {
			to[i] = uint8(truth[C](x != 0))
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
	to := launch.Slice[T](a, n)[from:]
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
