// Reading the file that one process wrote while it ran. It may have been cut anywhere, because the process was killed or the disk was full.

package recording

import (
	"encoding/binary"
	"fmt"
)

// ReadPart reads the file of one process. What was written until the process ended is there also where it was killed; then Cut is set.
func ReadPart(name string) (*Process, error) {
	m, err := openFile(name)
	if err != nil {
		return nil, err
	}
	p, err := ParsePart(name, m.bytes)
	if err != nil {
		m.close()
		return nil, err
	}
	p.held = m
	return p, nil
}

// ParsePart reads the bytes of such a file. They must not be changed afterwards. The name is for errors.
func ParsePart(name string, b []byte) (*Process, error) {
	h, pieces, err := splitPart(name, b)
	if err != nil {
		return nil, err
	}
	p := h.process()
	err = decode(p, pieces, func(at int64, text string) error { return &Error{name, at, text} })
	if err != nil {
		return nil, err
	}
	return p, nil
}

// header is the header of a part.
type header struct {
	version, id, parent, mode                  uint32
	startUnix, startClock, reserved, lost, end uint64
	cut                                        bool // the file is shorter than it was, or was not ended
}

func headerOf(b []byte) header {
	number := binary.LittleEndian.Uint32
	return header{number(b[8:]), number(b[12:]), number(b[16:]), number(b[20:]), word(b, 3), word(b, 4), word(b, 5), word(b, 6), word(b, 7), word(b, 7) != 1}
}

func (h *header) process() *Process {
	return &Process{ID: h.id, Parent: h.parent, Measured: h.mode&modeMeasured != 0, Host: h.mode&modeHost != 0, Cut: h.cut || h.lost > 0, Lost: h.lost,
		StartUnix: int64(h.startUnix), StartClock: int64(h.startClock)}
}

// beginsPart tells whether b is the beginning of a part, or the part of a process that ended before it had written a header.
func beginsPart(b []byte) bool {
	n := min(len(b), len(formatMagic))
	return string(b[:n]) == formatMagic[:n] || string(b[:n]) == "\x00\x00\x00\x00\x00\x00\x00\x00"[:n]
}

// splitPart finds the records in a part: those of each run of blocks.
func splitPart(name string, b []byte) (h header, pieces []piece, err error) {
	wrong := func(at int, format string, arguments ...any) (header, []piece, error) {
		return header{}, nil, &Error{name, int64(at), fmt.Sprintf(format, arguments...)}
	}
	if !beginsPart(b) {
		return wrong(0, "this is not a recording of a process: it does not begin with %s", formatMagic)
	}
	if len(b) < headerBytes || b[0] == 0 { // the recorder writes the magic number when the rest is there
		return header{cut: true}, nil, nil
	}
	h = headerOf(b)
	if text := wrongVersion(h.version); text != "" {
		return wrong(8, "%s", text)
	}
	if h.reserved%blockBytes != 0 || h.reserved == 0 {
		return wrong(40, "%d bytes are said to be used, which are no whole blocks of %d", h.reserved, blockBytes)
	}
	size := uint64(len(b))
	h.cut = h.cut || size < h.reserved
	end := min(size, h.reserved)
	for at := uint64(blockBytes); at < end; {
		block := b[at:end]
		if len(block) < blockHeader {
			break // the file is cut here
		}
		magic, blocks, used := string(block[:4]), uint64(binary.LittleEndian.Uint32(block[8:])), word(block, 2)
		if magic == "\x00\x00\x00\x00" { // given to a thread that was killed before it wrote
			h.cut = true
			at += blockBytes
			continue
		}
		run := blocks * blockBytes
		switch {
		case magic != blockMagic:
			return wrong(int(at), "a block begins with %q instead of %q", magic, blockMagic)
		case blocks == 0 || run > h.reserved-at:
			return wrong(int(at+8), "a run of %d blocks, where %d are left", blocks, (h.reserved-at)/blockBytes)
		case used < blockHeader || used > run:
			return wrong(int(at+16), "%d bytes are said to be complete in a run of %d", used, run)
		}
		there := min(used, uint64(len(block)))
		pieces = append(pieces, piece{block[blockHeader:there:there], int64(at + blockHeader), there < used})
		at += run
	}
	return h, pieces, nil
}
