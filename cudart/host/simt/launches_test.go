// Tests of launches that are refused before they start, and of arguments: whole, as members of structures, and those that nobody may use.

package simt_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
)

func TestLaunchesThatAreRefused(t *testing.T) {
	p := program(t, `.visible .entry k(.param .u64 a, .param .align 8 .b8 s[24]) .maxntid 64 { ret; }
.visible .entry large(.param .u32 n) { .shared .align 16 .b8 tile[200000]; .reg .b32 %r; mov.u32 %r, tile; st.shared.u32 [%r], 1; ret; }
.visible .entry deep(.param .u32 n) { .local .align 16 .b8 room[1048576]; .reg .b32 %r; st.local.u32 [room], %r; ret; }
`)
	value := simt.Arg{Bits: 7}
	member := func(within int, offset int64) simt.Arg { return simt.Arg{Bits: 9, Within: within, Offset: offset} }
	structure := simt.Arg{Struct: make([]byte, 24)}
	one := [3]uint32{1, 1, 1}
	for _, c := range []struct {
		entry string
		l     simt.Launch
		want  string
	}{
		{"k", simt.Launch{Grid: one, Block: [3]uint32{64, 1, 1}, Args: []simt.Arg{value, structure}}, ""},
		{"k", simt.Launch{Grid: one, Block: [3]uint32{8, 8, 1}, Args: []simt.Arg{value, structure}}, ""},
		{"k", simt.Launch{Grid: one, Block: [3]uint32{65, 1, 1}, Args: []simt.Arg{value, structure}}, `kernel "k": a block of 65 threads; its directives allow at most 64`},
		{"k", simt.Launch{Grid: one, Block: [3]uint32{0, 1, 1}, Args: []simt.Arg{value, structure}}, `kernel "k": a block of 0 threads; 1 to 1024 are possible`},
		{"deep", simt.Launch{Grid: one, Block: [3]uint32{1025, 1, 1}, Args: []simt.Arg{value}}, `kernel "deep": a block of 1025 threads; 1 to 1024 are possible`},
		{"k", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value}}, `kernel "k" takes 2 arguments, but 1 are given`},
		{"k", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value, structure, value}}, `kernel "k" takes 2 arguments, but 3 are given`},
		{"k", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value, {Struct: make([]byte, 23)}}}, `kernel "k": argument 1 has 23 bytes, but its parameter has 24`},
		{"k", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value, structure, member(2, 0)}}, ""},
		{"k", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value, structure, member(2, 16)}}, ""},
		{"k", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value, structure, member(2, 17)}}, `kernel "k": value 2 is no member of a structure among the arguments`},
		{"k", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value, structure, member(2, -1)}}, `kernel "k": value 2 is no member of a structure among the arguments`},
		{"k", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value, structure, member(3, 0)}}, `kernel "k": value 2 is no member of a structure among the arguments`},
		{"k", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value, structure, member(-1, 0)}}, `kernel "k": value 2 is no member of a structure among the arguments`},
		{"large", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value}}, ""},
		{"large", simt.Launch{Grid: one, Block: one, Shared: 1 << 20, Args: []simt.Arg{value}}, `kernel "large": a block needs`},
		{"deep", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{value}}, ""},
		{"k", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{{Texture: &cudart.Texture{}}, structure}}, `kernel "k": argument 0 (a) cannot be a texture`},
		{"large", simt.Launch{Grid: one, Block: one, Args: []simt.Arg{{Pointer: true, Texture: &cudart.Texture{}}}}, `kernel "large": argument 0 (n) cannot be a texture`},
	} {
		k, err := p.Kernel(c.entry)
		require.NoError(t, err)
		_, err = k.Start(c.l)
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
}

func TestLocalMemoryIsLimited(t *testing.T) {
	_, err := program(t, ".visible .entry k() { .local .align 16 .b8 room[1048592]; .reg .b32 %r; st.local.u32 [room], %r; ret; }").Kernel("k")
	require.EqualError(t, err, `test.ptx: kernel "k" needs 1048592 bytes of local memory per thread; at most 1048576 are possible`)
}

// What a kernel is passed is what it loads, and the pointers of a structure are arguments of their own.
func TestArgumentsArriveWhereTheyBelong(t *testing.T) {
	const head = ".visible .entry k(.param .u64 out, .param .u16 h, .param .align 8 .b8 s[24], .param .u32 n)\n{\n.reg .b64 %out, %a<4>; .reg .b32 %r<6>; .reg .b16 %h;\nld.param.u64 %out, [out];\n"
	memory := onHeap[uint32](64)
	start := uint64(uintptr(unsafe.Pointer(&memory[0])))
	structure := make([]byte, 24)
	for i := range structure {
		structure[i] = byte(i + 1)
	}
	args := []simt.Arg{{Bits: start, Pointer: true, Bytes: 64}, {Bits: 0x12345}, {Struct: structure}, {Bits: 1<<40 | 77}, {Bits: start + 128, Pointer: true, Bytes: 8, Within: 3, Offset: 8}}
	run := func(body string, level simt.Check, args []simt.Arg) *simt.Fault {
		clear(memory)
		fault := launch(t, program(t, head+body+"\nret;\n}\n"), "k", simt.Launch{Block: [3]uint32{1, 1, 1}, Check: level, Args: args})
		runtime.KeepAlive(memory)
		return fault
	}
	for _, level := range []simt.Check{simt.CheckNothing, simt.CheckFull} {
		require.Nil(t, run("ld.param.u16 %h, [h]; cvt.u32.u16 %r1, %h; st.global.u32 [%out], %r1; ld.param.u32 %r1, [s+4]; st.global.u32 [%out+4], %r1; ld.param.u32 %r1, [s+16]; st.global.u32 [%out+8], %r1;"+
			"ld.param.u32 %r1, [n]; st.global.u32 [%out+12], %r1; ld.param.u64 %a1, [s+8]; st.global.u32 [%a1+4], 5;", level, args))
		require.Equal(t, []uint32{0x2345, 0x08070605, 0x14131211, 77}, memory[:4])
		require.Equal(t, []uint32{0, 5, 0}, memory[32:35])
		fault := run("ld.param.u64 %a1, [s+8]; st.global.u32 [%a1+8], 5;", level, args)
		require.NotNil(t, fault)
		require.Contains(t, fault.Error(), "0 bytes past the end of argument 2 (s), the pointer at byte 8,")
	}
	// A pointer that is declared unused leads nowhere, for each of them somewhere else.
	unused := append([]simt.Arg{}, args...)
	unused[4] = simt.Arg{Pointer: true, Unused: true, Within: 3, Offset: 8}
	for _, level := range []simt.Check{simt.CheckNothing, simt.CheckFull} {
		fault := run("ld.param.u64 %a1, [s+8]; ld.global.u32 %r1, [%a1+100000];", level, unused)
		require.NotNil(t, fault)
		require.Contains(t, fault.Error(), "an access of 4 bytes through argument 2 (s), the pointer at byte 8, which is declared unused")
	}
}
