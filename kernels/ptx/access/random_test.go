// Random arithmetic on the number of a thread: what the analysis says of the bytes agrees with computing the address of every thread.

package access

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/ptx"
)

// arithmetic is a random program without jumps but one, and what it computes for a number.
type arithmetic struct {
	text  string
	steps []func(r []uint32) uint32
	guard func(r []uint32) bool // the thread goes on
	index func(v uint32) int64  // the element that the last register names
	shift int64                 // bytes added in the access
}

// drawArithmetic makes a program whose registers are %i and then those of its steps. With fields, it may extract
// some.
func drawArithmetic(rng *rand.Rand, fields bool) *arithmetic {
	p := &arithmetic{}
	var text strings.Builder
	name := func(k int) string {
		if k == 0 {
			return "%i"
		}
		return fmt.Sprintf("%%r%d", k+4)
	}
	for k := range 1 + rng.IntN(5) {
		a, b := rng.IntN(k+1), rng.IntN(k+1)
		signed := rng.IntN(2) == 0
		t := "u32"
		if signed {
			t = "s32"
		}
		constant := uint32(rng.IntN(64))
		if rng.IntN(4) == 0 {
			constant = uint32(rng.IntN(40)) - 20
		}
		second, value := name(b), func(r []uint32) uint32 { return r[b] }
		if rng.IntN(2) == 0 {
			second, value = fmt.Sprint(constant), func([]uint32) uint32 { return constant }
			if signed {
				second = fmt.Sprint(int32(constant))
			}
		}
		line, step := "", func([]uint32) uint32 { return 0 }
		two := func(op string, f func(x, y uint32) uint32) {
			line, step = fmt.Sprintf("%s %%r%d, %s, %s;", op, k+5, name(a), second), func(r []uint32) uint32 { return f(r[a], value(r)) }
		}
		small := constant % 32
		switch kind := rng.IntN(20); {
		case kind == 0:
			two("add."+t, func(x, y uint32) uint32 { return x + y })
		case kind == 1:
			two("sub."+t, func(x, y uint32) uint32 { return x - y })
		case kind == 2:
			two("mul.lo."+t, func(x, y uint32) uint32 { return x * y })
		case kind == 3:
			two("and.b32", func(x, y uint32) uint32 { return x & y })
		case kind == 4:
			two("or.b32", func(x, y uint32) uint32 { return x | y })
		case kind == 5:
			two("xor.b32", func(x, y uint32) uint32 { return x ^ y })
		case kind < 8:
			smaller := rng.IntN(2) == 0
			two(map[bool]string{true: "min.", false: "max."}[smaller]+t, func(x, y uint32) uint32 {
				less := x < y
				if signed {
					less = int32(x) < int32(y)
				}
				if less == smaller {
					return x
				}
				return y
			})
		case kind < 10:
			by, rest := 1+constant%60, rng.IntN(2) == 0
			line = fmt.Sprintf("%s.%s %%r%d, %s, %d;", map[bool]string{true: "rem", false: "div"}[rest], t, k+5, name(a), by)
			step = func(r []uint32) uint32 {
				q, m := r[a]/by, r[a]%by
				if signed {
					q, m = uint32(int32(r[a])/int32(by)), uint32(int32(r[a])%int32(by))
				}
				if rest {
					return m
				}
				return q
			}
		case kind == 10:
			line, step = fmt.Sprintf("shl.b32 %%r%d, %s, %d;", k+5, name(a), small%8), func(r []uint32) uint32 { return r[a] << (small % 8) }
		case kind == 11:
			line, step = fmt.Sprintf("shr.%s %%r%d, %s, %d;", t, k+5, name(a), small), func(r []uint32) uint32 {
				if signed {
					return uint32(int32(r[a]) >> small)
				}
				return r[a] >> small
			}
		case kind == 12 && fields:
			at, n := small, constant%9
			line, step = fmt.Sprintf("bfe.u32 %%r%d, %s, %d, %d;", k+5, name(a), at, n), func(r []uint32) uint32 { return r[a] >> at & (1<<n - 1) }
		case kind == 13:
			line, step = fmt.Sprintf("neg.s32 %%r%d, %s;", k+5, name(a)), func(r []uint32) uint32 { return -r[a] }
		case kind == 14:
			line, step = fmt.Sprintf("not.b32 %%r%d, %s;", k+5, name(a)), func(r []uint32) uint32 { return ^r[a] }
		case kind == 15:
			line, step = fmt.Sprintf("cvt.s32.s8 %%r%d, %s;", k+5, name(a)), func(r []uint32) uint32 { return uint32(int8(r[a])) }
		case kind == 16:
			line, step = fmt.Sprintf("cvt.u32.u16 %%r%d, %s;", k+5, name(a)), func(r []uint32) uint32 { return uint32(uint16(r[a])) }
		case kind == 17:
			line = fmt.Sprintf("setp.lt.s32 d, %s, %d; selp.b32 %%r%d, %s, %s, d;", name(a), int32(constant), k+5, name(b), second)
			step = func(r []uint32) uint32 {
				if int32(r[a]) < int32(constant) {
					return r[b]
				}
				return value(r)
			}
		case kind == 18:
			line = fmt.Sprintf("setp.ge.s32 d, %s, %d; mov.u32 %%r%d, %s; @d mov.u32 %%r%d, %s;", name(a), int32(constant), k+5, second, k+5, name(b))
			step = func(r []uint32) uint32 {
				if int32(r[a]) >= int32(constant) {
					return r[b]
				}
				return value(r)
			}
		default:
			line = fmt.Sprintf("mad.lo.%s %%r%d, %s, %d, %s;", t, k+5, name(a), small, name(b))
			step = func(r []uint32) uint32 { return r[a]*small + r[b] }
		}
		text.WriteString(line + " ")
		p.steps = append(p.steps, step)
	}
	p.guard = func([]uint32) bool { return true }
	if rng.IntN(2) == 0 { // a thread leaves, or its store is predicated
		at, bound, signed := rng.IntN(len(p.steps)+1), uint32(rng.IntN(300)), rng.IntN(2) == 0
		words := []string{"lt", "le", "gt", "ge", "eq", "ne"}
		which := rng.IntN(len(words))
		holds := func(r []uint32) bool {
			x, y := int64(r[at]), int64(bound)
			if signed {
				x, y = int64(int32(r[at])), int64(int32(bound))
			}
			return []bool{x < y, x <= y, x > y, x >= y, x == y, x != y}[which]
		}
		t := map[bool]string{true: "s32", false: "u32"}[signed]
		fmt.Fprintf(&text, "setp.%s.%s c, %s, %d; @c bra E; ", words[which], t, name(at), bound)
		p.guard = func(r []uint32) bool { return !holds(r) }
	}
	signed := rng.IntN(2) == 0
	p.shift = int64(rng.IntN(5)-2) * 4
	last := name(len(p.steps))
	t, longer := "u32", "cvt.u64.u32 %a3, "+last+"; "
	if signed {
		t, longer = "s32", "cvt.s64.s32 %a3, "+last+"; "
	}
	whole := func(v uint32) int64 {
		if signed {
			return int64(int32(v))
		}
		return int64(v)
	}
	by, more := int64(1+rng.IntN(200)), int64(0)
	p.index = whole
	switch rng.IntN(7) {
	case 0:
		text.WriteString(longer + "shl.b64 %a1, %a3, 2; ")
	case 1:
		text.WriteString(longer + "mul.lo.s64 %a1, %a3, 4; ")
	case 2:
		more = 8
		fmt.Fprintf(&text, "mov.u64 %%a4, 8; mad.wide.%s %%a1, %s, 4, %%a4; ", t, last)
	case 3:
		fmt.Fprintf(&text, "%srem.s64 %%a3, %%a3, %d; mul.lo.s64 %%a1, %%a3, 4; ", longer, by)
		p.index = func(v uint32) int64 { return whole(v) % by }
	case 4:
		fmt.Fprintf(&text, "%smin.s64 %%a3, %%a3, %d; max.s64 %%a3, %%a3, -5; shl.b64 %%a1, %%a3, 2; ", longer, by)
		p.index = func(v uint32) int64 { return max(-5, min(whole(v), by)) }
	default:
		fmt.Fprintf(&text, "mul.wide.%s %%a1, %s, 4; ", t, last)
	}
	fmt.Fprintf(&text, "add.s64 %%a2, %%q, %%a1; st.global.f32 [%%a2+%d], %%f;", p.shift)
	p.shift += more
	p.text = text.String()
	return p
}

