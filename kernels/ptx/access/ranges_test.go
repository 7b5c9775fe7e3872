// Tests of the bytes that kernels touch in a known launch: guarded, strided, counted, in two dimensions, and undecidable.

package access

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/kernels/ptx"
)

// thread puts the number of the thread into %i and its bytes' offset, of 4 byte elements, into %o.
const thread = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %i, %r1, %r2, %r3; mul.wide.s32 %o, %i, 4; "

func ranged(t *testing.T, body string, launch Launch) []Extent {
	t.Helper()
	m, err := ptx.Parse(head + fmt.Sprintf(kernelText, body))
	if !assert.NoError(t, err, body) {
		return nil
	}
	return Ranges(m, m.Entries()[0], launch)
}

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

func (r Range) text() string {
	switch {
	case !r.Known:
		return "unknown"
	case r.Lo == r.Hi:
		return "nothing"
	}
	return fmt.Sprintf("%d..%d", r.Lo, r.Hi)
}

func TestRanges(t *testing.T) {
	const n, m = 1000, 1 << 20
	launch := Launch{Grid: [3]uint32{4, 2, 1}, Block: [3]uint32{256, 8, 1}, Scalars: map[int]uint64{2: n, 3: m}}
	for _, c := range []struct {
		name, body  string
		read, wrote string // of p and of q
	}{
		{"every thread one element", thread + "add.s64 %a1, %p, %o; ld.global.f32 %f, [%a1]; add.s64 %a2, %q, %o; st.global.f32 [%a2+4], %f;", "0..4096", "4..4100"},
		{"guarded", thread + "setp.ge.s32 c, %i, %n; @c bra E; add.s64 %a1, %p, %o; ld.global.f32 %f, [%a1]; add.s64 %a2, %q, %o; st.global.f32 [%a2], %f;", "0..4000", "0..4000"},
		{"guarded wrongly", thread + "setp.gt.s32 c, %i, %n; @c bra E; add.s64 %a2, %q, %o; st.global.f32 [%a2], %f;", "nothing", "0..4004"},
		{"guarded by the other side", thread + "setp.gt.u32 c, %n, %i; @!c bra E; add.s64 %a2, %q, %o; st.global.f32 [%a2], %f;", "nothing", "0..4000"},
		{"guarded in 64 bits", thread + "cvt.s64.s32 %a5, %i; cvt.s64.s32 %a6, %n; setp.ge.s64 c, %a5, %a6; @c bra E; shl.b64 %a7, %a5, 2; add.s64 %a2, %q, %a7; st.global.f32 [%a2], %f;", "nothing", "0..4000"},
		{"a guard on the instruction", thread + "setp.lt.s32 c, %i, 10; add.s64 %a2, %q, %o; @c st.global.f32 [%a2], %f;", "nothing", "0..40"},
		{"two guards at once", thread + "setp.lt.s32 c, %i, 10; setp.gt.s32 d, %i, 2; and.pred e, c, d; @!e bra E; add.s64 %a2, %q, %o; st.global.f32 [%a2], %f;", "nothing", "12..40"},
		{"either guard", thread + "setp.ge.s32 c, %i, 10; setp.le.s32 d, %i, 2; or.pred e, c, d; @e bra E; add.s64 %a2, %q, %o; st.global.f32 [%a2], %f;", "nothing", "12..40"},
		{"one of two ways", thread + "setp.ge.s32 c, %i, 10; @c bra X; setp.ge.s32 d, %i, 5; @d bra X; bra E; X: add.s64 %a2, %q, %o; st.global.f32 [%a2], %f;", "nothing", "0..4096"},
		{"a guard that comes too late", thread + "add.s64 %a2, %q, %o; st.global.f32 [%a2], %f; setp.ge.s32 c, %i, %n; @c bra E; ld.global.f32 %f, [%p];", "0..4", "0..4096"},
		{"a guard that nothing passes", thread + "setp.ge.s32 c, %i, 0; @c bra E; add.s64 %a2, %q, %o; st.global.f32 [%a2], %f;", "nothing", "nothing"},
		{"rows and columns", "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3; setp.ge.s32 c, %r4, 100; @c bra E;" +
			"mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ntid.y; mov.u32 %r7, %tid.y; mad.lo.s32 %r8, %r5, %r6, %r7; setp.ge.s32 d, %r8, 10; @d bra E;" +
			"mad.lo.s32 %r9, %r8, 100, %r4; mul.wide.s32 %a1, %r9, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f;", "nothing", "0..4000"},
		{"vectors", thread + "mul.wide.s32 %a1, %i, 16; add.s64 %a2, %p, %a1; ld.global.v4.f32 {%f, %f, %f, %f}, [%a2];", "0..16384", "nothing"},
		{"bytes by the remainder", thread + "rem.u32 %r5, %i, 100; cvt.u64.u32 %a1, %r5; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "0..100"},
		{"masked and shifted", thread + "and.b32 %r5, %i, 31; shr.u32 %r6, %i, 5; add.s32 %r7, %r5, %r6; cvt.u64.u32 %a1, %r7; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "0..63"},
		{"a signed byte from memory", "ld.global.s8 %r5, [%p]; mul.wide.s32 %a2, %r5, 4; add.s64 %a3, %q, %a2; st.global.f32 [%a3], %f;", "0..1", "-512..512"},
		{"two bytes from memory", "ld.global.u16 %r5, [%p]; mul.wide.u32 %a2, %r5, 4; add.s64 %a3, %q, %a2; st.global.f32 [%a3], %f;", "0..2", "0..262144"},
		{"two signed bytes from memory", "ld.global.s16 %r5, [%p]; mul.wide.s32 %a2, %r5, 4; add.s64 %a3, %q, %a2; st.global.f32 [%a3], %f;", "0..2", "-131072..131072"},
		{"a number without a sign from memory", "ld.global.u32 %r5, [%p]; mul.wide.u32 %a2, %r5, 4; add.s64 %a3, %q, %a2; st.global.f32 [%a3], %f;", "0..4", "0..17179869184"},
		{"a masked number from memory", "ld.global.u32 %r5, [%p]; and.b32 %r6, %r5, 15; mul.wide.u32 %a2, %r6, 4; add.s64 %a3, %q, %a2; st.global.f32 [%a3], %f;", "0..4", "0..64"},
		{"a mask with a number from memory", "ld.global.u32 %r5, [%p]; mov.u32 %r7, 15; and.b32 %r6, %r7, %r5; mul.wide.u32 %a2, %r6, 4; add.s64 %a3, %q, %a2; st.global.f32 [%a3], %f;", "0..4", "0..64"},
		{"bits set", thread + "and.b32 %r5, %i, 12; or.b32 %r6, %r5, 3; cvt.u64.u32 %a1, %r6; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "3..16"},
		{"divided", thread + "add.s32 %r6, %i, 8; mov.u32 %r7, %tid.x; and.b32 %r8, %r7, 3; add.s32 %r9, %r8, 2; div.u32 %r5, %r6, %r9; cvt.u64.u32 %a1, %r5; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "1..516"},
		{"the rest of a small number", thread + "and.b32 %r6, %i, 7; rem.u32 %r5, %r6, 100; cvt.u64.u32 %a1, %r5; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "0..8"},
		{"divided by what may be nothing", thread + "div.u32 %r5, 100, %i; cvt.u64.u32 %a1, %r5; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "0..4294967296"},
		{"a field", thread + "bfe.u32 %r5, %i, 3, 4; cvt.u64.u32 %a1, %r5; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "0..16"},
		{"a field with a sign", thread + "bfe.s32 %r5, %i, 3, 4; mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f;", "nothing", "-8589934592..8589934592"},
		{"a field of some length", thread + "bfe.u32 %r5, %i, 3, %n; bfe.u32 %r6, %r5, 0, %r1; cvt.u64.u32 %a1, %r6; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "0..4294967296"},
		{"shifted by some number", thread + "and.b32 %r5, %i, 3; shl.b32 %r6, 1, %r5; cvt.u64.u32 %a1, %r6; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "0..4294967296"},
		{"shifted back by some number", thread + "and.b32 %r5, %i, 3; shr.u32 %r6, 64, %r5; cvt.u64.u32 %a1, %r6; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "0..4294967296"},
		{"a byte of a number", thread + "cvt.u8.u32 %r5, %i; cvt.u32.u8 %r6, %r5; cvt.u64.u32 %a1, %r6; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "0..256"},
		{"a byte of a byte", thread + "cvt.u8.u8 %r5, %i; cvt.u64.u32 %a1, %r5; add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r5;", "nothing", "0..256"},
		{"the larger of two", thread + "sub.s32 %r5, %i, 1; max.s32 %r5, %r5, 0; min.s32 %r6, %r5, 99; mul.wide.s32 %a1, %r6, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f;", "nothing", "0..400"},
		{"backwards", thread + "sub.s64 %a2, %q, %o; st.global.f32 [%a2], %f;", "nothing", "-4092..4"},
		{"a loop over all", thread + "mov.u32 %r5, %nctaid.x; mul.lo.s32 %r6, %r5, %r2; L: setp.ge.s32 c, %i, 1000000; @c bra E; mul.wide.s32 %a1, %i, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; add.s32 %i, %i, %r6; bra L;", "nothing", "0..4000000"},
		{"a loop over all, tested below", thread + "setp.ge.s32 c, %i, %n; @c bra E; L: mul.wide.s32 %a1, %i, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; add.s32 %i, %i, 1024; setp.lt.s32 d, %i, %n; @d bra L;", "nothing", "0..4096"},
		{"a loop to an exact number", "mov.u32 %r5, 0; mov.u64 %a1, %q; L: st.global.f32 [%a1], %f; add.s64 %a1, %a1, 4; add.s32 %r5, %r5, 1; setp.ne.s32 c, %r5, 16; @c bra L;", "nothing", "0..64"},
		{"a loop to an exact number from one of several", "mov.u32 %r1, %tid.x; and.b32 %r5, %r1, 3; L: mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; add.s32 %r5, %r5, 1; setp.ne.s32 c, %r5, 16; @c bra L;", "nothing", "-8589934592..8589934592"},
		{"a loop that counts down", "mov.u32 %r5, 16; mov.u64 %a1, %q; L: st.global.f32 [%a1], %f; add.s64 %a1, %a1, 8; add.s32 %r5, %r5, -1; setp.gt.s32 c, %r5, 0; @c bra L;", "nothing", "0..124"},
		{"used behind the addition", "mov.u32 %r5, 0; L: add.s32 %r5, %r5, 1; mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; setp.lt.s32 c, %r5, 16; @c bra L;", "nothing", "0..68"},
		{"by way of another register", "mov.u32 %r5, 0; L: mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; add.s32 %r6, %r5, 2; setp.lt.s32 c, %r6, 16; mov.u32 %r5, %r6; @c bra L;", "nothing", "0..60"},
		{"loops in each other", "mov.u32 %r5, 0; L: mov.u32 %r6, 0; M: mad.lo.s32 %r7, %r5, 10, %r6; mul.wide.s32 %a1, %r7, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; add.s32 %r6, %r6, 1; setp.lt.s32 c, %r6, 10; @c bra M; add.s32 %r5, %r5, 1; setp.lt.s32 d, %r5, 10; @d bra L;", "nothing", "0..400"},
		{"a loop that a bound in 64 bits ends", "mov.u64 %a1, 0; L: add.s64 %a2, %q, %a1; st.global.u8 [%a2], %r1; add.s64 %a1, %a1, 1; setp.lt.u64 c, %a1, %m; @c bra L;", "nothing", "0..1048576"},
		{"a loop that data ends", "mov.u32 %r5, 0; L: mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; add.s32 %r5, %r5, 1; ld.global.u32 %r6, [%p]; setp.lt.s32 c, %r5, %r6; @c bra L;", "0..4", "0..8589934588"},
		{"a loop that could wrap around", "mov.u32 %r5, 0; L: mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; add.s32 %r5, %r5, 7; setp.lt.s32 c, %r5, 2147483646; @c bra L;", "nothing", "-8589934592..8589934592"},
		{"a counter that is changed twice", "mov.u32 %r5, 0; L: mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; add.s32 %r5, %r5, 1; add.s32 %r5, %r5, 1; setp.lt.s32 c, %r5, 16; @c bra L;", "nothing", "-8589934592..8589934592"},
		{"a loop that is entered in two places", "mov.u32 %r5, 0; setp.eq.s32 c, %n, 7; @c bra M; L: mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f; M: add.s32 %r5, %r5, 1; setp.lt.s32 d, %r5, 16; @d bra L;", "unknown", "unknown"},
		{"an old value", thread + "L: mov.u32 %r9, %i; add.s32 %i, %i, -5; setp.ge.s32 c, %i, 8; @c bra L; setp.lt.s32 d, %i, 0; @d bra E; mul.wide.s32 %a1, %r9, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f;", "nothing", "-4060..4096"},
		{"an index from memory", thread + "add.s64 %a1, %p, %o; ld.global.u32 %r5, [%a1]; mul.wide.s32 %a2, %r5, 4; add.s64 %a3, %q, %a2; st.global.f32 [%a3], %f;", "0..4096", "-8589934592..8589934592"},
		{"an index of 64 bits from memory", "ld.global.u64 %a1, [%p]; add.s64 %a3, %q, %a1; st.global.f32 [%a3], %f;", "0..8", "unknown"},
		{"a byte from memory", "ld.global.u8 %r5, [%p]; mul.wide.u32 %a2, %r5, 4; add.s64 %a3, %q, %a2; st.global.f32 [%a3], %f;", "0..1", "0..1024"},
		{"a difference of addresses", "sub.s64 %a1, %q, %p; add.s64 %a2, %p, %a1; st.global.f32 [%a2], %f;", "unknown", "unknown"},
		{"one of two", "setp.eq.s32 c, %n, 0; selp.b64 %a1, %p, %q, c; st.global.f32 [%a1], %f;", "unknown", "unknown"},
		{"shared and local memory", "st.shared.f32 [tile], %f; mov.u64 %a1, depot; cvta.local.u64 %a2, %a1; st.f32 [%a2+4], %f; ld.global.f32 %f, [%p];", "0..4", "nothing"},
		{"a spilled address", "st.local.u64 [depot], %p; ld.local.u64 %a1, [depot]; ld.global.f32 %f, [%a1];", "unknown", "unknown"},
		{"atomics", thread + "add.s64 %a1, %p, %o; red.global.add.u32 [%a1], 1; atom.global.add.u32 %r5, [%q+8], 1;", "0..4096", "8..12"},
		{"a product that does not fit", thread + "mul.lo.s32 %r5, %i, 10000000; mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %q, %a1; st.global.f32 [%a2], %f;", "nothing", "-8589934592..8589934592"},
		{"all that a number of 64 bits can be", "ld.global.u64 %a1, [%p]; and.b64 %a2, %a1, 0x7fffffffffffffff; add.s64 %a3, %q, %a2; st.global.u8 [%a3], %r1;", "0..8", "unknown"},
		{"copies of unknown size", "cp.async.ca.shared.global [tile], [%p], 16;", "unknown", "unknown"},
	} {
		x := ranged(t, c.body, launch)
		if len(x) < 2 {
			continue
		}
		assert.Equal(t, [2]string{c.read, c.wrote}, [2]string{x[0].Reads.text(), x[1].Writes.text()}, c.name)
	}
}

// A scalar is loaded as the kernel says: with its sign or without, whole or not at all.
func TestScalarsAreOfTheirType(t *testing.T) {
	const store = " add.s64 %a3, %q, %a2; st.global.u8 [%a3], %r1;"
	launch := Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Scalars: map[int]uint64{2: 0xfffffffb, 3: 1<<64 - 7}}
	for _, c := range [][2]string{
		{"ld.param.s32 %r5, [n]; cvt.s64.s32 %a2, %r5;", "-5..-4"},
		{"ld.param.u32 %r5, [n]; cvt.u64.u32 %a2, %r5;", "4294967291..4294967292"},
		{"ld.param.u32 %r5, [n]; cvt.s64.s32 %a2, %r5;", "-5..-4"},
		{"ld.param.b32 %r5, [n]; cvt.u64.u32 %a2, %r5;", "4294967291..4294967292"},
		{"ld.param.u64 %a2, [m];", "-7..-6"},
		{"ld.param.s64 %a2, [m];", "-7..-6"},
		{"ld.param.u32 %r5, [m]; cvt.u64.u32 %a2, %r5;", "0..4294967296"},
		{"ld.param.u32 %r5, [m+4]; cvt.u64.u32 %a2, %r5;", "0..4294967296"},
		{"ld.param.u16 %r5, [n]; cvt.u64.u32 %a2, %r5;", "0..4294967296"},
		{"ld.param.f32 %f, [n]; mov.b32 %r5, %f; cvt.u64.u32 %a2, %r5;", "0..4294967296"},
	} {
		x := ranged(t, c[0]+store, launch)
		require.GreaterOrEqual(t, len(x), 2, c[0])
		require.Equal(t, c[1], x[1].Writes.text(), c[0])
		extended := launch // what is above the parameter's size does not count
		extended.Scalars = map[int]uint64{2: 1<<64 - 5, 3: 1<<64 - 7}
		require.Equal(t, c[1], ranged(t, c[0]+store, extended)[1].Writes.text(), c[0])
	}
}

// Of a scalar that the launch does not tell, nothing is known, whatever its type.
func TestScalarsThatAreNotGivenMayBeAnything(t *testing.T) {
	launch := Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	for _, load := range []string{"ld.param.s32 %r5, [n]; cvt.s64.s32 %a2, %r5;", "ld.param.u32 %r5, [n]; cvt.u64.u32 %a2, %r5;", "ld.param.s64 %a2, [m];"} {
		x := ranged(t, load+" add.s64 %a3, %q, %a2; st.global.u8 [%a3], %r1;", launch)
		require.GreaterOrEqual(t, len(x), 2, load)
		require.NotEqual(t, "0..1", x[1].Writes.text(), load)
	}
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
			Ranges(m, entry, Launch{Grid: [3]uint32{3, 2, 1}, Block: [3]uint32{64, 1, 1}, Scalars: map[int]uint64{2: 100}})
		}
	})
}
