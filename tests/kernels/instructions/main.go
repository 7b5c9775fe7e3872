// ZLUDA's tests of PTX instructions on the CPU device.

// Command instructions runs the tests below ptx/src/test/spirv_run of a checkout of github.com/vosen/ZLUDA that have expected
// outputs, in the interpreter of PTX,
// and prints those that fail; tests/kernels/zluda runs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/internal/ptx"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tests/kernels/zluda ZLUDA")
		os.Exit(2)
	}
	if err := all(filepath.Join(os.Args[1], "ptx/src/test/spirv_run")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func all(folder string) error {
	rust, err := os.ReadFile(filepath.Join(folder, "mod.rs"))
	if err != nil {
		return err
	}
	list, err := testsOf(string(rust))
	if err != nil {
		return err
	}
	run, wrong, known, narrow := 0, 0, 0, 0
	try := func(path string, e *expected) {
		run++
		problem := e.run(path)
		why := faulty[strings.TrimPrefix(path, folder+"/")]
		switch {
		case problem == "" && why != "":
			wrong++
			fmt.Printf("%s is right, although it is listed as faulty: %s\n", path, why)
		case problem != "" && why != "":
			known++
			fmt.Printf("%s: %s; the test is faulty: %s\n", path, problem, why)
		case problem != "":
			wrong++
			fmt.Printf("%s: %s\n", path, problem)
		}
	}
	for i := range list {
		e := &list[i]
		try(filepath.Join(folder, e.name+".ptx"), e)
		if e.narrow {
			narrow++
		}
	}
	fmt.Printf("%d tests: %d right, %d faulty ones, %d left out, which have 32-bit addresses: CUDA has none since 12.0\n", run+narrow,
		run-wrong-known, known, narrow)
	if wrong > 0 {
		return fmt.Errorf("%d are wrong", wrong)
	}
	return nil
}

// run says what is wrong with the outputs, or "".
func (e *expected) run(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	m, err := ptx.Parse(string(text))
	if err != nil {
		return err.Error()
	}
	p, err := simt.Load(filepath.Base(path), string(text))
	if err != nil {
		return err.Error()
	}
	k, err := p.Kernel(e.name)
	if err != nil {
		return err.Error()
	}
	in, out := words(e.in.bytes), words(make([]byte, len(e.out.bytes)))
	var pins runtime.Pinner // the addresses in launches keep nothing, and what is on a stack moves
	defer pins.Unpin()
	pins.Pin(unsafe.SliceData(in))
	pins.Pin(unsafe.SliceData(out))
	pointer := func(w []uint64, bytes int) simt.Arg {
		return simt.Arg{Bits: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(w)))), Pointer: true, Bytes: int64(bytes)}
	}
	l := simt.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Shared: 1024, MaxSteps: 1 << 24,
		Args: []simt.Arg{pointer(in, len(e.in.bytes)), pointer(out, len(e.out.bytes))}}
	if e.warps { // such kernels take one argument or two
		l.Block[0], l.Args[0] = 64, l.Args[1]
		if id, ok := m.Function(e.name); ok {
			l.Args = l.Args[:min(2, len(m.Functions[id].Params))]
		}
	}
	r, err := k.Start(l)
	if err != nil {
		return err.Error()
	}
	r.Work()
	if f := r.Fault(); f != nil {
		return f.Error()
	}
	if got := bytesOf(out, len(e.out.bytes)); !e.out.equal(got) {
		return fmt.Sprintf("got %s, and not %s", e.out.text(got), e.out.text(e.out.bytes))
	}
	return ""
}

// faulty are tests that cannot be right.
var faulty = map[string]string{
	"ldmatrix.ptx":                          "it is launched with 64 threads, and those from 32 on read past the end of its variable",
	"mma_m16n8k16_f32_bf16_bf16_f32_2x.ptx": "it is launched with 64 threads, and its output has room for 32",
}
