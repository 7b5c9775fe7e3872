// Machine code: which function and line an address in a program or library belongs to, read from its file if it is still the one that ran.

package recording

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/hex"
	"sort"
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
	file, err := elf.Open(path)
	if err != nil {
		return b
	}
	defer file.Close()
	if build != "" && buildID(file) != build {
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

func buildID(file *elf.File) string {
	section := file.Section(".note.gnu.build-id")
	if section == nil {
		return ""
	}
	note, err := section.Data()
	const head = 16 // sizes, type, and the name "GNU"
	if err != nil || len(note) < head || !bytes.Equal(note[12:16], []byte("GNU\x00")) || uint64(half(note, 1)) > uint64(len(note)-head) {
		return ""
	}
	return hex.EncodeToString(note[head : head+int(half(note, 1))]) // zeros may follow
}

// resolve returns the function of an address that a call returns to, and the file and line if the program has them. The call is before the address.
func (b *machineFile) resolve(back uint64) (function, file string, line int) {
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
