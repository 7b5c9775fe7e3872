// Every form of the instructions of arithmetic and logic, held against a definition in arbitrary precision: the harness, and integers.

package simt_test

import (
	"fmt"
	"math/big"
	"math/bits"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

// form is an instruction whose operands are registers: its word, and the types of its target and of its sources.
type form struct {
	word, types string
	want        func(v [3]uint64) (uint64, bool) // false: PTX leaves the result open
}

// widthOf is how many bits a type has; signedType says whether it is a signed integer.
func widthOf(t string) int {
	switch t {
	case "pred":
		return 1
	case "f16x2", "bf16x2", "u16x2", "s16x2", "e4m3x4":
		return 32
	case "f32x2":
		return 64
	case "bf16", "e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2":
		return 16
	case "e2m1x2", "u8", "s8":
		return 8
	}
	n := 0
	_, err := fmt.Sscanf(t[1:], "%d", &n)
	if err != nil {
		panic(t)
	}
	return n
}

func signedType(t string) bool { return t[0] == 's' }

// registerOf is the register of a place (a, b, c or d) for a type.
func registerOf(t, place string) string {
	switch t {
	case "f32":
		return "%f" + place
	case "f64":
		return "%g" + place
	}
	return map[int]string{1: "%p", 8: "%h", 16: "%h", 32: "%r", 64: "%x"}[widthOf(t)] + place
}

// edgesOf are values of a type at which instructions go wrong.
func edgesOf(t string, few bool) []uint64 {
	var all []uint64
	switch n := widthOf(t); {
	case t == "pred":
		return []uint64{0, 1}
	case t == "f32" && few:
		all = []uint64{0, 1 << 31, 1, 0x007fffff, 0x80800000, 0x3f800000, 0xbf800001, 0x33800000, 0x4b800001, 0xff7fffff, 0x7f800000, 0x7fc00000}
	case t == "f32":
		for _, v := range floats32 {
			all = append(all, uint64(v))
		}
	case t == "f64":
		all = []uint64{0, 1 << 63, 1, 0x800fffffffffffff, 0x10000000000000, 0x3ff0000000000000, 0xbff0000000000001, 0x3ca0000000000000, 0x4330000000000001, 0x7fefffffffffffff,
			0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0x3fd5555555555555, 0x41dfffffffe00000, 0xc1e0000000100000, 0x43e0000000000000}
	case t == "f16", t == "f16x2":
		all = []uint64{0, 0x8000, 1, 0x83ff, 0x0400, 0x3c00, 0xbc01, 0x3555, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x1400, 0x6401, 0x4248}
	case t == "bf16", t == "bf16x2":
		all = []uint64{0, 0x8000, 1, 0x807f, 0x0080, 0x3f80, 0xbf81, 0x3eab, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x3b80, 0x4381, 0x4049}
	case t == "f32x2":
		for i, v := range floats32 {
			all = append(all, uint64(v)|uint64(floats32[(i*7+3)%len(floats32)])<<32)
		}
	case n <= 8:
		for v := range uint64(256) {
			all = append(all, v)
		}
	default:
		mask := ^uint64(0) >> (64 - n)
		for _, v := range []uint64{0, 1, 2, 3, 7, 31, 32, 33, 1 << (n / 2), 1<<(n-1) - 1, 1 << (n - 1), 1<<(n-1) + 1, mask - 1, mask, 0xdeadbeefcafef00d & mask, 0x123456789abcdef & mask} {
			all = append(all, v&mask)
		}
	}
	if strings.HasSuffix(t, "16x2") && t[0] != 'u' && t[0] != 's' {
		for i, v := range all {
			all[i] = v | all[(i*5+3)%len(all)]&0xffff<<16
		}
	}
	return all
}

// check runs a form on all combinations of its sources' edges.
func (f form) check(t *testing.T) {
	t.Helper()
	f.checkAt(t, simt.CheckNothing)
}

func (f form) checkAt(t *testing.T, level simt.Check) {
	t.Helper()
	types := strings.Fields(f.types)
	lists := [3][]uint64{{0}, {0}, {0}}
	operands := []string{registerOf(types[0], "d")}
	for i, s := range types[1:] {
		lists[i] = edgesOf(s, len(types) == 4)
		operands = append(operands, registerOf(s, string("abc"[i])))
	}
	code := f.word + " " + strings.Join(operands, ", ") + ";"
	if strings.Contains(f.word, ";") { // it names its operands itself
		code = f.word
	}
	_ = f.runAt(t, level, code, types[0], lists)
}

// run runs code on all combinations of values, and compares what it leaves in the target.
func (f form) run(t *testing.T, code, target string, lists [3][]uint64) (out []uint64) {
	t.Helper()
	return f.runAt(t, simt.CheckNothing, code, target, lists)
}

func (f form) runAt(t *testing.T, level simt.Check, code, target string, lists [3][]uint64) (out []uint64) {
	t.Helper()
	var values [][3]uint64
	for _, a := range lists[0] {
		for _, b := range lists[1] {
			for _, c := range lists[2] {
				values = append(values, [3]uint64{a, b, c})
			}
		}
	}
	var load strings.Builder
	for i, place := range []string{"a", "b", "c"} {
		fmt.Fprintf(&load, "ld.global.u64 %%x%[1]s, [%%in+%[2]d]; cvt.u32.u64 %%r%[1]s, %%x%[1]s; cvt.u16.u64 %%h%[1]s, %%x%[1]s; mov.b32 %%f%[1]s, %%r%[1]s; mov.b64 %%g%[1]s, %%x%[1]s; "+
			"setp.ne.u64 %%p%[1]s, %%x%[1]s, 0;\n", place, 8*i)
	}
	save := map[string]string{"%h": "cvt.u64.u16 %xd, %hd;", "%r": "cvt.u64.u32 %xd, %rd;", "%x": "", "%f": "mov.b32 %rd, %fd; cvt.u64.u32 %xd, %rd;", "%g": "mov.b64 %xd, %gd;",
		"%p": "selp.u64 %xd, 1, 0, %pd;"}[registerOf(target, "")]
	p := program(t, `.visible .entry k(.param .u64 values, .param .u64 out, .param .u32 n)
{
.reg .pred %pa, %pb, %pc, %pd, %p1, %p2, %end; .reg .b16 %ha, %hb, %hc, %hd; .reg .b32 %ra, %rb, %rc, %rd, %me, %n, %t<9>; .reg .b64 %xa, %xb, %xc, %xd, %in, %out, %u<9>;
.reg .f32 %fa, %fb, %fc, %fd; .reg .f64 %ga, %gb, %gc, %gd;
ld.param.u64 %in, [values]; ld.param.u64 %out, [out]; ld.param.u32 %n, [n];
mov.u32 %me, %ctaid.x; mov.u32 %t1, %tid.x; mov.u32 %t2, %ntid.x; mad.lo.u32 %me, %me, %t2, %t1; setp.ge.u32 %end, %me, %n; @%end ret;
mad.wide.u32 %in, %me, 24, %in; mad.wide.u32 %out, %me, 8, %out;
`+load.String()+code+"\n"+save+"\nst.global.u64 [%out], %xd;\nret;\n}\n")
	out = f.launch(t, p, level, code, values, 256)
	// A warp of which few lanes run takes another way, and one of which some run a third.
	var some [][3]uint64
	for i := 0; i < len(values); i += 1 + len(values)/120 {
		some = append(some, values[i])
	}
	f.launch(t, p, level, code, some, 4)
	f.launch(t, p, level, code, some, 20)
	return out
}

// launch runs the program in blocks of some threads.
func (f form) launch(t *testing.T, p *simt.Program, level simt.Check, code string, values [][3]uint64, threads int) (out []uint64) {
	t.Helper()
	in := onHeap[[3]uint64](len(values))
	out = onHeap[uint64](len(values))
	copy(in, values)
	fault := launch(t, p, "k", simt.Launch{Grid: [3]uint32{uint32((len(values) + threads - 1) / threads), 1, 1}, Block: [3]uint32{uint32(threads), 1, 1}, Check: level, Args: []simt.Arg{
		{Bits: uint64(uintptr(unsafe.Pointer(&in[0]))), Pointer: true, Bytes: int64(24 * len(in))},
		{Bits: uint64(uintptr(unsafe.Pointer(&out[0]))), Pointer: true, Bytes: int64(8 * len(out))}, {Bits: uint64(len(values))}}})
	require.Nil(t, fault, "%s: %v", code, fault)
	for i, v := range values {
		if testing.Short() && len(values) > 100 && i%7 != 0 { // the definitions take their time
			continue
		}
		if want, defined := f.want(v); defined && out[i] != want {
			t.Fatalf("%s of %#x, %#x, %#x is %#x, not %#x, in blocks of %d threads", code, v[0], v[1], v[2], out[i], want, threads)
		}
	}
	runtime.KeepAlive(in)
	return out
}

// number is the integer that bits stand for in a type.
func number(v uint64, t string) *big.Int {
	n := widthOf(t)
	v &= ^uint64(0) >> (64 - n)
	x := new(big.Int).SetUint64(v)
	if signedType(t) && v>>(n-1) != 0 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(n)))
	}
	return x
}

