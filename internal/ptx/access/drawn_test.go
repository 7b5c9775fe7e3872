// What is said of drawn kernels, as it was reviewed: a change of a rule shows here, with the kernels of which more or less is known than was.
// -rewrite writes it anew. That what is said is true, random_test.go tests.

package access

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/ptx"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew instead of comparing with them")

// drawable are instructions, in which W is a register of 64 bits to write and A one to read, mostly an address; O holds an offset, R a number of 32
// bits, C is a predicate, J a label and K a small number.
var drawable = [][]string{
	{"mov.b64 W, A;", "add.s64 W, A, O;", "add.s64 W, O, A;", "sub.s64 W, A, O;", "add.s64 W, A, K;", "sub.s64 W, A, K;", "selp.b64 W, A, A, C;", "or.b64 W, A, K;", "and.b64 W, A, -16;", "cvta.to.global.u64 W, A;", "mad.wide.u32 W, R, 4, A;", "mad.wide.s32 W, R, K, A;"},
	{"add.s64 W, A, A;", "sub.s64 W, A, A;", "neg.s64 W, A;", "shl.b64 W, A, K;", "mul.lo.s64 W, A, K;", "mad.lo.s64 W, O, K, A;", "and.b64 W, A, 15;", "and.b64 W, K, O;", "or.b64 W, A, O;", "selp.b64 W, A, 0, C;", "min.s64 W, A, A;", "max.u64 W, A, K;", "min.s64 W, O, 128;",
		"shr.u64 W, O, K;", "xor.b64 W, A, A;", "bfe.u64 W, O, 2, K;", "bfe.u64 W, A, 2, 24;", "rem.u64 W, O, 8;", "div.u64 W, O, K;", "not.b64 W, O;", "mul.hi.u64 W, A, O;", "mad.hi.u64 W, O, O, A;", "slct.b64.s32 W, A, A, R;"},
	{"cvt.u64.u32 O, R;", "cvt.s64.s32 O, R;", "mul.wide.s32 O, R, 4;", "mul.wide.u32 O, R, K;", "shl.b64 O, O, K;", "add.s64 O, O, K;", "max.s64 O, O, K;", "and.b64 O, O, 63;"},
	{"st.local.u64 [depot+8], A; ld.local.u64 W, [depot+8];", "st.local.u64 [depot], A; ld.local.u64 W, [depot+8];", "st.local.v2.u64 [depot], {A, A}; ld.local.u64 W, [depot];", "st.local.u64 [depot], A; st.local.u32 [depot+4], R; ld.local.u64 W, [depot];",
		"mov.u64 W, depot; st.u64 [W+8], A; ld.u64 W, [W+8];", "mov.u64 %a9, depot; add.s64 %a9, %a9, O; st.local.u64 [%a9], A; ld.local.u64 W, [depot];", "st.shared.u64 [tile], A;", "ld.global.u64 W, [A];"},
	{"mov.u32 R, %tid.x;", "mov.u32 R, %ctaid.x;", "mov.u32 R, %ntid.x;", "mov.u32 R, %nctaid.x;", "mov.u32 R, %tid.y;", "mov.u32 R, %laneid;", "mov.u32 R, K;", "mad.lo.s32 R, R, R, R;", "add.s32 R, R, K;", "sub.s32 R, R, R;",
		"mul.lo.u32 R, R, K;", "and.b32 R, R, 31;", "and.b32 R, R, R;", "or.b32 R, R, K;", "xor.b32 R, R, R;", "shr.u32 R, R, K;", "shr.s32 R, R, K;", "shl.b32 R, R, K;", "shl.b32 R, K, R;", "min.s32 R, R, 100;", "max.s32 R, R, K;", "min.u32 R, R, R;",
		"rem.u32 R, R, 7;", "rem.s32 R, R, R;", "div.u32 R, R, 3;", "div.s32 R, R, K;", "ld.global.s8 R, [A];", "ld.global.u16 R, [A];", "cvt.u32.u64 R, O;", "cvt.u32.u8 R, R;", "bfe.u32 R, R, 1, 4;", "bfe.s32 R, R, 1, 4;",
		"neg.s32 R, R;", "not.b32 R, R;", "selp.b32 R, R, R, C;", "ld.param.s32 R, [n];", "ld.param.u32 R, [m];"},
	{"setp.lt.s32 C, R, R;", "setp.ge.s32 C, R, K;", "setp.gt.u32 C, R, 50;", "setp.ne.s32 C, R, K;", "setp.eq.u32 C, R, R;", "setp.le.u32 C, R, %n;", "setp.lt.u64 C, O, 80;", "and.pred C, C, C;", "or.pred C, C, C;", "not.pred C, C;",
		"@C bra E;", "@!C bra E;", "@C mov.b64 W, A;", "@!C add.s32 R, R, K;", "@C bra J; mov.b64 W, A; J:", "@!C bra J; add.s32 R, R, K; J:"},
	{"mov.u32 R, 0; mov.b64 W, A; J: add.s64 W, W, 4; st.global.f32 [W], %f; add.s32 R, R, 1; setp.lt.s32 C, R, K; @C bra J;", "mov.b64 %a9, A; J: st.global.u8 [%a9], R; add.s64 %a9, %a9, K; setp.lt.u64 c, %a9, A; @c bra J;",
		"mov.u32 %r9, K; J: mul.wide.s32 O, %r9, 4; add.s64 %a9, O, A; st.global.f32 [%a9], %f; add.s32 %r9, %r9, K; setp.le.s32 c, %r9, 40; @c bra J;",
		"mov.u32 %r9, 40; J: cvt.u64.u32 %a9, %r9; add.s64 %a9, %a9, A; ld.global.u8 R, [%a9]; sub.s32 %r9, %r9, K; setp.gt.s32 c, %r9, K; @c bra J;",
		"mov.u32 %r9, 0; J: setp.ge.u32 c, %r9, R; @c bra E; mad.wide.u32 %a9, %r9, 8, A; st.global.v2.f32 [%a9], {%f, %f}; add.s32 %r9, K, %r9; bra J;",
		"mov.u32 %r9, 12; J: add.s32 %r9, %r9, -3; mul.wide.s32 %a9, %r9, 4; add.s64 %a9, %a9, A; st.global.f32 [%a9], %f; setp.ne.s32 c, %r9, 0; @c bra J;"},
	{"st.global.f32 [A], %f;", "st.global.f32 [A+4], %f;", "ld.global.f32 %f, [A];", "ld.global.f32 %f, [A+-4];", "st.global.u8 [A], R;", "red.global.add.u32 [A], 1;", "atom.global.exch.b32 R, [A], R;", "@C st.global.f32 [A], %f;",
		"@!C ld.global.f32 %f, [A];", "st.global.v2.f32 [A], {%f, %f};", "ld.global.v4.f32 {%f, %f, %f, %f}, [A];", "st.f32 [A], %f;", "ldu.global.u32 R, [A];", "prefetch.global.L2 [A];", "tex.1d.v4.f32.s32 {%f, %f, %f, %f}, [A, {R}];", "sust.b.1d.b32.trap [A, {R}], {R};"},
}

