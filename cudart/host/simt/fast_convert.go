// Conversions and comparisons that kernels are full of, written out as loops over whole warps.

package simt

import (
	"math"

	"github.com/dagrun/dagrun/internal/ptx"
)

// fastConvert is a quick version of a cvt of one value, or the general one. g converts what the loops do not expect.
func fastConvert(f *ptx.Form, wide, d, a int, g func1) op {
	general := g.op(d, a)
	to, from := f.Types[0], f.Types[1]
	if !known(to) || !known(from) || !roundingOf(f).plain() {
		return general
	}
	var loop loop1
	switch n := from.Bits(); {
	case !to.Float() && !from.Float() && from.Signed() && to.Bits() > n:
		keep := truncate(^uint64(0), to.Bits())
		if to.Signed() {
			keep = truncate(^uint64(0), max(to.Bits(), wide))
		}
		up := 64 - n
		loop = func(D, A *lanes) {
			for i := range D {
				D[i] = uint64(int64(A[i]<<up)>>up) & keep
			}
		}
	case !to.Float() && !from.Float() && (!to.Signed() || wide <= to.Bits()):
		keep := truncate(^uint64(0), min(to.Bits(), n))
		loop = func(D, A *lanes) {
			for i := range D {
				D[i] = A[i] & keep
			}
		}
	case to.Float() && from.Float() && wholeRounding(f) != nil:
		return general
	case to == ptx.F64 && from == ptx.F32:
		loop = func(D, A *lanes) {
			for i := range D {
				D[i] = bits64(float64(float32Of(A[i])))
			}
		}
	case to == ptx.F32 && from == ptx.F64:
		loop = func(D, A *lanes) {
			for i := range D {
				D[i] = bits32(float32(float64Of(A[i])))
			}
		}
	case to == ptx.F32 && from == ptx.F16:
		loop = func(D, A *lanes) {
			for i := range D {
				D[i] = widenHalf(A[i])
			}
		}
	case to == ptx.F32 && from == ptx.S64:
		loop = func(D, A *lanes) {
			for i := range D {
				D[i] = uint64(math.Float32bits(float32(int64(A[i]))))
			}
		}
	case to == ptx.F32 && from == ptx.S32:
		loop = func(D, A *lanes) {
			for i := range D {
				D[i] = uint64(math.Float32bits(float32(int32(A[i]))))
			}
		}
	case to == ptx.F32 && from == ptx.U32:
		loop = func(D, A *lanes) {
			for i := range D {
				D[i] = uint64(math.Float32bits(float32(int64(uint32(A[i])))))
			}
		}
	case to == ptx.F64 && (from == ptx.S32 || from == ptx.S64):
		up := 64 - n
		loop = func(D, A *lanes) {
			for i := range D {
				D[i] = math.Float64bits(float64(int64(A[i]<<up) >> up))
			}
		}
	case to == ptx.F64 && from == ptx.U32:
		loop = func(D, A *lanes) {
			for i := range D {
				D[i] = math.Float64bits(float64(int64(uint32(A[i]))))
			}
		}
	case f.Has(ptx.ModRzi) && (to == ptx.S32 || to == ptx.S64) && wide <= to.Bits() && (from == ptx.F32 || from == ptx.F64):
		loop = truncations(to, from, g)
	}
	if loop == nil {
		return general
	}
	return loop.op(d, a, general)
}

// widenHalf turns the bits of an f16 into those of an f32.
func widenHalf(v uint64) uint64 {
	sign, exponent, fraction := v>>15&1<<31, v>>10&31, v&0x3ff
	switch {
	case exponent == 31 && fraction != 0:
		return nan32
	case exponent == 31:
		return sign | 0xff<<23
	case exponent == 0:
		return sign | uint64(math.Float32bits(float32(fraction)*0x1p-24))
	}
	return sign | (exponent+127-15)<<23 | fraction<<13
}

// truncations is cvt.rzi of floats to signed integers. g converts those that are out of range.
func truncations(to, from ptx.Type, g func1) loop1 {
	limit := math.Ldexp(1, to.Bits()-1)
	keep := truncate(^uint64(0), to.Bits())
	if from == ptx.F32 {
		return func(D, A *lanes) {
			for i := range D {
				if v := float64(float32Of(A[i])); v > -limit && v < limit {
					D[i] = uint64(int64(v)) & keep
				} else {
					D[i] = g(A[i])
				}
			}
		}
	}
	return func(D, A *lanes) {
		for i := range D {
			if v := float64Of(A[i]); v > -limit && v < limit {
				D[i] = uint64(int64(v)) & keep
			} else {
				D[i] = g(A[i])
			}
		}
	}
}

