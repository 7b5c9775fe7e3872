// Every form of cvt against rational arithmetic, and approximations against the errors that PTX documents.

package simt_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// storedAs is what a register of a type holds of an integer: a signed one narrower than its register fills it with its sign.
func storedAs(x *big.Int, t string) uint64 {
	n := widthOf(t)
	x = field(x, 0, n, signedType(t))
	return wrapped(x, max(n, 16))
}

func TestEveryConversion(t *testing.T) {
	integerTypes := append([]string{"u8", "s8"}, allIntegers...)
	floatTypes := []string{"f16", "bf16", "f32", "f64"}
	var forms []form
	for _, to := range integerTypes {
		for _, from := range integerTypes {
			for _, sat := range []string{"", ".sat"} {
				forms = append(forms, form{"cvt" + sat + "." + to + "." + from, to + " " + from, func(v [3]uint64) (uint64, bool) {
					x := number(v[0], from)
					if sat != "" {
						x = limited(x, to)
					}
					return storedAs(x, to), true
				}})
			}
		}
		for _, from := range floatTypes {
			l := layouts[from]
			for round, mode := range map[string]string{"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"} {
				for _, modifiers := range []string{"", ".ftz", ".sat"} {
					if modifiers == ".ftz" && from != "f32" {
						continue
					}
					forms = append(forms, form{"cvt." + round + modifiers + "." + to + "." + from, to + " " + from, func(v [3]uint64) (uint64, bool) {
						r := l.input(v[0], howOf(modifiers))
						switch {
						case r.nan && (from == "f64" || widthOf(to) == 64):
							return storedAs(new(big.Int).Lsh(big.NewInt(1), uint(widthOf(to)-1)), to), widthOf(to) > 16
						case r.nan:
							return 0, true
						case r.infinite:
							far := new(big.Int).Lsh(big.NewInt(1), 100)
							if r.negative {
								far.Neg(far)
							}
							return storedAs(limited(far, to), to), true
						}
						whole := wholeOf(new(big.Rat).Abs(r.x), mode, r.negative)
						if r.negative {
							whole.Neg(whole)
						}
						return storedAs(limited(whole, to), to), true
					}})
				}
			}
			for _, mode := range []string{"rn", "rz", "rm", "rp"} {
				forms = append(forms, form{"cvt." + mode + "." + from + "." + to, from + " " + to, func(v [3]uint64) (uint64, bool) {
					x := new(big.Rat).SetInt(number(v[0], to))
					return l.encode(real{x: x, negative: x.Sign() < 0}, how{mode: mode}), true
				}})
			}
		}
	}
	between := func(to, from string, modifiers ...string) {
		for _, m := range modifiers {
			h := howOf(m)
			forms = append(forms, form{"cvt" + m + "." + to + "." + from, to + " " + from, func(v [3]uint64) (uint64, bool) {
				in, out := h, h
				in.ftz = h.ftz && from == "f32"
				out.ftz = h.ftz && to == "f32"
				return layouts[to].encode(layouts[from].input(v[0], in), out), true
			}})
		}
	}
	between("f32", "f64", ".rn", ".rz", ".rm", ".rp", ".rn.ftz", ".rn.sat", ".rz.ftz.sat")
	between("f64", "f32", "", ".ftz", ".sat")
	between("f32", "f16", "", ".sat", ".ftz")
	between("f64", "f16", "")
	between("f32", "bf16", "")
	between("f16", "f32", ".rn", ".rz", ".rm", ".rp", ".rn.sat", ".rn.satfinite", ".rz.satfinite")
	between("bf16", "f32", ".rn", ".rz", ".rn.satfinite")
	between("f16", "f64", ".rn", ".rz", ".rm", ".rp")
	for _, name := range floatTypes {
		l := layouts[name]
		for round, mode := range map[string]string{"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"} {
			forms = append(forms, form{fmt.Sprintf("cvt.%s.%[2]s.%[2]s", round, name), name + " " + name, func(v [3]uint64) (uint64, bool) {
				r := l.decode(v[0])
				if r.x != nil {
					whole := new(big.Rat).SetInt(wholeOf(new(big.Rat).Abs(r.x), mode, r.negative))
					if r.x = whole; r.negative {
						r.x = new(big.Rat).Neg(whole)
					}
				}
				return l.encode(r, how{}), true
			}})
		}
	}
	for _, name := range []string{"f16", "bf16"} {
		for _, m := range []string{".rn", ".rz", ".rn.relu", ".rz.relu", ".rn.satfinite"} {
			forms = append(forms, form{"cvt" + m + "." + name + "x2.f32", name + "x2 f32 f32", func(v [3]uint64) (uint64, bool) {
				h := howOf(m)
				open := h.relu && (v[0] == 1<<31 || v[1] == 1<<31)
				return layouts[name].encode(layouts["f32"].decode(v[0]), h)<<16 | layouts[name].encode(layouts["f32"].decode(v[1]), h), !open
			}})
		}
	}
	tf32 := layout{8, 10}
	for _, m := range []string{"rna", "rn", "rz", "rna.satfinite"} {
		forms = append(forms, form{"cvt." + m + ".tf32.f32 %rd, %fa;", "u32 f32", func(v [3]uint64) (uint64, bool) {
			r := layouts["f32"].decode(v[0])
			return tf32.encode(r, howOf(m)) << 13, !r.nan
		}})
	}
	forms = append(forms, tinyForms()...)
	for to, n := range map[string]uint{"u8": 8, "s8": 8, "u16": 16, "s16": 16} {
		pack := func(v [3]uint64) uint64 {
			low, high := wrapped(limited(number(v[1], "s32"), to), int(n)), wrapped(limited(number(v[0], "s32"), to), int(n))
			return high<<n | low
		}
		if n == 16 {
			forms = append(forms, form{"cvt.pack.sat." + to + ".s32", "b32 s32 s32", func(v [3]uint64) (uint64, bool) { return pack(v), true }})
			continue
		}
		forms = append(forms, form{"cvt.pack.sat." + to + ".s32.b32", "b32 s32 s32 b32", func(v [3]uint64) (uint64, bool) { return uint64(uint32(v[2]<<(2*n) | pack(v))), true }})
	}
	for _, f := range forms {
		f.check(t)
	}
}

