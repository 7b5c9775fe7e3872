// Tests of the rules at their edges: masks, cells that overlap, sums and products that keep an address or lose it, calls, and limits.

package access

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/ptx"
)

func TestRulesAtTheirEdges(t *testing.T) {
	const number, pieces, followed = "an address is made from a number", "an address is put together from pieces", "an address is computed from it in a way that cannot be followed"
	const functions = `
.func (.param .b64 out) same(.param .b64 x) { .reg .b64 %a; ld.param.u64 %a, [x]; st.param.b64 [out], %a; ret; }
.func (.reg .b64 out) inner(.reg .b64 x) { mov.b64 out, x; ret; }
.func (.param .b64 out) second(.param .align 8 .b8 x[16]) { .reg .b64 %a; ld.param.u64 %a, [x+8]; st.param.b64 [out], %a; ret; }
.func writes(.param .b64 x) { .reg .b64 %a; ld.param.u64 %a, [x]; st.global.u32 [%a], 1; ret; }
.func reads(.param .b64 x) { .reg .b64 %a; .reg .b32 %r; ld.param.u64 %a, [x]; ld.global.u32 %r, [%a]; ret; }
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func __assertfail(.param .b64 x);
.extern .func free(.param .b64 x);
.extern .func (.reg .b64 r) malloc(.param .b64 n);
`
	store := func(code string) string { return code + " st.global.f32 [%a9], %f1;" }
	for _, c := range []struct{ name, body, p, q, why, whyP string }{
		{"two stores to one cell", "st.local.u64 [depot], %p; st.local.u64 [depot], %q; ld.local.u64 %a9, [depot]; st.global.f32 [%a9], %f1;", "written", "written", "", ""},
		{"a difference through an unknown cell", store("sub.s64 %a1, %q, %p; st.local.u64 [depot], %a1; cvt.u64.u32 %a8, %n; ld.local.u64 %a2, [%a8]; add.s64 %a9, %p, %a2;"), "undecided", "undecided", number, ""},
		{"a difference that is stored in an unknown cell", store("sub.s64 %a1, %q, %p; cvt.u64.u32 %a8, %n; st.local.u64 [%a8], %a1; st.local.u64 [depot], %n; ld.local.u64 %a2, [depot]; add.s64 %a9, %p, %a2;"), "undecided", "undecided", number, ""},
		{"a difference through an unknown cell, behind the first", store("sub.s64 %a1, %q, %p; st.local.u64 [depot+8], %a1; cvt.u64.u32 %a8, %n; ld.local.u64 %a2, [%a8]; add.s64 %a9, %p, %a2;"), "undecided", "undecided", number, ""},
		{"two doubts, of which the first is told", "ld.global.u64 %a1, [%p]; st.global.f32 [%a1], %f1; cvt.u64.u32 %a2, %n; st.global.f32 [%a2], %f1;", "undecided", "undecided", "an address is loaded from memory", ""},
		{"half of a cell", store("st.local.u64 [depot], %p; ld.local.u32 %r1, [depot+4]; cvt.u64.u32 %a1, %r1; add.s64 %a9, %q, %a1;"), "undecided", "written", "", followed},
		{"beside a cell", store("st.local.u64 [depot], %p; st.local.u32 [depot+8], %n; ld.local.u32 %r1, [depot+8]; cvt.u64.u32 %a1, %r1; add.s64 %a9, %q, %a1;"), "not used", "written", "", ""},
		{"before a cell", store("st.local.u64 [depot+8], %p; st.local.u32 [depot+4], %n; ld.local.u32 %r1, [depot+4]; cvt.u64.u32 %a1, %r1; add.s64 %a9, %q, %a1;"), "not used", "written", "", ""},
		{"the first of two at once", "st.local.v2.u64 [depot], {%p, %q}; ld.local.v2.u64 {%a8, %a9}, [depot]; st.global.f32 [%a8], %f1; ld.global.f32 %f1, [%a9];", "written", "read", "", ""},

		{"a mask of 16 bits", store("and.b64 %a1, %p, 65535; add.s64 %a9, %q, %a1;"), "not used", "written", "", ""},
		{"a mask of 17 bits", store("and.b64 %a1, %p, 65536; add.s64 %a9, %q, %a1;"), "undecided", "written", "", followed},
		{"a mask of nothing", store("and.b64 %a1, %p, 0; add.s64 %a9, %q, %a1;"), "not used", "written", "", ""},
		{"a mask on the other side", store("and.b64 %a1, 65535, %p; add.s64 %a9, %q, %a1;"), "not used", "written", "", ""},
		{"aligned downwards by a lot", store("and.b64 %a9, %p, -1048576;"), "written", "not used", "", ""},
		{"aligned downwards by too much", store("and.b64 %a9, %p, -1048577;"), "undecided", "undecided", number, followed},
		{"a rest of 16 bits", store("rem.u64 %a1, %p, 65535; add.s64 %a9, %q, %a1;"), "not used", "written", "", ""},
		{"a rest of 17 bits", store("rem.u64 %a1, %p, 65536; add.s64 %a9, %q, %a1;"), "undecided", "written", "", followed},
		{"a field of 16 bits", store("bfe.u64 %a1, %p, 3, 16; add.s64 %a9, %q, %a1;"), "not used", "written", "", ""},
		{"a field of 17 bits", store("bfe.u64 %a1, %p, 3, 17; add.s64 %a9, %q, %a1;"), "undecided", "written", "", followed},
		{"a field of some bits", store("bfe.u64 %a1, %p, 3, %n; add.s64 %a9, %q, %a1;"), "undecided", "written", "", followed},

		{"16 bits of it", store("cvt.u16.u64 h, %p; cvt.u64.u16 %a1, h; add.s64 %a9, %q, %a1;"), "not used", "written", "", ""},

		{"times one", store("mul.lo.s64 %a9, %p, 1;"), "written", "not used", "", ""},
		{"one times", store("mul.lo.s64 %a9, 1, %p;"), "written", "not used", "", ""},
		{"times minus one", store("mul.lo.s64 %a1, %p, -1; add.s64 %a2, %q, %a1; add.s64 %a9, %a2, %p;"), "not used", "written", "", ""},
		{"minus one times", store("mul.lo.s64 %a1, -1, %p; add.s64 %a2, %q, %a1; add.s64 %a9, %a2, %p;"), "not used", "written", "", ""},
		{"times two", store("mul.lo.s64 %a1, %p, 2; add.s64 %a9, %q, %a1;"), "undecided", "written", "", followed},
		{"times one, the high half", store("mul.hi.s64 %a1, %p, 1; add.s64 %a9, %q, %a1;"), "undecided", "written", "", followed},
		{"the high half of a number times it", store("cvt.u64.u32 %a1, %n; mul.hi.u64 %a2, %a1, %p; add.s64 %a9, %q, %a2;"), "undecided", "written", "", followed},
		{"the high half of a number times it, and a pointer", store("cvt.u64.u32 %a1, %n; mad.hi.u64 %a9, %a1, %p, %q;"), "undecided", "written", "", followed},
		{"a number shifted by it", store("cvt.u32.u64 %r1, %p; cvt.u64.u32 %a1, %n; shl.b64 %a2, %a1, %r1; add.s64 %a9, %q, %a2;"), "undecided", "written", "", followed},
		{"a field at it", store("cvt.u32.u64 %r1, %p; cvt.u64.u32 %a1, %n; bfe.u64 %a2, %a1, %r1, 30; add.s64 %a9, %q, %a2;"), "undecided", "written", "", followed},
		{"a rest by it", store("cvt.u64.u32 %a1, %n; rem.u64 %a2, %a1, %p; add.s64 %a9, %q, %a2;"), "undecided", "written", "", followed},
		{"divided by it", store("cvt.u64.u32 %a1, %n; div.u64 %a2, %a1, %p; add.s64 %a9, %q, %a2;"), "undecided", "written", "", followed},
		{"a cell below an aligned address", store("mov.u64 %a1, depot; add.s64 %a1, %a1, 8; and.b64 %a1, %a1, -16; st.local.u64 [%a1], %p; ld.local.u64 %a9, [depot];"), "written", "not used", "", ""},
		{"shifted by nothing", store("shl.b64 %a9, %p, 0;"), "written", "not used", "", ""},
		{"shifted by one", store("shl.b64 %a1, %p, 1; add.s64 %a9, %q, %a1;"), "undecided", "written", "", followed},
		{"shifted by a number", store("shl.b64 %a1, %p, %n; add.s64 %a9, %q, %a1;"), "undecided", "written", "", followed},
		{"a number times one and a pointer", store("cvt.u64.u32 %a1, %n; mad.lo.s64 %a9, %a1, 1, %p;"), "written", "not used", "", ""},
		{"a product and a pointer", store("mad.wide.s32 %a9, %n, 4, %q;"), "not used", "written", "", ""},
		{"a pointer times one and a number", store("cvt.u64.u32 %a1, %n; mad.lo.s64 %a9, %p, 1, %a1;"), "written", "not used", "", ""},
		{"the high half of a product and a pointer", store("mad.hi.s64 %a9, %q, 1, %p;"), "written", "undecided", "", ""},
		{"the larger of two", store("max.u64 %a9, %p, %q;"), "written", "written", "", ""},
		{"the smaller of two", store("min.s64 %a9, %p, %q;"), "written", "written", "", ""},
		{"a pointer and a sum that vanishes", store("add.s64 %a1, %q, 4; sub.s64 %a2, %a1, %q; add.s64 %a9, %p, %a2;"), "written", "not used", "", ""},
		{"what is left of a pointer", store("sub.s64 %a9, %p, %p;"), "undecided", "undecided", number, number},
		{"twice a pointer without it", store("add.s64 %a1, %p, %p; sub.s64 %a9, %a1, %p;"), "undecided", "undecided", number, followed},
		{"less a pointer", store("neg.s64 %a9, %p;"), "undecided", "undecided", pieces, followed},
		{"or with a number", store("cvt.u64.u32 %a1, %n; or.b64 %a9, %p, %a1;"), "written", "not used", "", ""},
		{"a number or it", store("or.b64 %a9, 4, %p;"), "written", "not used", "", ""},
		{"or with a pointer", store("or.b64 %a9, %p, %q;"), "undecided", "undecided", number, followed},
		{"exclusive or with a number", store("xor.b64 %a1, %p, 1; add.s64 %a9, %q, %a1;"), "undecided", "written", "", followed},
		{"a float of a pointer's bits", store("cvt.rn.f64.u64 %d1, %p; cvt.rzi.u64.f64 %a1, %d1; add.s64 %a9, %q, %a1;"), "not used", "written", "", ""},
		{"bits of a pointer as a float", store("mov.b64 %d1, %p; mov.b64 %a9, %d1;"), "written", "not used", "", ""},
		{"selected as a float", store("mov.b64 %d1, %p; mov.b64 %d2, %q; selp.f64 %d1, %d1, %d2, c; mov.b64 %a9, %d1;"), "written", "written", "", ""},
		{"selected as a float by a sign", store("mov.b64 %d1, %p; mov.b64 %d2, %q; slct.f64.s32 %d1, %d1, %d2, %n; mov.b64 %a9, %d1;"), "written", "written", "", ""},
		{"a register and an offset", "mov.u64 %a1, depot; mov.u64 %a2, %a1+8; st.local.u64 [%a2], %p; st.local.u64 [depot], %q; ld.local.u64 %a9, [depot+8]; st.global.f32 [%a9], %f1;", "written", "not used", "", ""},
		{"a counted pointer", store("popc.b64 %r1, %p; cvt.u64.u32 %a1, %r1; add.s64 %a9, %q, %a1;"), "not used", "written", "", ""},
		{"an address with an offset", "st.global.f32 [%p+64], %f1; ld.global.f32 %f1, [%q+-4];", "written", "read", "", ""},

		{"a function that is given a variable", "{ .param .b64 a; .param .b64 r; st.param.b64 [a], %q; call (r), same, (a); ld.param.b64 %a9, [r]; } st.global.f32 [%a9], %f1;", "not used", "written", "", ""},
		{"a function with registers that is given variables", "{ .param .b64 a; .param .b64 r; st.param.b64 [a], %q; call (r), inner, (a); ld.param.b64 %a9, [r]; } st.global.f32 [%a9], %f1;", "not used", "written", "", ""},
		{"a function with variables that is given registers", "call (%a9), same, (%p); st.global.f32 [%a9], %f1;", "written", "not used", "", ""},
		{"a function that is given a structure", "{ .param .align 8 .b8 a[16]; .param .b64 r; st.param.v2.b64 [a], {%p, %q}; call (r), second, (a); ld.param.b64 %a9, [r]; } st.global.f32 [%a9], %f1;", "not used", "written", "", ""},
		{"a function that is given the kernel's parameter", "{ .param .b64 r; call (r), same, (q); ld.param.b64 %a9, [r]; } st.global.f32 [%a9], %f1;", "not used", "written", "", ""},
		{"a function that is given the kernel's first parameter", "{ .param .b64 r; call (r), same, (p); ld.param.b64 %a9, [r]; } st.global.f32 [%a9], %f1;", "written", "not used", "", ""},
		{"memory of an unknown function, in a register", "call (%a9), malloc, (8); st.f32 [%a9], %f1;", "not used", "not used", "", ""},
		{"fewer arguments than a function declares", "call writes, ();", "undecided", "undecided", pieces, ""},
		{"more results than a function declares", "call (%a8, %a9), inner, (%q); st.global.f32 [%a8], %f1;", "not used", "written", "", ""},
		{"one of two functions", "mov.u64 %a1, writes; mov.u64 %a2, reads; selp.b64 %a3, %a1, %a2, c; { .param .b64 a; st.param.b64 [a], %q; P: .callprototype _ (.param .b64 _); call %a3, (a), P; }", "not used", "read and written", "", ""},
		{"a function and a number", "mov.u64 %a1, writes; add.s64 %a3, %a1, 4; { .param .b64 a; st.param.b64 [a], %q; P: .callprototype _ (.param .b64 _); call %a3, (a), P; }", "undecided", "undecided", "a function is called through a pointer that cannot be followed", ""},
		{"a function or an argument", "mov.u64 %a1, writes; selp.b64 %a3, %a1, %p, c; { .param .b64 a; st.param.b64 [a], %q; P: .callprototype _ (.param .b64 _); call %a3, (a), P; }", "undecided", "undecided", "a function is called through a pointer that cannot be followed", ""},
		{"a function or nothing", "mov.u64 %a1, writes; selp.b64 %a3, %a1, 0, c; { .param .b64 a; st.param.b64 [a], %q; P: .callprototype _ (.param .b64 _); call %a3, (a), P; }", "not used", "written", "", ""},
		{"more arguments than a function declares", "{ .param .b64 a; .param .b64 b; st.param.b64 [a], %p; st.param.b64 [b], %q; call writes, (a, b); }", "undecided", "undecided", "a function is called with more arguments than it declares", ""},
		{"an assertion", "{ .param .b64 a; st.param.b64 [a], %p; call __assertfail, (a); }", "not used", "not used", "", ""},
		{"memory that is given back", "{ .param .b64 a; st.param.b64 [a], %p; call free, (a); }", "not used", "not used", "", ""},
		{"printf of the kernel's memory", "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %p; st.param.b64 [b], 0; call (r), vprintf, (a, b); }", "read", "not used", "", ""},
	} {
		_, r := analyse(t, kernel(functions, c.body))
		p, _ := r.Field(0, 0)
		q, _ := r.Field(1, 0)
		assert.Equal(t, [3]string{c.p, c.q, c.why}, [3]string{p.String(), q.String(), r.Undecided}, c.name)
		if c.whyP != "" {
			assert.Equal(t, c.whyP, p.Why, c.name)
		}
	}
}

