// Threads that certainly leave an argument, and kernels of which that cannot be said.

package access

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/ptx"
)

// thread computes the number of a thread, in elements and in bytes of four each.
const thread = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %i, %r1, %r2, %r3; mul.wide.s32 %o, %i, 4; "

// kernelText is a kernel with registers and parameters, whose body is to be put in.
const kernelText = `.entry k(.param .u64 p, .param .u64 q, .param .u32 n, .param .u64 m)
{
	.reg .pred c, d, e;
	.reg .b32 %%r<20>, %%i, %%n;
	.reg .f32 %%f;
	.reg .b64 %%a<20>, %%p, %%q, %%o, %%m;
	.shared .align 4 .b8 tile[64];
	.local .align 8 .b8 depot[16];
	ld.param.u64 %%p, [p];
	ld.param.u64 %%q, [q];
	ld.param.u32 %%n, [n];
	ld.param.u64 %%m, [m];
%s
E:	ret;
}`

// What is before the place that a pointer points to is in the argument too.
func TestPointersIntoTheirArguments(t *testing.T) {
	m, err := ptx.Parse(".version 7.0\n.target sm_60\n.address_size 64\n" + fmt.Sprintf(kernelText, thread+"add.s64 %a1, %p, %o; st.global.f32 [%a1+-8], %f;"))
	require.NoError(t, err)
	launch := Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{8, 1, 1}, Starts: map[int]int64{0: 8}}
	_, escapes := Escape(m, m.Entries()[0], launch, map[int]int64{0: 32})
	assert.False(t, escapes)
	assert.Equal(t, Covered{Whole: true}, Covers(m, m.Entries()[0], launch, map[int]int64{0: 32}, 0, Tile{}, true))
	assert.Equal(t, Covered{Lo: 32, Hi: 40}, Covers(m, m.Entries()[0], launch, map[int]int64{0: 40}, 0, Tile{}, true))
	launch.Starts[0] = 4
	w, escapes := Escape(m, m.Entries()[0], launch, map[int]int64{0: 32})
	assert.True(t, escapes)
	assert.Equal(t, [2]int64{-4, 0}, [2]int64{w.Lo, w.Hi})
}

