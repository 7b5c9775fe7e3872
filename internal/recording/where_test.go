// Tests of where a place is in the user's program: in machine code, by small files that are made here and by a program that the Go toolchain builds, and which
// of a stack's frames is the user's.

package recording_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/recordingtest"
)

// symbol is a function in a file that machine makes.
type symbol struct {
	name        string
	value, size uint64
	kind        elf.SymType
}

// machine is a file of machine code with nothing but symbols and a build id.
type machine struct {
	symbols, dynamic []symbol
	note             []byte // of the build id
}

// note is one of a build id.
func note(id ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 4)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(id)))
	b = binary.LittleEndian.AppendUint32(b, 3)
	return append(append(b, "GNU\x00"...), id...)
}

// write makes a file in a folder that is no package's.
func (m machine) write(t *testing.T, name string) string {
	t.Helper()
	type section struct {
		name  string
		kind  elf.SectionType
		bytes []byte
		link  uint32
		entry uint64
	}
	sections := []section{{}}
	table := func(name, texts string, kind elf.SectionType, symbols []symbol) {
		entries, names := make([]byte, elf.Sym64Size), []byte{0}
		for _, s := range symbols {
			entry := binary.LittleEndian.AppendUint32(nil, uint32(len(names)))
			entry = append(entry, elf.ST_INFO(elf.STB_GLOBAL, s.kind), 0, 1, 0)
			entry = binary.LittleEndian.AppendUint64(entry, s.value)
			entries = append(entries, binary.LittleEndian.AppendUint64(entry, s.size)...)
			names = append(append(names, s.name...), 0)
		}
		sections = append(sections, section{name, kind, entries, uint32(len(sections) + 1), elf.Sym64Size}, section{name: texts, kind: elf.SHT_STRTAB, bytes: names})
	}
	if m.symbols != nil {
		table(".symtab", ".strtab", elf.SHT_SYMTAB, m.symbols)
	}
	if m.dynamic != nil {
		table(".dynsym", ".dynstr", elf.SHT_DYNSYM, m.dynamic)
	}
	if m.note != nil {
		sections = append(sections, section{name: ".note.gnu.build-id", kind: elf.SHT_NOTE, bytes: m.note})
	}
	names := []byte{0}
	var headers, contents bytes.Buffer
	sections = append(sections, section{name: ".shstrtab", kind: elf.SHT_STRTAB})
	for k, s := range sections {
		at := uint32(len(names))
		names = append(append(names, s.name...), 0)
		if k == len(sections)-1 {
			s.bytes = names
		}
		require.NoError(t, binary.Write(&headers, binary.LittleEndian, elf.Section64{Name: at, Type: uint32(s.kind), Off: 64 + uint64(contents.Len()), Size: uint64(len(s.bytes)),
			Link: s.link, Addralign: 1, Entsize: s.entry}))
		contents.Write(s.bytes)
	}
	var file bytes.Buffer
	h := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Shoff: 64 + uint64(contents.Len()), Ehsize: 64, Shentsize: 64,
		Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1)}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	require.NoError(t, binary.Write(&file, binary.LittleEndian, h))
	file.Write(contents.Bytes())
	file.Write(headers.Bytes())
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	return path
}

// placed returns a process whose place k has a frame that returns to base + offsets[k] of a file that was loaded at base.
func placed(t *testing.T, path, build string, offsets ...uint64) *recording.Process {
	t.Helper()
	const base = 0x7f00_0000_0000
	p := &recordingtest.Part{Ended: true}
	p.Record(0, recording.Image, []uint64{3, base, 0x10000}, []byte(path+"\x00"+build))
	for k, offset := range offsets {
		p.Record(0, recording.Place, []uint64{uint64(k), 3, base + offset}, nil)
	}
	return parse(t, p.Bytes(0))
}

// places returns the texts of the places of a process, from 0.
func places(p *recording.Process) []string {
	texts := make([]string, len(p.Places))
	for k := range texts {
		texts[k] = p.PlaceText(uint64(k))
	}
	return texts
}

