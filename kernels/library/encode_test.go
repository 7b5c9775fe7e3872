// Numbers of every element type, written to memory and read back by the tests.

package library_test

import (
	"math"
	"unsafe"

	"github.com/dagrun/dagrun/dag"
)

func encode(t dag.DType, v float64) uint64 {
	switch t {
	case dag.F32:
		return uint64(math.Float32bits(float32(v)))
	case dag.F64:
		return math.Float64bits(v)
	}
	return uint64(int64(v))
}

func encodeAt(t dag.DType, memory unsafe.Pointer, i int, v float64) {
	at := unsafe.Add(memory, int64(i)*t.Size())
	switch t {
	case dag.F16:
		*(*uint16)(at) = dag.HalfFromFloat32(float32(v))
	case dag.BF16:
		*(*uint16)(at) = dag.BFloatFromFloat32(float32(v))
	case dag.F32:
		*(*float32)(at) = float32(v)
	case dag.F64:
		*(*float64)(at) = v
	case dag.U8:
		*(*uint8)(at) = uint8(v)
	case dag.I32:
		*(*int32)(at) = int32(v)
	case dag.U32:
		*(*uint32)(at) = uint32(int32(v))
	case dag.I64, dag.U64:
		*(*int64)(at) = int64(v)
	}
}

func decodeAt(t dag.DType, memory unsafe.Pointer, i int) float64 {
	at := unsafe.Add(memory, int64(i)*t.Size())
	switch t {
	case dag.F16:
		return float64(dag.HalfToFloat32(*(*uint16)(at)))
	case dag.BF16:
		return float64(dag.BFloatToFloat32(*(*uint16)(at)))
	case dag.F32:
		return float64(*(*float32)(at))
	case dag.F64:
		return *(*float64)(at)
	case dag.U8:
		return float64(*(*uint8)(at))
	case dag.U32:
		return float64(*(*uint32)(at))
	case dag.I64:
		return float64(*(*int64)(at))
	case dag.U64:
		return float64(*(*uint64)(at))
	}
	return float64(*(*int32)(at))
}
