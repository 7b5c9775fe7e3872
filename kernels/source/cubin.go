// The kernels of compiled code: cubins (NVIDIA's ELF files) and fat binaries (cubins and PTX in one file).

package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/launch"
)

const (
	fatbinMagic    = 0xba55ed50
	fatbinPTX      = 1
	fatbinELF      = 2
	fatbinPacked   = 0x2000 // LZ4
	fatbinPackedZ  = 0x8000 // zstd
	fatbinMostSize = 1 << 30
)

// parseCubin lists the kernels of a cubin with the sizes of their parameters.
func parseCubin(code []byte) (entries []sourceKernel, globals []string, err error) {
	found, globals, err := launch.ReadCubin(code)
	for _, k := range found {
		entry := sourceKernel{name: k.Name, registers: k.Registers}
		if k.Sizes != nil {
			entry.params = make([]dag.KernelParam, len(k.Sizes))
		}
		for i, size := range k.Sizes {
			entry.params[i].Size = size
		}
		entries = append(entries, entry)
	}
	return entries, globals, err
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
