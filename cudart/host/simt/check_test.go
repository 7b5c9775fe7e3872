// Tests with faults planted in correct kernels: each kind of fault is found, at the instruction that causes it.

package simt_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

// cleanKernels are kernels k(in, out, n) of 3 blocks of 64 threads on 192 words; in is initialised, out is not.
var cleanKernels = map[string]string{
	// Each block reverses its part in shared memory.
	"reverse": prologue + `
shl.b32 %r5, %me, 2; mov.u32 %r6, tile; add.u32 %r7, %r6, %r5;
ld.global.u32 %v, [%pin];
st.shared.u32 [%r7], %v;
bar.sync 0;
sub.u32 %r8, 63, %me; shl.b32 %r8, %r8, 2; add.u32 %r8, %r6, %r8;
ld.shared.u32 %v, [%r8];
st.global.u32 [%pout], %v;
`,
	// Each block adds up its part, by halves and then within a warp, and the last block to end adds up the sums.
	"sum": prologue + `
shl.b32 %r5, %me, 2; mov.u32 %r6, tile; add.u32 %r7, %r6, %r5;
ld.global.u32 %v, [%pin];
st.shared.u32 [%r7], %v;
bar.sync 0;
setp.ge.u32 %p1, %me, 32; @%p1 bra DONE;
ld.shared.u32 %r9, [%r7+128];
add.u32 %v, %v, %r9;
mov.u32 %r10, 16;
LOOP: st.shared.u32 [%r7], %v;
bar.warp.sync 0xffffffff;
shl.b32 %r11, %r10, 2; add.u32 %r11, %r7, %r11;
setp.ge.u32 %p2, %me, %r10; @%p2 bra SKIP;
ld.shared.u32 %r9, [%r11];
add.u32 %v, %v, %r9;
SKIP: bar.warp.sync 0xffffffff;
shr.u32 %r10, %r10, 1; setp.ne.u32 %p3, %r10, 0; @%p3 bra LOOP;
DONE: setp.ne.u32 %p4, %me, 0; @%p4 bra WAIT;
mul.wide.u32 %rd5, %cta, 4; add.u64 %rd5, %out, %rd5; mov.u32 %r13, 0;
st.global.u32 [%rd5], %v;
membar.gl;
atom.global.add.u32 %r12, [count], 1; setp.eq.u32 %p5, %r12, 2; selp.u32 %r13, 1, 0, %p5;
st.shared.u32 [last], %r13;
WAIT: bar.sync 0;
ld.shared.u32 %r13, [last]; setp.eq.u32 %p6, %r13, 0; @%p6 bra END;
setp.ge.u32 %p7, %me, 3; @%p7 bra END;
mul.wide.u32 %rd5, %me, 4; add.u64 %rd5, %out, %rd5;
ld.global.u32 %v, [%rd5];
st.global.u32 [%rd5+64], %v;
END:
`,
	// One warp passes values to the other through named barriers; atomics count in shared memory.
	"hand": prologue + `
shl.b32 %r5, %me, 2; mov.u32 %r6, tile; add.u32 %r7, %r6, %r5;
st.shared.u32 [%r7], 0;
bar.sync 0;
ld.global.u32 %v, [%pin];
and.b32 %r8, %v, 7; shl.b32 %r8, %r8, 2; add.u32 %r8, %r6, %r8;
atom.shared.add.u32 %r9, [%r8], 1;
bar.sync 0;
setp.ge.u32 %p1, %me, 32; @%p1 bra TAKE;
ld.shared.u32 %v, [%r7];
st.shared.u32 [%r7+256], %v;
bar.arrive 1, 64;
bra END;
TAKE: bar.sync 1, 64;
ld.shared.u32 %v, [%r7+128];
st.global.u32 [%pout], %v;
END:
`,
	// Threads take turns at a word that nobody has written: who comes first gets nothing that is used.
	"exchange": prologue + `
mov.u32 %r6, tile;
atom.shared.exch.b32 %r5, [%r6], 0;
bar.sync 0;
atom.shared.add.u32 %r5, [%r6], 1;
ld.global.u32 %v, [%pin];
st.global.u32 [%pout], %v;
`,
	// A table in local memory, and bytes of words that threads share.
	"table": prologue + `
mov.u64 %rd6, spill;
mov.u32 %r5, 0;
FILL: mul.wide.u32 %rd7, %r5, 4; add.u64 %rd7, %rd6, %rd7;
st.local.u32 [%rd7], %r5;
add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 8; @%p1 bra FILL;
ld.global.u32 %v, [%pin];
and.b32 %r8, %v, 7; mul.wide.u32 %rd7, %r8, 4; add.u64 %rd7, %rd6, %rd7;
ld.local.u32 %v, [%rd7];
mov.u32 %r6, tile; add.u32 %r7, %r6, %me;
st.shared.u8 [%r7], %v;
bar.sync 0;
xor.b32 %r9, %me, 1; add.u32 %r7, %r6, %r9;
ld.shared.u8 %v, [%r7];
st.global.u32 [%pout], %v;
`,
	// All threads write and have a fence; after a barrier, one thread releases what all have written. The last block adds up.
	"last": prologue + `
ld.global.u32 %v, [%pin];
st.global.u32 [%pout], %v;
membar.gl;
bar.sync 0;
setp.ne.u32 %p1, %me, 0; @%p1 bra WAIT;
atom.global.add.u32 %r5, [count], 1;
st.shared.u32 [last], %r5;
WAIT: bar.sync 0;
ld.shared.u32 %r6, [last]; setp.ne.u32 %p2, %r6, 2; @%p2 bra END;
xor.b32 %r7, %me, 1; mul.wide.u32 %rd5, %r7, 4; add.u64 %rd5, %out, %rd5;
ld.global.u32 %r8, [%rd5];
ld.global.u32 %r9, [%rd5+256];
add.u32 %v, %r8, %r9;
st.global.u32 [%pin], %v;
END:
`,
	// A thread of block 0 releases a value that the other blocks wait for.
	"flag": prologue + `
mov.u32 %r5, %cta; setp.ne.u32 %p1, %r5, 0; @%p1 bra READ;
setp.ne.u32 %p2, %me, 0; @%p2 bra END;
st.global.u32 [%out], 7;
fence.acq_rel.gpu;
st.relaxed.gpu.global.u32 [flag], 1;
bra END;
READ: ld.relaxed.gpu.global.u32 %r6, [flag]; setp.eq.u32 %p3, %r6, 0; @%p3 bra READ;
fence.acq_rel.gpu;
ld.global.u32 %v, [%out];
add.u64 %rd5, %pout, 0;
st.global.u32 [%rd5], %v;
END:
`,
	// Two threads of block 0 release a value each; a thread of block 1 passes on what it has acquired, after the first and after the second, and
	// block 2 reads both values once the second is passed on.
	"relay": prologue + `
mov.u32 %r5, %cta; setp.eq.u32 %p1, %r5, 1; @%p1 bra PASS; setp.eq.u32 %p2, %r5, 2; @%p2 bra READ;
setp.eq.u32 %p3, %me, 0; @%p3 bra FIRST; setp.eq.u32 %p4, %me, 32; @%p4 bra SECOND; bra END;
FIRST: st.global.u32 [%out], 7;
fence.acq_rel.gpu;
st.relaxed.gpu.global.u32 [flag], 1; bra END;
SECOND: st.global.u32 [%out+4], 8;
fence.acq_rel.gpu;
st.relaxed.gpu.global.u32 [count], 1; bra END;
PASS: setp.ne.u32 %p5, %me, 0; @%p5 bra END;
ONE: ld.relaxed.gpu.global.u32 %r6, [flag]; setp.eq.u32 %p6, %r6, 0; @%p6 bra ONE;
fence.acq_rel.gpu;
st.relaxed.gpu.global.u32 [relay], 1;
TWO: ld.relaxed.gpu.global.u32 %r6, [count]; setp.eq.u32 %p7, %r6, 0; @%p7 bra TWO;
fence.acq_rel.gpu;
st.relaxed.gpu.global.u32 [relay], 2; bra END;
READ: ld.relaxed.gpu.global.u32 %r6, [relay]; setp.ne.u32 %p8, %r6, 2; @%p8 bra READ;
fence.acq_rel.gpu;
ld.global.u32 %v, [%out];
ld.global.u32 %r7, [%out+4];
add.u32 %v, %v, %r7;
st.global.u32 [%pout], %v;
END:
`,
}

// leader is another such kernel, which is not among those that mutate_test.go changes: what these do is written down. A thread of block 0 releases a
// value; in the others, one lane waits for it, and a barrier of the warp passes it on to the others.
const leader = prologue + `
mov.u32 %r5, %cta; setp.ne.u32 %p1, %r5, 0; @%p1 bra READ;
setp.ne.u32 %p2, %me, 0; @%p2 bra END;
st.global.u32 [%out], 7;
fence.acq_rel.gpu;
st.relaxed.gpu.global.u32 [flag], 1;
bra END;
READ: setp.ge.u32 %p3, %me, 32; @%p3 bra END;
setp.ne.u32 %p4, %me, 5; @%p4 bra JOIN;
POLL: ld.relaxed.gpu.global.u32 %r6, [flag]; setp.eq.u32 %p5, %r6, 0; @%p5 bra POLL;
fence.acq_rel.gpu;
JOIN: bar.warp.sync 0xffffffff;
ld.global.u32 %v, [%out];
st.global.u32 [%pout], %v;
END:
`

// checked is a clean kernel by name.
func checked(name string) string {
	if name == "leader" {
		return leader
	}
	return cleanKernels[name]
}

const prologue = `.global .u32 count; .global .u32 flag; .global .u32 relay; .shared .align 16 .b8 tile[512]; .shared .u32 last;
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
{
.local .align 16 .b8 spill[64];
.reg .pred %p<20>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .b32 %me, %cta, %v; .reg .b64 %in, %out, %pin, %pout;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %me, %tid.x; mov.u32 %cta, %ctaid.x;
mad.lo.u32 %r1, %cta, 64, %me; mul.wide.u32 %rd1, %r1, 4; add.u64 %pin, %in, %rd1; add.u64 %pout, %out, %rd1;
`

// check runs a kernel on 192 input words and 192 output words, with the blocks in order.
func check(t *testing.T, text string, level simt.Check) *simt.Fault {
	t.Helper()
	return checkFor(t, text, level, 1<<22)
}

// checkFor is check for at most so many instructions.
func checkFor(t *testing.T, text string, level simt.Check, steps uint64) *simt.Fault {
	t.Helper()
	p := program(t, text+"ret;\n}\n")
	k, err := p.Kernel("k")
	require.NoError(t, err)
	memory := onHeap[uint32](2*192 + 64)
	for i := range memory {
		memory[i] = uint32(i*37 + 5)
	}
	in := uint64(uintptr(unsafe.Pointer(&memory[0])))
	in = (in + 63) &^ 63
	out := in + 4*192
	written := simt.NewWritten(in, 2*4*192)
	written.Mark(in, 4*192)
	r, err := k.Start(simt.Launch{Grid: [3]uint32{3, 1, 1}, Block: [3]uint32{64, 1, 1}, Check: level, Written: []*simt.Written{written},
		Args: []simt.Arg{{Bits: in, Pointer: true, Bytes: 4 * 192}, {Bits: out, Pointer: true, Bytes: 4 * 192}, {Bits: 192}}, MaxSteps: steps})
	require.NoError(t, err)
	r.Work()
	runtime.KeepAlive(memory)
	return r.Fault()
}

func TestCleanKernelsHaveNoFaults(t *testing.T) {
	for _, name := range append(slices.Collect(maps.Keys(cleanKernels)), "leader") {
		text := checked(name)
		for _, level := range []simt.Check{simt.CheckNothing, simt.CheckFast, simt.CheckFull, simt.CheckUsual} {
			fault := check(t, text, level)
			require.Nil(t, fault, "%s: %v", name, fault)
		}
	}
}

func TestPlantedFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		kernel, old, planted string
		kind                 simt.FaultKind
		at, says             string // the reported line, and a part of the message
	}{
		{"reverse", "st.global.u32 [%pout], %v;", "st.global.u32 [%pout+512], %v;", simt.OutOfBounds, "st.global.u32 [%pout+512]", "block (1,0,0), thread (32,0,0): an access of 4 bytes, 128 bytes past the end of argument 1 (out)"},
		{"reverse", "ld.global.u32 %v, [%pin];", "ld.global.u32 %v, [%pin+-4];", simt.OutOfBounds, "ld.global.u32", "block (0,0,0), thread (0,0,0): an access of 4 bytes, 4 bytes before the start of argument 0 (in)"},
		{"reverse", "ld.shared.u32 %v, [%r8];", "ld.shared.u32 %v, [%r8+4096];", simt.OutOfBounds, "ld.shared.u32", "an access of 4 bytes at byte 4220 of shared memory, but the block has only 512 bytes"},
		{"reverse", "ld.shared.u32 %v, [%r8];", "ld.shared.u32 %v, [%r8+-512];", simt.OutOfBounds, "ld.shared.u32", "an access of 4 bytes at byte -388 of shared memory, but the block has only 512 bytes"},
		{"reverse", "ld.global.u32 %v, [%pin];", "ld.global.u32 %v, [%pin+512];", simt.OutOfBounds, "ld.global.u32", "an access of 4 bytes, 0 bytes past the end of argument 0 (in)"},
		{"table", "ld.local.u32 %v, [%rd7];", "ld.local.u32 %v, [%rd7+512];", simt.OutOfBounds, "ld.local.u32", "of local memory, but a thread has only 64 bytes"},
		{"sum", "st.global.u32 [%rd5], %v;", "st.global.u32 [0], %v;", simt.OutOfBounds, "st.global.u32 [0]", "an access through a null pointer"},

		{"reverse", "st.global.u32 [%pout], %v;", "st.global.u32 [%pout+2], %v;", simt.Misaligned, "st.global.u32 [%pout+2]", "is not a multiple of 4"},
		{"reverse", "ld.global.u32 %v, [%pin];", "ld.global.v2.u32 {%v, %r20}, [%pin];", simt.Misaligned, "ld.global.v2", "thread (1,0,0): an access of 8 bytes at an address that is not a multiple of 8"},
		{"reverse", "ld.shared.u32 %v, [%r8];", "ld.shared.u32 %v, [%r8+1];", simt.Misaligned, "ld.shared", "is not a multiple of 4"},
		{"table", "ld.local.u32 %v, [%rd7];", "ld.local.u64 %rd9, [%rd7]; cvt.u32.u64 %v, %rd9;", simt.Misaligned, "ld.local", "is not a multiple of 8"},
		{"hand", "atom.shared.add.u32 %r9, [%r8], 1;", "atom.shared.add.u32 %r9, [%r8+2], 1;", simt.Misaligned, "atom.shared", "is not a multiple of 4"},

		{"reverse", "ld.shared.u32 %v, [%r8];", "ld.shared.u32 %v, [%r8+256]; add.u32 %v, %v, 1; ld.shared.u32 %v, [%r8+1];", simt.Misaligned, "ld.shared", "is not a multiple of 4"},

		{"reverse", "st.shared.u32 [%r7], %v;", "setp.eq.u32 %p1, %me, 9; @!%p1 st.shared.u32 [%r7], %v;", simt.Uninitialised, "ld.shared.u32", "thread (54,0,0): reads 4 bytes at byte 36 of tile in shared memory, which nobody has written"},
		{"sum", "st.shared.u32 [last], %r13;", "", simt.Uninitialised, "ld.shared.u32 %r13", "reads 4 bytes at byte 0 of last in shared memory"},
		{"table", "setp.lt.u32 %p1, %r5, 8;", "setp.lt.u32 %p1, %r5, 7;", simt.Uninitialised, "ld.local.u32", "of local memory, which nobody has written"},
		{"sum", "st.global.u32 [%rd5], %v;", "setp.eq.u32 %p8, %cta, 1; @!%p8 st.global.u32 [%rd5], %v;", simt.Uninitialised, "ld.global.u32 %v, [%rd5]", "thread (1,0,0): reads 4 bytes at byte 4 of argument 1 (out), which nobody has written"},
		{"hand", "st.shared.u32 [%r7], 0;", "", simt.Uninitialised, "atom.shared", "tile in shared memory, which nobody has written"},

		{"reverse", "ld.global.u32 %v, [%pin];", "ld.global.u32 %v, [%pout]; mul.wide.u32 %rd5, %v, 4096; add.u64 %rd5, %in, %rd5; ld.global.u32 %v, [%rd5];", simt.Uninitialised, "ld.global.u32 %v, [%pout]", "reads 4 bytes at byte 0 of argument 1 (out), which nobody has written"},
		{"reverse", "ld.global.u32 %v, [%pin];", "ld.global.u64 %rd5, [%out]; st.global.u32 [%rd5], 5; ld.global.u32 %v, [%pin];", simt.Uninitialised, "ld.global.u64 %rd5", "reads 8 bytes at byte 0 of argument 1 (out), which nobody has written"},
		{"table", "st.local.u32 [%rd7], %r5;", "ld.local.u32 %r20, [%rd6]; mul.wide.u32 %rd9, %r20, 4096; add.u64 %rd9, %rd6, %rd9; st.local.u32 [%rd9], %r5;", simt.Uninitialised, "ld.local.u32 %r20", "of local memory, which nobody has written"},
		{"exchange", "bar.sync 0;", "add.u32 %v, %r5, 1; bar.sync 0;", simt.Uninitialised, "atom.shared.exch.b32 %r5", "reads 4 bytes at byte 0 of tile in shared memory, which nobody has written"},
		{"reverse", "bar.sync 0;", "", simt.Race, "st.shared.u32 [%r7]", "thread (32,0,0): writes 4 bytes at byte 128 of tile in shared memory, which thread (31,0,0) reads"},
		{"reverse", "st.shared.u32 [%r7], %v;", "shr.u32 %r7, %r7, 3; shl.b32 %r7, %r7, 3; st.shared.u32 [%r7], %v;", simt.Race, "st.shared.u32", "thread (1,0,0): writes 4 bytes at byte 0 of tile in shared memory, which thread (0,0,0) writes"},
		{"sum", "LOOP: st.shared.u32 [%r7], %v;\nbar.warp.sync 0xffffffff;", "LOOP: st.shared.u32 [%r7], %v;\n", simt.Race, "ld.shared.u32 %r9, [%r11]", "in shared memory, which thread"},
		{"sum", "SKIP: bar.warp.sync 0xffffffff;", "SKIP:", simt.Race, "LOOP: st.shared.u32", "reads, and nothing orders the two"},
		{"hand", "bar.arrive 1, 64;", "bar.arrive 1, 64; st.shared.u32 [%r7+256], 5;", simt.Race, "ld.shared.u32 %v, [%r7+128]", "in shared memory, which thread (0,0,0) writes"},
		{"table", "bar.sync 0;", "", simt.Race, "ld.shared.u8", "reads 1 byte at byte"},

		{"sum", "membar.gl;", "", simt.Race, "ld.global.u32 %v, [%rd5]", "argument 1 (out), which thread (0,0,0) of block (0,0,0) writes"},
		{"sum", "membar.gl;", "membar.cta;", simt.Race, "ld.global.u32 %v, [%rd5]", "argument 1 (out), which thread (0,0,0) of block (0,0,0) writes"},
		{"flag", "st.global.u32 [%out], 7;\nfence.acq_rel.gpu;", "fence.acq_rel.gpu; st.global.u32 [%out], 7;\n", simt.Race, "ld.global.u32 %v, [%out]", "which thread (0,0,0) of block (0,0,0) writes"},
		{"flag", "@%p3 bra READ;\nfence.acq_rel.gpu;", "@%p3 bra READ;\n", simt.Race, "ld.global.u32 %v, [%out]", "which thread (0,0,0) of block (0,0,0) writes"},
		{"flag", "add.u64 %rd5, %pout, 0;", "mul.wide.u32 %rd5, %me, 4; add.u64 %rd5, %out, %rd5; add.u64 %rd5, %rd5, 256; add.u32 %v, %v, %cta;", simt.Race, "st.global.u32 [%rd5]", "of argument 1 (out), which thread (0,0,0) of block (1,0,0) writes"},
		{"sum", "atom.global.add.u32 %r12, [count], 1;", "ld.global.u32 %r12, [count]; add.u32 %r12, %r12, 1; st.global.u32 [count], %r12;", simt.Race, "ld.global.u32 %r12", "of variable count, which thread (0,0,0) of block (0,0,0) writes"},

		{"leader", "JOIN: bar.warp.sync 0xffffffff;", "JOIN:", simt.Race, "ld.global.u32 %v, [%out]", "which thread (0,0,0) of block (0,0,0) writes"},
		{"leader", "[%out], 7;\nfence.acq_rel.gpu;", "[%out], 7;\n", simt.Race, "ld.global.u32 %v, [%out]", "which thread (0,0,0) of block (0,0,0) writes"},
		{"leader", "JOIN: bar.warp.sync 0xffffffff;", "JOIN: setp.eq.u32 %p6, %me, 31; @%p6 bra ON; bar.warp.sync 0x7fffffff; ON:", simt.Race, "ld.global.u32 %v, [%out]", "thread (31,0,0): reads 4 bytes at byte 0 of argument 1 (out), which thread (0,0,0) of block (0,0,0) writes"},
		{"leader", "JOIN: bar.warp.sync 0xffffffff;", "JOIN: setp.lt.u32 %p6, %me, 16; @%p6 bra LOW; bar.warp.sync 0xffff0000; bra ON; LOW: bar.warp.sync 0x0000ffff; ON:", simt.Race, "ld.global.u32 %v, [%out]", "which thread (0,0,0) of block (0,0,0) writes"},
		{"relay", "[%out], 7;\nfence.acq_rel.gpu;", "[%out], 7;\n", simt.Race, "ld.global.u32 %v, [%out]", "which thread (0,0,0) of block (0,0,0) writes"},
		{"relay", "[%out+4], 8;\nfence.acq_rel.gpu;", "[%out+4], 8;\n", simt.Race, "ld.global.u32 %r7, [%out+4]", "which thread (32,0,0) of block (0,0,0) writes"},
		{"relay", "bra TWO;\nfence.acq_rel.gpu;", "bra TWO;\n", simt.Race, "ld.global.u32 %r7, [%out+4]", "which thread (32,0,0) of block (0,0,0) writes"},
		{"relay", "bra READ;\nfence.acq_rel.gpu;", "bra READ;\n", simt.Race, "ld.global.u32 %v, [%out]", "which thread (0,0,0) of block (0,0,0) writes"},

		{"last", "membar.gl;", "", simt.Race, "ld.global.u32 %r8, [%rd5]", "thread (0,0,0): reads 4 bytes at byte 4 of argument 1 (out), which thread (1,0,0) of block (0,0,0) writes"},
		{"last", "membar.gl;", "membar.cta;", simt.Race, "ld.global.u32 %r8, [%rd5]", "argument 1 (out), which thread (1,0,0) of block (0,0,0) writes"},
		{"last", "membar.gl;", "setp.eq.u32 %p3, %me, 9; @!%p3 membar.gl;", simt.Race, "ld.global.u32 %r8, [%rd5]", "argument 1 (out), which thread"},
		{"last", "st.global.u32 [%pout], %v;\nmembar.gl;", "membar.gl; st.global.u32 [%pout], %v;\n", simt.Race, "ld.global.u32 %r8, [%rd5]", "argument 1 (out), which thread (1,0,0) of block (0,0,0) writes"},
		{"last", "membar.gl;\nbar.sync 0;", "bar.sync 0; setp.eq.u32 %p3, %me, 1; @%p3 membar.gl;\n", simt.Race, "ld.global.u32 %r8, [%rd5]", "argument 1 (out), which thread"},

		{"reverse", "bar.sync 0;", "setp.eq.u32 %p1, %me, 63; @%p1 bra ON;\nbar.sync 0;\nON:", simt.Race, "ld.shared", "in shared memory"},
		{"hand", "bar.sync 0;\nsetp.ge", "setp.eq.u32 %p9, %me, 3; @%p9 bra ON;\nbar.sync 0;\nON: setp.ge", simt.Race, "", ""},
		{"sum", "bar.sync 0;\nsetp.ge", "setp.lt.u32 %p9, %me, 32; @%p9 bar.sync 0;\nsetp.ge", simt.Diverged, "bar.sync", "waits at another place"},
		{"sum", "WAIT: bar.sync 0;", "bar.sync 0; bra ON; WAIT: bar.sync 0; ON:", simt.Diverged, "bar.sync", "waits at another place"},
		{"hand", "TAKE: bar.sync 1, 64;", "TAKE: setp.eq.u32 %p2, %me, 40; @%p2 bra END; bar.sync 1, 64;", simt.Stuck, "bar.sync 1", "the threads at barrier 1 wait forever: only 63 of 64 arrived"},
		{"reverse", "bar.sync 0;", "setp.eq.u32 %p1, %me, 5; @%p1 bra ON;\nbar.sync 0;\nbra OFF; ON: bar.sync 0; OFF:", simt.Diverged, "bar.sync", "thread (5,0,0)"},
		{"table", "bar.sync 0;", "setp.lt.u32 %p1, %me, 32; @%p1 bra ON;\nbar.sync 0;\nbra OFF; ON: bar.sync 0; OFF:", simt.Diverged, "bar.sync", "waits at another place"},
		{"reverse", "bar.sync 0;", "mov.u32 %r12, 3; AGAIN: bar.sync 0; setp.lt.u32 %p1, %r12, 3; setp.ge.and.u32 %p1, %me, 48, %p1; @%p1 exit; sub.u32 %r12, %r12, 1; setp.ne.u32 %p2, %r12, 0; @%p2 bra AGAIN;",
			simt.Diverged, "bar.sync", "thread (0,0,0): this thread waits at a barrier that thread (48,0,0) of its block does not come to again: it has ended"},
		{"reverse", "bar.sync 0;", "bar.sync 0; setp.ge.u32 %p1, %me, 48; @%p1 exit;\nbar.sync 0;",
			simt.Diverged, "bar.sync", "thread (0,0,0): this thread waits at a barrier that thread (48,0,0) does not come to: it has ended, other than the rest of its warp"},
		{"reverse", "bar.sync 0;", "bar.sync 0; bar.warp.sync 0x0000ffff;", simt.Diverged, "bar.warp.sync", "the lanes that this operation is for, 0xffff, are without this one, which is lane 16"},
		{"reverse", "bar.sync 0;", "bar.sync 0; shfl.sync.idx.b32 %r12, %me, 0, 31, 0xfffffff7;", simt.Diverged, "shfl.sync", "the lanes that this operation is for, 0xfffffff7, are without this one, which is lane 3"},
	} {
		text := checked(c.kernel)
		require.Equal(t, 1, min(1, strings.Count(text, c.old)), "%s has no %q", c.kernel, c.old)
		text = strings.Replace(text, c.old, c.planted, 1)
		fault := check(t, text, simt.CheckFull)
		if !assert.NotNil(t, fault, "%s: %s -> %s: nothing was found", c.kernel, c.old, c.planted) {
			continue
		}
		assert.Equal(t, c.kind, fault.Kind, "%s: %s: %v", c.kernel, c.planted, fault)
		assert.Contains(t, fault.Error(), c.says, "%s: %s", c.kernel, c.planted)
		argument := -1
		if _, named, ok := strings.Cut(fault.Problem, "argument "); ok {
			argument = int(named[0] - '0')
		}
		assert.Equal(t, argument, fault.Argument, "%v", fault)
		line := strings.Split(header+text, "\n")[fault.Line-1]
		assert.Contains(t, line, c.at, "%s: %s: %v", c.kernel, c.planted, fault)
		fast := check(t, text, simt.CheckFast)
		if assert.NotNil(t, fast, "%s: %s is not found by the fast checks", c.kernel, c.planted) {
			assert.Equal(t, fault.Kind, fast.Kind)
		}
	}
}

// Warps may end between barriers, and so may lanes before the first.
func TestThreadsMayEndBeforeBarriers(t *testing.T) {
	for _, leaves := range []string{"bar.sync 0; setp.ge.u32 %p1, %me, 32; @%p1 exit;\nbar.sync 0;", "setp.ge.u32 %p1, %me, 48; @%p1 exit;\nbar.sync 0; bar.sync 0;",
		"setp.eq.u32 %p1, %cta, 1; setp.ge.and.u32 %p1, %me, 48, %p1; @%p1 exit;\nbar.sync 0;"} { // those of block 0 do not count for block 1
		fault := check(t, strings.Replace(checked("reverse"), "bar.sync 0;", leaves, 1), simt.CheckFull)
		require.True(t, fault == nil || fault.Kind != simt.Diverged, "%s: %v", leaves, fault)
	}
}

// Where threads wait for each other at two places, the fault names one of each, and where both wait.
func TestThreadsThatWaitAtTwoPlacesAreBothNamed(t *testing.T) {
	for _, condition := range []string{"setp.lt.u32", "setp.ge.u32"} {
		fault := check(t, prologue+condition+" %p1, %me, 7; @%p1 bra ON;\nbar.sync 0; bra OFF;\nON: bar.sync 0;\nOFF:\n", simt.CheckFull)
		require.NotNil(t, fault)
		require.Equal(t, simt.Diverged, fault.Kind)
		require.ElementsMatch(t, [][3]uint32{{0, 0, 0}, {7, 0, 0}}, [][3]uint32{fault.Thread, fault.Other.Thread})
		require.Contains(t, fault.Error(), fmt.Sprintf("while thread (%d,0,0) of its block waits at another place", fault.Other.Thread[0]))
		require.NotEqual(t, fault.Line, fault.Other.Line)
		require.Equal(t, "bar.sync", fault.Other.Instruction)
	}
}

// Of a race, both places are told, also where they are in functions.
func TestBothPlacesOfARaceAreTold(t *testing.T) {
	p := program(t, ".func before() { ret; }\n.func first(.reg .b64 at) { call before, ();\nst.global.u32 [at], 1; ret; }\n.func second(.reg .b64 at) {\nst.global.u32 [at], 2; ret; }\n"+
		entry("setp.eq.u32 %p1, %me, 0; @%p1 bra ONE; call second, (%out); bra END; ONE: call first, (%out); END:"))
	_, fault := run(t, p, simt.Launch{Block: [3]uint32{2, 1, 1}, Check: simt.CheckFull}, 1)
	require.NotNil(t, fault)
	require.Equal(t, simt.Race, fault.Kind)
	require.ElementsMatch(t, []int{6, 8}, []int{fault.Line, fault.Other.Line})
	require.Equal(t, []string{"st.global.u32", "st.global.u32"}, []string{fault.Instruction, fault.Other.Instruction})
}

// The usual checks are full for the first instructions of a launch, whatever the machine, and fast after them: here for a second warp that writes,
// after some rounds of a loop, what the first one has read.
func TestUsualChecks(t *testing.T) {
	after := func(rounds string, level simt.Check) *simt.Fault {
		return checkFor(t, prologue+`
mov.u32 %r9, `+rounds+`;
LOOP: sub.u32 %r9, %r9, 1; setp.ne.u32 %p1, %r9, 0; @%p1 bra LOOP;
setp.ge.u32 %p2, %me, 32; @%p2 bra WRITE;
ld.global.u32 %v, [%pin+128];
st.global.u32 [%pout], %v;
bra END;
WRITE: st.global.u32 [%pin], %me;
END:
`, level, 1<<30)
	}
	for rounds, found := range map[string]bool{"80000": true, "120000": false} { // a warp has 2^26 / 6 instructions, and a round has 3 of each lane
		require.Equal(t, found, after(rounds, simt.CheckUsual) != nil, rounds)
	}
	require.Nil(t, after("3", simt.CheckFast))
	require.Equal(t, simt.Race, after("3", simt.CheckUsual).Kind)
	require.Equal(t, simt.Race, after("120000", simt.CheckFull).Kind)
}

// Every word and byte of a read is looked at, also where reads are not noted: a thread of block 0 writes, and then one of block 1 reads.
func TestFastChecksLookAtAllOfARead(t *testing.T) {
	for _, read := range []string{
		"ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%out];", "ld.global.v2.u64 {%rd2, %rd3}, [%out];", "ld.global.u64 %rd2, [%out]; ld.global.u64 %rd3, [%out+8];",
	} {
		for at := range 16 {
			p := program(t, entry(fmt.Sprintf(`mov.u32 %%r1, %%ctaid.x; setp.ne.u32 %%p1, %%r1, 0; @%%p1 bra READ;
st.global.u8 [%%out+%d], 7; bra END;
READ: %s
END:`, at, read)))
			k, err := p.Kernel("k")
			require.NoError(t, err)
			out := onHeap[uint64](3)
			aligned := (uint64(uintptr(unsafe.Pointer(&out[0]))) + 15) &^ 15
			args := []simt.Arg{{Bits: aligned, Pointer: true, Bytes: 16}}
			r, err := k.Start(simt.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{1, 1, 1}, Check: simt.CheckFast, Args: args})
			require.NoError(t, err)
			r.Work()
			runtime.KeepAlive(out)
			require.NotNil(t, r.Fault(), "%s after a write of byte %d", read, at)
			require.Equal(t, simt.Race, r.Fault().Kind)
			require.Contains(t, r.Fault().Error(), fmt.Sprintf("reads 1 byte at byte %d of argument 0 (out), which thread (0,0,0) of block (0,0,0) writes", at))
		}
	}
}