// What an unknown cell of local memory holds is no argument of the kernel that was not stored there.
func TestUnknownCellsHoldNoArguments(t *testing.T) {
	_, r := analyse(t, kernel("", "cvt.u64.u32 %a8, %n; st.local.u64 [depot], %q; ld.local.u64 %a9, [%a8]; st.global.f32 [%a9], %f1;"))
	p, _ := r.Field(0, 0)
	q, _ := r.Field(1, 0)
	require.Equal(t, [4]bool{true, false, true, true}, [4]bool{p.Undecided, p.Writes, q.Undecided, q.Writes})
}

// Sums of the factors of a base are those of their representatives: of 0, 1, -1 and, for all others, 5.
func TestSumsOfFactors(t *testing.T) {
	of := map[factors]int{zero: 0, plus: 1, minus: -1, other: 5}
	each := func(s factors, visit func(int)) {
		for f, v := range of {
			if s&f != 0 {
				visit(v)
			}
		}
	}
	class := func(v int) factors {
		for f, w := range of {
			if v == w && f != other {
				return f
			}
		}
		return other
	}
	for x := factors(1); x < 16; x++ {
		for y := factors(1); y < 16; y++ {
			var want factors
			each(x, func(v int) { each(y, func(w int) { want |= class(v + w) }) })
			require.Equal(t, want, sum(x, y), "%b + %b", x, y)
		}
		var want factors
		each(x, func(v int) {
			if v == 5 {
				want |= other
			} else {
				want |= class(-v)
			}
		})
		require.Equal(t, []term{{3, want}}, negate(value{set: true, terms: []term{{3, x}}}).terms, "-(%b)", x)
	}
}

