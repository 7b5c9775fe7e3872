// The instructions that kernels are mostly made of, written out as loops over whole warps. Forms that these loops do not know take the
// general way, and so do warps of which few lanes run.

package simt

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/dagrun/dagrun/internal/ptx"
)

// fewLanes is how many lanes the general way computes in the time of a loop over all of them.
const fewLanes = 5

// The loops. They compute all lanes, also those that do not run; take then keeps the others as they are.
type (
	loop1 func(D, A *lanes)
	loop2 func(D, A, B *lanes)
	loop3 func(D, A, B, C *lanes)
)

// take copies the lanes of a mask.
func (l *lanes) take(from *lanes, m uint32) {
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		l[i] = from[i]
	}
}

func (loop loop1) op(d, a int, general op) op {
	return func(x *exec, m uint32) {
		switch {
		case m == fullMask:
			loop(x.s[d], x.s[a])
		case bits.OnesCount32(m) < fewLanes:
			general(x, m)
		default:
			loop(&x.spare, x.s[a])
			x.s[d].take(&x.spare, m)
		}
	}
}

func (loop loop2) op(d, a, b int, general op) op {
	return func(x *exec, m uint32) {
		switch {
		case m == fullMask:
			loop(x.s[d], x.s[a], x.s[b])
		case bits.OnesCount32(m) < fewLanes:
			general(x, m)
		default:
			loop(&x.spare, x.s[a], x.s[b])
			x.s[d].take(&x.spare, m)
		}
	}
}

func (loop loop3) op(d, a, b, c int, general op) op {
	return func(x *exec, m uint32) {
		switch {
		case m == fullMask:
			loop(x.s[d], x.s[a], x.s[b], x.s[c])
		case bits.OnesCount32(m) < fewLanes:
			general(x, m)
		default:
			loop(&x.spare, x.s[a], x.s[b], x.s[c])
			x.s[d].take(&x.spare, m)
		}
	}
}

// integral is an integer as registers hold it.
type integral interface {
	int32 | uint32 | int64 | uint64
}

// extended is a value of a register, whose upper bits are 0.
func extended[T integral](v T) uint64 {
	if unsafe.Sizeof(v) == 4 {
		return uint64(uint32(v))
	}
	return uint64(v)
}

// fast1 is a quick version of an instruction with one source, or the general one.
func fast1(f *ptx.Form, d, a int, general op) op {
	keep := uint64(0)
	switch f.Type() {
	case ptx.S32, ptx.B32:
		keep = 0xffffffff
	case ptx.S64, ptx.B64:
		keep = ^keep
	}
	switch {
	case keep != 0 && f.Op == ptx.OpNeg:
		return loop1(func(D, A *lanes) {
			for i := range D {
				D[i] = -A[i] & keep
			}
		}).op(d, a, general)
	case keep != 0 && f.Op == ptx.OpNot:
		return loop1(func(D, A *lanes) {
			for i := range D {
				D[i] = ^A[i] & keep
			}
		}).op(d, a, general)
	}
	return general
}

// fast2 is a quick version of an instruction with two sources, or the general one.
func fast2(f *ptx.Form, d, a, b int, general op) op {
	t := f.Type()
	if f.Has(ptx.ModSat) || f.Has(ptx.ModCc) || f.Has(ptx.ModRelu) {
		return general
	}
	var loop loop2
	switch {
	case t == ptx.F32 && roundingOf(f).plain():
		loop = floatLoop[float32](f)
	case t == ptx.F64 && roundingOf(f).plain():
		loop = floatLoop[float64](f)
	case f.Has(ptx.ModHi) && (f.Op != ptx.OpMul || t != ptx.U32):
		return general
	case f.Has(ptx.ModHi):
		loop = upperProducts
	case f.Has(ptx.ModWide):
		loop = map[ptx.Type]loop2{ptx.S32: signedProducts, ptx.U32: unsignedProducts}[t]
	case t == ptx.S32:
		loop = integerLoop[int32](f.Op)
	case t == ptx.U32 || t == ptx.B32:
		loop = integerLoop[uint32](f.Op)
	case t == ptx.S64:
		loop = integerLoop[int64](f.Op)
	case t == ptx.U64 || t == ptx.B64:
		loop = integerLoop[uint64](f.Op)
	}
	if loop == nil {
		return general
	}
	return loop.op(d, a, b, general)
}

