// Tests with kernels that access their arguments in every possible way, and what the analysis must find for each.

package access

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/ptx"
)

const head = ".version 8.0\n.target sm_90\n.address_size 64\n"

// analyse runs the analysis on the last entry of a module.
func analyse(t *testing.T, text string) (*ptx.Module, *Report) {
	t.Helper()
	m, err := ptx.Parse(text)
	require.NoError(t, err)
	entries := m.Entries()
	return m, Analyse(m, entries[len(entries)-1])
}

// kernel is an entry k(p, q, n) with some registers; p, q and n are loaded into %p, %q and %n.
func kernel(declarations, body string) string {
	return head + declarations + `
.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n)
{
	.reg .pred c;
	.reg .b16 h;
	.reg .b32 %r<20>, %n;
	.reg .f32 %f<9>;
	.reg .f64 %d<3>;
	.reg .b64 %a<20>, %p, %q;
	.local .align 8 .b8 depot[64];
	.shared .align 8 .b8 tile[64];
	ld.param.u64 %p, [p];
	ld.param.u64 %q, [q];
	ld.param.u32 %n, [n];
` + body + `
	ret;
}
`
}

func TestRules(t *testing.T) {
	const callRead = `
.func (.param .b64 out) shifted(.param .b64 x, .param .b32 by)
{
	.reg .b64 %a<4>; .reg .b32 %r<2>;
	ld.param.u64 %a1, [x];
	ld.param.u32 %r1, [by];
	mul.wide.s32 %a2, %r1, 4;
	add.s64 %a3, %a1, %a2;
	st.param.b64 [out], %a3;
	ret;
}
.func store(.param .b64 x, .param .b32 v)
{
	.reg .b64 %a<2>; .reg .b32 %r<2>;
	ld.param.u64 %a1, [x];
	ld.param.u32 %r1, [v];
	st.u32 [%a1], %r1;
	ret;
}
.func (.reg .b64 r) same(.reg .b64 x) { mov.b64 r, x; ret; }
.func loop(.param .b64 x) { .param .b64 y; .reg .b64 %a; ld.param.b64 %a, [x]; st.param.b64 [y], %a; call loop, (y); ret; }
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func unknown(.param .b64 x);
.extern .func (.param .b64 r) cudaGetParameterBufferV2(.param .b64 x);
`
	for _, c := range []struct {
		name, declarations, body string
		p, q                     string
		why                      string // the reason, where nothing is decided
	}{
		{name: "nothing", p: "not used", q: "not used"},
		{name: "a load", body: "ld.global.f32 %f1, [%p+4];", p: "read", q: "not used"},
		{name: "a read-only load", body: "ld.global.nc.L1::no_allocate.v4.f32 {%f1,%f2,%f3,%f4}, [%p]; ldu.global.u32 %r1, [%q];", p: "read", q: "read"},
		{name: "a store", body: "st.global.f32 [%p], %f1;", p: "written", q: "not used"},
		{name: "a const pointer written", body: "ld.global.f32 %f1, [%p]; cvta.to.global.u64 %a1, %p; st.global.f32 [%a1], %f1;", p: "read and written", q: "not used"},
		{name: "atomics", body: "atom.global.add.u32 %r1, [%p], 1; red.global.or.b32 [%q], 1;", p: "read and written", q: "read and written"},
		{name: "an index", body: "mul.wide.s32 %a1, %n, 4; add.s64 %a2, %p, %a1; ld.global.u32 %r1, [%a2]; mad.wide.s32 %a3, %r1, 4, %q; st.global.u32 [%a3], %n;", p: "read", q: "written"},
		{name: "a byte offset by or", body: "or.b64 %a1, %p, 4; and.b64 %a2, %q, -16; ld.f32 %f1, [%a1]; st.f32 [%a2], %f1;", p: "read", q: "written"},
		{name: "an aligned cell by or", body: "mov.u64 %a1, depot; or.b64 %a2, %a1, 4; st.local.u64 [depot], %p; st.local.u32 [%a2], %n; or.b64 %a3, %a1, 7; st.local.u8 [%a3], h; add.u64 %a4, %a1, 16; or.b64 %a4, %a4, 1; st.local.u8 [%a4], h; st.local.u64 [depot+24], %q; ld.local.u64 %a5, [depot+24]; st.f32 [%a5], %f1;", p: "not used", q: "written"},
		{name: "alignment is a number", body: "and.b64 %a1, %p, 15; sub.s64 %a2, %q, %a1; st.f32 [%a2], %f1; bfe.u64 %a3, %p, 2, 2; add.s64 %a3, %a3, %q; st.u8 [%a3], h;", p: "not used", q: "written"},
		{name: "a select", body: "setp.eq.s32 c, %n, 0; selp.b64 %a1, %p, %q, c; st.global.f32 [%a1], %f1;", p: "written", q: "written"},
		{name: "a select with null", body: "setp.eq.s32 c, %n, 0; selp.b64 %a1, %p, 0, c; st.global.f32 [%a1], %f1;", p: "written", q: "not used"},
		{name: "nothing added to a select with null", body: "setp.eq.s32 c, %n, 0; selp.b64 %a1, %p, 0, c; add.s64 %a2, %a1, 0; st.global.f32 [%a2], %f1;", p: "undecided", q: "undecided", why: "an address is made from a number"},
		{name: "a select by the sign of a float", body: "slct.b64.f32 %a1, %p, %q, %f1; slct.b64.s32 %a2, %a1, %a1, %n; st.global.f32 [%a2], %f1;", p: "written", q: "written"},
		{name: "a guarded move", body: "setp.eq.s32 c, %n, 0; mov.b64 %a1, %p; @c mov.b64 %a1, %q; ld.global.f32 %f1, [%a1];", p: "read", q: "read"},
		{name: "a phi in a loop", body: "mov.b64 %a1, %p; L: st.global.f32 [%a1], %f1; add.s64 %a1, %a1, 4; setp.lt.u64 c, %a1, %q; @c bra L;", p: "written", q: "not used"},
		{name: "swapped in a loop", body: "mov.b64 %a1, %p; mov.b64 %a2, %q; L: ld.global.f32 %f1, [%a1]; st.global.f32 [%a2], %f1; mov.b64 %a3, %a1; mov.b64 %a1, %a2; mov.b64 %a2, %a3; @c bra L;", p: "read and written", q: "read and written"},
		{name: "a difference of pointers", body: "sub.s64 %a1, %q, %p; add.s64 %a2, %p, %a1; st.global.f32 [%a2], %f1;", p: "not used", q: "written"},
		{name: "a negated difference", body: "neg.s64 %a1, %p; add.s64 %a1, %a1, %q; add.s64 %a2, %p, %a1; st.global.f32 [%a2], %f1;", p: "not used", q: "written"},
		{name: "through local memory", body: "st.local.u64 [depot+8], %p; ld.local.u64 %a1, [depot+8]; st.global.f32 [%a1], %f1;", p: "written", q: "not used"},
		{name: "two cells of local memory", body: "mov.u64 %a1, depot; cvta.local.u64 %a2, %a1; add.u64 %a3, %a2, 16; st.u64 [%a2], %p; st.u64 [%a3], %q; ld.u64 %a4, [%a3]; st.global.f32 [%a4], %f1;", p: "not used", q: "written"},
		{name: "through local memory in three turns of a loop", body: "L: ld.local.u64 %a2, [depot]; st.global.f32 [%a2], %f1; st.local.u64 [depot], %a1; mov.u64 %a1, %p; @c bra L;", p: "written", q: "not used"},
		{name: "an unknown cell of local memory", body: "cvt.u64.u32 %a9, %n; mov.u64 %a1, depot; add.u64 %a2, %a1, %a9; st.local.v2.u64 [depot], {%p, %q}; ld.local.u64 %a3, [%a2]; ld.global.f32 %f1, [%a3];", p: "read", q: "read"},
		{name: "a store to an unknown cell", body: "cvt.u64.u32 %a9, %n; mov.u64 %a1, depot; add.u64 %a2, %a1, %a9; st.local.u64 [%a2], %p; ld.local.u64 %a3, [depot+24]; st.global.f32 [%a3], %f1;", p: "written", q: "not used"},
		{name: "through shared memory", body: "st.shared.u64 [tile], %p; ld.shared.u64 %a1, [tile]; st.global.f32 [%a1], %f1;", p: "undecided", q: "undecided", why: "an address is loaded from memory"},
		{name: "shared memory by a generic address", body: "mov.u32 %r1, tile; cvt.u64.u32 %a1, %r1; cvta.shared.u64 %a2, %a1; st.f32 [%a2], %f1;", p: "not used", q: "not used"},
		{name: "a loaded pointer", body: "ld.global.u64 %a1, [%p]; st.global.f32 [%a1], %f1;", p: "undecided", q: "undecided", why: "an address is loaded from memory"},
		{name: "a loaded index", body: "ld.global.u64 %a1, [%p]; shl.b64 %a1, %a1, 2; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f1;", p: "read", q: "written"},
		{name: "a number", body: "cvt.u64.u32 %a1, %n; ld.global.f32 %f1, [%a1];", p: "undecided", q: "undecided", why: "an address is made from a number"},
		{name: "a constant", body: "st.global.f32 [4096], %f1;", p: "undecided", q: "undecided", why: "an address is made from a number"},
		{name: "packed halves", body: "mov.b64 {%r1, %r2}, %p; mov.b64 %a1, {%r1, %r2}; st.global.f32 [%a1], %f1;", p: "undecided", q: "undecided", why: "an address is made from a number"},
		{name: "the low half of a pointer", body: "cvt.u32.u64 %r1, %p; cvt.u64.u32 %a1, %r1; st.global.f32 [%a1], %f1;", p: "undecided", q: "undecided", why: "an address is made from a number"},
		{name: "the low half of a sum", body: "add.s64 %a1, %p, %q; cvt.u32.u64 %r1, %a1; cvt.u64.u32 %a2, %r1; st.global.f32 [%a2], %f1;", p: "undecided", q: "undecided", why: "an address is made from a number"},
		{name: "an index from the low half of a pointer", body: "cvt.u32.u64 %r1, %p; and.b32 %r1, %r1, 15; cvt.u64.u32 %a1, %r1; add.s64 %a2, %q, %a1; st.global.u8 [%a2], h;", p: "not used", q: "written"},
		{name: "a tagged pointer", body: "shr.u64 %a1, %p, 1; shl.b64 %a1, %a1, 1; st.global.f32 [%a1], %f1;", p: "undecided", q: "undecided", why: "an address is made from a number"},
		{name: "a hidden sum", body: "xor.b64 %a1, %p, %q; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f1;", p: "undecided", q: "undecided", why: "an address is made from a number"},
		{name: "by twice the other", body: "shl.b64 %a1, %q, 1; add.s64 %a2, %p, %a1; st.global.f32 [%a2], %f1;", p: "written", q: "undecided"},
		{name: "an exchange of pieces", body: "shfl.sync.idx.b32 %r1, %n, 0, 31, -1; cvt.u64.u32 %a1, %r1; add.s64 %a1, %a1, %p; st.f32 [%a1], %f1;", p: "written", q: "not used"},
		{name: "prefetch", body: "prefetch.global.L2 [%p]; prefetchu.L1 [%q]; cp.async.bulk.prefetch.L2.global [%p], 16;", p: "not used", q: "not used"},
		{name: "discard", body: "discard.global.L2 [%p], 128;", p: "written", q: "not used"},
		{name: "asynchronous copies", body: "cp.async.ca.shared.global [tile], [%p], 16; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%q], 16, [tile];", p: "read", q: "read"},
		{name: "asynchronous stores", body: "cp.async.bulk.global.shared::cta.bulk_group [%p], [tile], 16; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%q], [tile], 16;", p: "written", q: "read and written"},
		{name: "a tensor map", body: "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%p, {%r1, %r2}], [tile];", p: "undecided", q: "undecided", why: "a tensor map leads to memory that the text does not show"},
		{name: "barriers in shared memory", body: "mbarrier.init.shared.b64 [tile], 1; mbarrier.arrive.shared.b64 %a1, [tile]; st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [tile], %n, [tile];", p: "not used", q: "not used"},
		{name: "a barrier in global memory", body: "mbarrier.init.b64 [%p], 1; mbarrier.arrive.b64 %a1, [%q];", p: "read and written", q: "read and written"},
		{name: "multimem", body: "multimem.ld_reduce.global.add.f32 %f1, [%p]; multimem.st.global.f32 [%q], %f1;", p: "read", q: "written"},
		{name: "matrices", body: "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%p], 16; wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%q], {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, 16;", p: "read", q: "written"},
		{name: "textures and surfaces", body: "tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%p, {%r1}]; sust.b.1d.b32.trap [%q, {%r1}], {%r2};", p: "read", q: "written"},
		{name: "a parameter that is the handle", body: "tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [p, {%r1}]; sust.b.1d.b32.trap [q, {%r1}], {%r2};", p: "read", q: "written"},
		{name: "a query of a texture", body: "txq.width.b32 %r1, [%p];", p: "not used", q: "not used"},
		{name: "dead code", body: "bra E; st.global.f32 [%p], %f1; E:", p: "not used", q: "not used"},
		{name: "an unknown instruction", body: "frobnicate.f32 %f1, [%p];", p: "undecided", q: "undecided", why: "instruction frobnicate.f32 is not known"},
		{name: "a value that nothing sets", body: "st.global.f32 [%a7], %f1;", p: "undecided", q: "undecided", why: "an address is put together from pieces"},
		{name: "a function that returns a pointer", declarations: callRead, body: "{ .param .b64 a; .param .b32 b; .param .b64 r; st.param.b64 [a], %p; st.param.b32 [b], %n; call (r), shifted, (a, b); ld.param.b64 %a1, [r]; } st.global.f32 [%a1], %f1;", p: "written", q: "not used"},
		{name: "one function for two pointers", declarations: callRead, body: "{ .param .b64 a; .param .b32 b; .param .b64 r; st.param.b64 [a], %p; st.param.b32 [b], %n; call (r), shifted, (a, b); ld.param.b64 %a1, [r]; } { .param .b64 a; .param .b32 b; .param .b64 r; st.param.b64 [a], %q; st.param.b32 [b], %n; call (r), shifted, (a, b); ld.param.b64 %a2, [r]; } ld.f32 %f1, [%a1]; st.f32 [%a2], %f1;", p: "read", q: "written"},
		{name: "written by a function", declarations: callRead, body: "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %q; st.param.b32 [b], %n; call.uni store, (a, b); }", p: "not used", q: "written"},
		{name: "a function in registers", declarations: callRead, body: "call (%a1), same, (%q); st.f32 [%a1], %f1;", p: "not used", q: "written"},
		{name: "a function's address", declarations: callRead, body: "mov.u64 %a1, store; { .param .b64 a; .param .b32 b; st.param.b64 [a], %q; st.param.b32 [b], %n; P: .callprototype _ (.param .b64 _, .param .b32 _); call %a1, (a, b), P; }", p: "not used", q: "written"},
		{name: "a list of functions", declarations: callRead, body: "ld.global.u64 %a1, [%p]; { .param .b64 a; .param .b32 b; st.param.b64 [a], %q; st.param.b32 [b], %n; P: .calltargets store; call %a1, (a, b), P; }", p: "read", q: "written"},
		{name: "a loaded function", declarations: callRead, body: "ld.global.u64 %a1, [%p]; { .param .b64 a; .param .b32 b; st.param.b64 [a], %q; st.param.b32 [b], %n; P: .callprototype _ (.param .b64 _, .param .b32 _); call %a1, (a, b), P; }", p: "undecided", q: "undecided", why: "a function is called through a pointer that cannot be followed"},
		{name: "recursion", declarations: callRead, body: "{ .param .b64 a; st.param.b64 [a], %q; call loop, (a); }", p: "undecided", q: "undecided", why: "function loop calls itself"},
		{name: "printf of a number", declarations: callRead + ".global .align 1 .b8 $str[4] = {37, 100, 0};", body: "{ .param .b64 a; .param .b64 b; .param .b32 r; mov.u64 %a1, $str; cvta.global.u64 %a2, %a1; st.param.b64 [a], %a2; st.local.u32 [depot], %n; mov.u64 %a3, depot; cvta.local.u64 %a4, %a3; st.param.b64 [b], %a4; call (r), vprintf, (a, b); }", p: "not used", q: "not used"},
		{name: "printf of a pointer", declarations: callRead, body: "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %a2; st.local.u64 [depot], %p; mov.u64 %a3, depot; cvta.local.u64 %a4, %a3; st.param.b64 [b], %a4; call (r), vprintf, (a, b); }", p: "undecided", q: "not used"},
		{name: "malloc", declarations: callRead, body: "{ .param .b64 a; .param .b64 r; st.param.b64 [a], 8; call (r), malloc, (a); ld.param.b64 %a1, [r]; } st.f32 [%a1], %f1;", p: "not used", q: "not used"},
		{name: "a function of another module", declarations: callRead, body: "{ .param .b64 a; st.param.b64 [a], %p; call unknown, (a); }", p: "undecided", q: "undecided", why: "function unknown is not in the module"},
		{name: "a child launch", declarations: callRead, body: "{ .param .b64 a; .param .b64 r; st.param.b64 [a], %p; call (r), cudaGetParameterBufferV2, (a); }", p: "undecided", q: "undecided", why: "the kernel launches another one"},
		{name: "its own parameters", body: "mov.b64 %a1, p; st.param.b64 [%a1], %q;", p: "undecided", q: "undecided", why: "the kernel writes to its own parameters"},
	} {
		_, r := analyse(t, kernel(c.declarations, c.body))
		p, _ := r.Field(0, 0)
		q, _ := r.Field(1, 0)
		assert.Equal(t, [3]string{c.p, c.q, c.why}, [3]string{p.String(), q.String(), r.Undecided}, c.name)
	}
}

