// Tests of barriers that threads leave, and of matrices whose rows lie where they must not.

package simt_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

// Threads that end count no longer: those that already wait at a barrier go on.
func TestBarriersOpenWhenTheOthersEnd(t *testing.T) {
	for _, c := range []struct{ name, leaves string }{
		{"later warps", "setp.ge.u32 %p1, %me, 32; @%p1 ret;"},
		{"earlier warps, after some turns", "setp.ge.u32 %p1, %me, 32; @%p1 bra WAIT; mov.u32 %r2, 20000; L: sub.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra L; exit; WAIT:"},
		{"some lanes of each warp", "and.b32 %r2, %me, 1; setp.eq.u32 %p1, %r2, 0; @%p1 exit;"},
	} {
		p := program(t, entry("mov.u32 %r1, 0;"+c.leaves+"bar.sync 0; mov.u32 %r1, 1;"+put("%r1")+"bar.sync 0;"))
		out, fault := run(t, p, block(96), 96)
		require.Nil(t, fault, c.name)
		sum := uint32(0)
		for _, v := range out {
			sum += v
		}
		require.Equal(t, map[string]uint32{"later warps": 32, "earlier warps, after some turns": 64, "some lanes of each warp": 48}[c.name], sum, c.name)
	}
}

// Each row of a matrix must be a multiple of 16 bytes away from the start, and within shared memory.
func TestRowsOfMatricesAreAlignedAndInside(t *testing.T) {
	for _, code := range []string{
		"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r9];", "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r1}, [%r9];",
		"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r9], {%r1, %r2, %r3, %r4};", "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r9], {%r1};",
	} {
		for _, row := range []int{0, 3, 7} {
			for wrong, want := range map[int]simt.FaultKind{8: simt.Misaligned, 1: simt.Misaligned, 512: simt.OutOfBounds, 0: 0} {
				p := program(t, ".shared .align 16 .b8 tile[512];\n"+entry(fmt.Sprintf(`
					mov.u32 %%r1, 0; mov.u32 %%r2, 0; mov.u32 %%r3, 0; mov.u32 %%r4, 0; mov.u32 %%r8, tile; shl.b32 %%r9, %%me, 4; add.u32 %%r9, %%r9, %%r8; st.shared.u32 [%%r9], 0;
					setp.eq.u32 %%p1, %%me, %d; @%%p1 add.u32 %%r9, %%r9, %d; %s`, row, wrong, code)))
				_, fault := run(t, p, block(32), 32)
				if wrong == 0 {
					require.Nil(t, fault, code)
					continue
				}
				require.NotNil(t, fault, "%s: row %d is off by %d", code, row, wrong)
				require.Equal(t, want, fault.Kind, "%s: %v", code, fault)
				require.Equal(t, [3]uint32{uint32(row), 0, 0}, fault.Thread, code)
			}
		}
	}
}

// Each bit of the table of lop3 is its result for one combination.
func TestEveryTableOfThreeInputs(t *testing.T) {
	for table := range uint32(256) {
		body := fmt.Sprintf("lop3.b32 %%r1, 0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, %d;", table)
		out, fault := run(t, program(t, entry(body+put("%r1"))), block(1), 1)
		require.Nil(t, fault)
		require.Equal(t, table*0x01010101, out[0], body)
	}
}
