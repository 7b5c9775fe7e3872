// Tests of kernels that run from their PTX and of what commands declare: each fault has the driver's code and names the argument as the file does,
// and on a device whose kernels are checked, what is declared out must be written, and what is read must have been.

package host

import (
	"context"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/kernels/launch"
)

// checkedModule has kernels of one thread with arguments p and n: store writes the byte at p + n, load reads it, odd reads two bytes there, and so on.
const checkedModule = `.version 7.8
.target sm_70
.address_size 64
.visible .entry store(.param .u64 p, .param .u64 n) { .reg .b64 %a<4>; ld.param.u64 %a1, [p]; ld.param.u64 %a2, [n]; add.s64 %a3, %a1, %a2; st.global.u8 [%a3], 7; ret; }
.visible .entry load(.param .u64 p, .param .u64 n) { .reg .b64 %a<4>; .reg .b16 %h; ld.param.u64 %a1, [p]; ld.param.u64 %a2, [n]; add.s64 %a3, %a1, %a2; ld.global.u8 %h, [%a3]; ret; }
.visible .entry copy(.param .u64 p, .param .u64 n) { .reg .b64 %a<4>; .reg .b16 %h; ld.param.u64 %a1, [p]; ld.param.u64 %a2, [n]; add.s64 %a3, %a1, %a2; ld.global.u8 %h, [%a3]; st.global.u8 [%a1], %h; ret; }
.visible .entry odd(.param .u64 p, .param .u64 n) { .reg .b64 %a<4>; .reg .b16 %h; ld.param.u64 %a1, [p]; ld.global.u16 %h, [%a1+1]; ret; }
.visible .entry stop(.param .u64 p, .param .u64 n) { trap; }
.visible .entry turn(.param .u64 p, .param .u64 n) { L: bra L; }
.visible .entry lost(.param .u64 p, .param .u64 n) { .reg .b64 %a; mov.u64 %a, 42; f: .callprototype _ (); call %a, (), f; ret; }
.visible .entry single(.param .u64 p, .param .u64 n) .maxntid 1, 1, 1 { ret; }
.visible .entry structure(.param .align 8 .b8 s[16]) { .reg .b64 %a; ld.param.u64 %a, [s+8]; st.global.u8 [%a+64], 7; ret; }
`

func (b *bench) ptx(entry string) cudart.Kernel {
	m, err := b.Load(context.Background(), 0, &launch.Module{Name: "checked.ptx", Kind: launch.PTX, Code: []byte(checkedModule)})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, m.Close()) })
	k, err := m.Kernel(entry)
	require.NoError(b, err)
	return k
}

// fault runs commands on one stream and returns what the device says.
func (b *bench) fault(s *stream, commands ...cudart.Command) error {
	for i := range commands {
		commands[i].Stream = s
	}
	if err := b.submit(commands...); err != nil {
		return err
	}
	return s.Synchronize(context.Background())
}

