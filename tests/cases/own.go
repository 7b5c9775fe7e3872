//go:build linux

// Kernels of a module for random pipelines: as PTX, which needs no compiler.

package main

// ownPTX has twist(n, x, y, z), y[i] = 3*x[i] + i, which uses no z, and bump(n, x), x[i] = 5*x[i] + i.
const ownPTX = `.version 7.0
.target sm_70
.address_size 64
.visible .entry twist(.param .u32 n, .param .u64 x, .param .u64 y, .param .u64 z)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %d<8>;
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r3, %r2, %r4;
	setp.ge.s32 %p1, %r5, %r1;
	@%p1 bra END;
	ld.param.u64 %d1, [x];
	cvta.to.global.u64 %d2, %d1;
	ld.param.u64 %d3, [y];
	cvta.to.global.u64 %d4, %d3;
	mul.wide.s32 %d5, %r5, 4;
	add.s64 %d6, %d2, %d5;
	add.s64 %d7, %d4, %d5;
	ld.global.u32 %r6, [%d6];
	mad.lo.s32 %r7, %r6, 3, %r5;
	st.global.u32 [%d7], %r7;
END:
	ret;
}
.visible .entry bump(.param .u32 n, .param .u64 x)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %d<8>;
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r3, %r2, %r4;
	setp.ge.s32 %p1, %r5, %r1;
	@%p1 bra END;
	ld.param.u64 %d1, [x];
	cvta.to.global.u64 %d2, %d1;
	mul.wide.s32 %d5, %r5, 4;
	add.s64 %d6, %d2, %d5;
	ld.global.u32 %r6, [%d6];
	mad.lo.s32 %r7, %r6, 5, %r5;
	st.global.u32 [%d6], %r7;
END:
	ret;
}
`