func signedProducts(D, A, B *lanes) {
	for i := range D {
		D[i] = uint64(int64(int32(A[i])) * int64(int32(B[i])))
	}
}

func unsignedProducts(D, A, B *lanes) {
	for i := range D {
		D[i] = uint64(uint32(A[i])) * uint64(uint32(B[i]))
	}
}

func upperProducts(D, A, B *lanes) {
	for i := range D {
		D[i] = uint64(uint32(A[i])) * uint64(uint32(B[i])) >> 32
	}
}

// integerLoop is the loop of an instruction on integers, or nil.
func integerLoop[T integral](o ptx.Opcode) loop2 {
	switch o {
	case ptx.OpAdd:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = extended(T(A[i]) + T(B[i]))
			}
		}
	case ptx.OpSub:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = extended(T(A[i]) - T(B[i]))
			}
		}
	case ptx.OpMul:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = extended(T(A[i]) * T(B[i]))
			}
		}
	case ptx.OpAnd:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = extended(T(A[i]) & T(B[i]))
			}
		}
	case ptx.OpOr:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = extended(T(A[i]) | T(B[i]))
			}
		}
	case ptx.OpXor:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = extended(T(A[i]) ^ T(B[i]))
			}
		}
	case ptx.OpShl:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = extended(T(A[i]) << uint32(B[i]))
			}
		}
	case ptx.OpShr:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = extended(T(A[i]) >> uint32(B[i]))
			}
		}
	case ptx.OpDiv, ptx.OpRem:
		return quotients[T](o == ptx.OpRem)
	case ptx.OpMin:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = extended(min(T(A[i]), T(B[i])))
			}
		}
	case ptx.OpMax:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = extended(max(T(A[i]), T(B[i])))
			}
		}
	}
	return nil
}

// floatIn is the value of a register that holds a float.
func floatIn[T float32 | float64](v uint64) T {
	if unsafe.Sizeof(T(0)) == 4 {
		return T(math.Float32frombits(uint32(v)))
	}
	return T(math.Float64frombits(v))
}

// floatOut is a float as a register holds it.
func floatOut[T float32 | float64](v T) uint64 {
	if unsafe.Sizeof(v) == 4 {
		return bits32(float32(v))
	}
	return bits64(float64(v))
}

// floatLoop is the loop of an instruction on floats, or nil.
func floatLoop[T float32 | float64](f *ptx.Form) loop2 {
	switch {
	case f.Op == ptx.OpAdd:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = floatOut(floatIn[T](A[i]) + floatIn[T](B[i]))
			}
		}
	case f.Op == ptx.OpSub:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = floatOut(floatIn[T](A[i]) - floatIn[T](B[i]))
			}
		}
	case f.Op == ptx.OpMul:
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = floatOut(floatIn[T](A[i]) * floatIn[T](B[i]))
			}
		}
	case f.Op == ptx.OpDiv && f.Has(ptx.ModRn):
		return func(D, A, B *lanes) {
			for i := range D {
				D[i] = floatOut(floatIn[T](A[i]) / floatIn[T](B[i]))
			}
		}
	}
	return nil
}