func TestEscape(t *testing.T) {
	const read = "add.s64 %a1, %p, %o; ld.global.f32 %f, [%a1];"
	launch := Launch{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{256, 1, 1}, Scalars: map[int]uint64{2: 1000, 3: 1 << 20}}
	for _, c := range []struct {
		name, body string
		bytes      int64 // of p
		want       string
	}{
		{"exactly", thread + read, 4096, ""},
		{"one short", thread + read, 4092, "reads 4092..4096 in [255 0 0] of [3 0 0]"},
		{"a guard", thread + "setp.ge.s32 c, %i, %n; @c bra E;" + read, 4000, ""},
		{"a guard that is wrong by one", thread + "setp.gt.s32 c, %i, %n; @c bra E;" + read, 4000, "reads 4000..4004 in [232 0 0] of [3 0 0]"},
		{"a predicated store", thread + "setp.lt.u32 c, %i, %n; add.s64 %a1, %p, %o; @c st.global.f32 [%a1+4], %f;", 4000, "writes 4000..4004 in [231 0 0] of [3 0 0]"},
		{"an inverted predicate", thread + "setp.ge.u32 c, %i, %n; add.s64 %a1, %p, %o; @!c st.global.f32 [%a1], %f;", 4000, ""},
		{"before the start", thread + "add.s64 %a1, %p, %o; ld.global.f32 %f, [%a1+-8];", 4096, "reads -8..-4 in [0 0 0] of [0 0 0]"},
		{"backwards from the start", thread + "sub.s64 %a1, %p, %o; ld.global.f32 %f, [%a1];", 4096, "reads -1020..-1016 in [255 0 0] of [0 0 0]"},
		{"backwards from the end", thread + "add.s64 %a1, %p, 4092; sub.s64 %a1, %a1, %o; ld.global.f32 %f, [%a1];", 4096, ""},
		{"one of two pointers", "setp.eq.s32 c, %n, 1000; selp.b64 %a1, %p, %q, c; ld.global.f32 %f, [%a1+64];", 64, "reads 64..68 in [0 0 0] of [0 0 0]"},
		{"the other of two pointers", "setp.ne.s32 c, %n, 1000; selp.b64 %a1, %p, %q, c; ld.global.f32 %f, [%a1+64];", 64, ""},
		{"an address in 32 bits", "cvt.u32.u64 %r5, %p; add.s32 %r5, %r5, 64; cvt.u64.u32 %a1, %r5; ld.global.f32 %f, [%a1];", 4, ""},
		{"an index from memory", thread + "ld.global.s32 %r5, [%q]; mul.wide.s32 %o, %r5, 4;" + read, 4, ""},
		{"behind a test of memory", thread + "ld.global.s32 %r5, [%q]; setp.eq.s32 c, %r5, 7; @c bra E;" + read, 4, ""},
		{"a loop", "mov.u32 %r5, 0; mov.u64 %a1, %p; L: ld.global.f32 %f, [%a1]; add.s64 %a1, %a1, 4; add.s32 %r5, %r5, 1; setp.lt.s32 c, %r5, 500; @c bra L;", 1996, "reads 1996..2000 in [0 0 0] of [0 0 0]"},
		{"a loop that fits", "mov.u32 %r5, 0; mov.u64 %a1, %p; L: ld.global.f32 %f, [%a1]; add.s64 %a1, %a1, 4; add.s32 %r5, %r5, 1; setp.lt.s32 c, %r5, 500; @c bra L;", 2000, ""},
		{"wraps around", "mov.u32 %r5, -1; shr.u32 %r6, %r5, 31; mul.wide.u32 %o, %r6, 4;" + read, 8, ""},
		{"negative", "mov.s32 %r5, -3; shr.s32 %r6, %r5, 1; mul.wide.s32 %o, %r6, 4;" + read, 8, "reads -8..-4 in [0 0 0] of [0 0 0]"},
		{"divided", thread + "div.s32 %r5, %i, 4; rem.s32 %r6, %r5, 8; mul.wide.s32 %o, %r6, 4;" + read, 32, ""},
		{"divided and short", thread + "and.b32 %r5, %i, 7; max.s32 %r6, %r5, 3; mul.wide.s32 %o, %r6, 4;" + read, 28, "reads 28..32 in [255 0 0] of [0 0 0]"},
		{"a conversion that saturates", thread + "add.s32 %r5, %i, 1000; cvt.sat.u8.s32 %r6, %r5; cvt.u64.u32 %o, %r6; add.s64 %a1, %p, %o; ld.global.u8 %r7, [%a1];", 4, ""},
		{"a sum that saturates", thread + "add.sat.s32 %r5, %i, 1000; mul.wide.s32 %o, %r5, 4;" + read, 4, ""},
		{"a difference that saturates", thread + "sub.sat.s32 %r5, %i, -1000; mul.wide.s32 %o, %r5, 4;" + read, 4, ""},
		{"a sum with a carry", thread + "add.cc.u32 %r5, %i, 1000; mul.wide.s32 %o, %r5, 4;" + read, 4, ""},
		{"the high half of a product", thread + "mul.hi.u32 %r5, %i, -1; add.s32 %r5, %r5, 1000; mul.wide.s32 %o, %r5, 4;" + read, 4, ""},
		{"a form of move that is not known", "mov.backwards.u64 %a1, %p; ld.global.f32 %f, [%a1+64];", 4, ""},
		{"two of a parameter at once", "ld.param.v2.u64 {%a1, %a2}, [p]; ld.global.f32 %f, [%a1+64];", 4, ""},
		{"both results of a test", thread + "setp.lt.s32 c|d, %i, %n; @d bra E;" + read, 4, ""},
		{"a test and another one", thread + "setp.lt.s32 d, %i, %n; setp.lt.and.s32 c, %i, %n, !d; @!c bra E;" + read, 4, ""},
		{"shared memory", "mov.u64 %a1, tile; ld.shared.f32 %f, [%a1+400];", 4, ""},
		{"a scalar of 64 bits", "shl.b64 %o, %m, 2;" + read, 4 << 20, "reads 4194304..4194308 in [0 0 0] of [0 0 0]"},
		{"for ever", "L: bra L;", 4, ""},
	} {
		m, err := ptx.Parse(head + fmt.Sprintf(kernelText, c.body))
		require.NoError(t, err, c.name)
		w, ok := Escape(m, m.Entries()[0], launch, map[int]int64{0: c.bytes, 1: 4096})
		got := ""
		if ok {
			does := "reads"
			if w.Write {
				does = "writes"
			}
			got = fmt.Sprintf("%s %d..%d in %v of %v", does, w.Lo, w.Hi, w.Thread, w.Block)
		}
		assert.Equal(t, c.want, got, c.name)
	}
}

