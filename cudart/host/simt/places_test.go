// Tests of what faults say of places: of addresses beside arguments and variables, of other memory, of threads and blocks, and of the source.

package simt_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart/host/simt"
)

func TestAddressesOutsideAreNamedByWhatIsNear(t *testing.T) {
	const near = 1 << 20
	for _, c := range []struct {
		code, want string
	}{
		{"ld.global.u32 %r1, [%out+256];", "an access of 4 bytes, 0 bytes past the end of argument 0 (out)"},
		{fmt.Sprintf("ld.global.u8 %%r1, [%%out+%d];", 256+near-1), fmt.Sprintf("an access of 1 bytes, %d bytes past the end of argument 0 (out)", near-1)},
		{fmt.Sprintf("ld.global.u8 %%r1, [%%out+%d];", 256+near), "which belongs to no argument"},
		{"ld.global.u32 %r1, [%out+-4];", "an access of 4 bytes, 4 bytes before the start of argument 0 (out)"},
		{fmt.Sprintf("ld.global.u8 %%r1, [%%out+%d];", 1-near), fmt.Sprintf("an access of 1 bytes, %d bytes before the start of argument 0 (out)", near-1)},
		{fmt.Sprintf("ld.global.u8 %%r1, [%%out+%d];", -near), "which belongs to no argument"},
		{"ld.global.v2.u64 {%rd1, %rd2}, [%out+248];", ""}, // not aligned, or beyond the end
		{"ld.global.u32 %r1, [16];", "which belongs to no argument"},
		{"mov.u64 %rd1, 0; st.global.u32 [%rd1], 5;", "an access through a null pointer"},
		{"ld.global.u32 %r1, [cell+4];", "an access of 4 bytes, 0 bytes past the end of variable cell"},
		{"ld.local.u32 %r1, [room+64];", "an access of 4 bytes at byte 64 of local memory, but a thread has only 64 bytes"},
		{"ld.shared.u32 %r1, [tile+64];", "an access of 4 bytes at byte 64 of shared memory, but the block has only 64 bytes"},
		{"mov.u64 %rd1, tile; cvta.shared.u64 %rd1, %rd1; st.u32 [%rd1+64], 1;", "an access of 4 bytes at byte 64 of shared memory, but the block has only 64 bytes"},
		{"mov.u64 %rd1, 0x7f00000000000000; ld.u32 %r1, [%rd1];", "at address 0x7f00000000000000"},
	} {
		for _, level := range []simt.Check{simt.CheckNothing, simt.CheckFast, simt.CheckFull} {
			variable := "" // it may lie near the argument
			if strings.Contains(c.code, "cell") {
				variable = ".global .align 4 .u32 cell = 7; "
			}
			p := program(t, variable+".shared .align 16 .b8 tile[64];\n"+entry(".local .align 16 .b8 room[64];\n"+c.code))
			memory := onHeap[uint32](64)
			fault := launch(t, p, "k", simt.Launch{Block: [3]uint32{1, 1, 1}, Check: level, Args: []simt.Arg{{Bits: uint64(uintptr(unsafe.Pointer(&memory[0]))), Pointer: true, Bytes: 256}}})
			runtime.KeepAlive(memory)
			require.NotNil(t, fault, "%s, %v", c.code, level)
			require.Contains(t, fault.Error(), c.want, "%s, %v", c.code, level)
			if c.want != "" {
				require.Equal(t, simt.OutOfBounds, fault.Kind)
			}
		}
	}
}

// Memory is named by the argument that points to its start, not by a number that happens to be near, nor by a part of it.
func TestMemoryIsNamedByTheArgumentThatPointsToIt(t *testing.T) {
	const code = ".visible .entry k(.param .u64 n, .param .u64 part, .param .u64 m, .param .u64 whole)\n{\n.reg .b64 %a; .reg .b32 %r;\nld.param.u64 %a, [whole];\nld.global.u32 %r, [%a+256];\nret;\n}\n"
	memory := onHeap[uint32](64)
	start := uint64(uintptr(unsafe.Pointer(&memory[0])))
	fault := launch(t, program(t, code), "k", simt.Launch{Block: [3]uint32{1, 1, 1}, Args: []simt.Arg{
		{Bits: start}, {Bits: start + 128, Pointer: true, Bytes: 128}, {Bits: start + 256}, {Bits: start, Pointer: true, Bytes: 256}}})
	runtime.KeepAlive(memory)
	require.NotNil(t, fault)
	require.Contains(t, fault.Error(), "0 bytes past the end of argument 3 (whole)")
	require.Equal(t, 3, fault.Argument)
}