func TestFaultsOfKernelsHaveTheDriversCode(t *testing.T) {
	const bytes = 64
	whole := func(d cudart.Ptr) []cudart.Access {
		return []cudart.Access{{Ptr: d, Bytes: bytes, Name: "x", Offset: 128, Write: true}}
	}
	for _, c := range []struct {
		entry    string
		n        uint64
		accesses func(d cudart.Ptr) []cudart.Access
		check    simt.Check
		code     status
		says     string
	}{
		{"store", 0, whole, simt.CheckNothing, 0, ""},
		{"store", bytes, whole, simt.CheckNothing, illegalAddress, "0 bytes past the end of argument 0 (p) (st.global.u8, PTX line 4); argument 0 is bytes 128 to 192 of x in the file"},
		{"store", bytes, nil, simt.CheckNothing, illegalAddress, "0 bytes past the end of argument 0 (p) (st.global.u8, PTX line 4)"},
		{"load", bytes + 5, func(d cudart.Ptr) []cudart.Access {
			return []cudart.Access{{Ptr: d + 8, Bytes: 8, Name: "y", Offset: 8}, {Ptr: d + 4096, Bytes: 8, Name: "z"}}
		}, simt.CheckNothing, illegalAddress, "5 bytes past the end of argument 0 (p) (ld.global.u8, PTX line 5); argument 0 is bytes 8 to 16 of y in the file"},
		{"load", bytes, func(d cudart.Ptr) []cudart.Access {
			return []cudart.Access{{Ptr: d, Bytes: 8, Name: "", Offset: 8}, {Ptr: d + 16, Bytes: 8, Name: "y", Offset: 8}, {Ptr: d, Bytes: 24, Rows: 3, Pitch: 16, Name: "z", Offset: 32}}
		}, simt.CheckNothing, illegalAddress, "; argument 0 is a tile of z in the file: 3 rows of 8 bytes, 16 apart, from byte 32"},
		{"odd", 0, whole, simt.CheckNothing, misalignedAddress, "an access of 2 bytes at an address that is not a multiple of 2"},
		{"stop", 0, whole, simt.CheckNothing, launchFailed, "the kernel stopped itself (trap)"},
		{"turn", 0, whole, simt.CheckNothing, launchTimeout, "the launch has run more than 10000 instructions, which is its limit"},
		{"lost", 0, whole, simt.CheckNothing, launchFailed, "a call through the address 0x2a"},
		{"copy", 3, whole, simt.CheckFull, launchFailed, "reads 1 byte at byte 3 of argument 0 (p), which nobody has written"},
		{"store", 3, func(d cudart.Ptr) []cudart.Access { return []cudart.Access{{Ptr: d, Bytes: bytes, Name: "x"}} }, simt.CheckFull, illegalAddress, ""},
	} {
		b := newBench(t, Options{Sanitize: c.check, MaxSteps: 10000})
		s, d := b.stream(), b.alloc(bytes)
		launch := cudart.Command{Kind: cudart.LaunchKernel, Label: "it", Kernel: b.ptx(c.entry), Grid: one, Block: one, Args: []cudart.Value{pointer(d, bytes), {Bits: c.n, Size: 8}}}
		if c.accesses != nil {
			launch.Accesses = c.accesses(d)
		}
		err := b.fault(s, launch)
		if c.code == 0 {
			require.NoError(t, err)
			continue
		}
		requireError(t, err, c.code, `node "it": cuLaunchKernel: `)
		require.ErrorContains(t, err, c.says)
		require.ErrorIs(t, err, cudart.ErrPoisoned)
		if c.accesses == nil {
			require.NotContains(t, err.Error(), "in the file")
		}
	}
}

// A pointer in a structure is named by its place there.
func TestFaultsOfPointersInStructures(t *testing.T) {
	b := newBench(t, Options{})
	s, d := b.stream(), b.alloc(64)
	member := pointer(d, 64)
	member.Within, member.Offset = 1, 8
	err := b.fault(s, cudart.Command{Kind: cudart.LaunchKernel, Kernel: b.ptx("structure"), Grid: one, Block: one, Args: []cudart.Value{{Struct: make([]byte, 16)}, member},
		Accesses: []cudart.Access{{Ptr: d, Bytes: 64, Name: "x", Offset: 0, Write: true}}})
	requireError(t, err, illegalAddress, "; the pointer at byte 8 of argument 0 is bytes 0 to 64 of x in the file")
}

// The limits of a kernel are those of its text, and shared memory sets how many blocks a multiprocessor has.
func TestAttributesOfKernels(t *testing.T) {
	b := newBench(t, Options{})
	for entry, most := range map[string]int{"single": 1, "stop": 1024} {
		k := b.ptx(entry)
		require.Equal(t, cudart.KernelAttributes{MaxThreads: most, ParamSizes: []int{8, 8}}, k.Attributes(), entry)
		require.Equal(t, entry+" of checked.ptx", k.(*kernel).String())
	}
	for shared, blocks := range map[uint32]int{0: 2, 1: 2, 100 << 10: 2, 113 << 10: 2, 113<<10 + 1: 1, sharedMax: 1} {
		threads, n, err := b.ptx("stop").Occupancy(shared)
		require.NoError(t, err)
		require.Equal(t, [2]int{1024, blocks}, [2]int{int(threads), n}, "%d bytes", shared)
	}
}