// A write that the analysis found is certain even if the rest is undecided: a file that declares the argument as input is wrong.
func TestWritesOutliveDoubt(t *testing.T) {
	_, r := analyse(t, kernel("", "st.global.f32 [%p], %f1; ld.global.u64 %a1, [%q]; ld.global.u32 %r1, [%a1];"))
	p, _ := r.Field(0, 0)
	assert.True(t, p.Undecided && p.Writes && !p.Reads)
	assert.Equal(t, "PTX line 18", p.WrittenAt.String())
}

func TestSymbols(t *testing.T) {
	m, r := analyse(t, kernel(".const .f32 taps[9]; .global .u32 counter; .global .u32 idle; .global .u32 log;", `
	ld.const.f32 %f1, [taps+8];
	mov.u64 %a1, counter;
	cvta.global.u64 %a2, %a1;
	atom.add.u32 %r1, [%a2], 1;
	mul.wide.u32 %a3, %r1, 4;
	mov.u64 %a4, log;
	add.s64 %a5, %a4, %a3;
	st.global.u32 [%a5], %n;
	st.global.f32 [%p], %f1;`))
	var got []string
	for _, s := range r.Symbols {
		got = append(got, fmt.Sprintf("%s %s", m.Variables[s.Variable].Name, s.Use))
	}
	assert.Equal(t, "taps read, counter read and written, idle not used, log written", strings.Join(got, ", "))
	id, _ := m.Variable("log")
	use, ok := r.Symbol(id)
	assert.True(t, ok && use.Writes)
}

