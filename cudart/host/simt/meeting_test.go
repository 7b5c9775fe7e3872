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

// Each lane holds two neighbours of a row of an 8 x 8 matrix; loads and stores of the transpose, and movmatrix, exchange rows and columns.
func TestMatricesAndTheirTransposes(t *testing.T) {
	const fill = "shl.b32 %r9, %me, 2; mov.u32 %r8, tile; add.u32 %r10, %r8, %r9; shl.b32 %r11, %me, 4; add.u32 %r11, %r8, %r11; mul.lo.u32 %r1, %me, 131074; add.u32 %r1, %r1, 65536;\n"
	plain := func(row, column int) uint32 { return uint32(8*row + column) }
	transposed := func(row, column int) uint32 { return uint32(8*column + row) }
	for code, want := range map[string]func(row, column int) uint32{
		"mov.u32 %r2, %r1;": plain,
		"movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;":                                                                                        transposed,
		"st.shared.u32 [%r10], %r1; bar.sync 0; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r11];":                                         plain,
		"st.shared.u32 [%r10], %r1; bar.sync 0; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r2}, [%r11];":                                   transposed,
		"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r11], {%r1}; bar.sync 0; ld.shared.u32 %r2, [%r10];":                                         plain,
		"stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r11], {%r1}; bar.sync 0; ld.shared.u32 %r2, [%r10];":                                   transposed,
		"stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r11], {%r7, %r1}; bar.sync 0; ld.shared.u32 %r2, [%r10+128];":                          transposed,
		"st.shared.u32 [%r10+128], %r1; st.shared.u32 [%r10], 0; bar.sync 0; ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r7, %r2}, [%r11];": transposed,
	} {
		p := program(t, ".shared .align 16 .b8 tile[512];\n"+entry("mov.u32 %r7, 0;"+fill+code+put("%r2")))
		for _, level := range everyCheck {
			l := block(32)
			l.Check = level
			out, fault := run(t, p, l, 32)
			require.Nil(t, fault, "%s: %v", code, fault)
			for lane, v := range out {
				row, column := lane/4, lane%4*2
				require.Equal(t, want(row, column)|want(row, column+1)<<16, v, "%s: lane %d", code, lane)
			}
		}
	}
}

// Loads of matrices race with stores that nothing orders before them.
func TestMatricesAreCheckedForRaces(t *testing.T) {
	for _, barrier := range []string{"", "bar.sync 0;"} {
		p := program(t, ".shared .align 16 .b8 tile[512];\n"+entry(`mov.u32 %r8, tile; and.b32 %r1, %me, 31; shl.b32 %r9, %r1, 4; add.u32 %r9, %r8, %r9; setp.lt.u32 %p1, %me, 32;
			@%p1 st.shared.v4.u32 [%r9], {%me, %me, %me, %me}; @%p1 bra STORED;
			`+barrier+` ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r9]; bra OUT;
			STORED: `+barrier+" OUT:"))
		l := block(64)
		l.Check = simt.CheckFull
		_, fault := run(t, p, l, 1)
		require.Equal(t, barrier == "", fault != nil && fault.Kind == simt.Race, "%v", fault)
	}
}