// Arithmetic on values keeps their bases in order, and what is known of the number beside them.
func TestArithmeticOnValues(t *testing.T) {
	p, q := address(2, 8), address(5, 3)
	require.Equal(t, value{set: true, known: true, offset: 11, terms: []term{{2, plus}, {5, plus}}}, add(p, q))
	require.Equal(t, add(p, q), add(q, p))
	require.Equal(t, value{set: true, known: true, offset: -8, terms: []term{{2, minus}}}, negate(p))
	require.Equal(t, value{set: true, number: fromInteger, terms: []term{{2, minus | zero}}}, negate(join(p, constant(0))), "less nothing, if it is nothing")
	require.Equal(t, value{set: true, known: true, offset: 5, number: fromInteger, terms: []term{}}, add(p, negate(address(2, 3))), "what is left is a number")
	require.Equal(t, address(2, 12), add(p, constant(4)))
	require.Equal(t, value{set: true, terms: p.terms}, add(p, number(fromMemory)))
	require.Equal(t, constant(0), add(constant(4), constant(-4)))
	require.Equal(t, constant(12), multiply(constant(-4), constant(-3)))
	require.Equal(t, constant(0), multiply(constant(4), constant(0)))
	require.Equal(t, p, multiply(p, constant(1)))
	require.Equal(t, negate(q), multiply(constant(-1), q))
	require.Equal(t, value{set: true, number: fromInteger | fromMemory, terms: []term{{2, other | zero}}}, derive(p, number(fromMemory), constant(0)))
	require.Equal(t, value{set: true, number: fromInteger, terms: []term{{2, other | zero}}}, derive(p))
	require.Equal(t, value{set: true, number: fromInteger, terms: []term{{2, other | zero}}}, derive(join(p, constant(0))))
	require.Equal(t, value{set: true, null: true, terms: []term{{2, plus | zero}}}, join(p, constant(0)))
	require.Equal(t, value{set: true, terms: []term{{2, plus}}}, join(p, address(2, 9)))
	require.Equal(t, value{set: true, known: true, offset: 8, terms: []term{{2, plus | zero}, {5, plus | zero}}}, join(p, address(5, 8)))
	require.Equal(t, value{set: true, number: fromInteger | fromCall}, join(number(fromCall), constant(7)))
	for _, v := range []value{p, constant(3), number(fromUnknown)} {
		require.Equal(t, v, join(v, value{}))
		require.Equal(t, v, join(value{}, v))
		require.Equal(t, v, join(v, v))
		for _, nothing := range []value{add(v, value{}), add(value{}, v), multiply(v, value{}), multiply(value{}, v), derive(v, value{}), derive(value{}, v)} {
			require.False(t, nothing.set, "%v", v)
		}
	}
	require.True(t, constant(3).isConstant() && constant(0).isConstant())
	require.False(t, p.isConstant() || number(fromInteger).isConstant() || value{}.isConstant())
}

