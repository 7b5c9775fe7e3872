// What can be read from code without loading it: PTX entries, the target, writable globals.

package driver

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/internal/ptx"
)

// The head of a fatbin: magic, version (16 bits), bytes of the head (16 bits), bytes of what follows (64 bits).
const (
	fatbinMagic     = 0xba55ed50
	fatbinHeadBytes = 16
)

var errCutShort = errors.New("the file is incomplete")

// checkImage refuses a binary that is shorter than its headers say, because the driver would read beyond its end.
func checkImage(image []byte) error {
	if len(image) >= 4 && binary.LittleEndian.Uint32(image) == fatbinMagic {
		if len(image) < fatbinHeadBytes {
			return errCutShort
		}
		head, body := uint64(binary.LittleEndian.Uint16(image[6:])), binary.LittleEndian.Uint64(image[8:])
		if rest := uint64(len(image)); head > rest || body > rest-head {
			return errCutShort
		}
		return nil
	}
	if !bytes.HasPrefix(image, []byte(elf.ELFMAG)) {
		return nil
	}
	if len(image) < 64 {
		return errCutShort
	}
	word := binary.LittleEndian
	size := uint64(len(image))
	// table checks the headers of one kind: the part of the file that each describes must lie in the file.
	table := func(offset uint64, entry, count uint16, part func(head []byte) (offset, bytes uint64)) error {
		if count == 0 {
			return nil
		}
		if length := uint64(entry) * uint64(count); offset > size || length > size-offset || entry < 56 {
			return errCutShort
		}
		for i := range uint64(count) {
			at, length := part(image[offset+i*uint64(entry):][:entry])
			if at > size || length > size-at {
				return errCutShort
			}
		}
		return nil
	}
	if err := table(word.Uint64(image[0x20:]), word.Uint16(image[0x36:]), word.Uint16(image[0x38:]), func(head []byte) (uint64, uint64) {
		return word.Uint64(head[0x08:]), word.Uint64(head[0x20:])
	}); err != nil {
		return err
	}
	return table(word.Uint64(image[0x28:]), word.Uint16(image[0x3a:]), word.Uint16(image[0x3c:]), func(head []byte) (uint64, uint64) {
		kind := elf.SectionType(word.Uint32(head[0x04:]))
		if kind == elf.SHT_NOBITS || kind >= elf.SHT_LOPROC { // the vendor's own kinds may take no space in the file
			return 0, 0
		}
		return word.Uint64(head[0x18:]), word.Uint64(head[0x20:])
	})
}

// ptxEntries lists the kernels of PTX in the order of the file, with how many parameters each takes.
func ptxEntries(m *ptx.Module) (names []string, parameters map[string]int) {
	parameters = make(map[string]int)
	for _, id := range m.Entries() {
		f := &m.Functions[id]
		names = append(names, f.Name)
		parameters[f.Name] = len(f.Params)
	}
	return names, parameters
}

// ptxTarget returns the target that PTX names, or "".
func ptxTarget(image []byte) string {
	m, err := ptx.Head(string(image))
	if err != nil {
		return ""
	}
	return m.Target
}

// targetNumber returns 90 for sm_90 and sm_90a, and 0 for anything that is not a target.
func targetNumber(target string) int {
	n := 0
	if _, err := fmt.Sscanf(target, "sm_%d", &n); err != nil {
		return 0
	}
	return n
}

// writableGlobalsOfCubin warns about the sections that hold __device__ variables.
func writableGlobalsOfCubin(module string, cubin []byte) []string {
	file, err := elf.NewFile(bytes.NewReader(cubin))
	if err != nil {
		return nil
	}
	for _, section := range file.Sections {
		if (section.Name == ".nv.global" || section.Name == ".nv.global.init") && section.Size > 0 {
			return []string{fmt.Sprintf("module %s has writable globals (%d bytes); kernels that use them depend on each other in ways that no buffer shows",
				module, section.Size)}
		}
	}
	return nil
}
