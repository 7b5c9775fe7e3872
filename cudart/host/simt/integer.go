// Integer arithmetic and logic, one function of 64-bit values for each instruction and type.

package simt

import (
	"math/bits"

	"github.com/dagrun/dagrun/internal/ptx"
)

// The shapes of instructions: one, two or three sources.
type (
	func1 func(a uint64) uint64
	func2 func(a, b uint64) uint64
	func3 func(a, b, c uint64) uint64
)

func (f func1) op(d, a int) op {
	return func(x *exec, m uint32) {
		D, A := x.s[d], x.s[a]
		if m == fullMask {
			for i := range D {
				D[i] = f(A[i])
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			D[i] = f(A[i])
		}
	}
}

func (f func2) op(d, a, b int) op {
	return func(x *exec, m uint32) {
		D, A, B := x.s[d], x.s[a], x.s[b]
		if m == fullMask {
			for i := range D {
				D[i] = f(A[i], B[i])
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			D[i] = f(A[i], B[i])
		}
	}
}

func (f func3) op(d, a, b, c int) op {
	return func(x *exec, m uint32) {
		D, A, B, C := x.s[d], x.s[a], x.s[b], x.s[c]
		if m == fullMask {
			for i := range D {
				D[i] = f(A[i], B[i], C[i])
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			D[i] = f(A[i], B[i], C[i])
		}
	}
}

// truncate keeps the low bits.
func truncate(v uint64, n int) uint64 { return v & (1<<n - 1) }

// signExtend reads the low bits as a signed number.
func signExtend(v uint64, n int) int64 { return int64(v<<(64-n)) >> (64 - n) }

// saturate clamps a signed sum to 32 bits.
func saturate(v int64) uint64 { return uint64(uint32(min(max(v, -1<<31), 1<<31-1))) }

// multiplied returns the full product of two numbers of a type: its high and its low part, each as wide as the type.
func multiplied(a, b uint64, n int, signed bool) (hi, lo uint64) {
	if n == 64 {
		hi, lo = bits.Mul64(a, b)
		if signed {
			hi -= uint64(int64(a)>>63) & b
			hi -= uint64(int64(b)>>63) & a
		}
		return hi, lo
	}
	var p uint64
	if signed {
		p = uint64(signExtend(a, n) * signExtend(b, n))
	} else {
		p = truncate(a, n) * truncate(b, n)
	}
	return truncate(p>>n, n), truncate(p, n)
}

// integerBinary is an instruction of two sources on integers, or nil.
func integerBinary(f *ptx.Form) func2 {
	t := f.Type()
	n, signed := t.Bits(), t.Signed()
	value := func(v uint64) int64 { return signExtend(v, n) }
	switch f.Op {
	case ptx.OpAdd, ptx.OpSub:
		minus := f.Op == ptx.OpSub
		switch {
		case t == ptx.U16X2 || t == ptx.S16X2:
			return halves(func(a, b uint64) uint64 {
				if minus {
					return a - b
				}
				return a + b
			})
		case f.Has(ptx.ModSat):
			if minus {
				return func(a, b uint64) uint64 { return saturate(value(a) - value(b)) }
			}
			return func(a, b uint64) uint64 { return saturate(value(a) + value(b)) }
		case minus && n == 32:
			return func(a, b uint64) uint64 { return uint64(uint32(a) - uint32(b)) }
		case minus:
			return func(a, b uint64) uint64 { return truncate(a-b, n) }
		case n == 32:
			return func(a, b uint64) uint64 { return uint64(uint32(a) + uint32(b)) }
		}
		return func(a, b uint64) uint64 { return truncate(a+b, n) }
	case ptx.OpMul:
		switch {
		case f.Has(ptx.ModWide):
			return func(a, b uint64) uint64 {
				hi, lo := multiplied(a, b, n, signed)
				return hi<<n | lo
			}
		case f.Has(ptx.ModHi):
			return func(a, b uint64) uint64 {
				hi, _ := multiplied(a, b, n, signed)
				return hi
			}
		}
		return func(a, b uint64) uint64 { return truncate(a*b, n) }
	case ptx.OpMul24:
		return func(a, b uint64) uint64 { return product24(a, b, signed, f.Has(ptx.ModHi)) }
	case ptx.OpDiv, ptx.OpRem:
		rem := f.Op == ptx.OpRem
		return func(a, b uint64) uint64 { return divided(a, b, n, signed, rem) }
	case ptx.OpMin, ptx.OpMax:
		least := f.Op == ptx.OpMin
		relu := f.Has(ptx.ModRelu)
		choose := func(a, b uint64, n int) uint64 {
			less := truncate(a, n) < truncate(b, n)
			if signed {
				less = signExtend(a, n) < signExtend(b, n)
			}
			r := b
			if less == least {
				r = a
			}
			if relu && signExtend(r, n) < 0 {
				r = 0
			}
			return truncate(r, n)
		}
		if t == ptx.U16X2 || t == ptx.S16X2 {
			return halves(func(a, b uint64) uint64 { return choose(a, b, 16) })
		}
		return func(a, b uint64) uint64 { return choose(a, b, n) }
	case ptx.OpAnd:
		return func(a, b uint64) uint64 { return truncate(a&b, n) }
	case ptx.OpOr:
		return func(a, b uint64) uint64 { return truncate(a|b, n) }
	case ptx.OpXor:
		return func(a, b uint64) uint64 { return truncate(a^b, n) }
	case ptx.OpShl:
		return func(a, b uint64) uint64 {
			if uint32(b) >= uint32(n) {
				return 0
			}
			return truncate(a<<uint32(b), n)
		}
	case ptx.OpShr:
		return func(a, b uint64) uint64 {
			k := min(uint32(b), uint32(n))
			if signed {
				return truncate(uint64(value(a)>>min(k, 63)), n)
			}
			return truncate(a, n) >> k
		}
	case ptx.OpBmsk:
		wrap := f.Has(ptx.ModWrap)
		return func(a, b uint64) uint64 {
			start, width := uint64(uint32(a)), uint64(uint32(b))
			if wrap {
				start, width = start&31, width&31
			} else {
				start, width = min(start, 32), min(width, 32)
			}
			return uint64(uint32((uint64(1)<<width - 1) << start))
		}
	case ptx.OpSzext:
		wrap := f.Has(ptx.ModWrap)
		return func(a, b uint64) uint64 {
			width := uint32(b)
			if wrap {
				width &= 31
			}
			switch {
			case width >= 32:
				return uint64(uint32(a))
			case width == 0:
				return 0
			case signed:
				return uint64(uint32(signExtend(a, int(width))))
			}
			return truncate(a, int(width))
		}
	}
	return nil
}

// halves works on the two halves of a word.
func halves(f func2) func2 {
	return func(a, b uint64) uint64 {
		return truncate(f(a&0xffff, b&0xffff), 16) | truncate(f(a>>16&0xffff, b>>16&0xffff), 16)<<16
	}
}

// product24 is mul24.
func product24(a, b uint64, signed, high bool) uint64 {
	var p uint64
	if signed {
		p = uint64(signExtend(a, 24) * signExtend(b, 24))
	} else {
		p = truncate(a, 24) * truncate(b, 24)
	}
	if high {
		p >>= 16
	}
	return uint64(uint32(p))
}

// divided is div or rem. Division by zero, which PTX leaves undefined, gives the same as GPUs: all ones, and the dividend as remainder.
func divided(a, b uint64, n int, signed, rem bool) uint64 {
	a, b = truncate(a, n), truncate(b, n)
	if b == 0 {
		if rem {
			return a
		}
		return truncate(^uint64(0), n)
	}
	if !signed {
		if rem {
			return a % b
		}
		return a / b
	}
	p, q := signExtend(a, n), signExtend(b, n)
	if q == -1 {
		if rem {
			return 0
		}
		return truncate(uint64(-p), n)
	}
	if rem {
		return truncate(uint64(p%q), n)
	}
	return truncate(uint64(p/q), n)
}

// integerUnary is an instruction of one source on integers, or nil.
func integerUnary(f *ptx.Form) func1 {
	t := f.Type()
	n := t.Bits()
	switch f.Op {
	case ptx.OpMov, ptx.OpCvta:
		return func(a uint64) uint64 { return truncate(a, n) }
	case ptx.OpNeg:
		return func(a uint64) uint64 { return truncate(-a, n) }
	case ptx.OpAbs:
		return func(a uint64) uint64 {
			if v := signExtend(a, n); v < 0 {
				return truncate(uint64(-v), n)
			}
			return truncate(a, n)
		}
	case ptx.OpNot:
		return func(a uint64) uint64 { return truncate(^a, n) }
	case ptx.OpCnot:
		return func(a uint64) uint64 {
			if truncate(a, n) == 0 {
				return 1
			}
			return 0
		}
	case ptx.OpPopc:
		return func(a uint64) uint64 { return uint64(bits.OnesCount64(truncate(a, n))) }
	case ptx.OpClz:
		return func(a uint64) uint64 { return uint64(bits.LeadingZeros64(truncate(a, n)) - (64 - n)) }
	case ptx.OpBrev:
		return func(a uint64) uint64 { return bits.Reverse64(truncate(a, n)) >> (64 - n) }
	case ptx.OpBfind:
		signed, shift := t.Signed(), f.Has(ptx.ModShiftamt)
		return func(a uint64) uint64 {
			a = truncate(a, n)
			if signed && signExtend(a, n) < 0 {
				a = truncate(^a, n)
			}
			if a == 0 {
				return 0xffffffff
			}
			at := uint64(bits.Len64(a) - 1)
			if shift {
				at = uint64(n) - 1 - at
			}
			return at
		}
	}
	return nil
}

// integerTernary is an instruction of three sources on integers, or nil.
func integerTernary(f *ptx.Form) func3 {
	t := f.Type()
	n, signed := t.Bits(), t.Signed()
	switch f.Op {
	case ptx.OpMad:
		switch {
		case f.Has(ptx.ModWide):
			return func(a, b, c uint64) uint64 {
				hi, lo := multiplied(a, b, n, signed)
				return truncate((hi<<n|lo)+c, 2*n)
			}
		case f.Has(ptx.ModHi) && f.Has(ptx.ModSat):
			return func(a, b, c uint64) uint64 {
				hi, _ := multiplied(a, b, n, signed)
				return saturate(signExtend(hi, n) + signExtend(c, n))
			}
		case f.Has(ptx.ModHi):
			return func(a, b, c uint64) uint64 {
				hi, _ := multiplied(a, b, n, signed)
				return truncate(hi+c, n)
			}
		case n == 32:
			return func(a, b, c uint64) uint64 { return uint64(uint32(a)*uint32(b) + uint32(c)) }
		}
		return func(a, b, c uint64) uint64 { return truncate(a*b+c, n) }
	case ptx.OpMad24:
		high, sat := f.Has(ptx.ModHi), f.Has(ptx.ModSat)
		return func(a, b, c uint64) uint64 {
			p := product24(a, b, signed, high)
			if sat {
				return saturate(signExtend(p, 32) + signExtend(c, 32))
			}
			return uint64(uint32(p + c))
		}
	case ptx.OpSad:
		return func(a, b, c uint64) uint64 {
			a, b = truncate(a, n), truncate(b, n)
			less := a < b
			if signed {
				less = signExtend(a, n) < signExtend(b, n)
			}
			if less {
				a, b = b, a
			}
			return truncate(c+a-b, n)
		}
	case ptx.OpBfe:
		return func(a, b, c uint64) uint64 { return extract(a, uint32(b)&0xff, uint32(c)&0xff, n, signed) }
	case ptx.OpShf:
		left, wrap := f.Has(ptx.ModL), f.Has(ptx.ModWrap)
		return func(a, b, c uint64) uint64 {
			k := uint32(c)
			if wrap {
				k &= 31
			} else {
				k = min(k, 32)
			}
			word := uint64(uint32(b))<<32 | uint64(uint32(a))
			if left {
				return word << k >> 32
			}
			return uint64(uint32(word >> k))
		}
	case ptx.OpPrmt:
		mode := f.First(ptx.ModF4e, ptx.ModB4e, ptx.ModRc8, ptx.ModEcl, ptx.ModEcr, ptx.ModRc16)
		return func(a, b, c uint64) uint64 { return permute(uint32(a), uint32(b), uint32(c), mode) }
	case ptx.OpDp4a, ptx.OpDp2a:
		return dotProduct(f)
	case ptx.OpFns:
		return func(mask, base, offset uint64) uint64 { return nthSet(uint32(mask), uint32(base), int32(offset)) }
	}
	return nil
}

// extract is bfe. Bits of the field that lie past the value are those of its sign.
func extract(a uint64, position, length uint32, n int, signed bool) uint64 {
	a = truncate(a, n)
	field, width := uint64(0), uint32(0)
	if position < uint32(n) {
		width = min(length, uint32(n)-position)
		field = truncate(a>>position, int(width))
	}
	if signed && length > 0 && a>>min(position+length-1, uint32(n-1))&1 != 0 {
		field |= ^uint64(0) << width
	}
	return truncate(field, n)
}

// insert is bfi: the low bits of a put into b. What lies beyond its width is lost.
func insert(a, b uint64, position, length uint32, n int) uint64 {
	field := truncate(^uint64(0), int(min(length, uint32(n)))) << position
	return truncate(b&^field|a<<position&field, n)
}

// permute is prmt.
func permute(a, b, c uint32, mode ptx.Mod) uint64 {
	word := uint64(b)<<32 | uint64(a)
	var sel [4]uint32
	k := c & 3
	switch mode {
	case ptx.ModF4e:
		sel = [4]uint32{k, k + 1, k + 2, k + 3}
	case ptx.ModB4e:
		sel = [4]uint32{k, (k + 7) & 7, (k + 6) & 7, (k + 5) & 7}
	case ptx.ModRc8:
		sel = [4]uint32{k, k, k, k}
	case ptx.ModEcl:
		sel = [4]uint32{k, max(k, 1), max(k, 2), 3}
	case ptx.ModEcr:
		sel = [4]uint32{0, min(k, 1), min(k, 2), k}
	case ptx.ModRc16:
		h := k & 1 * 2
		sel = [4]uint32{h, h + 1, h, h + 1}
	default:
		for i := range sel {
			sel[i] = c >> (4 * i) & 15
		}
	}
	d := uint64(0)
	for i, s := range sel {
		v := word >> (8 * (s & 7)) & 0xff
		if s&8 != 0 {
			v = uint64(uint8(int8(v) >> 7))
		}
		d |= v << (8 * i)
	}
	return d
}

// dotProduct is dp4a or dp2a. The types tell whether each factor is signed.
func dotProduct(f *ptx.Form) func3 {
	first, second := f.Type().Signed(), f.LastType().Signed()
	at := func(v uint64, n, i int, signed bool) int64 {
		part := v >> (n * i) & (1<<n - 1)
		if signed {
			return signExtend(part, n)
		}
		return int64(part)
	}
	if f.Op == ptx.OpDp4a {
		return func(a, b, c uint64) uint64 {
			sum := c
			for i := range 4 {
				sum += uint64(at(a, 8, i, first) * at(b, 8, i, second))
			}
			return uint64(uint32(sum))
		}
	}
	base := 0
	if f.Has(ptx.ModHi) {
		base = 2
	}
	return func(a, b, c uint64) uint64 {
		sum := c
		for i := range 2 {
			sum += uint64(at(a, 16, i, first) * at(b, 8, base+i, second))
		}
		return uint64(uint32(sum))
	}
}

// nthSet is fns: the place of the n-th set bit from a base.
func nthSet(mask, base uint32, offset int32) uint64 {
	const none = 0xffffffff
	if base > 31 {
		return none
	}
	switch {
	case offset == 0:
		if mask>>base&1 != 0 {
			return uint64(base)
		}
	case offset > 0:
		for i := base; i < 32; i++ {
			if mask>>i&1 != 0 {
				if offset--; offset == 0 {
					return uint64(i)
				}
			}
		}
	default:
		for i := int32(base); i >= 0; i-- {
			if mask>>i&1 != 0 {
				if offset++; offset == 0 {
					return uint64(i)
				}
			}
		}
	}
	return none
}

// lookup is lop3: the table has a bit for each of the eight combinations.
func lookup(table uint32) func3 {
	return func(a, b, c uint64) uint64 {
		d := uint64(0)
		if table&0x01 != 0 {
			d |= ^a & ^b & ^c
		}
		if table&0x02 != 0 {
			d |= ^a & ^b & c
		}
		if table&0x04 != 0 {
			d |= ^a & b & ^c
		}
		if table&0x08 != 0 {
			d |= ^a & b & c
		}
		if table&0x10 != 0 {
			d |= a & ^b & ^c
		}
		if table&0x20 != 0 {
			d |= a & ^b & c
		}
		if table&0x40 != 0 {
			d |= a & b & ^c
		}
		if table&0x80 != 0 {
			d |= a & b & c
		}
		return uint64(uint32(d))
	}
}

// integerCompare is the comparison of a setp or set on integers or bits.
func integerCompare(mod ptx.Mod, t ptx.Type) func(a, b uint64) bool {
	n := t.Bits()
	if t.Signed() {
		order := func(a, b uint64) int { return compare(signExtend(a, n), signExtend(b, n)) }
		return ordered(mod, order)
	}
	return ordered(mod, func(a, b uint64) int { return compare(truncate(a, n), truncate(b, n)) })
}

func compare[T int64 | uint64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func ordered(mod ptx.Mod, order func(a, b uint64) int) func(a, b uint64) bool {
	switch mod {
	case ptx.ModEq:
		return func(a, b uint64) bool { return order(a, b) == 0 }
	case ptx.ModNe:
		return func(a, b uint64) bool { return order(a, b) != 0 }
	case ptx.ModLt:
		return func(a, b uint64) bool { return order(a, b) < 0 }
	case ptx.ModLe:
		return func(a, b uint64) bool { return order(a, b) <= 0 }
	case ptx.ModGt:
		return func(a, b uint64) bool { return order(a, b) > 0 }
	case ptx.ModGe:
		return func(a, b uint64) bool { return order(a, b) >= 0 }
	case ptx.ModLs: // on unsigned numbers lo, ls, hi and hs
		return func(a, b uint64) bool { return order(a, b) <= 0 }
	case ptx.ModLo:
		return func(a, b uint64) bool { return order(a, b) < 0 }
	case ptx.ModHi:
		return func(a, b uint64) bool { return order(a, b) > 0 }
	case ptx.ModHs:
		return func(a, b uint64) bool { return order(a, b) >= 0 }
	}
	return nil
}