func TestSumsOfFloatsDependOnTheOrderOfThreads(t *testing.T) {
	for code, depends := range map[string]bool{
		"atom.global.add.f32 %f1, [%p], %f2;": true, "red.global.add.f64 [%p], %d1;": true, "red.shared.add.f32 [tile], %f1;": true,
		"multimem.red.global.add.f32 [%p], %f1;": true, "atom.global.add.u32 %r1, [%p], 1;": false, "atom.global.exch.b32 %r1, [%p], 1;": false,
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%q], [tile], 16;": true,
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%q], [tile], 16;":       false,
		"cp.async.bulk.global.shared::cta.bulk_group [%p], [tile], 16;":                      false, "add.f32 %f1, %f1, %f2; st.global.f32 [%p], %f1;": false,
	} {
		_, r := analyse(t, kernel("", code))
		require.Equal(t, depends, len(r.FloatAtomics) > 0, code)
	}
}

func TestWrittenGlobals(t *testing.T) {
	const globals = ".global .u32 first; .const .u32 fixed; .global .u32 idle; .global .align 1 .b8 $str[4]; .global .u32 second; .global .align 8 .b8 list[64];"
	m, written := analyse(t, kernel(globals, "st.global.u32 [second], %n; st.global.u32 [first], %n; ld.global.u32 %r1, [idle]; ld.const.u32 %r2, [fixed]; st.global.u8 [$str], h;"))
	require.Equal(t, []string{"first", "second"}, WrittenGlobals(m, []*Report{written}))
	require.Empty(t, WrittenGlobals(m, nil))
	m, undecided := analyse(t, kernel(globals, "mov.u64 %a1, list; shl.b64 %a2, %a1, 1; add.s64 %a3, %p, %a2; ld.global.u32 %r1, [%a3];"))
	require.Equal(t, []string{"list"}, WrittenGlobals(m, []*Report{undecided}))
	_, ok := undecided.Field(7, 0)
	require.False(t, ok)
	_, ok = undecided.Field(0, 8)
	require.False(t, ok)
	_, ok = undecided.Symbol(9999)
	require.False(t, ok)
	require.Equal(t, "scan.cu:3", Place{File: "./scan.cu", Line: 3}.String())
}