func TestFunctionsOfMachineCode(t *testing.T) {
	symbols := []symbol{{"_Z5laterPf", 0x300, 0x10, elf.STT_FUNC}, {"first", 0x100, 0x20, elf.STT_FUNC}, {"data", 0x108, 8, elf.STT_OBJECT}, {"open", 0x200, 0, elf.STT_FUNC}, {"import", 0, 0x1000, elf.STT_FUNC}}
	offsets := []uint64{0x100, 0x101, 0x110, 0x120, 0x121, 0x200, 0x201, 0x2ff, 0x301, 0x310, 0x311}
	want := []string{"solve+0x100", "first in solve", "first in solve", "first in solve", "solve+0x121", "solve+0x200", "open in solve", "open in solve", "later in solve", "later in solve", "solve+0x311"}
	require.Equal(t, want, places(placed(t, machine{symbols: symbols, note: note(0xab)}.write(t, "solve"), "\xab", offsets...)))
	require.Equal(t, want, places(placed(t, machine{dynamic: symbols, note: note(0xab)}.write(t, "solve"), "\xab", offsets...)), "a stripped library")
	both := machine{symbols: symbols[:2], dynamic: []symbol{{"other", 0x200, 0x10, elf.STT_FUNC}}, note: note(0xab)}
	require.Equal(t, []string{"solve+0x201", "first in solve"}, places(placed(t, both.write(t, "solve"), "\xab", 0x201, 0x101)), "the table of all functions is looked into alone")
}

// A file that was built again since the program ran says nothing, nor does one that is gone or is no program.
func TestFilesThatAreNotThoseThatRan(t *testing.T) {
	m := machine{symbols: []symbol{{"first", 0x100, 0x20, elf.STT_FUNC}}, note: note(0xab, 0xcd)}
	known := func(m machine, build string) []string { return places(placed(t, m.write(t, "solve"), build, 0x101)) }
	require.Equal(t, []string{"first in solve"}, known(m, "\xab\xcd"))
	require.Equal(t, []string{"solve+0x101"}, known(m, ""), "the recorder found no build id")
	m.note = append(m.note, 0, 0)
	require.Equal(t, []string{"first in solve"}, known(m, "\xab\xcd"), "what is behind the build id does not belong to it")
	require.Equal(t, []string{"solve+0x101"}, known(m, "\xab\xce"))
	for name, bad := range map[string][]byte{"none": nil, "too short": note()[:15], "cut": note(0xab, 0xcd)[:17], "of another vendor": append([]byte(strings.Replace(string(note()), "GNU\x00", "Go\x00\x00", 1)), 0xab, 0xcd)} {
		m.note = bad
		require.Equal(t, []string{"solve+0x101"}, known(m, "\xab\xcd"), name)
	}
	require.Equal(t, []string{"solve+0x101"}, places(placed(t, filepath.Join(t.TempDir(), "solve"), "\xab", 0x101)))
	text := filepath.Join(t.TempDir(), "solve")
	require.NoError(t, os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600))
	require.Equal(t, []string{"solve+0x101"}, places(placed(t, text, "\xab", 0x101)))
}

// A program with debugging information has lines; which, it says itself.
func TestLinesOfMachineCode(t *testing.T) {
	folder := t.TempDir()
	source := filepath.Join(folder, "solve.go")
	require.NoError(t, os.WriteFile(source, []byte(`package main

import (
	"fmt"
	"runtime"
)

//go:noinline
func where() {
	pc, _, line, _ := runtime.Caller(1)
	fmt.Println(pc, line)
}

func main() {
	where()

	where()
}
`), 0o600))
	build := func(flags string) string {
		out := filepath.Join(folder, "solve")
		command := exec.Command("go", "build", "-ldflags", flags, "-o", out, source)
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux", "GOARCH=amd64")
		text, err := command.CombinedOutput()
		require.NoError(t, err, "%s", text)
		return out
	}
	program := build("-B 0xabcd")
	said, err := exec.Command(program).Output()
	require.NoError(t, err)
	var offsets []uint64
	var lines []string
	for text := range strings.Lines(string(said)) {
		var offset uint64
		var line int
		_, err := fmt.Sscan(text, &offset, &line)
		require.NoError(t, err)
		offsets, lines = append(offsets, offset), append(lines, fmt.Sprintf("solve.go:%d", line))
	}
	require.Equal(t, []string{"solve.go:15", "solve.go:17"}, lines)
	p := placed(t, program, "\xab\xcd", offsets...)
	require.Equal(t, lines, places(p))
	f, known := p.Where(0)
	require.True(t, known)
	require.Equal(t, recording.Frame{File: source, Function: "main.main", Line: 15, Offset: offsets[0], BuildID: "abcd"}, f)
	require.Equal(t, []string{fmt.Sprintf("solve+0x%x", offsets[0])}, places(placed(t, program, "\xab\xce", offsets[0])))
	require.Equal(t, "main.main in solve", places(placed(t, build("-w -B 0xabcd"), "\xab\xcd", offsets[0]))[0], "without lines, the function")
}

