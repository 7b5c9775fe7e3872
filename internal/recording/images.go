// Machine code: which function and line an address in a program or library belongs to, read from its file if it is still the one that ran.
//
// A recording may come from anyone and name any file. So nothing is taken from a file but by the build id that the recording has for it,
// which whoever made the recording
// can know of the program that ran and not of the files of whoever reads it.

package recording

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// images are the files that were looked into, by path. A file that cannot be used is there with nothing in it.
type images map[string]*machineFile

// machineFile is what is known of a file.
type machineFile struct {
	symbols []elf.Symbol // functions, by address
	lines   *dwarf.Data
}

func (all images) of(path, build string) *machineFile {
	if b := all[path]; b != nil {
		return b
	}
	b := &machineFile{}
	all[path] = b
	if info, err := os.Stat(path); build == "" || !filepath.IsAbs(path) || err != nil || !info.Mode().IsRegular() { // opening a FIFO waits for a writer
		return b
	}
	defer func() {
		if recover() != nil { // the libraries that read programs promise nothing for files that are made to mislead them
			*b = machineFile{}
		}
	}()
	file, err := elf.Open(path)
	if err != nil {
		return b
	}
	defer file.Close()
	if buildID(file) != build || tooLarge(file) {
		return b
	}
	table, _ := file.Symbols()
	if len(table) == 0 {
		table, _ = file.DynamicSymbols()
	}
	for _, s := range table {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 {
			b.symbols = append(b.symbols, s)
		}
	}
	sort.SliceStable(b.symbols, func(i, j int) bool { return b.symbols[i].Value < b.symbols[j].Value })
	b.lines, _ = file.DWARF()
	return b
}

// mostUnpacked is how many bytes of names and lines are read from a file. A few hundred bytes may claim to be any number when they are unpacked.
const mostUnpacked = 4 << 30

func tooLarge(file *elf.File) bool {
	left := uint64(mostUnpacked)
	for _, s := range file.Sections {
		lines := strings.HasPrefix(s.Name, ".debug_")
		if strings.HasPrefix(s.Name, ".zdebug_") { // an old form, whose size is known only when it is read
			return true
		}
		if !lines && s.Type != elf.SHT_SYMTAB && s.Type != elf.SHT_DYNSYM && s.Type != elf.SHT_STRTAB {
			continue
		}
		if s.Size > left {
			return true
		}
		left -= s.Size
	}
	return false
}

func buildID(file *elf.File) string {
	section := file.Section(".note.gnu.build-id")
	if section == nil {
		return ""
	}
	note, err := section.Data()
	const head = 16 // sizes, type, and the name "GNU"
	if err != nil || len(note) < head || !bytes.Equal(note[12:16], []byte("GNU\x00")) {
		return ""
	}
	id := note[head:]
	size := binary.LittleEndian.Uint32(note[4:])
	if uint64(size) > uint64(len(id)) {
		return ""
	}
	return hex.EncodeToString(id[:size]) // zeros may follow
}

// resolve returns the function of an address that a call returns to, and the file and line if the program has them. The call is before the address.
func (b *machineFile) resolve(back uint64) (function, file string, line int) {
	defer func() {
		if recover() != nil {
			b.lines = nil
		}
	}()
	at := back - 1
	k := sort.Search(len(b.symbols), func(k int) bool { return b.symbols[k].Value > at })
	if k > 0 && (b.symbols[k-1].Size == 0 || at < b.symbols[k-1].Value+b.symbols[k-1].Size) {
		function = b.symbols[k-1].Name
	}
	if b.lines == nil {
		return function, "", 0
	}
	unit, err := b.lines.Reader().SeekPC(at)
	if err != nil {
		return function, "", 0
	}
	lines, err := b.lines.LineReader(unit)
	if err != nil || lines == nil {
		return function, "", 0
	}
	var entry dwarf.LineEntry
	if lines.SeekPC(at, &entry) != nil || entry.File == nil {
		return function, "", 0
	}
	return function, entry.File.Name, entry.Line
}