// wrapped is the low bits of an integer.
func wrapped(x *big.Int, n int) uint64 {
	return new(big.Int).And(x, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(n)), big.NewInt(1))).Uint64()
}

// limited is the nearest integer of a type.
func limited(x *big.Int, t string) *big.Int {
	n := uint(widthOf(t))
	low, high := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), n)
	if signedType(t) {
		high.Rsh(high, 1)
		low.Neg(high)
	}
	high.Sub(high, big.NewInt(1))
	switch {
	case x.Cmp(low) < 0:
		return low
	case x.Cmp(high) > 0:
		return high
	}
	return x
}

// integers makes a form whose sources are read as integers of their types and whose result wraps.
func integers(word, types string, f func(v [3]*big.Int) *big.Int) form {
	names := strings.Fields(types)
	return form{word: word, types: types, want: func(v [3]uint64) (uint64, bool) {
		var x [3]*big.Int
		for i, t := range names[1:] {
			if t != "pred" {
				x[i] = number(v[i], t)
			}
		}
		r := f(x)
		if r == nil {
			return 0, false
		}
		return wrapped(r, widthOf(names[0])), true
	}}
}

var allIntegers = []string{"u16", "s16", "u32", "s32", "u64", "s64"}

func TestEveryFormOfIntegers(t *testing.T) {
	var forms []form
	zero := big.NewInt(0)
	plus := func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
	minus := func(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
	times := func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }
	for _, name := range allIntegers {
		n := uint(widthOf(name))
		two, three, four := name+" "+name, name+" "+name+" "+name, name+" "+name+" "+name+" "+name
		high := func(x *big.Int) *big.Int { return new(big.Int).Rsh(x, n) }
		forms = append(forms,
			integers("add."+name, three, func(v [3]*big.Int) *big.Int { return plus(v[0], v[1]) }),
			integers("sub."+name, three, func(v [3]*big.Int) *big.Int { return minus(v[0], v[1]) }),
			integers("mul.lo."+name, three, func(v [3]*big.Int) *big.Int { return times(v[0], v[1]) }),
			integers("mul.hi."+name, three, func(v [3]*big.Int) *big.Int { return high(times(v[0], v[1])) }),
			integers("mad.lo."+name, four, func(v [3]*big.Int) *big.Int { return plus(times(v[0], v[1]), v[2]) }),
			integers("mad.hi."+name, four, func(v [3]*big.Int) *big.Int { return plus(high(times(v[0], v[1])), v[2]) }),
			integers("sad."+name, four, func(v [3]*big.Int) *big.Int { return plus(v[2], new(big.Int).Abs(minus(v[0], v[1]))) }),
			integers("div."+name, three, func(v [3]*big.Int) *big.Int {
				if v[1].Sign() == 0 {
					return nil
				}
				return new(big.Int).Quo(v[0], v[1])
			}),
			integers("rem."+name, three, func(v [3]*big.Int) *big.Int {
				if v[1].Sign() == 0 {
					return nil
				}
				return new(big.Int).Rem(v[0], v[1])
			}),
			integers("min."+name, three, func(v [3]*big.Int) *big.Int {
				if v[0].Cmp(v[1]) < 0 {
					return v[0]
				}
				return v[1]
			}),
			integers("max."+name, three, func(v [3]*big.Int) *big.Int {
				if v[0].Cmp(v[1]) > 0 {
					return v[0]
				}
				return v[1]
			}),
			integers("shr."+name, two+" u32", func(v [3]*big.Int) *big.Int { return new(big.Int).Rsh(v[0], uint(min(v[1].Uint64(), 64))) }),
		)
		for _, c := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
			holds := func(v [3]*big.Int) bool { return comparisonHolds(c, v[0].Cmp(v[1])) }
			forms = append(forms,
				integers("setp."+c+"."+name, "pred "+two, func(v [3]*big.Int) *big.Int { return truth(holds(v)) }),
				integers("set."+c+".u32."+name, "u32 "+two, func(v [3]*big.Int) *big.Int { return new(big.Int).Neg(truth(holds(v))) }))
		}
		if signedType(name) {
			forms = append(forms,
				integers("abs."+name, two, func(v [3]*big.Int) *big.Int { return new(big.Int).Abs(v[0]) }),
				integers("neg."+name, two, func(v [3]*big.Int) *big.Int { return new(big.Int).Neg(v[0]) }))
		}
		if n < 64 {
			wide := fmt.Sprintf("%c%d", name[0], 2*n)
			forms = append(forms,
				integers("mul.wide."+name, wide+" "+two, func(v [3]*big.Int) *big.Int { return times(v[0], v[1]) }),
				integers("mad.wide."+name, wide+" "+two+" "+wide, func(v [3]*big.Int) *big.Int { return plus(times(v[0], v[1]), v[2]) }))
		}
		if n > 16 {
			forms = append(forms,
				integers("bfind."+name, "u32 "+name, func(v [3]*big.Int) *big.Int { return big.NewInt(int64(leading(v[0])) - 1) }),
				integers("bfind.shiftamt."+name, "u32 "+name, func(v [3]*big.Int) *big.Int {
					if at := leading(v[0]); at > 0 {
						return big.NewInt(int64(n) - int64(at))
					}
					return big.NewInt(-1)
				}),
				integers("bfe."+name, two+" u32 u32", func(v [3]*big.Int) *big.Int {
					return extracted(v[0], v[1].Uint64()&255, v[2].Uint64()&255, n, signedType(name))
				}))
			for c := range uint64(12) { // the place and the length are known before it runs
				at, length := []uint64{0, 1, 8, uint64(n) - 1, uint64(n), 255}[c%6], []uint64{8, 1, 64, 0, uint64(n), 3}[(c+c/6)%6]
				reg := registerOf(name, "")
				forms = append(forms, integers(fmt.Sprintf("bfe.%s %[2]sd, %[2]sa, %d, %d;", name, reg, at, length), two, func(v [3]*big.Int) *big.Int {
					return extracted(v[0], at, length, n, signedType(name))
				}))
			}
			// With a carry out and in: a + b + 2^32 c and the like, by two instructions.
			carry := func(word string, low, high func(v [3]*big.Int) *big.Int) {
				reg := registerOf(name, "")
				forms = append(forms, form{fmt.Sprintf("%s.cc.%s %[3]sd, %[3]sa, %[3]sb; %sc.%[2]s %[3]sd, %[3]sc, %[3]sa;", word, name, reg, word), four, func(v [3]uint64) (uint64, bool) {
					u := strings.Replace(name, "s", "u", 1)
					x := [3]*big.Int{number(v[0], u), number(v[1], u), number(v[2], u)}
					first := low(x)
					over := new(big.Int).Rsh(first, n) // 0, 1, or -1 for a borrow
					return wrapped(plus(high(x), over), int(n)), true
				}})
			}
			carry("add", func(v [3]*big.Int) *big.Int { return plus(v[0], v[1]) }, func(v [3]*big.Int) *big.Int { return plus(v[2], v[0]) })
			carry("sub", func(v [3]*big.Int) *big.Int { return minus(v[0], v[1]) }, func(v [3]*big.Int) *big.Int { return minus(v[2], v[0]) })
		}
	}
	for _, name := range []string{"u32", "s32"} {
		four := name + " " + name + " " + name + " " + name
		part := func(x *big.Int) *big.Int {
			v := int64(wrapped(x, 24))
			if signedType(name) && v >= 1<<23 {
				v -= 1 << 24
			}
			return big.NewInt(v)
		}
		product := func(v [3]*big.Int, shift uint) *big.Int {
			return new(big.Int).Rsh(times(part(v[0]), part(v[1])), shift)
		}
		for word, shift := range map[string]uint{"lo": 0, "hi": 16} {
			forms = append(forms,
				integers("mul24."+word+"."+name, four[:11], func(v [3]*big.Int) *big.Int { return product(v, shift) }),
				integers("mad24."+word+"."+name, four, func(v [3]*big.Int) *big.Int { return plus(product(v, shift), v[2]) }))
		}
		for _, other := range []string{"u32", "s32"} {
			forms = append(forms, integers("dp4a."+name+"."+other, name+" u32 u32 "+name, func(v [3]*big.Int) *big.Int {
				sum := v[2]
				for i := range 4 {
					sum = plus(sum, times(field(v[0], i*8, 8, signedType(name)), field(v[1], i*8, 8, signedType(other))))
				}
				return sum
			}))
			for word, base := range map[string]int{"lo": 0, "hi": 16} {
				forms = append(forms, integers("dp2a."+word+"."+name+"."+other, name+" u32 u32 "+name, func(v [3]*big.Int) *big.Int {
					sum := v[2]
					for i := range 2 {
						sum = plus(sum, times(field(v[0], i*16, 16, signedType(name)), field(v[1], base+i*8, 8, signedType(other))))
					}
					return sum
				}))
			}
		}
		forms = append(forms, integers("szext.clamp."+name, name+" u32 u32", func(v [3]*big.Int) *big.Int {
			return field(v[0], 0, int(min(v[1].Uint64(), 32)), signedType(name))
		}), integers("szext.wrap."+name, name+" u32 u32", func(v [3]*big.Int) *big.Int {
			return field(v[0], 0, int(v[1].Uint64()%32), signedType(name))
		}))
	}
	saturating := func(word, types string, f func(v [3]*big.Int) *big.Int) {
		forms = append(forms, integers(word, types, func(v [3]*big.Int) *big.Int { return limited(f(v), "s32") }))
	}
	saturating("add.sat.s32", "s32 s32 s32", func(v [3]*big.Int) *big.Int { return plus(v[0], v[1]) })
	saturating("sub.sat.s32", "s32 s32 s32", func(v [3]*big.Int) *big.Int { return minus(v[0], v[1]) })
	saturating("mad.hi.sat.s32", "s32 s32 s32 s32", func(v [3]*big.Int) *big.Int { return plus(new(big.Int).Rsh(times(v[0], v[1]), 32), v[2]) })
	saturating("mad24.hi.sat.s32", "s32 s32 s32 s32", func(v [3]*big.Int) *big.Int {
		return plus(new(big.Int).Rsh(times(field(v[0], 0, 24, true), field(v[1], 0, 24, true)), 16), v[2])
	})
	forms = append(forms, integers("max.relu.s32", "s32 s32 s32", func(v [3]*big.Int) *big.Int {
		r := zero
		for _, x := range v[:2] {
			if x.Cmp(r) > 0 {
				r = x
			}
		}
		return r
	}))
	for _, f := range append(forms, bitForms()...) {
		f.check(t)
	}
}