// Where a block has one thread, the number of the block is that of the thread.
func TestEscapeOfBlocksOfOneThread(t *testing.T) {
	m, err := ptx.Parse(head + fmt.Sprintf(kernelText, thread+"add.s64 %a1, %p, %o; ld.global.f32 %f, [%a1];"))
	require.NoError(t, err)
	launch := Launch{Grid: [3]uint32{8, 1, 1}, Block: [3]uint32{1, 1, 1}}
	_, escapes := Escape(m, m.Entries()[0], launch, map[int]int64{0: 32})
	require.False(t, escapes)
	w, escapes := Escape(m, m.Entries()[0], launch, map[int]int64{0: 28})
	require.True(t, escapes)
	require.Equal(t, Witness{Param: 0, Lo: 28, Hi: 32, Block: [3]uint32{7, 0, 0}, At: w.At}, w)
}

// A thread knows its place and the size of its launch, on each axis; an axis that is not given counts as one.
func TestThreadsKnowTheirPlace(t *testing.T) {
	launch := Launch{Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{5, 6, 7}}
	flat := Launch{Grid: [3]uint32{2}, Block: [3]uint32{5}}
	for register, of := range map[string]func(l Launch, w Witness) [3]uint32{
		"tid": func(_ Launch, w Witness) [3]uint32 { return w.Thread }, "ctaid": func(_ Launch, w Witness) [3]uint32 { return w.Block },
		"ntid": func(l Launch, _ Witness) [3]uint32 { return l.Block }, "nctaid": func(l Launch, _ Witness) [3]uint32 { return l.Grid },
	} {
		for axis, name := range []string{"x", "y", "z"} {
			text := head + fmt.Sprintf(kernelText, fmt.Sprintf("mov.u32 %%r5, %%%s.%s; cvt.u64.u32 %%a1, %%r5; add.s64 %%a1, %%a1, %%p; ld.global.u8 %%r6, [%%a1];", register, name))
			m, err := ptx.Parse(text)
			require.NoError(t, err)
			for _, l := range []Launch{launch, flat} {
				largest := max(of(l, Witness{Thread: [3]uint32{4, 5, 6}, Block: [3]uint32{1, 2, 3}})[axis], 1)
				if l.Grid[1] == 0 && axis > 0 {
					largest = map[bool]uint32{true: 1, false: 0}[register[0] == 'n']
				}
				_, escapes := Escape(m, m.Entries()[0], l, map[int]int64{0: int64(largest) + 1})
				require.False(t, escapes, text)
				w, escapes := Escape(m, m.Entries()[0], l, map[int]int64{0: int64(largest)})
				require.True(t, escapes, text)
				require.Equal(t, Witness{Param: 0, Lo: int64(largest), Hi: int64(largest) + 1, Thread: w.Thread, Block: w.Block, At: w.At}, w)
				require.LessOrEqual(t, of(l, w)[axis], largest)
			}
		}
	}
}