// Shared memory is named by its variable: a static one of a function by its own name, without the function's.
func TestSharedMemoryIsNamedByItsVariable(t *testing.T) {
	for name, want := range map[string]string{
		"tile": "tile", "_Z4tile": "_Z4tile", "_ZZ4scanE4tile": "tile", "_ZZ4scanPfiE4tile": "tile", "_ZZN3app4scanEPfE1E": "E", "_ZZ4scanE4tile_0": "tile",
		"_ZZ4scanE3AE2": "AE2", "_ZZ4scanEvE12tile": "_ZZ4scanEvE12tile", "_ZZ4scanE0tile": "_ZZ4scanE0tile", "_ZZ4scan": "_ZZ4scan",
	} {
		p := program(t, ".shared .align 4 .b8 "+name+"[8];\n"+entry("ld.shared.u32 %r1, ["+name+"+4];"+put("%r1")))
		_, fault := run(t, p, simt.Launch{Block: [3]uint32{1, 1, 1}, Check: simt.CheckFull}, 1)
		require.NotNil(t, fault, name)
		require.Contains(t, fault.Error(), "reads 4 bytes at byte 4 of "+want+" in shared memory", name)
	}
}

// An address is in constant memory if it lies in a variable there, and nowhere else.
func TestAddressesInConstantMemory(t *testing.T) {
	p := program(t, ".const .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8}; .global .align 4 .b8 other[8];\n"+entry(`mov.u64 %rd1, table; cvta.const.u64 %rd1, %rd1; mov.u64 %rd2, other; cvta.global.u64 %rd2, %rd2;
mov.u32 %r9, 0;
isspacep.const %p1, %rd1; @%p1 or.b32 %r9, %r9, 1;
add.u64 %rd3, %rd1, 7; isspacep.const %p1, %rd3; @%p1 or.b32 %r9, %r9, 2;
add.u64 %rd3, %rd1, 8; isspacep.const %p1, %rd3; @%p1 or.b32 %r9, %r9, 4;
sub.u64 %rd3, %rd1, 1; isspacep.const %p1, %rd3; @%p1 or.b32 %r9, %r9, 8;
isspacep.const %p1, %rd2; @%p1 or.b32 %r9, %r9, 16;
mov.u64 %rd3, 0; isspacep.const %p1, %rd3; @%p1 or.b32 %r9, %r9, 32;
ld.const.u8 %r8, [table+4]; ld.global.u8 %r8, [other];`+put("%r9")))
	out, fault := run(t, p, block(1), 1)
	require.Nil(t, fault)
	require.EqualValues(t, 3, out[0])
}

// What cvta makes of a variable's address, cvta.to takes back. A parameter's address stays as it is, since accesses take it so.
func TestGenericAddressesThereAndBack(t *testing.T) {
	for space, declared := range map[string]string{"shared": ".shared", "local": ".local", "global": ".global", "const": ".const"} {
		p := program(t, entry(declared+" .align 8 .b32 cells[4]; mov.u64 %rd1, cells; add.u64 %rd1, %rd1, 4; cvta."+space+".u64 %rd2, %rd1; cvta.to."+space+".u64 %rd3, %rd2;"+
			"setp.eq.u64 %p1, %rd1, %rd3; isspacep."+space+" %p2, %rd2; selp.u32 %r1, 1, 0, %p1; @%p2 add.u32 %r1, %r1, 2;"+put("%r1")))
		for _, threads := range []uint32{32, 5} {
			out, fault := run(t, p, block(threads), int(threads))
			require.Nil(t, fault)
			for _, v := range out {
				require.EqualValues(t, 3, v, space)
			}
		}
	}
	p := program(t, entry("mov.u64 %rd1, out; cvta.param.u64 %rd2, %rd1; cvta.to.param.u64 %rd3, %rd2; ld.param.u64 %rd4, [%rd3]; sub.u64 %rd4, %rd4, %out; cvt.u32.u64 %r1, %rd4;"+put("%r1")))
	out, fault := run(t, p, block(1), 1)
	require.Nil(t, fault, "%v", fault)
	require.Zero(t, out[0])
}

