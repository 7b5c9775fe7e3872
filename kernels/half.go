// f16 and bf16: 16 bits in memory, float32 in arithmetic, rounded to nearest even. Bit for bit what the kernels do.

package kernels

import "math"

// F16ToFloat32 widens an IEEE half-precision number; exact.
func F16ToFloat32(h uint16) float32 {
	sign, exponent, fraction := uint32(h&0x8000)<<16, uint32(h>>10&31), uint32(h&0x3ff)
	switch exponent {
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	case 0:
		tiny := float32(fraction) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(tiny))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// Float32ToF16 rounds to the nearest half-precision number, ties to even. Every NaN becomes 0x7fff, as on a GPU.
func Float32ToF16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, m := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case m > 0x7f800000:
		return 0x7fff
	case m >= 0x477ff000: // 65520 and more
		return sign | 0x7c00
	case m >= 0x38800000:
		return sign | uint16((m-0x38000000+0xfff+m>>13&1)>>13)
	case m < 0x33000000: // below 2^-25
		return sign
	}
	shift := 126 - m>>23
	full := m&0x7fffff | 0x800000
	half, rest, r := uint32(1)<<(shift-1), full&(1<<shift-1), full>>shift
	if rest > half || rest == half && r&1 == 1 {
		r++
	}
	return sign | uint16(r)
}

// BF16ToFloat32 widens a bfloat16; exact.
func BF16ToFloat32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// Float32ToBF16 rounds to the nearest bfloat16, ties to even.
func Float32ToBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16 | 0x40)
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
