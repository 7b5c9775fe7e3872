// Tests of what a warp does once for all its blocks.

package simt

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// oncePTX stores for each thread of each block a sum of values of every kind: of the launch, of the block and of the thread; from
// registers that are set once, again in a loop, under a guard, or never; from a parameter and from memory through its address.
const oncePTX = `.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n) {
  .reg .u64 %rd<9>; .reg .u32 %r<30>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %tid.x;
  mul.lo.u32 %r5, %r1, %r2;
  add.u32 %r6, %r5, 3;
  mad.lo.u32 %r7, %r3, %r2, %r4;
  mul.wide.u32 %rd3, %r7, 4;
  add.u64 %rd4, %rd1, %rd3;
  mov.u32 %r8, 5;
  setp.eq.u32 %p1, %r3, 1;
  @%p1 mov.u32 %r9, 1000;
  mov.u32 %r10, 0;
  ld.global.u32 %r11, [%rd2];
  ld.param.u64 %rd5, [in];
loop:
  add.u32 %r8, %r8, %r1;
  add.u32 %r10, %r10, 1;
  setp.lt.u32 %p2, %r10, 3;
  @%p2 bra loop;
  add.u32 %r12, %r6, %r8;
  add.u32 %r12, %r12, %r9;
  add.u32 %r12, %r12, %r11;
  add.u32 %r12, %r12, %r13;
  mov.u32 %r13, 7000;
  mov.u32 %r9, 7000;
  add.u32 %r14, %r11, 1;
  setp.eq.u32 %p3, %r4, 39;
  @%p3 st.global.u32 [%rd5], %r14;
  st.global.u32 [%rd4], %r12;
  ret;
}
`

func TestWhatIsDoneOnceIsRightInEveryBlock(t *testing.T) {
	p, err := Load("once", oncePTX)
	require.NoError(t, err)
	k, err := p.Kernel("k")
	require.NoError(t, err)

	first := &k.entry.blocks[0]
	var left []string
	for _, i := range k.entry.laterAt {
		left = append(left, k.entry.f.Code[i].Form.Text)
	}
	require.Equal(t, []string{"mov.u32", "mov.u32", "mad.lo.u32", "mul.wide.u32", "add.u64", "mov.u32", "setp.eq.u32", "mov.u32", "mov.u32", "ld.global.u32"}, left)
	require.Len(t, first.ops, 17)
	cleared := 0
	for _, r := range k.entry.unset {
		cleared += r.hi - r.lo
	}
	require.Equal(t, 2, cleared, "of all registers, %%r9 and %%r13 may be read before they are written")

	const blocks, threads = 5, 40
	for n := range 3 { // later launches use what earlier ones have left
		out, in := words(blocks*threads), words(1)
		clear(in)
		r, err := k.Start(Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{threads, 1, 1}, Args: []Arg{
			{Bits: uint64(uintptr(unsafe.Pointer(&out[0]))), Pointer: true, Bytes: 4 * blocks * threads},
			{Bits: uint64(uintptr(unsafe.Pointer(&in[0]))), Pointer: true, Bytes: 4}, {Bits: uint64(n)}}})
		require.NoError(t, err)
		r.Work()
		runtime.KeepAlive(out)
		runtime.KeepAlive(in)
		require.Nil(t, r.Fault())
		for block := range blocks {
			for thread := range threads {
				want := n*threads + 3 + 5 + 3*n
				if block == 1 {
					want += 1000
				}
				want += block // what the blocks before have added to in
				require.Equal(t, uint32(want), out[block*threads+thread], "n %d, block %d, thread %d", n, block, thread)
			}
		}
	}
}