// tinyForms are the conversions to numbers of four, six and eight bits, and back.
func tinyForms() (forms []form) {
	for name, l := range map[string]struct {
		layout
		infinite bool
		greatest float64
		step     int
	}{
		"e4m3": {layout{4, 3}, false, 448, 8}, "e5m2": {layout{5, 2}, true, 57344, 8}, "e2m3": {layout{2, 3}, false, 7.5, 8}, "e3m2": {layout{3, 2}, false, 28, 8},
		"e2m1": {layout{2, 1}, false, 6, 4},
	} {
		n := l.bits()
		value := func(v uint64) (x float64, nan bool) {
			e, m := int(v>>l.fraction)&(1<<l.exponent-1), float64(v&(1<<l.fraction-1))
			switch {
			case l.infinite && e == 1<<l.exponent-1 && m > 0, name == "e4m3" && v&0x7f == 0x7f:
				return 0, true
			case l.infinite && e == 1<<l.exponent-1:
				x = math.Inf(1)
			case e == 0:
				x = m * math.Exp2(float64(1-l.bias()-l.fraction))
			default:
				x = (m + float64(int(1)<<l.fraction)) * math.Exp2(float64(e-l.bias()-l.fraction))
			}
			if v>>(n-1)&1 != 0 {
				x = -x
			}
			return x, false
		}
		half := func(x float64) uint64 {
			r := real{negative: math.Signbit(x), infinite: math.IsInf(x, 0)}
			if !r.infinite {
				r.x = new(big.Rat)
				r.x.SetFloat64(x)
			}
			return layouts["f16"].encode(r, how{})
		}
		mask := uint64(1)<<n - 1
		to, back := "cvt.rn.satfinite."+name+"x2.f32 %hd, %fa, %fb;", "cvt.rn.f16x2."+name+"x2 %rd, %ha;"
		if name == "e2m1" {
			to = "{ .reg .b8 %z; cvt.rn.satfinite.e2m1x2.f32 %z, %fa, %fb; cvt.u16.u8 %hd, %z; }"
			back = "{ .reg .b8 %z; cvt.u8.u16 %z, %ha; cvt.rn.f16x2.e2m1x2 %rd, %z; }"
		}
		forms = append(forms, form{back, "u32 u16", func(v [3]uint64) (uint64, bool) {
			low, none := value(v[0] & mask)
			high, nan := value(v[0] >> l.step & mask)
			return half(high)<<16 | half(low), !none && !nan
		}})
		round := func(v uint64) (uint64, bool) {
			r := layouts["f32"].decode(v)
			x := float64(math.Float32frombits(uint32(v)))
			sign := uint64(0)
			if r.negative {
				sign = 1 << (n - 1)
			}
			if r.nan {
				return 0, false
			}
			best, distance := uint64(0), math.Inf(1)
			for code := range uint64(1) << (n - 1) { // the nearest one, the even one of two
				y, nan := value(code)
				if nan || math.IsInf(y, 0) {
					continue
				}
				if d := math.Abs(min(math.Abs(x), l.greatest) - y); d < distance || d == distance && code&1 == 0 {
					best, distance = code, d
				}
			}
			return sign | best, true
		}
		forms = append(forms, form{to, "u16 f32 f32", func(v [3]uint64) (uint64, bool) {
			high, defined := round(v[0])
			low, also := round(v[1])
			return high<<l.step | low, defined && also
		}})
	}
	return forms
}