func truth(yes bool) *big.Int {
	if yes {
		return big.NewInt(1)
	}
	return big.NewInt(0)
}

func comparisonHolds(c string, order int) bool {
	switch c {
	case "eq":
		return order == 0
	case "ne":
		return order != 0
	case "lt", "lo":
		return order < 0
	case "le", "ls":
		return order <= 0
	case "gt", "hi":
		return order > 0
	}
	return order >= 0
}

// leading is the number of bits up to the highest that differs from the sign.
func leading(x *big.Int) int {
	if x.Sign() < 0 {
		x = new(big.Int).Not(x)
	}
	return x.BitLen()
}

// field is some bits of an integer as a number.
func field(x *big.Int, at, n int, signed bool) *big.Int {
	if n == 0 {
		return big.NewInt(0)
	}
	v := new(big.Int).SetUint64(wrapped(new(big.Int).Rsh(x, uint(at)), n))
	if signed && v.Bit(n-1) != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(n)))
	}
	return v
}

// extracted is bfe: bits beyond the register repeat its highest one, or are 0.
func extracted(x *big.Int, at, n uint64, width uint, signed bool) *big.Int {
	if n == 0 {
		return big.NewInt(0)
	}
	if !signed {
		return field(x, int(at), int(min(n, uint64(width))), false)
	}
	// A signed number has its sign in all higher bits already.
	top := int(min(at+n-1, uint64(width)-1))
	sign := x.Bit(top)
	kept := max(0, top-int(at)+1)
	v := field(x, int(at), kept, false)
	if kept == 0 {
		v = big.NewInt(0)
	}
	if sign != 0 {
		v = new(big.Int).Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(kept)))
	}
	return v
}