// In memory, an address of an argument is what the host gave, up to the one past its end: another launch may read it.
func TestAddressesInMemoryAreThoseOfTheHost(t *testing.T) {
	for _, store := range []string{"st.global.u64 [%out], %rd1;", "st.global.v2.u64 [%out], {%rd1, %rd1};", "atom.global.exch.b64 %rd2, [%out], %rd1;", "atom.global.cas.b64 %rd2, [%out], 0, %rd1;"} {
		for _, at := range []int{0, 4, 60, 64} {
			memory := onHeap[uint64](9)
			start := (uint64(uintptr(unsafe.Pointer(&memory[0]))) + 15) &^ 15
			p := program(t, entry(fmt.Sprintf("add.u64 %%rd1, %%out, %d; %s", at, store)))
			fault := launch(t, p, "k", simt.Launch{Block: [3]uint32{1, 1, 1}, Check: simt.CheckFull, Args: []simt.Arg{{Bits: start, Pointer: true, Bytes: 64}}})
			require.Nil(t, fault, "%v", fault)
			require.Contains(t, memory, start+uint64(at), "%s at %d", store, at)
		}
	}
}

// Two arguments that begin at one place and have other rows share their bytes: what lies between the rows of one may belong to the other.
func TestArgumentsOfOnePlaceShareTheirBytes(t *testing.T) {
	const code = ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %a, %b; .reg .b32 %r;\nld.param.u64 %a, [a]; ld.param.u64 %b, [b];\nld.global.u32 %r, [%b+32];\nret;\n}\n"
	for _, c := range []struct {
		row, pitch, bytes int64
		inside            bool
	}{{16, 64, 80, true}, {16, 64, 16, true}, {48, 64, 112, true}, {0, 0, 256, true}} {
		memory := onHeap[uint32](64)
		start := uint64(uintptr(unsafe.Pointer(&memory[0])))
		fault := launch(t, program(t, code), "k", simt.Launch{Block: [3]uint32{1, 1, 1}, Check: simt.CheckFull, Args: []simt.Arg{
			{Bits: start, Pointer: true, Bytes: c.bytes, Row: c.row, Pitch: c.pitch}, {Bits: start, Pointer: true, Bytes: 64, Row: 0}}})
		runtime.KeepAlive(memory)
		require.Equal(t, c.inside, fault == nil, "%+v: %v", c, fault)
	}
}

func TestFaultsNameTheirThreadAndBlock(t *testing.T) {
	p := program(t, ".file 1 \"./scan.cu\"\n"+entry(`
.loc 1 41 3
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z; mad.lo.u32 %r1, %r2, 10, %r1; mad.lo.u32 %r1, %r3, 100, %r1;
mov.u32 %r4, %tid.x; mov.u32 %r5, %tid.y; mov.u32 %r6, %tid.z; mad.lo.u32 %r4, %r5, 10, %r4; mad.lo.u32 %r4, %r6, 100, %r4;
setp.eq.u32 %p1, %r1, 112; setp.eq.and.u32 %p1, %r4, 213, %p1;
.loc 1 42 1
@%p1 trap;`))
	_, fault := run(t, p, simt.Launch{Grid: [3]uint32{4, 3, 2}, Block: [3]uint32{5, 4, 3}}, 1)
	require.NotNil(t, fault)
	require.Equal(t, [2][3]uint32{{2, 1, 1}, {3, 1, 2}}, [2][3]uint32{fault.Block, fault.Thread})
	require.Equal(t, "scan.cu:42", fault.Source)
	require.Contains(t, fault.Error(), `kernel "k", block (2,1,1), thread (3,1,2): the kernel stopped itself (trap) (trap, PTX line `)
	require.Contains(t, fault.Error(), ", scan.cu:42)")
}