// A program that is too large is undecided; one of just the size that is followed is not.
func TestLimitsAreTheLargestThatIsFollowed(t *testing.T) {
	const large = "the kernel is too large to be analysed"
	chain := func(functions int) string {
		var b strings.Builder
		b.WriteString(head + ".func f0(.param .b64 x) { .reg .b64 %a; ld.param.u64 %a, [x]; st.global.u32 [%a], 1; ret; }\n")
		for i := range functions - 1 {
			fmt.Fprintf(&b, ".func f%d(.param .b64 x) { .param .b64 y; .reg .b64 %%a; ld.param.u64 %%a, [x]; st.param.b64 [y], %%a; call f%d, (y); ret; }\n", i+1, i)
		}
		fmt.Fprintf(&b, ".entry k(.param .u64 p) { .param .b64 y; .reg .b64 %%a; ld.param.u64 %%a, [p]; st.param.b64 [y], %%a; call f%d, (y); ret; }", functions-1)
		return b.String()
	}
	for functions, want := range map[int]string{maxDepth: "", maxDepth + 1: large} {
		_, r := analyse(t, chain(functions))
		require.Equal(t, want, r.Undecided, "%d functions", functions)
		require.True(t, r.Fields[0].Writes || want != "")
	}
	cells := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "st.local.u64 [room+%d], %%p; ", 8*i)
		}
		return strings.Replace(kernel("", b.String()+fmt.Sprintf("st.local.u64 [room+%d], %%q; ld.local.u64 %%a1, [room]; st.global.f32 [%%a1], %%f1;", 8*n)), ".local", fmt.Sprintf(".local .align 8 .b8 room[%d]; .local", 8*n+8), 1)
	}
	for n, want := range map[int]string{maxCells - 1: "not used", maxCells: "written"} {
		_, r := analyse(t, cells(n))
		q, _ := r.Field(1, 0)
		require.Equal(t, want, q.String(), "%d cells: a store that gets none of its own may be to any", n)
	}
	for n, fields := range map[int]int{maxTerms: maxTerms, maxTerms + 1: maxTerms} {
		_, r := analyse(t, head+fmt.Sprintf(".entry k(.param .align 8 .b8 s[%d]) { .reg .b64 %%a; ld.param.u64 %%a, [s+%d]; st.global.u8 [%%a], 1; ret; }", 8*n, 8*n-8))
		require.Len(t, r.Fields, fields)
		if n == fields {
			require.Equal(t, "written", r.Fields[n-1].String())
		} else {
			require.Equal(t, "an address is made from a number", r.Undecided)
		}
	}
	_, r := analyse(t, head+".entry k(.param .align 8 .b8 s[20]) { .reg .b64 %a; ld.param.u64 %a, [s+4]; st.global.u8 [%a], 1; ret; }")
	require.Len(t, r.Fields, 2, "the last four bytes hold no pointer")
	require.Equal(t, "an address is made from a number", r.Undecided)
	_, r = analyse(t, head+".entry k(.param .align 8 .b8 s[16]) { .reg .b64 %a; ld.param.u64 %a, [s+-8]; st.global.u8 [%a], 1; ret; }")
	require.Equal(t, "an address is made from a number", r.Undecided)
}

// The entries of a module share a limit on the work: what one does not need is left for the others.
func TestEntriesShareTheWork(t *testing.T) {
	var b strings.Builder
	b.WriteString(head)
	for i := range 6 {
		fmt.Fprintf(&b, ".entry k%d(.param .u64 p) { .reg .b64 %%a; ld.param.u64 %%a, [p]; st.global.u32 [%%a], 1; ret; }\n", i)
	}
	m, err := ptx.Parse(b.String())
	require.NoError(t, err)
	alone := 1000
	analyseWithin(m, m.Entries()[0], &alone)
	for enough := range 7 {
		decided := 0
		for _, r := range analyseEach(m, 1000, enough*(1000-alone)+1) {
			if r.Undecided == "" {
				decided++
			}
		}
		require.Equal(t, min(enough, 6), decided, "%d times the work of one", enough)
	}
	require.Len(t, AnalyseAll(m), 6)
}
