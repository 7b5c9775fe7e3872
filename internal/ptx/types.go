// Types and state spaces of PTX, with their sizes.

package ptx

// Type is a fundamental type, a packed one, or one that only certain instructions know.
type Type uint8

// The types. NoType stands for none.
const (
	NoType Type = iota
	B1
	B4
	B8
	B16
	B32
	B64
	B128
	U4
	U8
	U16
	U32
	U64
	S2
	S4
	S8
	S16
	S32
	S64
	F16
	BF16
	TF32
	F32
	F64
	F16X2
	BF16X2
	F32X2
	U16X2
	S16X2
	U8X4
	S8X4
	B16X2
	E4M3
	E5M2
	E4M3X2
	E5M2X2
	E4M3X4
	E5M2X4
	E2M1
	E2M3
	E3M2
	E2M1X2
	E2M3X2
	E3M2X2
	E2M1X4
	E2M3X4
	E3M2X4
	UE8M0
	UE8M0X2
	UE4M3
	S2F6X2
	Pred
	TexRef
	SamplerRef
	SurfRef
	typeCount
)

var typeNames = [typeCount]string{
	B1: "b1", B4: "b4", B8: "b8", B16: "b16", B32: "b32", B64: "b64", B128: "b128",
	U4: "u4", U8: "u8", U16: "u16", U32: "u32", U64: "u64", S2: "s2", S4: "s4", S8: "s8", S16: "s16", S32: "s32", S64: "s64",
	F16: "f16", BF16: "bf16", TF32: "tf32", F32: "f32", F64: "f64", F16X2: "f16x2", BF16X2: "bf16x2", F32X2: "f32x2",
	U16X2: "u16x2", S16X2: "s16x2", U8X4: "u8x4", S8X4: "s8x4", B16X2: "b16x2",
	E4M3: "e4m3", E5M2: "e5m2", E4M3X2: "e4m3x2", E5M2X2: "e5m2x2", E4M3X4: "e4m3x4", E5M2X4: "e5m2x4",
	E2M1: "e2m1", E2M3: "e2m3", E3M2: "e3m2", E2M1X2: "e2m1x2", E2M3X2: "e2m3x2", E3M2X2: "e3m2x2",
	E2M1X4: "e2m1x4", E2M3X4: "e2m3x4", E3M2X4: "e3m2x4",
	UE8M0: "ue8m0", UE8M0X2: "ue8m0x2", UE4M3: "ue4m3", S2F6X2: "s2f6x2",
	Pred: "pred", TexRef: "texref", SamplerRef: "samplerref", SurfRef: "surfref",
}

var typeBits = [typeCount]uint8{
	B1: 1, B4: 4, B8: 8, B16: 16, B32: 32, B64: 64, B128: 128, U4: 4, U8: 8, U16: 16, U32: 32, U64: 64,
	S2: 2, S4: 4, S8: 8, S16: 16, S32: 32, S64: 64, F16: 16, BF16: 16, TF32: 32, F32: 32, F64: 64,
	F16X2: 32, BF16X2: 32, F32X2: 64, U16X2: 32, S16X2: 32, U8X4: 32, S8X4: 32, B16X2: 32,
	E4M3: 8, E5M2: 8, E4M3X2: 16, E5M2X2: 16, E4M3X4: 32, E5M2X4: 32, E2M1: 4, E2M3: 6, E3M2: 6,
	E2M1X2: 8, E2M3X2: 16, E3M2X2: 16, E2M1X4: 16, E2M3X4: 32, E3M2X4: 32, UE8M0: 8, UE8M0X2: 16, UE4M3: 8, S2F6X2: 16,
	Pred: 1, TexRef: 64, SamplerRef: 64, SurfRef: 64,
}

var typesByName = func() map[string]Type {
	m := make(map[string]Type, typeCount)
	for t, name := range typeNames {
		if name != "" {
			m[name] = Type(t)
		}
	}
	return m
}()

// String returns the type's name without its dot.
func (t Type) String() string {
	if t == NoType || t >= typeCount {
		return "none"
	}
	return typeNames[t]
}

// Bits returns the width of one value.
func (t Type) Bits() int { return int(typeBits[t]) }

// Size returns how many bytes one value takes in memory, at least 1.
func (t Type) Size() int { return (int(typeBits[t]) + 7) / 8 }

// Signed reports whether the type is a signed integer.
func (t Type) Signed() bool { return t >= S2 && t <= S64 || t == S16X2 || t == S8X4 }

// Float reports whether the type is a floating-point type with arithmetic, packed or not.
func (t Type) Float() bool { return t >= F16 && t <= F32X2 }

// Space is a state space. An instruction that names none works on generic addresses.
type Space uint8

// The state spaces.
const (
	Generic Space = iota
	Reg
	Param
	Global
	Const
	Shared
	SharedCluster
	Local
	Tex
	Sreg
	spaceCount
)

var spaceNames = [spaceCount]string{
	Generic: "generic", Reg: "reg", Param: "param", Global: "global", Const: "const", Shared: "shared",
	SharedCluster: "shared::cluster", Local: "local", Tex: "tex", Sreg: "sreg",
}

var spacesByName = map[string]Space{
	"reg": Reg, "param": Param, "param::entry": Param, "param::func": Param, "global": Global, "const": Const,
	"shared": Shared, "shared::cta": Shared, "shared::cluster": SharedCluster, "local": Local, "tex": Tex, "sreg": Sreg,
}

// String returns the space's name without its dot.
func (s Space) String() string {
	if s >= spaceCount {
		return "unknown"
	}
	return spaceNames[s]
}