// A witness has its place in the source, or else in the PTX.
func TestWitnessesHaveAPlace(t *testing.T) {
	for declared, want := range map[string]string{"": "PTX line 16", ".file 1 \"scan.cu\"\n": "scan.cu:41"} {
		body := "st.global.f32 [%p+4], %f;"
		if declared != "" {
			body = ".loc 1 41 3\n" + body
		}
		m, err := ptx.Parse(head + declared + fmt.Sprintf(kernelText, body))
		require.NoError(t, err)
		w, escapes := Escape(m, m.Entries()[0], Launch{Grid: [3]uint32{1}, Block: [3]uint32{1}}, map[int]int64{0: 4})
		require.True(t, escapes)
		require.Equal(t, want, w.At.String())
	}
}

// A thread that runs off the end of its code, or whose launch is empty, leaves no argument.
func TestThreadsThatEndLeaveNothing(t *testing.T) {
	m, err := ptx.Parse(head + ".entry k(.param .u64 p)\n{ .reg .b64 %a; .reg .b32 %r; ld.param.u64 %a, [p]; ld.global.u32 %r, [%a]; }")
	require.NoError(t, err)
	one := Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	_, escapes := Escape(m, m.Entries()[0], one, map[int]int64{0: 4})
	require.False(t, escapes)
	_, escapes = Escape(m, m.Entries()[0], one, map[int]int64{0: 3})
	require.True(t, escapes)
	_, escapes = Escape(m, m.Entries()[0], Launch{Grid: [3]uint32{1, 0, 0}, Block: [3]uint32{1, 0, 0}}, map[int]int64{0: 3})
	require.True(t, escapes, "an axis of nothing counts as one")
	for _, none := range []Launch{{Grid: one.Grid}, {Block: one.Block}, {Grid: [3]uint32{0, 1, 1}, Block: one.Block}, {Grid: one.Grid, Block: [3]uint32{0, 1, 1}}} {
		_, escapes = Escape(m, m.Entries()[0], none, map[int]int64{0: 0})
		require.False(t, escapes)
	}
}

// A scalar is loaded as the kernel says: with its sign or without, whole or not at all.
func TestScalarsAreOfTheirType(t *testing.T) {
	scalars := map[int]uint64{2: 0xfffffffb, 3: 1<<64 - 7}
	extended := map[int]uint64{2: 1<<64 - 5, 3: 1<<64 - 7} // what is above a parameter's size does not count
	for _, c := range []struct {
		load string
		at   int64
		ok   bool
	}{
		{"ld.param.s32 %r5, [n]; cvt.s64.s32 %a2, %r5;", -5, true},
		{"ld.param.u32 %r5, [n]; cvt.u64.u32 %a2, %r5;", 1<<32 - 5, true},
		{"ld.param.u32 %r5, [n]; cvt.s64.s32 %a2, %r5;", -5, true},
		{"ld.param.b32 %r5, [n]; cvt.u64.u32 %a2, %r5;", 1<<32 - 5, true},
		{"ld.param.u32 %a2, [n];", 1<<32 - 5, true},
		{"ld.param.u64 %a2, [m];", -7, true},
		{"ld.param.s64 %a2, [m];", -7, true},
		{"ld.param.u32 %r5, [m]; cvt.u64.u32 %a2, %r5;", 0, false},
		{"ld.param.u32 %r5, [m+4]; cvt.u64.u32 %a2, %r5;", 0, false},
		{"ld.param.u16 %r5, [n]; cvt.u64.u32 %a2, %r5;", 0, false},
		{"ld.param.f32 %f, [n]; mov.b32 %r5, %f; cvt.u64.u32 %a2, %r5;", 0, false},
	} {
		m, err := ptx.Parse(head + fmt.Sprintf(kernelText, c.load+" add.s64 %a3, %q, %a2; st.global.u8 [%a3], %r1;"))
		require.NoError(t, err, c.load)
		for _, given := range []map[int]uint64{scalars, extended, nil} {
			w, escapes := Escape(m, m.Entries()[0], Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Scalars: given}, map[int]int64{1: 0})
			require.Equal(t, c.ok && given != nil, escapes, c.load)
			if escapes {
				require.Equal(t, c.at, w.Lo, c.load)
			}
		}
	}
}
