// Every form of the operations among the lanes of a warp, and of atomic operations, held against their definitions.

package simt_test

import (
	"cmp"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

// laneForm is an operation among lanes: code that sets %rd, and %pd or not. want tells what a lane of the mask gets; false: it is left open.
type laneForm struct {
	code string
	want func(lane int, mask uint32, in *[32][3]uint64) (d uint32, p bool, defined bool)
}

// check runs the form in blocks of one warp, of which the lanes of a mask take part.
func (f laneForm) check(t *testing.T, level simt.Check) {
	t.Helper()
	const warps = 60
	p := program(t, `.visible .entry k(.param .u64 values, .param .u64 out)
{
.reg .pred %pa, %pd, %in; .reg .b32 %ra, %rb, %rc, %rd, %mask, %t<9>; .reg .b64 %xa, %xd, %u<9>, %from, %to; .reg .f32 %fa, %fd;
ld.param.u64 %from, [values]; ld.param.u64 %to, [out];
mov.u32 %t1, %ctaid.x; mov.u32 %t2, %laneid; mad.lo.u32 %t1, %t1, 32, %t2;
mad.wide.u32 %from, %t1, 32, %from; mad.wide.u32 %to, %t1, 8, %to;
ld.global.u64 %xa, [%from]; ld.global.u32 %ra, [%from]; ld.global.u32 %rb, [%from+8]; ld.global.u32 %rc, [%from+16]; ld.global.u32 %mask, [%from+24];
mov.b32 %fa, %ra; and.b32 %t3, %ra, 1; setp.ne.u32 %pa, %t3, 0; setp.ne.u32 %pd, 0, 0; mov.u32 %rd, 0;
shr.u32 %t4, %mask, %t2; and.b32 %t4, %t4, 1; setp.ne.u32 %in, %t4, 0; @!%in ret;
`+f.code+`
selp.u32 %t5, 1, 0, %pd; mov.b64 %xd, {%rd, %t5};
st.global.u64 [%to], %xd;
ret;
}
`)
	r := rand.New(rand.NewPCG(1, 2))
	type row [4]uint64
	rows, out := onHeap[row](warps*32), onHeap[uint64](warps*32)
	inputs, masks := make([][32][3]uint64, warps), make([]uint32, warps)
	for w := range warps {
		masks[w] = []uint32{^uint32(0), 1, 1 << 31, 0xffff, 0x55555555, r.Uint32() | 1<<r.IntN(32)}[min(w%8, 5)]
		same, width := r.Uint64(), 1<<r.IntN(6)
		for lane := range 32 {
			a := []uint64{r.Uint64(), same, same ^ 1<<r.IntN(64), uint64(r.IntN(3)), floats64of32[r.IntN(len(floats64of32))]}[(w/8+r.IntN(2))%5]
			if w%10 == 9 {
				a = same
			}
			control := uint64(32-width)<<8 | 31 // of __shfl_sync with a width
			if strings.Contains(f.code, ".up") {
				control = uint64(32-width) << 8
			}
			if w%3 == 2 {
				control = uint64(r.Uint32())
			}
			inputs[w][lane] = [3]uint64{a, uint64(r.IntN(34)), control}
			rows[w*32+lane] = row{a, inputs[w][lane][1], control, uint64(masks[w])}
		}
	}
	fault := launch(t, p, "k", simt.Launch{Grid: [3]uint32{warps, 1, 1}, Block: [3]uint32{32, 1, 1}, Check: level, Args: []simt.Arg{
		{Bits: uint64(uintptr(unsafe.Pointer(&rows[0]))), Pointer: true, Bytes: 32 * 32 * warps}, {Bits: uint64(uintptr(unsafe.Pointer(&out[0]))), Pointer: true, Bytes: 8 * 32 * warps}}})
	require.Nil(t, fault, "%s: %v", f.code, fault)
	for w := range warps {
		for lane := range 32 {
			if masks[w]>>lane&1 == 0 {
				continue
			}
			d, p, defined := f.want(lane, masks[w], &inputs[w])
			if want := uint64(d) | uint64(truthWord(p))<<32; defined && out[w*32+lane] != want {
				t.Fatalf("%s: lane %d of %#x with %#x is %#x, not %#x", f.code, lane, masks[w], inputs[w][lane], out[w*32+lane], want)
			}
		}
	}
	runtime.KeepAlive(rows)
}

func truthWord(yes bool) uint32 {
	if yes {
		return 1
	}
	return 0
}

// floats64of32 are words that are interesting as floats.
var floats64of32 = []uint64{0, 1 << 31, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x80000001, 0x41200000}

// shuffles is shfl by the pseudo-code of PTX: the lane that it reads, and whether that lane is in range.
func shuffled(mode string, lane int, b, c uint64) (source int, inside bool) {
	delta, clamp, segment := int(b%32), int(c%32), int(c>>8%32)
	last := lane&segment | clamp&(31-segment)
	switch mode {
	case "up":
		source = lane - delta
		inside = source >= last
	case "down":
		source = lane + delta
		inside = source <= last
	case "bfly":
		source = lane ^ delta
		inside = source <= last
	case "idx":
		source = lane&segment | delta&(31-segment)
		inside = source <= last
	}
	if !inside {
		source = lane
	}
	return source, inside
}

func laneForms() (forms []laneForm) {
	for _, mode := range []string{"up", "down", "bfly", "idx"} {
		for _, code := range []string{"shfl.sync." + mode + ".b32 %rd|%pd, %ra, %rb, %rc, %mask;", "shfl.sync." + mode + ".b32 %rd, %ra, %rb, %rc, %mask;",
			"shfl." + mode + ".b32 %rd|%pd, %ra, %rb, %rc;", "shfl.sync." + mode + ".b32 %ra|%pd, %ra, %rb, %rc, %mask; mov.u32 %rd, %ra;"} {
			answers := strings.Contains(code, "|%pd")
			forms = append(forms, laneForm{code, func(lane int, mask uint32, in *[32][3]uint64) (uint32, bool, bool) {
				source, inside := shuffled(mode, lane, in[lane][1], in[lane][2])
				return uint32(in[source][0]), inside && answers, mask>>source&1 != 0
			}})
		}
	}
	for _, negated := range []bool{false, true} {
		p := map[bool]string{false: "%pa", true: "!%pa"}[negated]
		ballot := func(mask uint32, in *[32][3]uint64) (yes uint32) {
			for i := range 32 {
				if mask>>i&1 != 0 && (in[i][0]&1 != 0) != negated {
					yes |= 1 << i
				}
			}
			return yes
		}
		for mode, holds := range map[string]func(yes, mask uint32) bool{
			"all": func(yes, mask uint32) bool { return yes == mask }, "any": func(yes, _ uint32) bool { return yes != 0 },
			"uni": func(yes, mask uint32) bool { return yes == 0 || yes == mask }} {
			for _, code := range []string{"vote.sync." + mode + ".pred %pd, " + p + ", %mask;", "vote." + mode + ".pred %pd, " + p + ";"} {
				forms = append(forms, laneForm{code, func(_ int, mask uint32, in *[32][3]uint64) (uint32, bool, bool) {
					return 0, holds(ballot(mask, in), mask), true
				}})
			}
		}
		for _, code := range []string{"vote.sync.ballot.b32 %rd, " + p + ", %mask;", "vote.ballot.b32 %rd, " + p + ";"} {
			forms = append(forms, laneForm{code, func(_ int, mask uint32, in *[32][3]uint64) (uint32, bool, bool) { return ballot(mask, in), false, true }})
		}
	}
	for _, n := range []int{32, 64} {
		register := map[int]string{32: "%ra", 64: "%xa"}[n]
		equal := func(lane int, mask uint32, in *[32][3]uint64) (same uint32) {
			for i := range 32 {
				if mask>>i&1 != 0 && (in[i][0]^in[lane][0])<<(64-n) == 0 {
					same |= 1 << i
				}
			}
			return same
		}
		forms = append(forms, laneForm{fmt.Sprintf("match.any.sync.b%d %%rd, %s, %%mask;", n, register),
			func(lane int, mask uint32, in *[32][3]uint64) (uint32, bool, bool) {
				return equal(lane, mask, in), false, true
			}})
		for _, target := range []string{"%rd", "%rd|%pd"} {
			forms = append(forms, laneForm{fmt.Sprintf("match.all.sync.b%d %s, %s, %%mask;", n, target, register), func(lane int, mask uint32, in *[32][3]uint64) (uint32, bool, bool) {
				if equal(lane, mask, in) != mask {
					return 0, false, true
				}
				return mask, target != "%rd", true
			}})
		}
	}
	for _, name := range []string{"add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"} {
		forms = append(forms, laneForm{"redux.sync." + name + " %rd, %ra, %mask;", func(_ int, mask uint32, in *[32][3]uint64) (uint32, bool, bool) {
			var all []uint32
			for i := range 32 {
				if mask>>i&1 != 0 {
					all = append(all, uint32(in[i][0]))
				}
			}
			switch name {
			case "min.u32":
				return slices.Min(all), false, true
			case "max.u32":
				return slices.Max(all), false, true
			case "min.s32", "max.s32":
				slices.SortFunc(all, func(a, b uint32) int { return int(int64(int32(a)) - int64(int32(b))) })
				return all[map[string]int{"min.s32": 0, "max.s32": len(all) - 1}[name]], false, true
			}
			total := all[0]
			for _, v := range all[1:] {
				switch name[:3] {
				case "add":
					total += v
				case "and":
					total &= v
				case "xor":
					total ^= v
				default:
					total |= v
				}
			}
			return total, false, true
		}})
	}
	for _, name := range []string{"min", "max", "min.abs", "max.abs", "min.NaN", "max.NaN", "min.abs.NaN", "max.abs.NaN"} {
		forms = append(forms, laneForm{"redux.sync." + name + ".f32 %fd, %fa, %mask; mov.b32 %rd, %fd;", func(_ int, mask uint32, in *[32][3]uint64) (uint32, bool, bool) {
			const sign, infinity, nan = 1 << 31, 0x7f800000, 0x7fffffff
			place := func(v uint32) int64 { // in the order of numbers, -0 before 0
				if v&sign != 0 {
					return -1 - int64(v&^sign)
				}
				return int64(v)
			}
			var numbers []uint32
			for i := range 32 {
				v := uint32(in[i][0])
				if strings.Contains(name, "abs") {
					v &^= sign
				}
				if mask>>i&1 != 0 && v&^sign <= infinity {
					numbers = append(numbers, v)
				}
			}
			lanes := bits.OnesCount32(mask)
			if len(numbers) == 0 || strings.Contains(name, "NaN") && len(numbers) < lanes {
				return nan, false, lanes > 1 || strings.Contains(name, "abs")
			}
			slices.SortFunc(numbers, func(a, b uint32) int { return cmp.Compare(place(a), place(b)) })
			return numbers[map[string]int{"min": 0, "max": len(numbers) - 1}[name[:3]]], false, true
		}})
	}
	forms = append(forms,
		laneForm{"activemask.b32 %rd;", func(_ int, mask uint32, _ *[32][3]uint64) (uint32, bool, bool) { return mask, false, true }},
		laneForm{"elect.sync %rd|%pd, %mask;", func(lane int, mask uint32, _ *[32][3]uint64) (uint32, bool, bool) {
			first := bits.TrailingZeros32(mask)
			return uint32(first), lane == first, true
		}})
	return forms
}

func TestEveryFormAmongLanes(t *testing.T) {
	for _, f := range laneForms() {
		f.check(t, simt.CheckNothing)
		f.check(t, simt.CheckFull)
	}
}

// combined is the value that an atomic operation leaves, from the old value and the operands. hidden is where .f32 is not flushed.
func combined(operation, t string, old, b, c uint64, shared bool) uint64 {
	n := widthOf(t)
	keep := ^uint64(0) >> (64 - n)
	old, b, c = old&keep, b&keep, c&keep
	signed := func(v uint64) *big.Int { return number(v, t) }
	switch operation {
	case "and":
		return old & b
	case "or":
		return old | b
	case "xor":
		return old ^ b
	case "exch":
		return b
	case "cas":
		if old == b {
			return c
		}
		return old
	case "inc":
		if old >= b {
			return 0
		}
		return old + 1
	case "dec":
		if old == 0 || old > b {
			return b
		}
		return old - 1
	case "min":
		if signed(b).Cmp(signed(old)) < 0 {
			return b
		}
		return old
	case "max":
		if signed(b).Cmp(signed(old)) > 0 {
			return b
		}
		return old
	}
	one, paired := strings.CutSuffix(t, "x2")
	l, float := layouts[one]
	if !float {
		return (old + b) & keep
	}
	h := howOf("add")
	if t == "f32" && !shared { // as PTX describes it: only shared memory keeps denormals
		h = howOf("add.ftz")
	}
	sum := func(shift int) uint64 {
		mask := ^uint64(0) >> (64 - l.bits())
		return l.encode(added(l.input(old>>shift&mask, h), l.input(b>>shift&mask, h), h), h) << shift
	}
	if paired {
		return sum(0) | sum(l.bits())
	}
	return sum(0)
}

// atomicForms are two for each operation: what it returns, and what it leaves in memory with the bytes beside.
func atomicForms(space string) (forms []form) {
	cell := map[string]string{"global": "mov.u64 %u1, %out;",
		"shared":   ".shared .align 8 .b8 cells[2048]; mov.u32 %t2, cells; mad.lo.u32 %t2, %t1, 8, %t2; cvt.u64.u32 %u1, %t2;",
		"generic":  ".shared .align 8 .b8 cells[2048]; mov.u32 %t2, cells; mad.lo.u32 %t2, %t1, 8, %t2; cvt.u64.u32 %u1, %t2; cvta.shared.u64 %u1, %u1;",
		"anywhere": "mov.u64 %u1, %out;"}[space]
	dot := map[string]string{"global": ".global", "shared": ".shared"}[space]
	shared := space == "shared" || space == "generic"
	add := func(word, operation, t string) {
		word = strings.ReplaceAll(word, "SPACE", dot)
		b, c := registerOf(t, "b"), registerOf(t, "c")
		types := "u64 u64 " + t
		operands := b
		if operation == "cas" {
			operands, types = b+", "+c, types+" "+t
		}
		n := widthOf(t)
		fill := cell + " st" + dot + ".u64 [%u1], %xa; "
		if strings.HasPrefix(word, "atom") {
			forms = append(forms, form{fill + word + " " + registerOf(t, "d") + ", [%u1], " + operands + ";", t + strings.TrimPrefix(types, "u64"),
				func(v [3]uint64) (uint64, bool) { return v[0] & (^uint64(0) >> (64 - n)), true }})
			word += " " + registerOf(t, "d") + ","
		}
		forms = append(forms, form{word: fill + word + " [%u1], " + operands + "; ld" + dot + ".u64 %xd, [%u1];", types: types, want: func(v [3]uint64) (uint64, bool) {
			keep := ^uint64(0) >> (64 - n)
			return v[0]&^keep | combined(operation, t, v[0], v[1], v[2], shared)&keep, true
		}})
	}
	for operation, types := range map[string]string{"and": "b32 b64", "or": "b32 b64", "xor": "b32 b64", "exch": "b32 b64", "cas": "b16 b32 b64", "inc": "u32", "dec": "u32",
		"min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64", "add": "u32 s32 u64 f32 f64 f16 f16x2 bf16 bf16x2"} {
		for _, t := range strings.Fields(types) {
			word := "SPACE." + operation
			if strings.Contains(t, "f16") {
				word += ".noftz"
			}
			add("atom"+word+"."+t, operation, t)
			if operation != "exch" && operation != "cas" {
				add("red"+word+"."+t, operation, t)
			}
		}
	}
	if space != "global" && space != "shared" {
		return forms
	}
	for _, order := range []string{".relaxed", ".acquire", ".release", ".acq_rel"} {
		for _, scope := range []string{".cta", ".cluster", ".gpu", ".sys"} {
			add("atom"+order+scope+"SPACE.add.u32", "add", "u32")
			add("atom"+order+scope+"SPACE.cas.b32", "cas", "b32")
			if order == ".relaxed" || order == ".release" {
				add("red"+order+scope+"SPACE.max.s32", "max", "s32")
			}
		}
	}
	return forms
}

func TestEveryFormOfAtomics(t *testing.T) {
	for _, space := range []string{"global", "shared", "generic", "anywhere"} {
		forms := atomicForms(space)
		slices.SortFunc(forms, func(a, b form) int { return strings.Compare(a.word, b.word) })
		for _, f := range forms {
			f.check(t)
			if dotted := strings.Contains(f.word, ".shared.") || strings.Contains(f.word, ".global."); dotted && !testing.Short() {
				f.checkAt(t, simt.CheckFull)
			}
		}
	}
}