// parsedKernel parses a kernel of kernelText.
func parsedKernel(t *testing.T, body string) (*ptx.Module, ptx.FunctionID) {
	t.Helper()
	m, err := ptx.Parse(head + fmt.Sprintf(kernelText, body))
	require.NoError(t, err, body)
	return m, m.Entries()[0]
}

// at returns the byte that the thread of a number writes first.
func (p *arithmetic) at(i uint32) (int64, bool) {
	r := []uint32{i}
	for _, step := range p.steps {
		r = append(r, step(r))
	}
	return 4*p.index(r[len(r)-1]) + p.shift, p.guard(r)
}

// No thread writes a byte that the analysis leaves out, and it often names exactly the first and the last.
func TestRangesHaveWhatEveryThreadWrites(t *testing.T) {
	const programs = 6000
	known, exact, none := 0, 0, 0
	for seed := range uint64(programs) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := drawArithmetic(rng, true)
		blocks, threads := uint32(1+rng.IntN(4)), uint32(1<<rng.IntN(8))
		x := ranged(t, thread+p.text, Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{threads, 1, 1}, Scalars: map[int]uint64{2: 1, 3: 1}})
		if len(x) < 2 || !x[1].Writes.Known {
			continue
		}
		known++
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		for i := range blocks * threads {
			if at, writes := p.at(i); writes {
				lo, hi = min(lo, at), max(hi, at+4)
			}
		}
		got := x[1].Writes
		switch {
		case lo > hi:
			none++
		case got.Lo == lo && got.Hi == hi:
			exact++
		default:
			require.True(t, got.Lo <= lo && hi <= got.Hi, "seed %d: threads write %d..%d, and the analysis says %s: %s", seed, lo, hi, got.text(), p.text)
		}
	}
	require.Greater(t, known, programs*9/10)
	require.Greater(t, exact, programs/3)
	require.Greater(t, none, programs/100)
}