func TestWhatIsDeclaredOutMustBeWritten(t *testing.T) {
	const bytes = 64
	fill := func(from, to int64) launch.Reference {
		return launch.Reference{Run: func(c *launch.Call, _, _ int64) {
			b := unsafe.Slice((*byte)(c.Args[0].Memory), c.Args[0].Bytes)
			for i := from; i < to; i++ {
				b[i] = 1
			}
		}}
	}
	read := launch.Reference{ReadsAll: true, Run: func(*launch.Call, int64, int64) {}}
	references := map[string]launch.Reference{"all": fill(0, bytes), "less": fill(0, bytes-16), "later": fill(8, bytes), "none": fill(0, 0), "short": fill(0, bytes-4), "reads": read}
	out := func(d cudart.Ptr) []cudart.Access {
		return []cudart.Access{{Ptr: d, Bytes: bytes, Write: true, Whole: true, Name: "x", Offset: 100}}
	}
	tile := func(d cudart.Ptr) []cudart.Access {
		return []cudart.Access{{Ptr: d, Bytes: 32, Rows: 2, Pitch: 48, Write: true, Whole: true, Name: "x", Offset: 100}}
	}
	inout := func(d cudart.Ptr) []cudart.Access {
		return []cudart.Access{{Ptr: d, Bytes: bytes, Write: true, Name: "x"}}
	}
	in := func(d cudart.Ptr) []cudart.Access {
		return []cudart.Access{{Ptr: d, Bytes: bytes, Name: "x", Offset: 100}}
	}
	for _, c := range []struct {
		entry    string
		accesses func(d cudart.Ptr) []cudart.Access
		check    simt.Check
		want     string
	}{
		{"all", out, simt.CheckFast, ""},
		{"less", out, simt.CheckFast, "it has not written bytes 148 to 164 of x, which are declared out: declare them inout, or as out only what it writes"},
		{"later", out, simt.CheckFast, "it has not written bytes 100 to 108 of x"},
		{"none", out, simt.CheckFull, "it has not written bytes 100 to 164 of x"},
		{"short", out, simt.CheckFast, ""}, // fewer bytes than the pattern has
		{"less", out, simt.CheckNothing, ""},
		{"less", inout, simt.CheckFast, ""},
		{"less", tile, simt.CheckFast, "it has not written bytes 148 to 164 of x"},
		{"later", tile, simt.CheckFast, "it has not written bytes 100 to 108 of x"},
		{"all", tile, simt.CheckFast, ""},
		{"reads", in, simt.CheckFast, "it reads bytes 100 to 164 of x, which nothing has written"},
		{"reads", in, simt.CheckNothing, ""},
		{"all", in, simt.CheckFast, ""}, // nobody knows what it reads of them
	} {
		b := newBench(t, Options{References: references, Sanitize: c.check})
		s, d := b.stream(), b.alloc(bytes)
		launch := b.kernel(s, c.entry, pointer(d, bytes))
		launch.Accesses = c.accesses(d)
		if err := b.fault(s, launch); c.want == "" {
			require.NoError(t, err, c.entry)
		} else {
			requireError(t, err, launchFailed, c.want)
		}
	}
	// The same of a function of the host, and of a kernel that runs from PTX.
	for _, bad := range []bool{false, true} {
		b := newBench(t, Options{Sanitize: simt.CheckFast})
		h, values := b.host(16)
		err := b.fault(b.stream(), cudart.Command{Kind: cudart.RunHost, Label: "call", Accesses: []cudart.Access{{Ptr: h, Bytes: 16, Write: true, Whole: true, Name: "y"}},
			Host: func() {
				if !bad {
					clear(values)
				}
			}})
		require.Equal(t, bad, err != nil, "%v", err)
		if bad {
			requireError(t, err, launchFailed, "it has not written bytes 0 to 16 of y")
			continue
		}
		d, s := b.alloc(8), b.stream()
		store := cudart.Command{Kind: cudart.LaunchKernel, Kernel: b.ptx("store"), Grid: one, Block: one, Args: []cudart.Value{pointer(d, 8), {Bits: 3, Size: 8}},
			Accesses: []cudart.Access{{Ptr: d + 3, Bytes: 1, Write: true, Whole: true, Name: "z", Offset: 3}}}
		require.NoError(t, b.fault(s, store))
		store.Accesses = []cudart.Access{{Ptr: d, Bytes: 4, Write: true, Whole: true, Name: "z", Offset: 40}}
		requireError(t, b.fault(s, store), launchFailed, "it has not written bytes 40 to 43 of z")
	}
}