// fast3 is a quick version of an instruction with three sources, or the general one.
func fast3(f *ptx.Form, d, a, b, c int, general op) op {
	t := f.Type()
	if f.Has(ptx.ModSat) || f.Has(ptx.ModCc) || f.Has(ptx.ModHi) {
		return general
	}
	var loop loop3
	switch {
	case (f.Op == ptx.OpFma || f.Op == ptx.OpMad) && t == ptx.F32 && roundingOf(f).plain():
		loop = fused32
	case (f.Op == ptx.OpFma || f.Op == ptx.OpMad) && t == ptx.F64 && roundingOf(f).plain():
		loop = fused64
	case f.Op == ptx.OpMad && f.Has(ptx.ModLo) && (t == ptx.S32 || t == ptx.U32):
		loop = func(D, A, B, C *lanes) {
			for i := range D {
				D[i] = uint64(uint32(A[i])*uint32(B[i]) + uint32(C[i]))
			}
		}
	case f.Op == ptx.OpMad && f.Has(ptx.ModLo) && (t == ptx.S64 || t == ptx.U64):
		loop = func(D, A, B, C *lanes) {
			for i := range D {
				D[i] = A[i]*B[i] + C[i]
			}
		}
	case f.Op == ptx.OpMad && f.Has(ptx.ModWide) && t == ptx.S32:
		loop = func(D, A, B, C *lanes) {
			for i := range D {
				D[i] = uint64(int64(int32(A[i]))*int64(int32(B[i]))) + C[i]
			}
		}
	case f.Op == ptx.OpMad && f.Has(ptx.ModWide) && t == ptx.U32:
		loop = func(D, A, B, C *lanes) {
			for i := range D {
				D[i] = uint64(uint32(A[i]))*uint64(uint32(B[i])) + C[i]
			}
		}
	default:
		return general
	}
	return loop.op(d, a, b, c, general)
}

// fastExtract is a quick bfe of a field whose place is known, or the general one.
func fastExtract(t ptx.Type, d, a int, position, length uint32, general op) op {
	n := uint32(t.Bits())
	if t.Signed() || position >= n {
		return general
	}
	keep := truncate(^uint64(0), int(min(length, n-position)))
	return loop1(func(D, A *lanes) {
		for i := range D {
			D[i] = A[i] >> (position & 63) & keep
		}
	}).op(d, a, general)
}

// fused32 is fma of float32. The product is exact in 64 bits; rounding the sum twice is wrong only where the first rounding ends half
// way between two float32, or the result is denormal.
func fused32(D, A, B, C *lanes) {
	const lost = 1<<29 - 1 // the bits of a float64 that a float32 has not
	for i := range D {
		v := float64(float64(float32Of(A[i]))*float64(float32Of(B[i]))) + float64(float32Of(C[i]))
		if b := math.Float64bits(v); b&lost != 1<<28 && b<<1 >= math.Float64bits(small)<<1 {
			D[i] = bits32(float32(v))
			continue
		}
		D[i] = bits32(float32(fusedExact(float64(float32Of(A[i])), float64(float32Of(B[i])), float64(float32Of(C[i])))))
	}
}

func fused64(D, A, B, C *lanes) {
	for i := range D {
		D[i] = bits64(math.FMA(float64Of(A[i]), float64Of(B[i]), float64Of(C[i])))
	}
}

// fastSelect is a quick selp: the lanes of yes take the first value. keep is the mask of the bits that the type has.
func fastSelect(D, A, B *lanes, yes uint32, keep uint64) {
	for i := range D {
		first := -uint64(yes >> i & 1)
		D[i] = (A[i]&first | B[i]&^first) & keep
	}
}

// quotients is the loop of div and rem.
func quotients[T integral](rest bool) loop2 {
	each := eachQuotient[T](rest)
	size := unsafe.Sizeof(T(0))
	var zero T
	signed := zero-1 < 0
	return func(D, A, B *lanes) {
		var used, differ uint64
		for i := range A {
			used |= A[i]
			differ |= B[i] ^ B[0]
		}
		by := B[0]
		switch {
		case differ != 0:
			each(D, A, B)
		case size == 4 && signed:
			if d := int32(by); d > 1 || d < -1 {
				shareSigned(D, A, d, rest)
			} else {
				each(D, A, B)
			}
		case by > 1 && (used|by)>>32 == 0: // values of 64 bits that are as small have the same quotients, signed or not
			shareUnsigned(D, A, uint32(by), rest)
		default:
			each(D, A, B)
		}
	}
}

// eachQuotient divides each lane by its own divisor. Go does not divide by 0; its least number divided by -1 wraps, as in the general way.
func eachQuotient[T integral](rest bool) loop2 {
	n := 8 * int(unsafe.Sizeof(T(0)))
	return func(D, A, B *lanes) {
		for i := range D {
			switch a, b := T(A[i]), T(B[i]); {
			case b == 0:
				D[i] = divided(A[i], B[i], n, T(0)-1 < 0, rest)
			case rest:
				D[i] = extended(a % b)
			default:
				D[i] = extended(a / b)
			}
		}
	}
}