func TestLimitsOfKernelsAreTheirDirectives(t *testing.T) {
	for directive, most := range map[string]int{"": 0, ".maxntid 8, 4, 2": 64, ".maxntid 256": 256, ".reqntid 16, 2": 32, ".maxntid 256 .reqntid 16": 16, ".maxntid 1": 1, ".maxntid 256 .reqntid 1": 1} {
		k, err := program(t, ".visible .entry k(.param .u64 a, .param .align 4 .b8 s[12], .param .u16 h) "+directive+" { ret; }").Kernel("k")
		require.NoError(t, err)
		require.Equal(t, most, k.MaxThreads(), directive)
		require.Equal(t, []int{8, 12, 2}, k.ParamSizes())
		require.Equal(t, 3, k.Params())
	}
}

// The first predicate of a kernel is one like the others.
func TestResultsInTheFirstPredicate(t *testing.T) {
	const head = ".visible .entry k(.param .u64 out)\n{\n.reg .pred %q; .reg .b32 %r<9>; .reg .b64 %out, %rd39; .reg .b32 %me;\nld.param.u64 %out, [out]; mov.u32 %me, %tid.x;\n"
	for code, want := range map[string]func(lane uint32) bool{
		"match.all.sync.b32 %r1|%q, 7, -1;":                                            func(uint32) bool { return true },
		"shr.u32 %r2, %me, 4; match.all.sync.b32 %r1|%q, %r2, -1;":                     func(uint32) bool { return false },
		"elect.sync %r1|%q, -1;":                                                       func(lane uint32) bool { return lane == 0 },
		"shfl.sync.up.b32 %r1|%q, %me, 3, 0, -1;":                                      func(lane uint32) bool { return lane >= 3 },
		"setp.lt.u32 %q, %me, 5; vote.sync.any.pred %q, %q, -1;":                       func(uint32) bool { return true },
		"setp.lt.u32 %q, %me, 5; vote.sync.all.pred %q, %q, -1;":                       func(uint32) bool { return false },
		"setp.lt.u32 %q, %me, 50; vote.sync.uni.pred %q, %q, -1;":                      func(uint32) bool { return true },
		"mov.u64 %rd39, %out; isspacep.global %q, %rd39;":                              func(uint32) bool { return true },
		"mov.u64 %rd39, %out; isspacep.shared %q, %rd39;":                              func(uint32) bool { return false },
		"lop3.or.b32 %r1|%q, %me, 1, 0, 0xc0, 0;":                                      func(lane uint32) bool { return lane&1 != 0 },
		"setp.ge.u32 %q, %me, 9; not.pred %q, %q;":                                     func(lane uint32) bool { return lane < 9 },
		"setp.ge.u32 %q, %me, 9; bar.red.or.pred %q, 0, %q;":                           func(uint32) bool { return true },
		".reg .pred %o; mov.u32 %r1, 0; setp.eq.f16x2 %o|%q, %r1, 0x80000000;":         func(uint32) bool { return true },
		".reg .pred %o; mov.u32 %r1, 0; setp.eq.f16x2 %q|%o, %r1, 1;":                  func(uint32) bool { return false },
		".reg .pred %o; setp.lt.u32 %o|%q, %me, 5;":                                    func(lane uint32) bool { return lane >= 5 },
		"setp.ge.u32 %q, %me, 0; bar.red.and.pred %q, 0, !%q;":                         func(uint32) bool { return false },
		"setp.ge.u32 %q, %me, 9; bar.red.and.pred %q, 0, %q;":                          func(uint32) bool { return false },
		"testp.number.f32 %q, 0f7fc00000;":                                             func(uint32) bool { return false },
		"setp.eq.u32 %q, %me, 3; activemask.b32 %r1; setp.eq.u32 %q, %r1, 0xffffffff;": func(uint32) bool { return true },
	} {
		p := program(t, head+code+" selp.u32 %r3, 1, 0, %q;"+put("%r3")+"ret;\n}\n")
		out, fault := run(t, p, block(32), 32)
		require.Nil(t, fault, code)
		for lane, v := range out {
			require.Equal(t, want(uint32(lane)), v == 1, "%s in lane %d", code, lane)
		}
	}
}