func TestFramesOfPackages(t *testing.T) {
	for file, packaged := range map[string]bool{
		"/home/me/train.py": false, "/opt/app/bin/solve": false, "/home/me/lib/python.py": false, "/home/me/cuda/solve": false,
		"/home/me/venv/lib/python3.12/site-packages/torch/nn.py": true, "/usr/lib/python3/dist-packages/numpy.py": true, "/opt/python/lib/python3.11/threading.py": true,
		"<frozen importlib._bootstrap>": true, "/usr/include/c++/13/thread": true, "/usr/lib/x86_64-linux-gnu/libfoo.so": true, "/lib64/ld-linux-x86-64.so.2": true,
		"/lib/libm.so.6": true, "/usr/local/cuda-13/lib64/libfoo.so": true, "/usr/local/nvidia/lib64/libfoo.so": true, "/opt/cuda/lib/libfoo.so": true,
		"/home/me/.cache/dagrun/recorder/recorder.so": true, "/home/me/build/libcudart.so.13": true, "/home/me/build/libtorch_cpu.so": true, "/home/me/build/libmine.so": false,
	} {
		require.Equal(t, packaged, placed(t, file, "", 0x101).Places[0][0].Package, file)
	}
}

// The innermost frame of the user's that has a line is meant; what nvcc makes for each launch, and the runtime in the program, are not the user's.
func TestWhichFrameIsMeant(t *testing.T) {
	stub := machine{symbols: []symbol{{"_Z3addPf", 0x100, 0x10, elf.STT_FUNC}, {"_ZN6cudart3apiEv", 0x200, 0x10, elf.STT_FUNC}, {"cudaLaunchKernel", 0x300, 0x10, elf.STT_FUNC},
		{"_Z30__device_stub__Z3addPfPf", 0x400, 0x10, elf.STT_FUNC}, {"cudaist", 0x500, 0x10, elf.STT_FUNC}, {"__cudaPushCallConfiguration", 0x600, 0x10, elf.STT_FUNC},
		{"libcudart_static_9", 0x700, 0x10, elf.STT_FUNC}, {"_ZL16cudaLaunchKernelIcE", 0x800, 0x10, elf.STT_FUNC}, {"_Z16cudaLaunchKernelIcE", 0x900, 0x10, elf.STT_FUNC}}, note: note(0xab)}.write(t, "solve")
	at := func(offset uint64) recording.Frame {
		return recording.Frame{File: stub, Offset: offset + 1, BuildID: "ab"}
	}
	python := recording.Frame{Python: true, File: "/home/me/train.py", Line: 7}
	library := recording.Frame{Python: true, File: "/opt/lib/python3.12/nn.py", Line: 9, Package: true}
	text := func(frames ...recording.Frame) string {
		p := &recording.Process{Places: map[uint64][]recording.Frame{1: frames}, Functions: map[uint64][]recording.FunctionInfo{5: {{Name: "_Z3addPf"}}}}
		return p.PlaceText(1)
	}
	require.Equal(t, "train.py:7", text(library, at(0x500), python), "a line says more than a function")
	require.Equal(t, "cudaist in solve", text(library, at(0x500)))
	for _, generated := range []uint64{0x100, 0x200, 0x300, 0x400, 0x600, 0x700, 0x800, 0x900} {
		require.Equal(t, "cudaist in solve", text(at(generated), at(0x500)), "0x%x", generated)
	}
	require.Equal(t, "solve+0x101", text(at(0x100), library), "where nothing is the user's, the innermost")
}

// A report and a picture may ask at once.
func TestWhereIsAskedBySeveralGoroutines(t *testing.T) {
	p := placed(t, machine{symbols: []symbol{{"first", 0x100, 0x8000, elf.STT_FUNC}}, note: note(0xab)}.write(t, "solve"), "\xab", make([]uint64, 20_000)...)
	for place, frames := range p.Places {
		frames[0].Offset = 0x101 + place
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for place := range uint64(20_000) {
				if text := p.PlaceText(place); text != "first in solve" {
					t.Errorf("%d: %s", place, text)
					return
				}
			}
		})
	}
	all.Wait()
}
