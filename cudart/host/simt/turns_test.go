// Tests of where lanes meet again, whatever the order of the code is, and of the order of basic blocks.

package simt

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func turnsKernel(t *testing.T, body string) *Kernel {
	t.Helper()
	p, err := Load("turns", `.version 7.0
.target sm_70
.address_size 64
.func count(.reg .u32 %n) { .reg .pred %p;
AGAIN: sub.u32 %n, %n, 1;
setp.gt.s32 %p, %n, 0;
@%p bra AGAIN;
ret; }
.visible .entry k(.param .u64 out) {
  .reg .u64 %rd<9>; .reg .u32 %r<20>; .reg .pred %p<9>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 0;
  and.b32 %r3, %r1, 3;
`+strings.ReplaceAll(body, "; ", ";\n")+"\n}\n")
	require.NoError(t, err)
	k, err := p.Kernel("k")
	require.NoError(t, err)
	return k
}

func TestLanesMeetWhereTheirPathsJoin(t *testing.T) {
	const store = "activemask.b32 %r9; st.global.u32 [%rd1], %r9; "
	for name, body := range map[string]string{
		"the join first": "bra BRANCH;\nJOIN: " + store + "ret;\nBRANCH: @%p1 bra EVEN; add.u32 %r4, %r1, 1; bra JOIN;\nEVEN: add.u32 %r4, %r1, 2; bra JOIN;",
		"one arm above the join and one below": "bra BRANCH;\nEVEN: add.u32 %r4, %r1, 2;\nJOIN: " + store +
			"ret;\nBRANCH: @%p1 bra EVEN; add.u32 %r4, %r1, 1; bra JOIN;",
		"after a loop with the exit above it": "mov.u32 %r5, 0; bra LOOP;\nAFTER: " + store +
			"ret;\nLOOP: add.u32 %r5, %r5, 1; setp.gt.u32 %p2, %r5, %r3; @%p2 bra AFTER; bra LOOP;",
		"in each turn of a loop": "mov.u32 %r5, 0; mov.u32 %r6, -1; bra LOOP;\nEVEN: add.u32 %r4, %r1, 2;\nNEXT: activemask.b32 %r9; and.b32 %r6, %r6, %r9; " +
			"add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 5; @%p2 bra LOOP; st.global.u32 [%rd1], %r6; ret;\nLOOP: @%p1 bra EVEN; add.u32 %r4, %r1, 1; bra NEXT;",
		"after a function that some call":      "@%p1 bra CALL; add.u32 %r4, %r1, 1;\nJOIN: " + store + "ret;\nCALL: call count, (%r1); bra JOIN;",
		"after a function that all call":       "call count, (%r3); " + store + "ret;",
		"after a call and another one of some": "call count, (%r3); @%p1 call count, (%r1); " + store + "ret;",
		"a loop in a loop": "mov.u32 %r5, 0; mov.u32 %r6, -1; bra OUTER;\nNEXT: activemask.b32 %r9; and.b32 %r6, %r6, %r9; add.u32 %r5, %r5, 1; " +
			"setp.lt.u32 %p2, %r5, 3; @%p2 bra OUTER; st.global.u32 [%rd1], %r6; ret;\nOUTER: mov.u32 %r7, 0;\nINNER: add.u32 %r7, %r7, 1; " +
			"setp.gt.u32 %p3, %r7, %r3; @%p3 bra NEXT; bra INNER;",
	} {
		t.Run(name, func(t *testing.T) {
			k := turnsKernel(t, body)
			out := words(32)
			r, err := k.Start(Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, MaxSteps: 100_000,
				Args: []Arg{{Bits: uint64(uintptr(unsafe.Pointer(&out[0]))), Pointer: true, Bytes: 128}}})
			require.NoError(t, err)
			r.Work()
			runtime.KeepAlive(out)
			require.Nil(t, r.Fault())
			for i, v := range out {
				require.Equal(t, fullMask, v, "lane %d", i)
			}
		})
	}
}

func TestTurnsOfBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []int // blocks in their order, without those that no jump leads to
	}{
		"straight on":                {"bar.sync 0; ret;", []int{0, 1}},
		"what no jump leads to":      {"bra END; add.u32 %r4, %r1, 1;\nEND: ret;", []int{0, 2}},
		"two arms, the join first":   {"bra BRANCH;\nJOIN: ret;\nBRANCH: @%p1 bra EVEN; bra JOIN;\nEVEN: bra JOIN;", []int{0, 2, 3, 4, 1}},
		"a loop and what follows it": {"bra LOOP;\nAFTER: ret;\nLOOP: @%p1 bra AFTER; bra LOOP;", []int{0, 2, 3, 1}},
		"a loop with two ways in":    {"@%p1 bra B;\nA: add.u32 %r4, %r1, 1;\nB: setp.eq.u32 %p2, %r3, 0; @%p2 bra A; ret;", []int{0, 2, 1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			blocks := turnsKernel(t, c.body).entry.blocks
			var got []int
			for i := range blocks {
				if int(blocks[i].turn) < len(blocks) {
					got = append(got, i)
				}
			}
			slices.SortFunc(got, func(a, b int) int { return int(blocks[a].turn - blocks[b].turn) })
			require.Equal(t, c.want, got)
		})
	}
}
