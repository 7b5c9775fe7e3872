// The instructions that kernels are mostly made of, written out as loops over whole warps. A warp with lanes missing, and forms that
// these loops do not know, take the general way.

package simt

import (
	"math"

	"github.com/dagrun/dagrun/kernels/ptx"
)

// fast2 is a quick version of an instruction with two sources, or the general one.
func fast2(f *ptx.Form, d, a, b int, general op) op {
	t := f.Type()
	if f.Has(ptx.ModSat) || f.Has(ptx.ModCc) || f.Has(ptx.ModHi) || f.Has(ptx.ModRelu) {
		return general
	}
	var loop func(o ptx.Opcode, D, A, B *lanes) bool
	switch {
	case t.Float():
		switch {
		case !roundingOf(f).plain():
			return general
		case t == ptx.F32:
			loop = floats32
		case t == ptx.F64:
			loop = floats64
		}
	case f.Has(ptx.ModWide):
		switch t {
		case ptx.S32:
			loop = signedProducts
		case ptx.U32:
			loop = unsignedProducts
		}
	case t == ptx.S32:
		loop = signedWords
	case t == ptx.U32 || t == ptx.B32:
		loop = words
	case t == ptx.S64 || t == ptx.U64 || t == ptx.B64:
		loop = longs
	}
	var probe lanes
	if loop == nil || !loop(f.Op, &probe, &probe, &probe) {
		return general
	}
	o := f.Op
	return func(x *exec, m uint32) {
		if m != fullMask {
			general(x, m)
			return
		}
		loop(o, x.s[d], x.s[a], x.s[b])
	}
}

func signedProducts(_ ptx.Opcode, D, A, B *lanes) bool {
	for i := range D {
		D[i] = uint64(int64(int32(A[i])) * int64(int32(B[i])))
	}
	return true
}

func unsignedProducts(_ ptx.Opcode, D, A, B *lanes) bool {
	for i := range D {
		D[i] = uint64(uint32(A[i])) * uint64(uint32(B[i]))
	}
	return true
}

func signedWords(o ptx.Opcode, D, A, B *lanes) bool {
	switch o {
	case ptx.OpShr:
		for i := range D {
			D[i] = uint64(uint32(int32(A[i]) >> uint32(B[i])))
		}
	case ptx.OpMin:
		for i := range D {
			D[i] = uint64(uint32(min(int32(A[i]), int32(B[i]))))
		}
	case ptx.OpMax:
		for i := range D {
			D[i] = uint64(uint32(max(int32(A[i]), int32(B[i]))))
		}
	default:
		return words(o, D, A, B)
	}
	return true
}

func words(o ptx.Opcode, D, A, B *lanes) bool {
	switch o {
	case ptx.OpAdd:
		for i := range D {
			D[i] = uint64(uint32(A[i]) + uint32(B[i]))
		}
	case ptx.OpSub:
		for i := range D {
			D[i] = uint64(uint32(A[i]) - uint32(B[i]))
		}
	case ptx.OpMul:
		for i := range D {
			D[i] = uint64(uint32(A[i]) * uint32(B[i]))
		}
	case ptx.OpAnd:
		for i := range D {
			D[i] = uint64(uint32(A[i]) & uint32(B[i]))
		}
	case ptx.OpOr:
		for i := range D {
			D[i] = uint64(uint32(A[i]) | uint32(B[i]))
		}
	case ptx.OpXor:
		for i := range D {
			D[i] = uint64(uint32(A[i]) ^ uint32(B[i]))
		}
	case ptx.OpShl:
		for i := range D {
			D[i] = uint64(uint32(A[i]) << uint32(B[i]))
		}
	case ptx.OpShr:
		for i := range D {
			D[i] = uint64(uint32(A[i]) >> uint32(B[i]))
		}
	default:
		return false
	}
	return true
}

func longs(o ptx.Opcode, D, A, B *lanes) bool {
	switch o {
	case ptx.OpAdd:
		for i := range D {
			D[i] = A[i] + B[i]
		}
	case ptx.OpSub:
		for i := range D {
			D[i] = A[i] - B[i]
		}
	case ptx.OpMul:
		for i := range D {
			D[i] = A[i] * B[i]
		}
	case ptx.OpAnd:
		for i := range D {
			D[i] = A[i] & B[i]
		}
	case ptx.OpOr:
		for i := range D {
			D[i] = A[i] | B[i]
		}
	case ptx.OpXor:
		for i := range D {
			D[i] = A[i] ^ B[i]
		}
	case ptx.OpShl:
		for i := range D {
			D[i] = A[i] << uint32(B[i])
		}
	default:
		return false
	}
	return true
}

func floats32(o ptx.Opcode, D, A, B *lanes) bool {
	switch o {
	case ptx.OpAdd:
		for i := range D {
			D[i] = bits32(float32Of(A[i]) + float32Of(B[i]))
		}
	case ptx.OpSub:
		for i := range D {
			D[i] = bits32(float32Of(A[i]) - float32Of(B[i]))
		}
	case ptx.OpMul:
		for i := range D {
			D[i] = bits32(float32Of(A[i]) * float32Of(B[i]))
		}
	default:
		return false
	}
	return true
}

func floats64(o ptx.Opcode, D, A, B *lanes) bool {
	switch o {
	case ptx.OpAdd:
		for i := range D {
			D[i] = bits64(float64Of(A[i]) + float64Of(B[i]))
		}
	case ptx.OpSub:
		for i := range D {
			D[i] = bits64(float64Of(A[i]) - float64Of(B[i]))
		}
	case ptx.OpMul:
		for i := range D {
			D[i] = bits64(float64Of(A[i]) * float64Of(B[i]))
		}
	default:
		return false
	}
	return true
}

// fast3 is a quick version of an instruction with three sources, or the general one.
func fast3(f *ptx.Form, d, a, b, c int, general op) op {
	t := f.Type()
	if f.Has(ptx.ModSat) || f.Has(ptx.ModCc) || f.Has(ptx.ModHi) {
		return general
	}
	var loop func(D, A, B, C *lanes)
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
	return func(x *exec, m uint32) {
		if m != fullMask {
			general(x, m)
			return
		}
		loop(x.s[d], x.s[a], x.s[b], x.s[c])
	}
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

// fastCompare is a quick version of setp on integers and float32, or nil. It gives the lanes for which the test holds.
func fastCompare(mod ptx.Mod, t ptx.Type) func(A, B *lanes) uint32 {
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

func compareAs[T int32 | uint32 | int64 | uint64](mod ptx.Mod, A, B *lanes) (yes uint32) {
	switch mod {
	case ptx.ModEq, ptx.ModNe:
		for i := range A {
			if T(A[i]) == T(B[i]) {
				yes |= 1 << i
			}
		}
	case ptx.ModLt, ptx.ModGe:
		for i := range A {
			if T(A[i]) < T(B[i]) {
				yes |= 1 << i
			}
		}
	default: // le, gt
		for i := range A {
			if T(A[i]) <= T(B[i]) {
				yes |= 1 << i
			}
		}
	}
	if mod == ptx.ModNe || mod == ptx.ModGe || mod == ptx.ModGt {
		return ^yes
	}
	return yes
}