// fastCompare is a quick version of setp on integers and floats, or nil. It gives the lanes for which the test holds.
func fastCompare(mod ptx.Mod, t ptx.Type, ftz bool) func(A, B *lanes) uint32 {
	switch {
	case t == ptx.F32 && !ftz:
		return floatComparison[float32](mod)
	case t == ptx.F64:
		return floatComparison[float64](mod)
	}
	switch mod {
	case ptx.ModEq, ptx.ModNe, ptx.ModLt, ptx.ModLe, ptx.ModGt, ptx.ModGe:
	default:
		return nil
	}
	switch t {
	case ptx.S32:
		return func(A, B *lanes) uint32 { return compareAs[int32](mod, A, B) }
	case ptx.U32, ptx.B32:
		return func(A, B *lanes) uint32 { return compareAs[uint32](mod, A, B) }
	case ptx.S64:
		return func(A, B *lanes) uint32 { return compareAs[int64](mod, A, B) }
	case ptx.U64, ptx.B64:
		return func(A, B *lanes) uint32 { return compareAs[uint64](mod, A, B) }
	}
	return nil
}

// bit is 1 for true. The compiler makes it without a branch.
func bit(yes bool) uint32 {
	var b uint32
	if yes {
		b = 1
	}
	return b
}

func compareAs[T integral](mod ptx.Mod, A, B *lanes) (yes uint32) {
	switch mod {
	case ptx.ModEq, ptx.ModNe:
		for i := range A {
			yes |= bit(T(A[i]) == T(B[i])) << i
		}
	case ptx.ModLt, ptx.ModGe:
		for i := range A {
			yes |= bit(T(A[i]) < T(B[i])) << i
		}
	default: // le, gt
		for i := range A {
			yes |= bit(T(A[i]) <= T(B[i])) << i
		}
	}
	if mod == ptx.ModNe || mod == ptx.ModGe || mod == ptx.ModGt {
		return ^yes
	}
	return yes
}

// floatComparison is fastCompare of floats, or nil. A comparison that holds without order is the opposite of one that needs order.
func floatComparison[T float32 | float64](mod ptx.Mod) func(A, B *lanes) uint32 {
	less := func(A, B *lanes) (yes uint32) {
		for i := range A {
			yes |= bit(floatIn[T](A[i]) < floatIn[T](B[i])) << i
		}
		return yes
	}
	atMost := func(A, B *lanes) (yes uint32) {
		for i := range A {
			yes |= bit(floatIn[T](A[i]) <= floatIn[T](B[i])) << i
		}
		return yes
	}
	equal := func(A, B *lanes) (yes uint32) {
		for i := range A {
			yes |= bit(floatIn[T](A[i]) == floatIn[T](B[i])) << i
		}
		return yes
	}
	switch mod {
	case ptx.ModLt:
		return less
	case ptx.ModGt:
		return func(A, B *lanes) uint32 { return less(B, A) }
	case ptx.ModLe:
		return atMost
	case ptx.ModGe:
		return func(A, B *lanes) uint32 { return atMost(B, A) }
	case ptx.ModEq:
		return equal
	case ptx.ModNe:
		return func(A, B *lanes) uint32 { return less(A, B) | less(B, A) }
	case ptx.ModGeu:
		return func(A, B *lanes) uint32 { return ^less(A, B) }
	case ptx.ModLeu:
		return func(A, B *lanes) uint32 { return ^less(B, A) }
	case ptx.ModGtu:
		return func(A, B *lanes) uint32 { return ^atMost(A, B) }
	case ptx.ModLtu:
		return func(A, B *lanes) uint32 { return ^atMost(B, A) }
	case ptx.ModNeu:
		return func(A, B *lanes) uint32 { return ^equal(A, B) }
	case ptx.ModEqu:
		return func(A, B *lanes) uint32 { return ^(less(A, B) | less(B, A)) }
	}
	return nil
}
