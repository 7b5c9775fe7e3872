// The kernels of the suite, as PTX and in Go. Exact on every device: integers only.

package conformance

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/dagrun/dagrun/kernels/launch"
)

const ptx = `.version 6.0
.target sm_60
.address_size 64

.visible .entry noop()
{
	ret;
}

.visible .entry mix(.param .u64 dst, .param .u64 src, .param .u32 n, .param .u32 k)
{
	.reg .pred %p;
	.reg .u32 %r<9>;
	.reg .u64 %rd<6>;
	ld.param.u64 %rd1, [dst];
	ld.param.u64 %rd2, [src];
	ld.param.u32 %r1, [n];
	ld.param.u32 %r2, [k];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.u32 %r6, %r3, %r4, %r5;
	setp.ge.u32 %p, %r6, %r1;
	@%p bra done;
	mul.wide.u32 %rd3, %r6, 4;
	add.u64 %rd4, %rd1, %rd3;
	add.u64 %rd5, %rd2, %rd3;
	ld.global.u32 %r7, [%rd5];
	ld.global.u32 %r8, [%rd4];
	mul.lo.u32 %r7, %r7, 0x9E3779B1;
	mad.lo.u32 %r7, %r8, 40503, %r7;
	add.u32 %r7, %r7, %r2;
	st.global.u32 [%rd4], %r7;
done:
	ret;
}

.visible .entry hold(.param .u64 flag)
{
	.reg .pred %p;
	.reg .u32 %r<2>;
	.reg .u64 %rd<2>;
	ld.param.u64 %rd1, [flag];
again:
	ld.volatile.global.u32 %r1, [%rd1];
	setp.eq.u32 %p, %r1, 0;
	@%p bra again;
	ret;
}

.visible .entry store(.param .u64 p)
{
	.reg .u32 %r<2>;
	.reg .u64 %rd<2>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, 1;
	st.global.u32 [%rd1], %r1;
	ret;
}
`

// Module has the suite's kernels: noop(), mix(dst, src, n, k), hold(flag), which waits until the word at flag is not 0, and
// store(p), which writes a word.
func Module() *launch.Module {
	return &launch.Module{Name: "conformance", Kind: launch.PTX, Code: []byte(ptx), References: map[string]launch.Reference{
		"noop": {Run: func(*launch.Call, int64, int64) {}},
		"mix": {
			Spans: func(c *launch.Call) int64 { return int64(c.Args[2].Bits) },
			Run: func(c *launch.Call, lo, hi int64) {
				d, s := argWords(c.Args[0]), argWords(c.Args[1])
				for i := lo; i < hi; i++ {
					d[i] = mixed(s[i], d[i], uint32(c.Args[3].Bits))
				}
			},
		},
		"hold": {Run: func(c *launch.Call, _, _ int64) {
			for atomic.LoadUint32((*uint32)(c.Args[0].Memory)) == 0 {
				runtime.Gosched()
			}
		}},
		"store": {Run: func(c *launch.Call, _, _ int64) { *(*uint32)(c.Args[0].Memory) = 1 }},
	}}
}

func argWords(a launch.Arg) []uint32 { return unsafe.Slice((*uint32)(a.Memory), a.Bytes/4) }

func mixed(x, y, k uint32) uint32 { return x*0x9E3779B1 + y*40503 + k }