// Variables that a body declares are found like those of the module, at their first use.
func TestSymbolsOfBodies(t *testing.T) {
	for _, space := range []string{"global", "const"} {
		m, r := analyse(t, kernel("", fmt.Sprintf("{ .%s .u32 inside; ld.%[1]s.u32 %%r1, [inside]; } st.global.u32 [%%p], %%r1;", space)))
		require.Len(t, r.Symbols, 1, space)
		require.Equal(t, "inside", m.Variables[r.Symbols[0].Variable].Name)
		require.Equal(t, "read", r.Symbols[0].String())
	}
}

// References are named once, whichever way an instruction comes to them, and only if they are used.
func TestReferences(t *testing.T) {
	_, r := analyse(t, kernel(".global .texref seen; .global .texref idle; .global .surfref written; .global .texref moved; .global .u32 number;", `
	tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [seen, {%r1}];
	tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [seen, {%r1}];
	sust.b.1d.b32.trap [written, {%r1}], {%r2};
	mov.u64 %a1, moved;
	tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%a1, {%r1}];
	ld.global.u32 %r1, [number];`))
	require.Equal(t, []string{"seen", "written", "moved"}, r.References)
}

func TestStructsByValue(t *testing.T) {
	text := func(body string) string {
		return head + `.entry k(.param .align 8 .b8 s[24]) { .reg .b64 %a<9>; .reg .b32 %r<9>; .reg .f32 %f; ` + body + ` ret; }`
	}
	_, r := analyse(t, text("ld.param.u64 %a1, [s]; ld.param.u64 %a2, [s+16]; ld.param.u32 %r1, [s+8]; mul.wide.u32 %a3, %r1, 4; add.s64 %a1, %a1, %a3; ld.global.f32 %f, [%a1]; st.global.f32 [%a2], %f;"))
	require.Len(t, r.Fields, 3)
	assert.Equal(t, []string{"read", "not used", "written"}, []string{r.Fields[0].String(), r.Fields[1].String(), r.Fields[2].String()})
	_, r = analyse(t, text("ld.param.v2.u64 {%a1, %a2}, [s+8]; st.global.f32 [%a2], %f;"))
	assert.Equal(t, []string{"not used", "not used", "written"}, []string{r.Fields[0].String(), r.Fields[1].String(), r.Fields[2].String()})
	_, r = analyse(t, text("mov.b64 %a1, s; cvta.param.u64 %a1, %a1; mov.u32 %r1, %tid.x; mul.wide.u32 %a3, %r1, 8; add.s64 %a1, %a1, %a3; ld.u64 %a2, [%a1]; st.global.f32 [%a2], %f;"))
	assert.Equal(t, []string{"written", "written", "written"}, []string{r.Fields[0].String(), r.Fields[1].String(), r.Fields[2].String()})
	_, r = analyse(t, text("mov.b64 %a1, s; cvta.param.u64 %a1, %a1; mov.u32 %r1, %tid.x; mul.wide.u32 %a3, %r1, 8; add.s64 %a1, %a1, %a3; ld.u64 %a2, [%a1]; add.s64 %a2, %a2, 8; st.global.f32 [%a2], %f;"))
	assert.Equal(t, []string{"written", "written", "written"}, []string{r.Fields[0].String(), r.Fields[1].String(), r.Fields[2].String()}, "an address beside one of them is still theirs")
}

