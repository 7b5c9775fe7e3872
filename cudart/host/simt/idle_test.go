// Tests of launches that use what earlier launches of the same kernel have left.

package simt

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// leftPTX adds each thread's number to an element of out, and stores what it has found in shared memory, local memory and a register.
const leftPTX = `.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n) {
  .reg .u64 %rd<9>; .reg .u32 %r<20>; .reg .pred %p<4>;
  .shared .u32 s[64]; .local .u32 l[4];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mov.u32 %r8, %nctaid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd1, %rd1, %rd2;
  mov.u64 %rd3, s;
  add.u64 %rd3, %rd3, %rd2;
  ld.shared.u32 %r3, [%rd3];
  ld.local.u32 %r4, [l];
  add.u32 %r3, %r3, %r4;
  add.u32 %r3, %r3, %r5;
  mov.u32 %r5, 1000;
  st.shared.u32 [%rd3], %r5;
  st.local.u32 [l], %r5;
  add.u32 %r3, %r3, %r1;
  add.u32 %r3, %r3, %r8;
  st.global.u32 [%rd1], %r3;
  ret;
}
`

// words makes memory that Go does not move.
//
//go:noinline
func words(n int) []uint32 { return make([]uint32, n) }

func leftKernel(t *testing.T) *Kernel {
	t.Helper()
	p, err := Load("left", leftPTX)
	require.NoError(t, err)
	k, err := p.Kernel("k")
	require.NoError(t, err)
	return k
}

// leftBehind launches one block of 64 threads on the first elements of a buffer.
func leftBehind(t *testing.T, k *Kernel, out []uint32, elements, n int, l Launch) *Fault {
	t.Helper()
	l.Block = [3]uint32{64, 1, 1}
	if l.Grid == [3]uint32{} {
		l.Grid = [3]uint32{1, 1, 1}
	}
	l.Args = []Arg{{Bits: uint64(uintptr(unsafe.Pointer(&out[0]))), Pointer: true, Bytes: int64(4 * elements)}, {Bits: uint64(n)}}
	r, err := k.Start(l)
	require.NoError(t, err)
	r.Work()
	runtime.KeepAlive(out)
	return r.Fault()
}

func TestLaunchesUseWhatEarlierOnesLeft(t *testing.T) {
	k := leftKernel(t)
	first, second := words(64), words(64)
	require.Nil(t, leftBehind(t, k, first, 64, 7, Launch{}))
	require.Len(t, k.idle.clusters, 1)
	left := k.idle.clusters[0]
	require.Nil(t, left.blocks[0].run)

	require.Nil(t, leftBehind(t, k, second, 64, 30, Launch{}))
	require.Equal(t, []*cluster{left}, k.idle.clusters)
	for i := range first {
		require.Equal(t, uint32(8), first[i], i)
		require.Equal(t, uint32(31), second[i], i)
	}

	// The memory of the first launch does not belong to the second, which may also touch less of it.
	fault := leftBehind(t, k, second, 63, 0, Launch{})
	require.NotNil(t, fault)
	require.Equal(t, OutOfBounds, fault.Kind)
	require.Equal(t, [3]uint32{63, 0, 0}, fault.Thread)
	require.Empty(t, k.idle.clusters, "what a fault has stopped is not used again")
}

func TestOnlyLaunchesOfOneShapeShareWhatIsLeft(t *testing.T) {
	k := leftKernel(t)
	out := words(64)
	for _, c := range []struct {
		l    Launch
		left int
	}{
		{Launch{}, 1},
		{Launch{Check: CheckFull}, 1},  // of the launch before
		{Launch{Cooperative: true}, 1}, // the same
		{Launch{Shared: 512}, 1},
		{Launch{Shared: mostShared - 1024}, 0}, // too large to keep
		{Launch{Grid: [3]uint32{3, 1, 1}}, 1},
		{Launch{}, 1},
	} {
		fault := leftBehind(t, k, out, 64, 0, c.l)
		if c.l.Check == CheckNothing {
			require.Nil(t, fault)
			require.Equal(t, max(c.l.Grid[0], 1), out[63], fmt.Sprint(c.l))
		}
		require.Len(t, k.idle.clusters, c.left, fmt.Sprint(c.l))
		for _, kept := range k.idle.clusters {
			require.Nil(t, kept.blocks[0].warps[0].x.check)
		}
	}
	require.LessOrEqual(t, k.idle.bytes, int64(mostIdle))
}

// A kernel keeps what fits in a mebibyte, and as much again after some of it was in use.
func TestWhatIsLeftIsLimited(t *testing.T) {
	k := leftKernel(t)
	out := words(64)
	args := []Arg{{Bits: uint64(uintptr(unsafe.Pointer(&out[0]))), Pointer: true, Bytes: 256}, {}}
	r, err := k.Start(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1}, Shared: 200 << 10, Args: args})
	require.NoError(t, err)
	var spare []*cluster
	for range 9 {
		spare = append(spare, r.newCluster())
	}
	most := int(mostIdle / r.clusterBytes())
	require.Equal(t, 4, most)
	for range 3 {
		r.keep(spare)
		require.Len(t, k.idle.clusters, most)
		require.NotNil(t, r.reuse())
		require.NotNil(t, r.reuse())
	}
	runtime.KeepAlive(out)
}

func TestLaunchesAtTheSameTimeDoNotShareBlocks(t *testing.T) {
	k := leftKernel(t)
	var all errgroup.Group
	for n := range 8 {
		all.Go(func() error {
			out := words(64)
			for round := range 50 {
				if fault := leftBehind(t, k, out, 64, n, Launch{}); fault != nil {
					return fault
				}
				for i, v := range out {
					if v != uint32(n+1) {
						return fmt.Errorf("launch %d.%d: element %d is %d", n, round, i, v)
					}
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
}
