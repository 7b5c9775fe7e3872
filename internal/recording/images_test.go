// Tests of what is read of files that a recording names: only the program that ran, known by its build id.

package recording_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/recording"
	"github.com/dagrun/dagrun/internal/recording/recordingtest"
)

const buildID = "the id of this build"

// section is a section of a program that a test makes.
type section struct {
	name string
	elf.Section64
	bytes []byte
}

// program is a file with a function "secret" from 0x1000 to 0x1100, a build id, and sections as a test adds them.
func program(t *testing.T, more ...section) string {
	t.Helper()
	note := append(binary.LittleEndian.AppendUint32(nil, 4), binary.LittleEndian.AppendUint32(nil, uint32(len(buildID)))...)
	note = append(append(binary.LittleEndian.AppendUint32(note, 3), "GNU\x00"...), buildID...)
	var symbols bytes.Buffer
	require.NoError(t, binary.Write(&symbols, binary.LittleEndian, []elf.Sym64{{}, {Name: 1, Info: uint8(elf.STT_FUNC), Shndx: 1, Value: 0x1000, Size: 0x100}}))
	sections := append([]section{{},
		{".note.gnu.build-id", elf.Section64{Type: uint32(elf.SHT_NOTE)}, note},
		{".symtab", elf.Section64{Type: uint32(elf.SHT_SYMTAB), Link: 3, Entsize: elf.Sym64Size}, symbols.Bytes()},
		{".strtab", elf.Section64{Type: uint32(elf.SHT_STRTAB)}, []byte("\x00secret\x00")}}, more...)
	sections = append(sections, section{".shstrtab", elf.Section64{Type: uint32(elf.SHT_STRTAB)}, nil})
	names := &sections[len(sections)-1]
	for k := range sections {
		sections[k].Name = uint32(len(names.bytes))
		names.bytes = append(names.bytes, sections[k].name+"\x00"...)
	}
	head := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: 64, Shentsize: 64, Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1)}
	copy(head.Ident[:], "\x7fELF\x02\x01\x01")
	var contents, table bytes.Buffer
	for k := range sections {
		s := &sections[k]
		s.Off = uint64(64 + contents.Len())
		if s.Size == 0 {
			s.Size = uint64(len(s.bytes))
		}
		contents.Write(s.bytes)
		require.NoError(t, binary.Write(&table, binary.LittleEndian, s.Section64))
	}
	head.Shoff = uint64(64 + contents.Len())
	var file bytes.Buffer
	require.NoError(t, binary.Write(&file, binary.LittleEndian, head))
	file.Write(contents.Bytes())
	file.Write(table.Bytes())
	name := filepath.Join(t.TempDir(), "solver")
	require.NoError(t, os.WriteFile(name, file.Bytes(), 0o644))
	return name
}

// function is that of an address in a file that a recording names.
func function(t *testing.T, file, build string, confined bool) string {
	t.Helper()
	part := recordingtest.Part{Ended: true}
	part.Record(0, recording.Image, []uint64{1, 0, 1 << 30}, []byte(file+"\x00"+build))
	part.Record(0, recording.Place, []uint64{5, 1, 0x1010}, nil)
	p := parse(t, part.Bytes(0))
	p.Confined = confined
	f, known := p.Where(5)
	require.True(t, known)
	require.Equal(t, file, f.File)
	require.Equal(t, uint64(0x1010), f.Offset)
	return f.Function
}

func TestOnlyTheProgramThatRanIsLookedInto(t *testing.T) {
	file := program(t)
	require.Equal(t, "secret", function(t, file, buildID, false))
	require.Empty(t, function(t, file, buildID, true), "confined")
	require.Empty(t, function(t, file, "", false), "the recording has no build id")
	require.Empty(t, function(t, file, "another", false), "the file is of another build")
	t.Chdir(filepath.Dir(file))
	require.Empty(t, function(t, "solver", buildID, false), "a name that is another file in each folder")
	require.Empty(t, function(t, filepath.Dir(file), buildID, false), "a folder")
	require.Empty(t, function(t, "/dev/zero", buildID, false))
	require.Empty(t, function(t, file+".missing", buildID, false))
}

// A program may be made to fill the memory of who reads it.
func TestProgramsThatClaimTooMuch(t *testing.T) {
	packed := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 1), 0), 1<<50), 1)
	for what, s := range map[string]section{
		"packed":       {".debug_info", elf.Section64{Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_COMPRESSED)}, append(packed, "x"...)},
		"packed old":   {".zdebug_info", elf.Section64{Type: uint32(elf.SHT_PROGBITS)}, []byte("ZLIB\x00\x00\x7f\xff\xff\xff\xff\xff........")},
		"more symbols": {".dynsym", elf.Section64{Type: uint32(elf.SHT_DYNSYM), Size: 1 << 60, Link: 3}, nil},
	} {
		require.Empty(t, function(t, program(t, s), buildID, false), what)
	}
	require.Equal(t, "secret", function(t, program(t, section{".debug_info", elf.Section64{Type: uint32(elf.SHT_PROGBITS)}, []byte("no lines")}), buildID, false))
}