// approximation is an instruction that need not be exact: its function, and the largest relative and absolute error.
type approximation struct {
	word               string
	f                  func(x float64) float64
	relative, absolute float64
	low, high          float64 // where this holds
}

func TestApproximationsWithinTheirErrors(t *testing.T) {
	for _, a := range []approximation{
		{"rcp.approx.f32", func(x float64) float64 { return 1 / x }, 0x1p-23, 0, 0x1p-126, 0x1p126},
		{"sqrt.approx.f32", math.Sqrt, 0x1p-23, 0, 0x1p-126, 0x1p127},
		{"rsqrt.approx.f32", func(x float64) float64 { return 1 / math.Sqrt(x) }, 0x1p-22, 0, 0x1p-126, 0x1p127},
		{"sin.approx.f32", math.Sin, 0, 0x1p-20, -math.Pi, math.Pi},
		{"cos.approx.f32", math.Cos, 0, 0x1p-20, -math.Pi, math.Pi},
		{"lg2.approx.f32", math.Log2, 0, 0x1p-22, 0.5, 2},
		{"lg2.approx.f32", math.Log2, 0x1p-21, 0, 2, 0x1p127},
		{"ex2.approx.f32", math.Exp2, 0x1p-22, 0, -126, 127},
		{"tanh.approx.f32", math.Tanh, 0x1p-10, 0, -10, 10},
		{"div.full.f32 %fd, 0f3F800000, %fa;", func(x float64) float64 { return 1 / x }, 0x1p-22, 0, 0x1p-120, 0x1p120},
	} {
		var inputs []uint64
		for i := range 500 {
			x := a.low + (a.high-a.low)*float64(i)/499
			if a.low > 0 { // over all orders of magnitude
				x = math.Exp2(math.Log2(a.low) + (math.Log2(a.high)-math.Log2(a.low))*float64(i)/499)
			}
			inputs = append(inputs, uint64(math.Float32bits(float32(x))))
		}
		code := a.word + " %fd, %fa;"
		if strings.Contains(a.word, ";") {
			code = a.word
		}
		any := form{want: func([3]uint64) (uint64, bool) { return 0, false }}
		for i, got := range any.run(t, code, "f32", [3][]uint64{inputs, {0}, {0}}) {
			in, have := math.Float32frombits(uint32(inputs[i])), float64(math.Float32frombits(uint32(got)))
			want := a.f(float64(in))
			require.LessOrEqual(t, math.Abs(have-want), a.absolute+a.relative*math.Abs(want), "%s of %g", a.word, in)
		}
	}
	// What approximations give at the ends of their range.
	inf, nan := uint64(0x7f800000), uint64(0x7fffffff)
	for _, c := range []struct {
		word     string
		in, want uint64
	}{
		{"rcp.approx.f32", 0, inf}, {"rcp.approx.f32", 1 << 31, 0xff800000}, {"rcp.approx.f32", inf, 0}, {"rcp.approx.ftz.f32", 1, inf},
		{"sqrt.approx.f32", 0xbf800000, nan}, {"sqrt.approx.f32", 1 << 31, 1 << 31}, {"rsqrt.approx.f32", 0, inf}, {"rsqrt.approx.f32", 0xbf800000, nan}, {"rsqrt.approx.f32", inf, 0},
		{"sin.approx.f32", inf, nan}, {"sin.approx.f32", 1 << 31, 1 << 31}, {"cos.approx.f32", 0, 0x3f800000}, {"cos.approx.f32", inf, nan},
		{"lg2.approx.f32", 0, 0xff800000}, {"lg2.approx.f32", 0xbf800000, nan}, {"lg2.approx.f32", inf, inf}, {"ex2.approx.f32", 0xff800000, 0}, {"ex2.approx.f32", inf, inf},
		{"ex2.approx.f32", 1 << 31, 0x3f800000}, {"tanh.approx.f32", inf, 0x3f800000}, {"tanh.approx.f32", 1 << 31, 1 << 31},
	} {
		form{want: func([3]uint64) (uint64, bool) { return c.want, true }}.run(t, c.word+" %fd, %fa;", "f32", [3][]uint64{{c.in}, {0}, {0}})
	}
}