// bitForms are the instructions on bits.
func bitForms() (forms []form) {
	plain := func(word, types string, f func(a, b, c uint64) uint64) {
		n := widthOf(strings.Fields(types)[0])
		forms = append(forms, form{word, types, func(v [3]uint64) (uint64, bool) { return f(v[0], v[1], v[2]) & (^uint64(0) >> (64 - n)), true }})
	}
	for _, name := range []string{"b16", "b32", "b64", "pred"} {
		three := name + " " + name + " " + name
		plain("and."+name, three, func(a, b, _ uint64) uint64 { return a & b })
		plain("or."+name, three, func(a, b, _ uint64) uint64 { return a | b })
		plain("xor."+name, three, func(a, b, _ uint64) uint64 { return a ^ b })
		plain("not."+name, name+" "+name, func(a, _, _ uint64) uint64 { return ^a })
		if name == "pred" {
			continue
		}
		n := widthOf(name)
		plain("cnot."+name, name+" "+name, func(a, _, _ uint64) uint64 { return truth(a == 0).Uint64() })
		plain("shl."+name, name+" "+name+" u32", func(a, b, _ uint64) uint64 { return a << min(b, 64) })
		plain("selp."+name, name+" "+name+" "+name+" pred", func(a, b, c uint64) uint64 { return [2]uint64{b, a}[c] })
		plain("slct."+name+".s32", name+" "+name+" "+name+" s32", func(a, b, c uint64) uint64 { return [2]uint64{a, b}[c>>31] })
		if n == 16 {
			continue
		}
		plain("popc."+name, "u32 "+name, func(a, _, _ uint64) uint64 { return uint64(strings.Count(fmt.Sprintf("%b", a), "1")) })
		plain("clz."+name, "u32 "+name, func(a, _, _ uint64) uint64 { return uint64(n - bits.Len64(a)) })
		plain("brev."+name, name+" "+name, func(a, _, _ uint64) (r uint64) {
			for i := range n {
				r = r<<1 | a>>i&1
			}
			return r
		})
		for c := range uint64(5) { // the place and the length are further operands
			at, length := c*9%40, c*13%37
			reg := registerOf(name, "")
			plain(fmt.Sprintf("bfi.%s %[2]sd, %[2]sa, %[2]sb, %d, %d;", name, reg, at, length), name+" "+name+" "+name, func(a, b, _ uint64) uint64 {
				for i := range length {
					if at+i < uint64(n) {
						b = b&^(1<<(at+i)) | a>>i&1<<(at+i)
					}
				}
				return b
			})
		}
	}
	for _, left := range []bool{true, false} {
		for _, wrap := range []bool{true, false} {
			word := map[bool]string{true: "shf.l", false: "shf.r"}[left] + map[bool]string{true: ".wrap", false: ".clamp"}[wrap] + ".b32"
			plain(word, "b32 b32 b32 u32", func(a, b, c uint64) uint64 {
				if wrap {
					c %= 32
				}
				c = min(c, 32)
				return uint64(uint32([2]uint64{(b<<32 | a) >> c, (b<<32 | a) << c >> 32}[truth(left).Uint64()]))
			})
		}
	}
	for _, table := range []uint64{0, 0xff, 0x80, 0xfe, 0x96, 0x3c, 0xe8, 0x1b} {
		compute := func(a, b, c uint64) (r uint64) {
			for i := range 32 {
				r |= table >> (a>>i&1<<2 | b>>i&1<<1 | c>>i&1) & 1 << i
			}
			return r
		}
		plain(fmt.Sprintf("lop3.b32 %%rd, %%ra, %%rb, %%rc, %d;", table), "b32 b32 b32 b32", compute)
		plain(fmt.Sprintf("setp.eq.u32 %%p1, %%ra, 7; lop3.or.b32 %%rd|%%p2, %%ra, %%rb, %%rc, %d, %%p1; selp.u32 %%rd, 1, 0, %%p2;", table), "b32 b32 b32 b32", func(a, b, c uint64) uint64 {
			return truth(compute(a, b, c) != 0 || a == 7).Uint64()
		})
		plain(fmt.Sprintf("setp.ne.u32 %%p1, %%ra, 7; lop3.and.b32 _|%%pd, %%ra, %%rb, %%rc, %d, %%p1;", table), "pred b32 b32 b32", func(a, b, c uint64) uint64 {
			return truth(compute(a, b, c) != 0 && a != 7).Uint64()
		})
	}
	bytes := func(a, b uint64) (all [8]uint64) {
		for i := range all {
			all[i] = (b<<32 | a) >> (8 * i) & 255
		}
		return all
	}
	plain("prmt.b32", "b32 b32 b32 b32", func(a, b, c uint64) (r uint64) {
		for i := range 4 {
			v := bytes(a, b)[c>>(4*i)&7]
			if c>>(4*i)&8 != 0 {
				v = 255 * (v >> 7)
			}
			r |= v << (8 * i)
		}
		return r
	})
	// For each mode, the bytes that the four values of the selector's lower bits take, the highest first.
	for mode, rows := range map[string][4]string{
		"f4e": {"3210", "4321", "5432", "6543"}, "b4e": {"5670", "6701", "7012", "0123"}, "rc8": {"0000", "1111", "2222", "3333"},
		"ecl": {"3210", "3211", "3222", "3333"}, "ecr": {"0000", "1110", "2210", "3210"}, "rc16": {"1010", "3232", "1010", "3232"},
	} {
		plain("prmt.b32."+mode, "b32 b32 b32 b32", func(a, b, c uint64) (r uint64) {
			for _, digit := range rows[c&3] {
				r = r<<8 | bytes(a, b)[digit-'0']
			}
			return r
		})
	}
	for _, wrap := range []bool{true, false} {
		plain("bmsk."+map[bool]string{true: "wrap", false: "clamp"}[wrap]+".b32", "b32 b32 b32", func(a, b, _ uint64) (r uint64) {
			if wrap {
				a, b = a%32, b%32
			}
			for i := a; i < 32 && i < a+b; i++ {
				r |= 1 << i
			}
			return r
		})
	}
	plain("fns.b32", "b32 b32 u32 s32", func(mask, base, offset uint64) uint64 {
		if base > 31 {
			return 0xffffffff
		}
		at, n := int(base), int(int32(offset))
		if n == 0 {
			if mask>>at&1 == 0 {
				return 0xffffffff
			}
			return base
		}
		step := 1
		if n < 0 {
			step, n = -1, -n
		}
		for ; at >= 0 && at < 32; at += step {
			if mask>>at&1 != 0 {
				if n--; n == 0 {
					return uint64(at)
				}
			}
		}
		return 0xffffffff
	})
	for _, c := range []string{"lo", "ls", "hi", "hs"} {
		for _, name := range []string{"u16", "u32", "u64"} {
			plain("setp."+c+"."+name, "pred "+name+" "+name, func(a, b, _ uint64) uint64 {
				return truth(comparisonHolds(c, new(big.Int).SetUint64(a).Cmp(new(big.Int).SetUint64(b)))).Uint64()
			})
		}
	}
	return forms
}
