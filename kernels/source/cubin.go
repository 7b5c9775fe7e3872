// The kernels of compiled code: cubins (NVIDIA's ELF files) and fat binaries (cubins and PTX in one file).

package source

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

const (
	machineCUDA    = 190
	cudaEntry      = 0x10 // in a symbol's st_other: this is a kernel
	infoSized      = 4    // a record of .nv.info with a size and that many bytes
	paramInfo      = 0x17 // its attribute: one parameter of a kernel
	paramInfoLarge = 0x45 // the same of kernels with more than 4 KiB of parameters
	registerInfo   = 0x2f // its attribute in .nv.info: a kernel's symbol, and its registers
	fatbinMagic    = 0xba55ed50
	fatbinPTX      = 1
	fatbinELF      = 2
	fatbinPacked   = 0x2000 // LZ4
	fatbinPackedZ  = 0x8000 // zstd
	fatbinMostSize = 1 << 30
)

// parseCubin lists the kernels of a cubin with the sizes of their parameters.
func parseCubin(code []byte) (entries []sourceKernel, globals []string, err error) {
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
				k := sourceKernel{name: s.Name, registers: registers[at+1]} // the first symbol is left out
				if info := f.Section(".nv.info." + s.Name); info != nil {
					if data, err := info.Data(); err == nil {
						k.params = cubinParams(data, f.ByteOrder)
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
	sort.Slice(entries, func(i, j int) bool { return entries[i].name < entries[j].name })
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
	entries, _, err := parseCubin(code)
	if err != nil {
		return nil
	}
	counts := map[string]int{}
	for _, k := range entries {
		if k.params != nil {
			counts[k.name] = len(k.params)
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

// cubinParams reads the sizes of a kernel's parameters: nil if one is missing.
func cubinParams(data []byte, order binary.ByteOrder) []dag.KernelParam {
	sizes := map[int]int32{}
	eachRecord(data, order, func(attribute byte, data []byte) {
		switch {
		case attribute == paramInfo && len(data) >= 12:
			sizes[int(order.Uint16(data[4:]))] = int32(order.Uint32(data[8:]) >> 18)
		case attribute == paramInfoLarge && len(data) >= 12:
			sizes[int(order.Uint16(data[4:]))] = int32(order.Uint16(data[8:]))
		}
	})
	params := make([]dag.KernelParam, len(sizes))
	for i := range params {
		size, known := sizes[i]
		if !known {
			return nil
		}
		params[i].Size = size
	}
	return params
}

// parseFatbin reads the first cubin that it can read, or else the first PTX.
func parseFatbin(code []byte) (entries []sourceKernel, globals []string, err error) {
	u16 := func(at uint64) uint64 { return uint64(binary.LittleEndian.Uint16(code[at:])) }
	u32 := func(at uint64) uint64 { return uint64(binary.LittleEndian.Uint32(code[at:])) }
	u64 := func(at uint64) uint64 { return binary.LittleEndian.Uint64(code[at:]) }
	if len(code) < 16 || u32(0) != fatbinMagic {
		return nil, nil, errors.New("not a fat binary")
	}
	end := min(u16(6)+u64(8), uint64(len(code)))
	packed := false
	for at := u16(6); at+64 <= end; {
		kind, header, size, flags := u16(at), u32(at+4), u64(at+8), u64(at+40)
		if header < 64 || size > uint64(len(code)) || at+header+size > uint64(len(code)) {
			return nil, nil, errors.New("a damaged fat binary")
		}
		body := code[at+header : at+header+size]
		at += header + size
		switch {
		case flags&fatbinPackedZ != 0:
			packed = true
			continue
		case flags&fatbinPacked != 0:
			whole := u64(at - header - size + 56)
			if length := u32(at - header - size + 16); length <= size {
				body = body[:length]
			}
			if body, err = unpackLZ4(body, whole); err != nil {
				return nil, nil, err
			}
		}
		switch kind {
		case fatbinELF:
			return parseCubin(body)
		case fatbinPTX:
			if entries == nil {
				if entries, globals, err = parsePTX(string(bytes.TrimRight(body, "\x00"))); err != nil {
					return nil, nil, fmt.Errorf("its PTX: %w", err)
				}
				forgetCode(entries)
			}
		}
	}
	if entries == nil && packed {
		return nil, nil, errors.New("a fat binary packed with zstd, whose kernels cannot be listed; build it with --compress-mode=none, or as a cubin")
	}
	return entries, globals, nil
}

// forgetCode drops what the PTX of a fat binary shows, because the driver may load other code of the file.
func forgetCode(entries []sourceKernel) {
	for i := range entries {
		entries[i].floatAtomics = ""
		for k := range entries[i].params {
			entries[i].params[k].Code = dag.CodeUse{}
		}
	}
}

// unpackLZ4 decompresses one block.
func unpackLZ4(in []byte, size uint64) ([]byte, error) {
	damaged := errors.New("a damaged fat binary: its compressed code is damaged")
	if size > fatbinMostSize {
		return nil, damaged
	}
	out := make([]byte, 0, size)
	length := func(n int) (int, bool) {
		if n < 15 {
			return n, true
		}
		for len(in) > 0 {
			b := int(in[0])
			in = in[1:]
			if n += b; b < 255 {
				return n, true
			}
		}
		return 0, false
	}
	for len(in) > 0 {
		mark := in[0]
		in = in[1:]
		n, ok := length(int(mark >> 4))
		if !ok || n > len(in) || uint64(len(out)+n) > size {
			return nil, damaged
		}
		out, in = append(out, in[:n]...), in[n:]
		if len(in) == 0 || uint64(len(out)) == size {
			break
		}
		if len(in) < 2 {
			return nil, damaged
		}
		back := int(in[0]) | int(in[1])<<8
		in = in[2:]
		if n, ok = length(int(mark & 15)); !ok || back == 0 || back > len(out) || uint64(len(out)+n+4) > size {
			return nil, damaged
		}
		for range n + 4 {
			out = append(out, out[len(out)-back])
		}
	}
	if uint64(len(out)) != size {
		return nil, damaged
	}
	return out, nil
}
