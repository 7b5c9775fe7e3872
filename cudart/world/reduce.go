// Combining elements of several ranks, in the order of the ranks, so that results are equal to the bit from run to run.

package world

import (
	"encoding/binary"
	"math"

	"github.com/dagrun/dagrun/dag"
)

// combine sets out to the combination of parts, element by element, from the first part to the last. All have one length. out may be one
// of the parts. 16-bit floats are combined in 32 bits and rounded once.
func combine(op dag.Reduction, t dag.DType, out []byte, parts [][]byte) {
	size := int(t.Size())
	for at := 0; at+size <= len(out); at += size {
		switch {
		case t == dag.F64:
			v := f64(parts[0], at)
			for _, p := range parts[1:] {
				v = combined(op, v, f64(p, at))
			}
			if op == dag.Avg {
				v /= float64(len(parts))
			}
			binary.LittleEndian.PutUint64(out[at:], math.Float64bits(v))
		case t.Float():
			v := f32(t, parts[0], at)
			for _, p := range parts[1:] {
				v = combined(op, v, f32(t, p, at))
			}
			if op == dag.Avg {
				v /= float32(len(parts))
			}
			putF32(t, out, at, v)
		case t.Signed():
			v := signed(parts[0], at, size)
			for _, p := range parts[1:] {
				v = combined(op, v, signed(p, at, size))
			}
			put(out, at, size, uint64(v))
		default:
			v := bits(parts[0], at, size)
			for _, p := range parts[1:] {
				v = combined(op, v, bits(p, at, size))
			}
			put(out, at, size, v)
		}
	}
}

func combined[T float32 | float64 | int64 | uint64](op dag.Reduction, a, b T) T {
	switch op {
	case dag.Prod:
		return a * b
	case dag.Min:
		return min(a, b)
	case dag.Max:
		return max(a, b)
	}
	return a + b
}

func f64(b []byte, at int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[at:])) }

func f32(t dag.DType, b []byte, at int) float32 {
	switch t {
	case dag.F16:
		return dag.HalfToFloat32(binary.LittleEndian.Uint16(b[at:]))
	case dag.BF16:
		return dag.BFloatToFloat32(binary.LittleEndian.Uint16(b[at:]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b[at:]))
}

func putF32(t dag.DType, b []byte, at int, v float32) {
	switch t {
	case dag.F16:
		binary.LittleEndian.PutUint16(b[at:], dag.HalfFromFloat32(v))
	case dag.BF16:
		binary.LittleEndian.PutUint16(b[at:], dag.BFloatFromFloat32(v))
	default:
		binary.LittleEndian.PutUint32(b[at:], math.Float32bits(v))
	}
}

// bits reads an element of 1, 2, 4 or 8 bytes.
func bits(b []byte, at, size int) uint64 {
	var v uint64
	for k := range size {
		v |= uint64(b[at+k]) << (8 * k)
	}
	return v
}

func signed(b []byte, at, size int) int64 {
	unused := 64 - 8*size
	return int64(bits(b, at, size)<<unused) >> unused
}

func put(b []byte, at, size int, v uint64) {
	for k := range size {
		b[at+k] = byte(v >> (8 * k))
	}
}
