// Tests of which accesses race, against the definition: two threads access the same byte, one of them writes, not both are atomic, and no barrier of
// their block comes between the two.

package simt_test

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

// pairsKernel lets one thread after the other access a word, or one of its bytes. The script has three words for each access: the thread, counted over all
// blocks; what it does: 0 reads, 1 writes, 2 adds atomically the word; 3 and 4 read and write a byte; and whether a barrier follows. The place of the byte
// follows the script. Each write changes all bytes: one that leaves memory as it is is no race with another.
const pairsKernel = `.shared .align 4 .b8 tile[64];
.visible .entry k(.param .u64 script, .param .u64 out)
{
.reg .pred %p<9>; .reg .b32 %r<20>, %v, %id; .reg .b64 %s, %a, %b, %at;
ld.param.u64 %s, [script]; ld.param.u64 %a, [out]; SPACE
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %id, %r2, 96, %r1; setp.ne.u32 %p1, %r1, 0; @%p1 bra READY; FIRST READY: bar.sync 0;
ld.global.u32 %r3, [%s+48]; cvt.u64.u32 %at, %r3; add.u64 %b, %a, %at;
mov.u32 %r4, 0;
NEXT:
ld.global.u32 %r5, [%s]; ld.global.u32 %r6, [%s+4]; ld.global.u32 %r7, [%s+8]; add.u64 %s, %s, 12; mad.lo.u32 %r8, %r4, 0x07070707, 0x30303030;
setp.ne.u32 %p2, %id, %r5; @%p2 bra DONE;
setp.eq.u32 %p3, %r6, 0; @%p3 bra READ; setp.eq.u32 %p3, %r6, 1; @%p3 bra WRITE; setp.eq.u32 %p3, %r6, 2; @%p3 bra ADD; setp.eq.u32 %p3, %r6, 3; @%p3 bra READ1;
st.u8 [%b], %r8; bra DONE;
READ1: ld.u8 %v, [%b]; bra DONE;
READ: ld.u32 %v, [%a]; bra DONE;
WRITE: st.u32 [%a], %r8; bra DONE;
ADD: atom.add.u32 %v, [%a], 1;
DONE: setp.eq.u32 %p4, %r7, 0; @%p4 bra ON; bar.sync 0;
ON: add.u32 %r4, %r4, 1; setp.lt.u32 %p5, %r4, 4; @%p5 bra NEXT;
ret;
}
`

func TestAccessesRaceAsTheDefinitionSays(t *testing.T) {
	threads := []uint32{0, 1, 33, 95, 96, 130}
	seeds := uint64(3000)
	if testing.Short() { // no two goroutines run a launch
		seeds = 500
	}
	for _, c := range []struct {
		shared bool
		level  simt.Check
	}{{true, simt.CheckFull}, {false, simt.CheckFull}, {false, simt.CheckFast}} { // the fast checks note no plain reads of global memory
		shared := c.shared
		space, first, blocks := "", "", uint32(2)
		if shared {
			space, first, blocks = "mov.u64 %a, tile; cvta.shared.u64 %a, %a;", "st.u32 [%a], 0;", 1
		}
		p := program(t, strings.NewReplacer("SPACE", space, "FIRST", first).Replace(pairsKernel))
		k, err := p.Kernel("k")
		require.NoError(t, err)
		races, clean := 0, 0
		for seed := range seeds {
			rng := rand.New(rand.NewPCG(seed, 8))
			memory := onHeap[uint32](64)
			script, word := memory[:16], &memory[32]
			place := rng.Uint32N(4)
			script[12] = place
			few := threads[:4]
			if !shared && rng.IntN(2) == 0 {
				few = threads[2:]
			} else if !shared {
				few = append(few, 96)
			}
			for i := range 4 {
				script[3*i], script[3*i+1], script[3*i+2] = few[rng.IntN(len(few))], rng.Uint32N(5), rng.Uint32N(2)
			}
			race, hidden := false, false
			// Only the last write of a byte is remembered: an atomic operation can hide what its thread does otherwise from those of others, and,
			// where they are ordered, what other threads of its block do.
			hides := func(i int, across bool) bool {
				for k := range 4 {
					same := script[3*k] == script[3*i] || across && script[3*k]/96 == script[3*i]/96
					if same && script[3*k+1] == 2 && script[3*i+1] != 2 {
						return true
					}
				}
				return false
			}
			for j := range 4 {
				for i := range j {
					barrier := false
					for k := i; k < j; k++ {
						barrier = barrier || script[3*k+2] != 0
					}
					one, two := script[3*i+1], script[3*j+1]
					a, b := script[3*i], script[3*j]
					writesOne, writesTwo := one == 1 || one == 2 || one == 4, two == 1 || two == 2 || two == 4
					writes, unsure := writesOne || writesTwo, false
					if c.level == simt.CheckFast && a/96 == b/96 {
						unsure = !(writesOne && writesTwo) // it depends on which warp runs first
					} else if c.level == simt.CheckFast {
						writes = a < b && writesOne || b < a && writesTwo // block 0 runs first
					}
					if a != b && writes && !(one == 2 && two == 2) && (!barrier || a/96 != b/96) {
						can := unsure || hides(i, a/96 != b/96) || hides(j, a/96 != b/96)
						hidden, race = hidden || can, race || !can
					}
				}
			}
			if hidden && !race {
				continue
			}
			address := func(p *uint32, words int64) simt.Arg {
				return simt.Arg{Bits: uint64(uintptr(unsafe.Pointer(p))), Pointer: true, Bytes: 4 * words}
			}
			r, err := k.Start(simt.Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{96, 1, 1}, Check: c.level,
				Args: []simt.Arg{address(&script[0], 16), address(word, 1)}})
			require.NoError(t, err)
			r.Work()
			runtime.KeepAlive(memory)
			fault := r.Fault()
			require.Equal(t, race, fault != nil, "seed %d, shared %v, checks %d: %v: %v", seed, shared, c.level, script[:13], fault)
			if fault == nil {
				clean++
				continue
			}
			races++
			require.Equal(t, simt.Race, fault.Kind, "%v", fault)
		}
		require.Greater(t, races, int(seeds)/6)
		require.Greater(t, clean, int(seeds)/10)
	}
}
