// Tests of what the CPU device cannot run: it is refused before a launch, with the instruction and the reason.

package simt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

func TestFormsThatCannotRunAreRefused(t *testing.T) {
	const mma, fragments, wmma = "this form of mma is not supported", "the fragments of this mma have other sizes", "this form of wmma is not supported"
	for _, c := range []struct{ code, reason string }{
		{"mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};", mma},
		{"mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};", fragments},
		{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3}, {%r5,%r6}, {%f1,%f2,%f3,%f4};", fragments},
		{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5}, {%f1,%f2,%f3,%f4};", fragments},
		{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2};", fragments},
		{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};", fragments},
		{"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r5,%r6}, {%f1,%f2,%f3,%f4}, %r7, 0;", mma},
		{"mma.sync.aligned.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};", mma},
		{"mma.sync.aligned.m16n16k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};", mma},
		{"mma.sync.aligned.m32n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};", mma},
		{"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f64 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, {%r1,%r2}, {%r1,%r2}, {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8};", wmma},
		{"wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%fd1}, [%out], 4, 4;", wmma},
		{"wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%out], {%fd1,%fd2}, 8, 8;", wmma},
		{"wmma.load.d.sync.aligned.row.m8n8k4.global.f64 {%fd1,%fd2}, [%out], 8;", wmma},
		{"wmma.store.a.sync.aligned.row.m8n8k4.global.f64 [%out], {%fd1}, 4;", wmma},
		{"mbarrier.init.shared.b64 [%r1];", "this form of mbarrier is not supported"},
		{"mbarrier.inval.shared.b64 [%r1], 4;", "this form of mbarrier is not supported"},
		{"mbarrier.try_wait.shared.b64 [%r1], %rd1;", "this form of mbarrier is not supported"},
		{"lop3.b64 %rd1, %rd2, %rd3, %rd4, 5;", "this form of lop3 is not supported"},
		{"lop3.b32 %r1, %r2, %r3, %r4, %r5;", "this form of lop3 is not supported"},
		{"lop3.and.b32 %r1, %r2, %r3, %r4, 5, %p1;", "this form of lop3 is not supported"},
		{"redux.sync.add.f32 %f1, %f2, -1;", ""},
		{"redux.sync.min.u64 %rd1, %rd2, -1;", ""},
		{"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3,%r4}, {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8};", fragments},
		{"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, {%r1,%r2}, {%r3,%r4}, {%f1,%f2,%f3,%f4};", fragments},
		{"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, {%r1}, {%r3,%r4}, {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8};", fragments},
		{"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, {%r1,%r2}, {%r3}, {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8};", fragments},
		{"set.num.u32.u32 %r1, %r2, %r3;", "this comparison is not supported"},
		{"add.u32 %r1, %r2, -%r3;", "an operand of this form is not supported"},
		{"mov.u32 %r1, %r2.x;", "an operand of this form is not supported"},
		{"fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;", ""},
		{"add.u32 %r1, %r2, %p1;", "an operand of this form is not supported"},
		{"add.u32 %p1, %r2, %r3;", "a result of this form is not supported"},
		{"add.u32 4, %r2, %r3;", "a result of this form is not supported"},
		{"add.u32 %r1, %r2, %clock;", "a clock can only be moved to a register"},
		{"selp.u32 %r1, %r2, %r3, %r4;", "a predicate is expected"},
		{"setp.eq.u32 %r1, %r2, %r3;", "a predicate is expected"},
		{"add.u32 %r1, %r2;", "an operand is missing"},
		{"atom.global.cas.b128 %rd1, [%out], %rd2, %rd3;", ""},
		{"atom.global.add.b8 %r1, [%out], %r2;", ""},
		{"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];", ""},
		{"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r3], {%r1};", ""},
		{"tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1}];", "too few coordinates"},
		{"tex.a2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1,%f1,%f2,%f2}];", "textures in memory of rows have one to three dimensions and no layers"},
		{"tex.cube.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1,%f2,%f3,%f4}];", "textures in memory of rows have one to three dimensions and no layers"},
		{"tex.1d.v4.f16.f32 {%h1,%h2,%h3,%h4}, [%rd1, {%f1}];", "only textures of 32-bit values are supported"},
		{"tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, %rd2, {%f1,%f2}];", "a fetch with a sampler of its own is not supported"},
		{"tex.level.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1,%f2}], %f3, {%r1, %r2};", "a fetch with offsets or a comparison is not supported"},
		{"tex.grad.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1,%f2}], {%f3,%f4}, {%f3,%f4};", "this form of tex is not supported"},
		{"tld4.r.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f1,%f2}];", ""},
		{"cp.async.ca.shared.global [%r1], [%out], 5;", ""},
		{"cp.async.ca.shared.global [%r1], [%out];", ""},
		{"cp.async.ca.shared.global [%r1], [%out], %r2;", ""},
		{"cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], [%r3];", ""},
		{"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%out], 16;", ""},
		{"cp.async.bulk.global.shared::cta.bulk_group.multicast [%out], [%r1], 16;", ""},
		{"cp.async.mbarrier.arrive.shared.b64 [%r1], 4;", ""},
		{"st.async.shared::cluster.u32 [%r1], %r2, [%r3];", ""},
		{"st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2;", ""},
		{"st.async.shared::cluster.mbarrier::complete_tx::bytes.u16 [%r1], %h2, [%r3];", ""},
		{"st.async.global.mbarrier::complete_tx::bytes.u32 [%out], %r2, [%r3];", ""},
		{"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];", ""},
		{"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.v2.u32 [%r1], {%r2, %r4}, [%r3];", ""},
		{"st.bulk.weak.shared::cta [%r1], %rd1, 1;", ""},
		{"st.bulk.weak.shared::cta [%r1], %rd1, %rd2;", ""},
		{"setp.eq.u32 %p1, %r1, %r2, %p2;", "a comparison with a third operand must say how to combine it"},
		{"barrier.sync;", "the barrier has no number"},
		{"mbarrier.arrive.shared.b32 %r1, [%r2];", ""},
		{"frobnicate.b32 %r1, %r2;", ""},
		{"alloca.u64 %rd1, 16;", ""},
		{"stacksave.u64 %rd1;", ""},
		{"stackrestore.u64 %rd1;", ""},
		{"ld.shared.u32 %r1, [cell+%out];", "an address of a variable plus a register is not supported"},
		{"call absent, ();", "the function absent is not in the module"},
		{"cvt.rn.f16.f128 %h1, %rd1;", ""},
		{"wgmma.fence.sync.aligned;", ""},
		{"tcgen05.wait::ld.sync.aligned;", ""},
		{"suld.b.1d.b32.trap %r1, [%rd1, {%r2}];", ""},
		{"vadd2.s32.s32.s32 %r1.h10, %r2, %r3, %r4;", "selectors of this instruction are not supported"},
	} {
		p, err := simt.Load("test.ptx", header+".extern .func absent(); .shared .b32 cell;\n"+entry(c.code))
		require.NoError(t, err, c.code)
		_, err = p.Kernel("k")
		var unsupported *simt.UnsupportedError
		require.ErrorAs(t, err, &unsupported, c.code)
		word, _, _ := strings.Cut(strings.TrimSuffix(c.code, ";"), " ")
		want := `test.ptx:10:1: kernel "k" uses ` + word + ", which the CPU device cannot run"
		if c.reason != "" {
			want += ": " + c.reason
		}
		require.EqualError(t, err, want)
	}
}