// A thread whose numbers are all known leaves its argument exactly if the address that it computes lies outside.
func TestEscapesAgreeWithWhatAThreadComputes(t *testing.T) {
	inside, outside := 0, 0
	for seed := range uint64(6000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := drawArithmetic(rng, false)
		n := uint32(rng.IntN(400))
		if rng.IntN(4) == 0 {
			n = rng.Uint32()
		}
		bytes := int64(4 * rng.IntN(500))
		at, writes := p.at(n)
		if rng.IntN(2) == 0 && at >= 0 && at < math.MaxInt32 { // just so, or not quite
			bytes = at + int64(rng.IntN(3)) + 2
		}
		m, entry := parsedKernel(t, "mov.u32 %i, %n; "+p.text)
		w, escapes := Escape(m, entry, Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Scalars: map[int]uint64{2: uint64(n), 3: 1}}, map[int]int64{0: 64, 1: bytes})
		want := writes && (at < 0 || at+4 > bytes)
		require.Equal(t, want, escapes, "seed %d: a thread of number %d writes byte %d of %d (%v): %s", seed, n, at, bytes, writes, p.text)
		if !escapes {
			inside++
			continue
		}
		outside++
		require.Equal(t, [2]int64{at, at + 4}, [2]int64{w.Lo, w.Hi}, "seed %d: %s", seed, p.text)
		require.True(t, w.Write)
	}
	require.Greater(t, inside, 500)
	require.Greater(t, outside, 500)
}

