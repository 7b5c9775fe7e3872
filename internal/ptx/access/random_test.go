// Random arithmetic on the number of a thread: it is said to leave an argument exactly if the address that it computes does.

package access

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/ptx"
)

// arithmetic is a random program without jumps but one, and what it computes for a number.
type arithmetic struct {
	text  string
	steps []func(r []uint32) uint32
	guard func(r []uint32) bool // the thread goes on
	index func(v uint32) int64  // the element that the last register names
	shift int64                 // bytes added in the access
}

// drawArithmetic makes a program whose registers are %i and then those of its steps.
func drawArithmetic(rng *rand.Rand) *arithmetic {
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

// A thread whose numbers are all known leaves its argument exactly if the address that it computes lies outside.
func TestEscapesAgreeWithWhatAThreadComputes(t *testing.T) {
	inside, outside := 0, 0
	for seed := range uint64(6000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := drawArithmetic(rng)
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
	}
}
