// Tests of cooperative launches: blocks that wait for their whole grid, and what happens when one of them fails.

package simt

import (
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// meetingPTX writes a number per block, waits for the grid, and writes the sum of its own and the next block's number; the block
// that fail names traps instead of coming to the barrier. One block has one thread.
const meetingPTX = `.version 7.0
.target sm_60
.address_size 64
.visible .entry meet(.param .u64 x, .param .u64 y, .param .u32 fail) {
  .reg .u64 %rd<12>; .reg .u32 %r<20>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u32 %r1, [fail];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %nctaid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd4, %rd1, %rd3;
  st.global.u32 [%rd4], %r2;
  setp.eq.u32 %p1, %r1, %r2;
  @%p1 trap;
  mov.u32 %r4, %envreg1;
  mov.u32 %r5, %envreg2;
  cvt.u64.u32 %rd5, %r4;
  shl.b64 %rd5, %rd5, 32;
  cvt.u64.u32 %rd6, %r5;
  or.b64 %rd7, %rd5, %rd6;
  setp.eq.u32 %p2, %r2, 0;
  sub.u32 %r6, 0x80000001, %r3;
  selp.b32 %r7, %r6, 1, %p2;
  membar.gl;
  atom.add.u32 %r8, [%rd7+4], %r7;
again:
  ld.volatile.u32 %r9, [%rd7+4];
  xor.b32 %r10, %r9, %r8;
  setp.gt.s32 %p3, %r10, -1;
  @%p3 bra again;
  membar.gl;
  add.u32 %r11, %r2, 1;
  rem.u32 %r11, %r11, %r3;
  mul.wide.u32 %rd8, %r11, 4;
  add.u64 %rd9, %rd1, %rd8;
  ld.global.u32 %r12, [%rd9];
  add.u32 %r12, %r12, %r2;
  add.u64 %rd10, %rd2, %rd3;
  st.global.u32 [%rd10], %r12;
  ret;
}
`

// onHeap keeps the memory of a launch where it is: what no variable of the package refers to can be on a stack, which moves.
var onHeap [][]uint32

func meeting(t *testing.T, blocks uint32, fail uint64, check Check) ([]uint32, *Fault) {
	t.Helper()
	p, err := Load("m", meetingPTX)
	require.NoError(t, err)
	k, err := p.Kernel("meet")
	require.NoError(t, err)
	require.True(t, k.Meets())
	x, y := make([]uint32, blocks), make([]uint32, blocks)
	onHeap = [][]uint32{x, y}
	pointer := func(to []uint32) Arg {
		return Arg{Bits: uint64(uintptr(unsafe.Pointer(&to[0]))), Pointer: true, Bytes: int64(4 * len(to))}
	}
	r, err := k.Start(Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{1, 1, 1}, Cooperative: true, Check: check, Args: []Arg{pointer(x), pointer(y), {Bits: fail}}})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		var workers sync.WaitGroup
		for range 3 {
			workers.Go(r.Work)
		}
		workers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Fatal("the launch does not end")
	}
	return y, r.Fault()
}

func TestBlocksWaitForTheGrid(t *testing.T) {
	for _, check := range []Check{CheckNothing, CheckFast, CheckFull} {
		for range 40 { // what is ordered must not depend on who comes when
			y, fault := meeting(t, 24, 1<<31, check)
			require.Nil(t, fault)
			for i, v := range y {
				require.EqualValues(t, i+(i+1)%24, v)
			}
		}
	}
}

func TestALaunchEndsWhenABlockThatOthersWaitForFails(t *testing.T) {
	for _, check := range []Check{CheckNothing, CheckFast, CheckFull} {
		_, fault := meeting(t, 24, 7, check)
		require.NotNil(t, fault)
		require.Equal(t, Trapped, fault.Kind)
		require.Equal(t, [3]uint32{7, 0, 0}, fault.Block)
	}
}

func TestHowManyBlocksRunTogether(t *testing.T) {
	require.EqualValues(t, 132*8, MostTogether([3]uint32{256, 1, 1}))
	require.EqualValues(t, 132*2, MostTogether([3]uint32{32, 32, 1}))
	require.EqualValues(t, 132*64, MostTogether([3]uint32{1, 1, 1}))
}