// The threads at the corners of a launch are followed, whatever its shape.
func TestEscapesOfCornersAreFound(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		launch := Launch{Scalars: map[int]uint64{2: 1, 3: 1}}
		for k := range 3 {
			launch.Grid[k], launch.Block[k] = uint32(1+rng.IntN(3)), uint32(1+rng.IntN(4))
		}
		axes := []string{"%ctaid.x", "%ctaid.y", "%ctaid.z", "%tid.x", "%tid.y", "%tid.z"}
		sizes := append(slices.Clone(launch.Grid[:]), launch.Block[:]...)
		text, last := "mov.u32 %r5, 0; ", uint32(0)
		for k := range axes {
			factor := uint32(1 + rng.IntN(9))
			text += fmt.Sprintf("mov.u32 %%r6, %s; mad.lo.u32 %%r5, %%r6, %d, %%r5; ", axes[k], factor)
			last += factor * (sizes[k] - 1)
		}
		text += "mul.wide.u32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f;"
		m, entry := parsedKernel(t, text)
		_, escapes := Escape(m, entry, launch, map[int]int64{0: 64, 1: int64(4*last + 4)})
		require.False(t, escapes, text)
		w, escapes := Escape(m, entry, launch, map[int]int64{0: 64, 1: int64(4 * last)})
		require.True(t, escapes, text)
		require.Equal(t, int64(4*last), w.Lo)
		for k := range 3 {
			require.Equal(t, [2]uint32{launch.Grid[k] - 1, launch.Block[k] - 1}, [2]uint32{w.Block[k], w.Thread[k]})
		}
		require.Equal(t, int64(4*last+4), ranged(t, text, launch)[1].Writes.Hi)
	}
}

// counted is a loop over a register that begins, changes and ends by constants.
type counted struct {
	start, step, bound int64
	compare            int
	below              bool // it is tested after each pass
	copied             bool // the next value passes through another register
	late               bool // the counter is used after it has changed
	skip               int64
	skips              bool   // passes below skip write nothing
	limit              string // the register that holds the bound; \"\" for a constant
}

var comparisons = []struct {
	word, opposite string
	holds          func(x, y int64) bool
}{
	{"lt", "ge", func(x, y int64) bool { return x < y }}, {"le", "gt", func(x, y int64) bool { return x <= y }},
	{"gt", "le", func(x, y int64) bool { return x > y }}, {"ge", "lt", func(x, y int64) bool { return x >= y }},
	{"ne", "eq", func(x, y int64) bool { return x != y }},
}

func drawCounted(rng *rand.Rand) counted {
	c := counted{start: rng.Int64N(40) - 20, step: 1 + rng.Int64N(5), compare: rng.IntN(len(comparisons)), below: rng.IntN(2) == 0, copied: rng.IntN(3) == 0, late: rng.IntN(3) == 0,
		skip: rng.Int64N(40) - 20, skips: rng.IntN(3) == 0}
	passes := rng.Int64N(20)
	if c.compare == 2 || c.compare == 3 || c.compare == 4 && rng.IntN(2) == 0 {
		c.step = -c.step
	}
	c.bound = c.start + passes*c.step
	if c.compare < 4 {
		c.bound += rng.Int64N(5) - 2
	} else if passes == 0 {
		c.bound += c.step // or it would go around
	}
	return c
}

// text is the loop with its register and label; use writes by the register.
func (c counted) text(r, label, use string) string {
	test, bound := comparisons[c.compare], c.limit
	if bound == "" {
		bound = fmt.Sprint(c.bound)
	}
	t := label + ": "
	if !c.below {
		t += fmt.Sprintf("setp.%s.s32 c, %s, %s; @c bra %sE; ", test.opposite, r, bound, label)
	}
	if c.skips {
		use = fmt.Sprintf("setp.lt.s32 d, %s, %d; @d bra %sS; %s %sS: ", r, c.skip, label, use, label)
	}
	next := fmt.Sprintf("add.s32 %[1]s, %[1]s, %[2]d; ", r, c.step)
	if c.copied {
		next = fmt.Sprintf("add.s32 %%r19, %[1]s, %[2]d; mov.u32 %[1]s, %%r19; ", r, c.step)
	}
	if c.late {
		t += next + use
	} else {
		t += use + next
	}
	if c.below {
		t += fmt.Sprintf("setp.%s.s32 c, %s, %s; @c bra %s; ", test.word, r, bound, label)
	} else {
		t += "bra " + label + "; "
	}
	return t + label + "E: "
}

// run calls use with the values of the counter that are written by, and returns the counter at the end.
func (c counted) run(v int64, use func(v int64)) int64 {
	holds := comparisons[c.compare].holds
	for c.below || holds(v, c.bound) {
		if c.late {
			v += c.step
		}
		if !c.skips || v >= c.skip {
			use(v)
		}
		if !c.late {
			v += c.step
		}
		if c.below && !holds(v, c.bound) {
			break
		}
	}
	return v
}

// No pass of a loop, or of a loop in a loop, writes a byte that the analysis leaves out.
func TestRangesHaveWhatEveryPassWrites(t *testing.T) {
	const programs = 4000
	exact, wide, empty := 0, 0, 0
	for seed := range uint64(programs) {
		rng := rand.New(rand.NewPCG(seed, 4))
		outer, inner := drawCounted(rng), drawCounted(rng)
		factor := 1 + rng.Int64N(9)
		nested := rng.IntN(3) == 0
		threads := int64(1)
		if comparisons[outer.compare].word != "ne" && rng.IntN(2) == 0 { // each begins elsewhere
			threads = 2 + rng.Int64N(6)
		}
		start := fmt.Sprintf("mov.u32 %%r5, %%tid.x; add.s32 %%r5, %%r5, %d; ", outer.start)
		of := func(thread int64) counted { return outer }
		if threads > 1 && rng.IntN(2) == 0 { // and ends elsewhere
			factor := rng.Int64N(5) - 2
			start += fmt.Sprintf("mov.u32 %%r17, %%tid.x; mad.lo.s32 %%r18, %%r17, %d, %d; ", factor, outer.bound)
			outer.limit = "%r18"
			of = func(thread int64) counted { c := outer; c.bound += factor * thread; return c }
		}
		var text string
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		write := func(v int64) { lo, hi = min(lo, 4*v), max(hi, 4*v+4) }
		if nested {
			use := fmt.Sprintf("mad.lo.s32 %%r7, %%r5, %d, %%r6; mul.wide.s32 %%a1, %%r7, 4; add.s64 %%a2, %%q, %%a1; st.global.f32 [%%a2], %%f; ", factor)
			text = start + outer.text("%r5", "L", fmt.Sprintf("mov.u32 %%r6, %d; ", inner.start)+inner.text("%r6", "M", use))
			for i := range threads {
				of(i).run(outer.start+i, func(v int64) { inner.run(inner.start, func(w int64) { write(factor*v + w) }) })
			}
		} else {
			use := "mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; "
			text = start + outer.text("%r5", "L", use)
			after := rng.IntN(4) == 0 // what is left of the counter is used too
			for i := range threads {
				if end := of(i).run(outer.start+i, write); after {
					write(end)
				}
			}
			if after {
				text += use
			}
		}
		x := ranged(t, text, Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{uint32(threads), 1, 1}, Scalars: map[int]uint64{2: 1, 3: 1}})
		require.GreaterOrEqual(t, len(x), 2, text)
		got := x[1].Writes
		switch {
		case !got.Known:
			wide++
		case lo > hi:
			empty++
		case got.Lo == lo && got.Hi == hi:
			exact++
		default:
			require.True(t, got.Lo <= lo && hi <= got.Hi, "seed %d: %d..%d is written, and the analysis says %s: %s", seed, lo, hi, got.text(), text)
			wide++
		}
	}
	t.Logf("%d of %d exactly, %d with bytes that are not written, %d write nothing", exact, programs, wide, empty)
	require.Greater(t, exact, programs*7/20)
	require.Positive(t, empty)
}