func TestFloatAtomics(t *testing.T) {
	_, r := analyse(t, kernel("", "atom.global.add.f32 %f1, [%p], %f2; red.global.max.u32 [%q], 1; red.shared.add.f64 [tile], %d1;"))
	require.Len(t, r.FloatAtomics, 2)
	assert.Equal(t, "PTX line 18", r.FloatAtomics[0].String())
}

// How a kernel reads through a handle says which textures it can be given.
func TestFetches(t *testing.T) {
	for _, c := range []struct {
		body string
		want Fetch
	}{
		{"tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%p, {%r1}];", Fetch{Seen: true, Dimensions: 1, Floats: true}},
		{"tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%p, {%f1,%f2}];", Fetch{Seen: true, Dimensions: 2, Floats: true, Coordinates: true}},
		{"tex.3d.v4.u32.s32 {%r1,%r2,%r3,%r4}, [%p, {%r1,%r2,%r3,%r4}];", Fetch{Seen: true, Dimensions: 3, Integers: true}},
		{"tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%p, {%r1}]; tex.1d.v4.s32.f32 {%r1,%r2,%r3,%r4}, [%p, {%f1}];", Fetch{Seen: true, Dimensions: 1, Floats: true, Integers: true, Coordinates: true}},
		{"tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%p, {%r1}]; tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%p, {%r1,%r2}];", Fetch{Seen: true, Floats: true}},
		{"tex.a1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%p, {%r1,%r2}];", Fetch{Seen: true, Floats: true}},
		{"sust.b.2d.b32.trap [%p, {%r1,%r2}], {%r3};", Fetch{Seen: true, Dimensions: 2, Surface: true}},
		{"suld.b.1d.b32.trap {%r2}, [%p, {%r1}];", Fetch{Seen: true, Dimensions: 1, Surface: true}},
		{"ld.global.f32 %f1, [%p];", Fetch{}},
		{"mov.u64 %a1, depot; tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%a1, {%r1}];", Fetch{}},
		{"neg.s64 %a1, %p; tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%a1, {%r1}];", Fetch{}},
	} {
		_, r := analyse(t, kernel("", c.body))
		p, _ := r.Field(0, 0)
		got := p.Fetch
		got.At = Fetch{}.At
		assert.Equal(t, c.want, got, c.body)
	}
}

