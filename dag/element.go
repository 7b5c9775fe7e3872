// Conversions between numbers and the bits of an element, f16 and bf16 included.

package dag

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/dagrun/dagrun/dag/expr"
)

// FromFloat returns the bits of v as an element. Integers truncate toward zero and saturate; NaN becomes 0. An element of several numbers has
// no such bits: use those of its Component.
func (t DType) FromFloat(v float64) uint64 {
	if !t.isNumber() {
		return 0
	}
	switch t {
	case F16:
		return uint64(HalfFromFloat32(float32(v)))
	case BF16:
		return uint64(BFloatFromFloat32(float32(v)))
	case F32:
		return uint64(math.Float32bits(float32(v)))
	case F64:
		return math.Float64bits(v)
	case Bool:
		if v != 0 {
			return 1
		}
		return 0
	case U8, U16, U32, U64:
		bits := uint(t.Size() * 8)
		switch {
		case !(v > 0):
			return 0
		case v >= math.Ldexp(1, int(bits)):
			return math.MaxUint64 >> (64 - bits)
		}
		return uint64(v)
	}
	bits := uint(t.Size() * 8)
	limit := math.Ldexp(1, int(bits)-1)
	n := int64(0)
	switch {
	case v >= limit:
		n = math.MaxInt64 >> (64 - bits)
	case v < -limit:
		n = math.MinInt64 >> (64 - bits)
	case v == v:
		n = int64(v)
	}
	return uint64(n) & (math.MaxUint64 >> (64 - bits))
}

// FromValue returns the bits of a value as an element, exactly where the type can hold it. Integers truncate toward zero and
// saturate, as with FromFloat; true is 1.
func (t DType) FromValue(v expr.Value) uint64 {
	num, den, exact := v.Ratio()
	if t.Float() || !exact {
		return t.FromFloat(v.Float())
	}
	n := num / den
	if bits, ok := t.fromInt(n); ok {
		return bits
	}
	return t.FromFloat(float64(n)) // out of the type's range: saturates
}

// fromInt returns the bits of v as an element; ok is false where an integer type cannot hold it.
func (t DType) fromInt(v int64) (bits uint64, ok bool) {
	switch {
	case t.Float():
		return t.FromFloat(float64(v)), true
	case t == Bool:
		return t.FromFloat(float64(v)), v == 0 || v == 1
	}
	width := uint(t.Size() * 8)
	mask := uint64(math.MaxUint64) >> (64 - width)
	bits = uint64(v) & mask
	if t.Signed() {
		return bits, v == int64(bits<<(64-width))>>(64-width)
	}
	return bits, v >= 0 && uint64(v) <= mask
}

// ToFloat returns the value of an element given as its bits. 64-bit integers round.
func (t DType) ToFloat(bits uint64) float64 {
	switch t {
	case F16:
		return float64(HalfToFloat32(uint16(bits)))
	case BF16:
		return float64(BFloatToFloat32(uint16(bits)))
	case F32:
		return float64(math.Float32frombits(uint32(bits)))
	case F64:
		return math.Float64frombits(bits)
	case I8:
		return float64(int8(bits))
	case I16:
		return float64(int16(bits))
	case I32:
		return float64(int32(bits))
	case I64:
		return float64(int64(bits))
	case Bool:
		if bits&0xff != 0 {
			return 1
		}
		return 0
	}
	return float64(bits)
}

// Text writes an element given as its bits as a number: integers exactly, floats in as few digits as tell them from their neighbours.
func (t DType) Text(bits uint64) string {
	switch {
	case t == F16 || t == BF16 || t == F32:
		return strconv.FormatFloat(t.ToFloat(bits), 'g', -1, 32)
	case t == F64:
		return strconv.FormatFloat(t.ToFloat(bits), 'g', -1, 64)
	case t.Signed():
		shift := 64 - 8*uint(t.Size())
		return strconv.FormatInt(int64(bits<<shift)>>shift, 10)
	case t == Bool:
		return strconv.FormatBool(bits&0xff != 0)
	}
	return strconv.FormatUint(bits, 10)
}

// Load returns element i of memory as its bits, 0 if it is not inside memory.
func (t DType) Load(memory []byte, i int64) uint64 {
	switch n := uint64(len(memory)); t.Size() {
	case 1:
		if uint64(i) < n {
			return uint64(memory[i])
		}
	case 2:
		if uint64(i) < n/2 {
			return uint64(binary.LittleEndian.Uint16(memory[2*i:]))
		}
	case 4:
		if uint64(i) < n/4 {
			return uint64(binary.LittleEndian.Uint32(memory[4*i:]))
		}
	case 8:
		if uint64(i) < n/8 {
			return binary.LittleEndian.Uint64(memory[8*i:])
		}
	}
	return 0
}

// Store sets element i of memory to bits. It does nothing if the element is not inside memory.
func (t DType) Store(memory []byte, i int64, bits uint64) {
	switch n := uint64(len(memory)); t.Size() {
	case 1:
		if uint64(i) < n {
			memory[i] = byte(bits)
		}
	case 2:
		if uint64(i) < n/2 {
			binary.LittleEndian.PutUint16(memory[2*i:], uint16(bits))
		}
	case 4:
		if uint64(i) < n/4 {
			binary.LittleEndian.PutUint32(memory[4*i:], uint32(bits))
		}
	case 8:
		if uint64(i) < n/8 {
			binary.LittleEndian.PutUint64(memory[8*i:], bits)
		}
	}
}

// HalfFromFloat32 rounds to the nearest f16, ties to even; too large becomes infinity.
func HalfFromFloat32(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits >> 16 & 0x8000)
	bits &= 0x7fffffff
	switch {
	case bits > 0x7f800000:
		return 0x7fff // every NaN, as on a GPU
	case bits >= 0x47800000:
		return sign | 0x7c00
	case bits >= 0x38800000: // normal in f16
		bits -= 0x38000000
		return sign | uint16((bits+0xfff+(bits>>13&1))>>13)
	case bits < 0x33000000: // below half of the least subnormal
		return sign
	}
	shift := 126 - bits>>23
	mantissa := bits&0x7fffff | 0x800000
	half := mantissa >> shift
	rest := mantissa & (1<<shift - 1)
	middle := uint32(1) << (shift - 1)
	if rest > middle || rest == middle && half&1 == 1 {
		half++
	}
	return sign | uint16(half)
}

// HalfToFloat32 is exact.
func HalfToFloat32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, mantissa := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	case 0:
		v := float32(mantissa) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
}

// BFloatFromFloat32 rounds to the nearest bf16, ties to even.
func BFloatFromFloat32(v float32) uint16 {
	bits := math.Float32bits(v)
	if bits&0x7fffffff > 0x7f800000 {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + (bits >> 16 & 1)) >> 16)
}

// BFloatToFloat32 is exact.
func BFloatToFloat32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }
