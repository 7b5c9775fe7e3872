// Tests of checks on arguments that are tiles: the bytes between their rows are not theirs.

package simt_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

// onTile runs a kernel k(out) on 4 rows of 12 bytes, 64 apart, in initialised memory.
func onTile(t *testing.T, body string, threads uint32, level simt.Check) *simt.Fault {
	memory := onHeap[uint32](64)
	start := uint64(uintptr(unsafe.Pointer(&memory[0])))
	fault := launch(t, program(t, entry(body)), "k", simt.Launch{Block: [3]uint32{threads, 1, 1}, Check: level,
		Args: []simt.Arg{{Bits: start, Pointer: true, Bytes: 3*64 + 12, Row: 12, Pitch: 64}}})
	runtime.KeepAlive(memory)
	return fault
}

func TestAccessesBetweenTheRowsOfATileAreFound(t *testing.T) {
	// Thread i takes column i%4 of row i/4.
	const place = "shr.u32 %r1, %me, 2; and.b32 %r2, %me, 3; mul.wide.u32 %rd1, %r1, 64; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2; add.u64 %rd1, %out, %rd1;"
	const inside = place + "setp.gt.u32 %p1, %r2, 2; @%p1 bra END; st.global.u32 [%rd1], %me; ld.global.u32 %r3, [%rd1]; END:"
	for _, c := range []struct {
		name, body, want string
		threads          uint32
	}{
		{"inside", inside, "", 16},
		{"one column too far", place + "st.global.u32 [%rd1], %me;", "thread (3,0,0): an access of 4 bytes, 12 bytes into row 0 of argument 0 (out), whose rows have 12 bytes, 64 apart", 12},
		{"between two rows", "st.global.u32 [%out+96], %me;", "an access of 4 bytes, 32 bytes into row 1 of argument 0 (out)", 1},
		{"across the end of a row", "ld.global.u64 %rd1, [%out+72];", "an access of 8 bytes, 8 bytes into row 1 of argument 0 (out)", 1},
		{"past the last row", "ld.global.u32 %r1, [%out+204];", "an access of 4 bytes, 0 bytes past the end of argument 0 (out)", 1},
		{"the next row after a good one", "mov.u64 %rd1, %out; mov.u32 %r1, 0; NEXT: ld.global.u32 %r2, [%rd1]; add.u64 %rd1, %rd1, 4; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 4; @%p1 bra NEXT;",
			"an access of 4 bytes, 12 bytes into row 0 of argument 0 (out)", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, level := range []simt.Check{simt.CheckFast, simt.CheckFull} {
				fault := onTile(t, c.body, c.threads, level)
				if c.want == "" {
					require.Nil(t, fault)
					continue
				}
				require.NotNil(t, fault)
				require.Equal(t, simt.OutOfBounds, fault.Kind)
				require.Contains(t, fault.Error(), c.want)
			}
			require.True(t, c.name == "past the last row" || onTile(t, c.body, c.threads, simt.CheckNothing) == nil, "only checks know rows")
		})
	}
}

func TestATileThatIsOnlyReadBesideOneThatIsWritten(t *testing.T) {
	const head = ".visible .entry k(.param .u64 from, .param .u64 to)\n{\n.reg .b32 %r<4>; .reg .b64 %from, %to;\nld.param.u64 %from, [from]; ld.param.u64 %to, [to];\n"
	for body, faulty := range map[string]bool{
		"ld.global.u32 %r1, [%from+64]; st.global.u32 [%to+64], %r1;": false,
		"st.global.u32 [%from+64], %r1;":                              true,
	} {
		memory := onHeap[uint32](64)
		start := uint64(uintptr(unsafe.Pointer(&memory[0])))
		fault := launch(t, program(t, head+body+"\nret;\n}\n"), "k", simt.Launch{Block: [3]uint32{1, 1, 1}, Check: simt.CheckFull, Args: []simt.Arg{
			{Bits: start + 16, Pointer: true, Bytes: 3*64 + 16, Row: 16, Pitch: 64, ReadOnly: true},
			{Bits: start, Pointer: true, Bytes: 3*64 + 16, Row: 16, Pitch: 64},
		}})
		runtime.KeepAlive(memory)
		if !faulty {
			require.Nil(t, fault)
			continue
		}
		require.NotNil(t, fault)
		require.Equal(t, simt.Undeclared, fault.Kind, "%v", fault)
	}
}