const before = "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1; mul.wide.s32 %o, %r4, 4; mov.b64 %a1, %p; mov.b64 %a2, %q; setp.lt.s32 c, %r4, %n; setp.eq.s32 d, %r1, 3; add.s64 %a3, %a1, %o; add.s64 %a4, %a2, %o; "

// drawKernel draws a body.
func drawKernel(rng *rand.Rand) string {
	text, labels := "", 0
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	take := func(kinds ...int) {
		labels++
		for _, part := range strings.SplitAfter(pick(drawable[kinds[rng.IntN(len(kinds))]]...), "") {
			switch part {
			case "W":
				part = pick("%a3", "%a4", "%a5")
			case "A":
				part = pick("%a1", "%a2", "%a3", "%a3", "%a4", "%a4", "%a5")
			case "O":
				part = "%o"
			case "R":
				part = pick("%r1", "%r4", "%r4", "%r4", "%r2")
			case "C":
				part = pick("c", "c", "d")
			case "K":
				part = pick("1", "2", "3", "4", "8", "5", "0", "16")
			case "J":
				part = fmt.Sprintf("L%d", labels)
			}
			text += part
		}
		text += " "
	}
	text += "mov.b64 %a5, %a4; "
	for range 1 + rng.IntN(5) {
		take(0, 0, 1, 2, 3, 4, 4, 5, 6, 7)
	}
	take(7)
	return strings.TrimSpace(text)
}

func said(m *ptx.Module) string {
	entry := m.Entries()[0]
	launch := Launch{Grid: [3]uint32{3, 1, 1}, Block: [3]uint32{32, 2, 1}, Scalars: map[int]uint64{2: 90, 3: 300}}
	bytes := map[int]int64{0: 400, 1: 384}
	report := Analyse(m, entry)
	var text strings.Builder
	for _, f := range report.Fields {
		if f.Param > 1 {
			continue // a number
		}
		fmt.Fprintf(&text, "  %v", f.Use)
		if f.Undecided {
			fmt.Fprintf(&text, " (%s)", f.Why)
		}
	}
	if w, ok := Escape(m, entry, launch, bytes); ok {
		fmt.Fprintf(&text, "  leaves %d at %d..%d in %v of %v", w.Param, w.Lo, w.Hi, w.Thread, w.Block)
	}
	if c := Covers(m, entry, launch, bytes, 1, Tile{}, true); c != (Covered{}) {
		fmt.Fprintf(&text, "  covers %+v", c)
	}
	return text.String()
}

func TestDrawnKernelsAreKnownAsReviewed(t *testing.T) {
	var text strings.Builder
	for seed := range uint64(300) {
		body := drawKernel(rand.New(rand.NewPCG(seed, 21)))
		m, err := ptx.Parse(head + fmt.Sprintf(kernelText, before+body))
		require.NoError(t, err, body)
		fmt.Fprintf(&text, "%s\n%s\n", strings.TrimPrefix(body, "mov.b64 %a5, %a4; "), said(m))
	}
	const file = "testdata/drawn.txt"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text.String(), "%s is out of date; if the change is meant: go test ./internal/ptx/access -run %s -rewrite, and review the diff", file, t.Name())
}
