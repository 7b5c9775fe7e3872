// The kernels of cubins, NVIDIA's ELF files.

package launch

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"
)

const (
	machineCUDA    = 190
	cudaEntry      = 0x10 // in a symbol's st_other: this is a kernel
	infoSized      = 4    // a record of .nv.info with a size and that many bytes
	paramInfo      = 0x17 // its attribute: one parameter of a kernel
	paramInfoLarge = 0x45 // the same of kernels with more than 4 KiB of parameters
	registerInfo   = 0x2f // its attribute in .nv.info: a kernel's symbol, and its registers
)

// CubinKernel is what a cubin says of one of its kernels.
type CubinKernel struct {
	Name      string
	Registers int     // of a thread; 0 if it does not say
	Sizes     []int32 // of its parameters; nil if it does not list them all
}

// ReadCubin lists the kernels of a cubin and its variables, both by name.
func ReadCubin(code []byte) (entries []CubinKernel, globals []string, err error) {
	defer func() {
		if r := recover(); r != nil { // debug/elf may panic on maliciously damaged files
			err = fmt.Errorf("a damaged cubin: %v", r)
		}
	}()
	f, err := elf.NewFile(bytes.NewReader(withELFVersion(code)))
	if err != nil {
		return nil, nil, fmt.Errorf("not a cubin: %w", err)
	}
	if f.Machine != machineCUDA {
		return nil, nil, fmt.Errorf("not a cubin: an ELF file for %v", f.Machine)
	}
	symbols, err := f.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, nil, fmt.Errorf("a damaged cubin: %w", err)
	}
	registers := map[int]int{}
	if info := f.Section(".nv.info"); info != nil {
		if data, err := info.Data(); err == nil {
			eachRecord(data, f.ByteOrder, func(attribute byte, data []byte) {
				if attribute == registerInfo && len(data) >= 8 {
					registers[int(f.ByteOrder.Uint32(data))] = int(f.ByteOrder.Uint32(data[4:]))
				}
			})
		}
	}
	for at, s := range symbols {
		section := ""
		if int(s.Section) < len(f.Sections) {
			section = f.Sections[s.Section].Name
		}
		switch elf.ST_TYPE(s.Info) {
		case elf.STT_FUNC:
			if elf.ST_BIND(s.Info) == elf.STB_GLOBAL && s.Other&cudaEntry != 0 && strings.HasPrefix(section, ".text.") {
				k := CubinKernel{Name: s.Name, Registers: registers[at+1]} // the first symbol is left out
				if info := f.Section(".nv.info." + s.Name); info != nil {
					if data, err := info.Data(); err == nil {
						k.Sizes = cubinSizes(data, f.ByteOrder)
					}
				}
				entries = append(entries, k)
			}
		case elf.STT_OBJECT:
			if section == ".nv.global" || section == ".nv.global.init" && !strings.HasPrefix(s.Name, "$str") {
				globals = append(globals, s.Name)
			}
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	sort.Strings(globals)
	return entries, globals, nil
}

// withELFVersion returns a file with the version of ELF in its header, where toolkits before CUDA 13 write their own, such as 118. debug/elf refuses others.
func withELFVersion(code []byte) []byte {
	const machineAt, versionAt, end = 18, 20, 24
	if len(code) < end || binary.LittleEndian.Uint16(code[machineAt:]) != machineCUDA {
		return code
	}
	code = bytes.Clone(code)
	binary.LittleEndian.PutUint32(code[versionAt:], uint32(elf.EV_CURRENT))
	return code
}

// CubinParameters tells how many parameters each kernel of a cubin takes; nothing of kernels whose parameters it does not list, or of
// damaged files.
func CubinParameters(code []byte) map[string]int {
	entries, _, err := ReadCubin(code)
	if err != nil {
		return nil
	}
	counts := map[string]int{}
	for _, k := range entries {
		if k.Sizes != nil {
			counts[k.Name] = len(k.Sizes)
		}
	}
	return counts
}

// eachRecord reads records of .nv.info: a format byte, an attribute byte, then a value of two bytes, or a size and so many bytes.
func eachRecord(data []byte, order binary.ByteOrder, visit func(attribute byte, data []byte)) {
	for len(data) >= 4 {
		format, attribute, n := data[0], data[1], int(order.Uint16(data[2:]))
		data = data[4:]
		if format != infoSized {
			continue
		}
		if n > len(data) {
			return
		}
		visit(attribute, data[:n])
		data = data[n:]
	}
}

// cubinSizes reads the sizes of a kernel's parameters: nil if one is missing.
func cubinSizes(data []byte, order binary.ByteOrder) []int32 {
	found := map[int]int32{}
	eachRecord(data, order, func(attribute byte, data []byte) {
		switch {
		case attribute == paramInfo && len(data) >= 12:
			found[int(order.Uint16(data[4:]))] = int32(order.Uint32(data[8:]) >> 18)
		case attribute == paramInfoLarge && len(data) >= 12:
			found[int(order.Uint16(data[4:]))] = int32(order.Uint16(data[8:]))
		}
	})
	sizes := make([]int32, len(found))
	for i := range sizes {
		size, known := found[i]
		if !known {
			return nil
		}
		sizes[i] = size
	}
	return sizes
}