// Instructions are counted as the lanes run them: those that are switched off by a branch run none.
func TestInstructionsAreCountedByLane(t *testing.T) {
	steps := func(rounds, lanes int) uint64 {
		k, err := program(t, fmt.Sprintf(".visible .entry k()\n{\n.reg .pred %%p<3>; .reg .b32 %%r<9>;\nmov.u32 %%r1, %%tid.x; setp.ge.u32 %%p1, %%r1, %d; @%%p1 bra END; mov.u32 %%r2, %d;\n"+
			"LOOP: sub.u32 %%r2, %%r2, 1; setp.ne.u32 %%p2, %%r2, 0; @%%p2 bra LOOP;\nEND: ret;\n}\n", lanes, rounds)).Kernel("k")
		require.NoError(t, err)
		r, err := k.Start(simt.Launch{Grid: [3]uint32{5, 1, 1}, Block: [3]uint32{40, 1, 1}})
		require.NoError(t, err)
		r.Work()
		require.Nil(t, r.Fault())
		return r.Steps()
	}
	for _, lanes := range []int{1, 7, 32, 33, 40} {
		require.EqualValues(t, 5*lanes*3*1000, steps(1500, lanes)-steps(500, lanes), "%d lanes", lanes)
	}
}

// A block that waits for a later one gives way after a few passes of its loop, whether that is one basic block or several.
func TestPollsGiveWay(t *testing.T) {
	for _, loop := range []string{
		"POLL: ld.volatile.global.u32 %r2, [%out]; setp.eq.u32 %p2, %r2, 0; @%p2 bra POLL;",
		"POLL: ld.volatile.global.u32 %r2, [%out]; setp.ne.u32 %p2, %r2, 0; @%p2 bra END; add.u32 %r3, %r3, 1; bra POLL;",
	} {
		k, err := program(t, entry(`mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra SET;
`+loop+` bra END;
SET: st.volatile.global.u32 [%out], 1;
END:`)).Kernel("k")
		require.NoError(t, err)
		out := onHeap[uint32](1)
		args := []simt.Arg{{Bits: uint64(uintptr(unsafe.Pointer(&out[0]))), Pointer: true, Bytes: 4}}
		r, err := k.Start(simt.Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: args})
		require.NoError(t, err)
		r.Work()
		runtime.KeepAlive(out)
		require.Nil(t, r.Fault())
		require.Less(t, r.Steps(), uint64(500), loop)
	}
}

// A launch may run as many instructions as its limit says, and no more.
func TestLimitOfInstructionsIsExact(t *testing.T) {
	k, err := program(t, ".visible .entry k()\n{\n.reg .b32 %r<4>;\nmov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; ret;\n}\n").Kernel("k")
	require.NoError(t, err)
	run := func(limit uint64) *simt.Run {
		r, err := k.Start(simt.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{40, 1, 1}, MaxSteps: limit})
		require.NoError(t, err)
		r.Work()
		return r
	}
	steps := run(0).Steps()
	require.Positive(t, steps)
	require.Nil(t, run(steps).Fault())
	require.NotNil(t, run(steps-1).Fault())
	require.Equal(t, simt.Endless, run(steps-1).Fault().Kind)
}

// After a fault, the blocks before it go on for a while, and where one of them has a fault too, that counts. Here block 0 waits for block 1, which
// races; then so does block 0, at a word beside.
func TestTheFaultOfTheFirstBlockCounts(t *testing.T) {
	for _, races := range []bool{false, true} {
		code := prologue + `
setp.eq.u32 %p1, %cta, 0; @%p1 bra WAIT; setp.eq.u32 %p1, %cta, 2; @%p1 bra END;
setp.eq.u32 %p2, %me, 0; @%p2 st.relaxed.gpu.global.u32 [flag], 1; st.global.u32 [%out+8], %me; bra END;
WAIT: setp.gt.u32 %p2, %me, 1; @%p2 bra END;
POLL: ld.relaxed.gpu.global.u32 %r2, [flag]; setp.eq.u32 %p3, %r2, 0; @%p3 bra POLL;
mov.u32 %r3, 0; LOOP: add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 5000; @%p4 bra LOOP;
`
		if races {
			code += "st.global.u32 [%out], %me;\n"
		} else {
			code += "st.global.u32 [%pout], %me;\n"
		}
		fault := check(t, code+"END:\n", simt.CheckFull)
		require.NotNil(t, fault)
		require.Equal(t, simt.Race, fault.Kind)
		require.Equal(t, races, fault.Block == [3]uint32{}, "%v", fault)
	}
}

func TestLimitOfInstructionsHoldsForStraightCode(t *testing.T) {
	fault := checkFor(t, prologue+"st.global.u32 [%pout], 1;", simt.CheckNothing, 1)
	require.Equal(t, simt.Endless, fault.Kind)
	require.Contains(t, fault.Error(), "the launch has run more than 1 instructions, which is its limit (")
}
