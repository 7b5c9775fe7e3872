// Instructions held against their definitions at the edges: NaN, -0, denormals, infinities, overflow, shifts beyond the width.

package simt_test

import (
	"math"
	"math/big"
	"math/bits"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

var words32 = []uint32{0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0xdeadbeef}

var floats32 = []uint32{0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x3f800000, 0xbf800000, 0x3f800001, 0x34000000, 0x33800000, 0x4b800000, 0x7f7fffff,
	0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x40490fdb, 0x5f000000, 0x1e3ce508}

// triples runs a three-operand instruction of 32 bits on all combinations of edges: a in %r1, b in %r2, c in %r3, the result in %r4.
func triples(t *testing.T, edges []uint32, code string, want func(a, b, c uint32) uint32) {
	t.Helper()
	n := len(edges)
	count := n * n * n
	p := program(t, `.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
{
.reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %rd<20>; .reg .b64 %x<9>; .reg .f32 %f<9>; .reg .b16 %h<9>;
ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r20, [n];
mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x; mad.lo.u32 %r13, %r10, %r11, %r12;
mul.lo.u32 %r14, %r20, %r20; mul.lo.u32 %r15, %r14, %r20; setp.ge.u32 %p8, %r13, %r15; @%p8 ret;
rem.u32 %r16, %r13, %r20; div.u32 %r17, %r13, %r20; rem.u32 %r17, %r17, %r20; div.u32 %r18, %r13, %r14;
mul.wide.u32 %rd3, %r16, 4; add.u64 %rd3, %rd1, %rd3; ld.global.u32 %r1, [%rd3];
mul.wide.u32 %rd3, %r17, 4; add.u64 %rd3, %rd1, %rd3; ld.global.u32 %r2, [%rd3];
mul.wide.u32 %rd3, %r18, 4; add.u64 %rd3, %rd1, %rd3; ld.global.u32 %r3, [%rd3];
`+code+`
mul.wide.u32 %rd3, %r13, 4; add.u64 %rd3, %rd2, %rd3; st.global.u32 [%rd3], %r4;
ret;
}
`)
	in, out := onHeap[uint32](n), onHeap[uint32](count)
	copy(in, edges)
	arg := func(p unsafe.Pointer, n int) simt.Arg {
		return simt.Arg{Bits: uint64(uintptr(p)), Pointer: true, Bytes: int64(4 * n)}
	}
	fault := launch(t, p, "k", simt.Launch{Grid: [3]uint32{uint32(count+255) / 256, 1, 1}, Block: [3]uint32{256, 1, 1},
		Args: []simt.Arg{arg(unsafe.Pointer(&in[0]), n), arg(unsafe.Pointer(&out[0]), count), {Bits: uint64(n)}}})
	require.Nil(t, fault, "%s: %v", code, fault)
	for i, got := range out {
		a, b, c := edges[i%n], edges[i/n%n], edges[i/n/n]
		if w := want(a, b, c); got != w {
			t.Fatalf("%s of %#x, %#x, %#x is %#x, not %#x", code, a, b, c, got, w)
		}
	}
	runtime.KeepAlive(in)
}

func clamp(v, low, high int64) int64 { return min(max(v, low), high) }

func TestIntegersAtTheEdges(t *testing.T) {
	for code, want := range map[string]func(a, b, c uint32) uint32{
		"add.u32 %r4, %r1, %r2;":   func(a, b, _ uint32) uint32 { return a + b },
		"add.u16x2 %r4, %r1, %r2;": func(a, b, _ uint32) uint32 { return (a+b)&0xffff | (a>>16+b>>16)<<16 },
		"add.s16x2 %r4, %r1, %r2;": func(a, b, _ uint32) uint32 { return (a+b)&0xffff | (a>>16+b>>16)<<16 },
		"add.sat.s32 %r4, %r1, %r2;": func(a, b, _ uint32) uint32 {
			return uint32(clamp(int64(int32(a))+int64(int32(b)), math.MinInt32, math.MaxInt32))
		},
		"sub.sat.s32 %r4, %r1, %r2;": func(a, b, _ uint32) uint32 {
			return uint32(clamp(int64(int32(a))-int64(int32(b)), math.MinInt32, math.MaxInt32))
		},
		"mul.hi.s32 %r4, %r1, %r2;": func(a, b, _ uint32) uint32 { return uint32(int64(int32(a)) * int64(int32(b)) >> 32) },
		"mul.hi.u32 %r4, %r1, %r2;": func(a, b, _ uint32) uint32 { return uint32(uint64(a) * uint64(b) >> 32) },
		"mad.hi.s32 %r4, %r1, %r2, %r3;": func(a, b, c uint32) uint32 {
			return uint32(int64(int32(a))*int64(int32(b))>>32) + c
		},
		"mad.lo.u32 %r4, %r1, %r2, %r3;": func(a, b, c uint32) uint32 { return a*b + c },
		"shl.b32 %r4, %r1, %r2;":         func(a, b, _ uint32) uint32 { return uint32(uint64(a) << min(b, 32)) },
		"shr.u32 %r4, %r1, %r2;":         func(a, b, _ uint32) uint32 { return uint32(uint64(a) >> min(b, 32)) },
		"shr.s32 %r4, %r1, %r2;":         func(a, b, _ uint32) uint32 { return uint32(int64(int32(a)) >> min(b, 32)) },
		"shf.l.wrap.b32 %r4, %r1, %r2, %r3;": func(a, b, c uint32) uint32 {
			return uint32((uint64(b)<<32 | uint64(a)) << (c & 31) >> 32)
		},
		"shf.r.clamp.b32 %r4, %r1, %r2, %r3;": func(a, b, c uint32) uint32 {
			return uint32((uint64(b)<<32 | uint64(a)) >> min(c, 32))
		},
		"min.s32 %r4, %r1, %r2;": func(a, b, _ uint32) uint32 { return uint32(min(int32(a), int32(b))) },
		"max.u32 %r4, %r1, %r2;": func(a, b, _ uint32) uint32 { return max(a, b) },
		"popc.b32 %r4, %r1;":     func(a, _, _ uint32) uint32 { return uint32(bits.OnesCount32(a)) },
		"clz.b32 %r4, %r1;":      func(a, _, _ uint32) uint32 { return uint32(bits.LeadingZeros32(a)) },
		"brev.b32 %r4, %r1;":     func(a, _, _ uint32) uint32 { return bits.Reverse32(a) },
		"abs.s32 %r4, %r1;": func(a, _, _ uint32) uint32 {
			if int32(a) < 0 {
				return -a
			}
			return a
		},
		"bfe.u32 %r4, %r1, %r2, %r3;": func(a, b, c uint32) uint32 {
			pos, n := b&255, c&255
			return uint32(uint64(a) >> min(pos, 32) & (1<<min(n, 32) - 1))
		},
		"bfe.s32 %r4, %r1, %r2, %r3;": func(a, b, c uint32) uint32 {
			pos, n := b&255, c&255
			if n == 0 {
				return 0
			}
			sign := a >> min(pos+n-1, 31) & 1
			r := uint32(0)
			for i := range uint32(32) {
				bit := sign
				if i < n && pos+i <= 31 {
					bit = a >> (pos + i) & 1
				}
				r |= bit << i
			}
			return r
		},
		"lop3.b32 %r4, %r1, %r2, %r3, 0xe8;": func(a, b, c uint32) uint32 { return a&b | b&c | a&c },
		"sad.s32 %r4, %r1, %r2, %r3;": func(a, b, c uint32) uint32 {
			if int32(a) > int32(b) {
				return c + a - b
			}
			return c + b - a
		},
		"add.cc.u32 %r4, %r1, %r2; addc.u32 %r4, %r3, 0;":                         func(a, b, c uint32) uint32 { return c + uint32((uint64(a)+uint64(b))>>32) },
		"sub.cc.u32 %r4, %r1, %r2; subc.u32 %r4, %r3, 0;":                         func(a, b, c uint32) uint32 { return c - uint32((uint64(a)-uint64(b))>>63) },
		"mul.wide.s32 %x1, %r1, %r2; shr.u64 %x1, %x1, 16; cvt.u32.u64 %r4, %x1;": func(a, b, _ uint32) uint32 { return uint32(int64(int32(a)) * int64(int32(b)) >> 16) },
		"setp.lt.s32 %p1, %r1, %r2; selp.u32 %r4, 1, 0, %p1;": func(a, b, _ uint32) uint32 {
			if int32(a) < int32(b) {
				return 1
			}
			return 0
		},
		"cvt.sat.s16.s32 %h1, %r1; cvt.s32.s16 %r4, %h1;": func(a, _, _ uint32) uint32 { return uint32(clamp(int64(int32(a)), -32768, 32767)) },
	} {
		triples(t, words32, code, want)
	}
}

func TestFloatsAtTheEdges(t *testing.T) {
	of := math.Float32frombits
	number := func(f float32) uint32 {
		if f != f {
			return 0x7fffffff
		}
		return math.Float32bits(f)
	}
	flush := func(f float32) float32 {
		if f > -0x1p-126 && f < 0x1p-126 {
			return float32(math.Copysign(0, float64(f)))
		}
		return f
	}
	floats := func(code string) string {
		return "mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3;\n" + code + " mov.b32 %r4, %f4;"
	}
	for code, want := range map[string]func(a, b, c float32) uint32{
		"add.f32 %f4, %f1, %f2;":     func(a, b, _ float32) uint32 { return number(a + b) },
		"sub.f32 %f4, %f1, %f2;":     func(a, b, _ float32) uint32 { return number(a - b) },
		"mul.f32 %f4, %f1, %f2;":     func(a, b, _ float32) uint32 { return number(a * b) },
		"div.rn.f32 %f4, %f1, %f2;":  func(a, b, _ float32) uint32 { return number(a / b) },
		"sqrt.rn.f32 %f4, %f1;":      func(a, _, _ float32) uint32 { return number(float32(math.Sqrt(float64(a)))) },
		"add.ftz.f32 %f4, %f1, %f2;": func(a, b, _ float32) uint32 { return number(flush(flush(a) + flush(b))) },
		"fma.rn.f32 %f4, %f1, %f2, %f3;": func(a, b, c float32) uint32 {
			x, y, z := float64(a), float64(b), float64(c)
			if p := x * y; p != p || math.IsInf(p, 0) || z != z || math.IsInf(z, 0) || p == 0 || z == 0 {
				return number(float32(x*y + z)) // exact before it is rounded, or no number
			}
			exact := new(big.Float).SetPrec(1000).Mul(big.NewFloat(x), big.NewFloat(y))
			exact.Add(exact, big.NewFloat(z))
			if exact.Sign() == 0 {
				return 0
			}
			f, _ := exact.Float32()
			return number(f)
		},
		"min.f32 %f4, %f1, %f2;": func(a, b, _ float32) uint32 {
			switch {
			case a != a && b != b:
				return 0x7fffffff
			case a != a:
				return math.Float32bits(b)
			case b != b:
				return math.Float32bits(a)
			case a == 0 && b == 0:
				return math.Float32bits(a) | math.Float32bits(b)
			}
			return math.Float32bits(min(a, b))
		},
		"max.NaN.f32 %f4, %f1, %f2;": func(a, b, _ float32) uint32 {
			switch {
			case a != a || b != b:
				return 0x7fffffff
			case a == 0 && b == 0:
				return math.Float32bits(a) & math.Float32bits(b)
			}
			return math.Float32bits(max(a, b))
		},
		"add.sat.f32 %f4, %f1, %f2;": func(a, b, _ float32) uint32 {
			v := a + b
			if !(v > 0) {
				return 0
			}
			return math.Float32bits(min(v, 1))
		},
		"cvt.rni.f32.f32 %f4, %f1;": func(a, _, _ float32) uint32 { return number(float32(math.RoundToEven(float64(a)))) },
		"setp.lt.f32 %p1, %f1, %f2; selp.f32 %f4, %f1, %f2, %p1;": func(a, b, _ float32) uint32 {
			if a < b {
				return math.Float32bits(a)
			}
			return math.Float32bits(b)
		},
		"setp.geu.f32 %p1, %f1, %f2; selp.f32 %f4, 0f3f800000, 0f00000000, %p1;": func(a, b, _ float32) uint32 {
			if !(a < b) {
				return 0x3f800000
			}
			return 0
		},
	} {
		triples(t, floats32, floats(code), func(a, b, c uint32) uint32 { return want(of(a), of(b), of(c)) })
	}
	// Toward zero: the exact result cut off.
	cut := func(exact func(a, b *big.Float) *big.Float) func(a, b, c uint32) uint32 {
		return func(a, b, _ uint32) uint32 {
			x, y := of(a), of(b)
			v := exact(big.NewFloat(float64(x)).SetPrec(1000), big.NewFloat(float64(y)).SetPrec(1000))
			f, accuracy := v.Float32()
			if math.IsInf(float64(f), 0) || accuracy != big.Exact && (accuracy == big.Above) == (v.Sign() > 0) {
				f = math.Nextafter32(f, 0)
			}
			return math.Float32bits(f)
		}
	}
	var finite []uint32
	for _, v := range floats32 {
		if f := of(v); f == f && !math.IsInf(float64(f), 0) && f != 0 {
			finite = append(finite, v)
		}
	}
	triples(t, finite, floats("mul.rz.f32 %f4, %f1, %f2;"), cut(func(a, b *big.Float) *big.Float { return a.Mul(a, b) }))
	triples(t, finite, floats("add.rz.f32 %f4, %f1, %f2;"), func(a, b, c uint32) uint32 {
		if of(a) == -of(b) {
			return 0
		}
		return cut(func(a, b *big.Float) *big.Float { return a.Add(a, b) })(a, b, c)
	})
}

func TestFloatsToIntegersAtTheEdges(t *testing.T) {
	triples(t, floats32, "mov.b32 %f1, %r1; cvt.rzi.s32.f32 %r4, %f1;", func(a, _, _ uint32) uint32 {
		f := float64(math.Float32frombits(a))
		if f != f {
			return 0
		}
		return uint32(int32(max(min(math.Trunc(f), math.MaxInt32), math.MinInt32)))
	})
	triples(t, floats32, "mov.b32 %f1, %r1; cvt.rni.u32.f32 %r4, %f1;", func(a, _, _ uint32) uint32 {
		f := float64(math.Float32frombits(a))
		if f != f {
			return 0
		}
		return uint32(max(min(math.RoundToEven(f), math.MaxUint32), 0))
	})
}