func TestPlacesInTheSource(t *testing.T) {
	_, r := analyse(t, kernel(".file 1 \"scan.cu\"", ".loc 1 41 3\nst.global.f32 [%p], %f1;"))
	p, _ := r.Field(0, 0)
	assert.Equal(t, "scan.cu:41", p.WrittenAt.String())
}

// A program that calls ever more functions must end, undecided.
func TestLimits(t *testing.T) {
	var b strings.Builder
	b.WriteString(head + ".func f0(.param .b64 x) { ret; }\n")
	for i := range 30 {
		fmt.Fprintf(&b, ".func f%d(.param .b64 x) { call f%d, (x); call f%d, (x); ret; }\n", i+1, i, i)
	}
	b.WriteString(".entry k(.param .u64 p) { .param .b64 x; call f30, (x); ret; }")
	_, r := analyse(t, b.String())
	assert.Equal(t, "the kernel is too large to be analysed", r.Undecided)
}

// Everything that can be parsed can be analysed.
func FuzzAnalyse(f *testing.F) {
	f.Add(kernel("", "mov.b64 %a1, %p; L: st.global.f32 [%a1], %f1; add.s64 %a1, %a1, 4; setp.lt.u64 c, %a1, %q; @c bra L;"))
	f.Add(kernel(".func (.param .b64 out) f(.param .b64 x) { .reg .b64 %a; ld.param.b64 %a, [x]; st.param.b64 [out], %a; ret; }",
		"{ .param .b64 a; .param .b64 r; st.param.b64 [a], %p; call (r), f, (a); ld.param.b64 %a1, [r]; } st.local.u64 [depot+8], %a1; ld.local.u64 %a2, [depot+8]; atom.global.add.f32 %f1, [%a2], %f2;"))
	f.Add(kernel("", thread+"setp.ge.s32 c, %r4, %n; @c bra E; tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%p, {%r1}]; mov.b64 {%r1, %r2}, %p; E:"))
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ptx.Parse(text)
		if err != nil {
			return
		}
		AnalyseAll(m)
		for _, entry := range m.Entries() {
			launch := Launch{Grid: [3]uint32{3, 2, 1}, Block: [3]uint32{64, 1, 1}, Scalars: map[int]uint64{2: 100}}
			Escape(m, entry, launch, map[int]int64{0: 400})
			Covers(m, entry, launch, map[int]int64{0: 400}, 0, Tile{}, true)
		}
	})
}