// What sets, copies and functions write counts as written, and what is declared out is forgotten before a kernel runs.
func TestWhatCommandsWriteIsKnown(t *testing.T) {
	const bytes = 64
	for _, c := range []struct {
		name     string
		commands func(b *bench, d cudart.Ptr) []cudart.Command
		at       uint64 // the byte that is read
		known    bool
	}{
		{"nothing", func(*bench, cudart.Ptr) []cudart.Command { return nil }, 0, false},
		{"a set", func(_ *bench, d cudart.Ptr) []cudart.Command {
			return []cudart.Command{{Kind: cudart.SetMemory, Dst: d + 8, Bytes: 8, Width: 1}}
		}, 8, true},
		{"before a set", func(_ *bench, d cudart.Ptr) []cudart.Command {
			return []cudart.Command{{Kind: cudart.SetMemory, Dst: d + 8, Bytes: 8, Width: 1}}
		}, 7, false},
		{"after a set", func(_ *bench, d cudart.Ptr) []cudart.Command {
			return []cudart.Command{{Kind: cudart.SetMemory, Dst: d + 8, Bytes: 8, Width: 1}}
		}, 16, false},
		{"a row of a set", func(_ *bench, d cudart.Ptr) []cudart.Command {
			return []cudart.Command{{Kind: cudart.SetMemory, Dst: d, Bytes: 8, Rows: 2, DstPitch: 32, Width: 1}}
		}, 35, true},
		{"between rows of a set", func(_ *bench, d cudart.Ptr) []cudart.Command {
			return []cudart.Command{{Kind: cudart.SetMemory, Dst: d, Bytes: 8, Rows: 2, DstPitch: 32, Width: 1}}
		}, 4, false},
		{"a copy", func(b *bench, d cudart.Ptr) []cudart.Command {
			h, _ := b.host(16)
			return []cudart.Command{{Kind: cudart.CopyMemory, Dst: d, Src: h, SrcDevice: -1, Bytes: 16}}
		}, 15, true},
		{"a kernel in Go that declares", func(b *bench, d cudart.Ptr) []cudart.Command {
			c := b.kernel(nil, "noop", pointer(d, bytes))
			c.Accesses = []cudart.Access{{Ptr: d, Bytes: 8, Write: true}, {Ptr: d + 8, Bytes: 8}}
			return []cudart.Command{c}
		}, 7, true},
		{"a kernel in Go, what it only reads", func(b *bench, d cudart.Ptr) []cudart.Command {
			c := b.kernel(nil, "noop", pointer(d, bytes))
			c.Accesses = []cudart.Access{{Ptr: d, Bytes: 8, Write: true}, {Ptr: d + 8, Bytes: 8}}
			return []cudart.Command{c}
		}, 8, false},
		{"a kernel in Go that declares nothing", func(b *bench, d cudart.Ptr) []cudart.Command {
			return []cudart.Command{b.kernel(nil, "noop", pointer(d, bytes))}
		}, 63, true},
		{"a kernel from PTX", func(b *bench, d cudart.Ptr) []cudart.Command {
			return []cudart.Command{{Kind: cudart.LaunchKernel, Kernel: b.ptx("store"), Grid: one, Block: one, Args: []cudart.Value{pointer(d, bytes), {Bits: 5, Size: 8}}}}
		}, 5, true},
		{"a kernel from PTX, what it leaves out", func(b *bench, d cudart.Ptr) []cudart.Command {
			return []cudart.Command{{Kind: cudart.LaunchKernel, Kernel: b.ptx("store"), Grid: one, Block: one, Args: []cudart.Value{pointer(d, bytes), {Bits: 5, Size: 8}}}}
		}, 6, false},
	} {
		b := newBench(t, Options{Sanitize: simt.CheckFull})
		s, d := b.stream(), b.alloc(bytes)
		commands := append(c.commands(b, d), cudart.Command{Kind: cudart.LaunchKernel, Kernel: b.ptx("copy"), Grid: one, Block: one, Args: []cudart.Value{pointer(d, bytes), {Bits: c.at, Size: 8}}})
		if err := b.fault(s, commands...); c.known {
			require.NoError(t, err, c.name)
		} else {
			requireError(t, err, launchFailed, "which nobody has written")
		}
	}
}
