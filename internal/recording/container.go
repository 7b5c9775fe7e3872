// The layout of a recording: a row of sections with checksums, and an index at the end. Without the index, as in a file that was cut, the
// sections are found one after the other.
//
// A number that says how large something is unpacked is limited by the bytes that are there: at most packing times as many.

package recording

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	recordingMagic   = "DAGRUNR1"
	plannedMagic     = "DAGRUNG1" // of the file of a planned graph
	recordingVersion = 1
	recordingHeader  = 16 // magic, version, zero

	sectionMagic  = "SECT"
	sectionHeader = 48
	endMagic      = "DAGRUNRE"
	endBytes      = 16 // offset of the index, magic

	// packing is how much larger than in the file a section may be in memory. The writer appends zeros to what it compressed better.
	packing = 64
)

type sectionKind uint32

const (
	sectionMeta    sectionKind = 1 + iota // JSON, see Meta
	sectionProcess                        // header of a part
	sectionRecords                        // records of the process before, as differences
	sectionBlob                           // code or contents, by hash and size
	sectionIndex                          // offsets of all sections before
)

const (
	methodStored = iota
	methodDeflate
)

// section is the header of a section. What it holds follows, then zeros up to a multiple of 8.
type section struct {
	kind          sectionKind
	method        uint32
	stored, bytes uint64 // in the file and unpacked
	hash          uint64 // of a blob
	sum           uint32 // of what is stored

	at int64 // of the header in the file
}

var sums = crc32.MakeTable(crc32.Castagnoli)

func (s *section) header() []byte {
	b := make([]byte, 0, sectionHeader)
	b = append(b, sectionMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(s.kind))
	b = binary.LittleEndian.AppendUint32(b, s.method)
	b = binary.LittleEndian.AppendUint32(b, s.sum)
	b = binary.LittleEndian.AppendUint64(b, s.stored)
	b = binary.LittleEndian.AppendUint64(b, s.bytes)
	b = binary.LittleEndian.AppendUint64(b, s.hash)
	return binary.LittleEndian.AppendUint64(b, uint64(crc32.Checksum(b, sums)))
}

// sectionAt reads the header of a section. Short tells that the file ends before the section does.
func sectionAt(file []byte, at uint64) (s section, short bool, wrong string) {
	if at > uint64(len(file)) || uint64(len(file))-at < sectionHeader {
		return s, true, "the file ends where a section should begin"
	}
	b := file[at:]
	if string(b[:4]) != sectionMagic {
		return s, false, fmt.Sprintf("a section begins with %q instead of %q", b[:4], sectionMagic)
	}
	if got := uint64(crc32.Checksum(b[:40], sums)); got != word(b, 5) {
		return s, false, fmt.Sprintf("the header of a section has the checksum %08x instead of %08x", got, word(b, 5))
	}
	s = section{sectionKind(half(b, 1)), half(b, 2), word(b, 2), word(b, 3), word(b, 4), half(b, 3), int64(at)}
	switch {
	case s.stored > uint64(len(b)-sectionHeader):
		return s, true, fmt.Sprintf("a section of %d bytes, where %d are left", s.stored, len(b)-sectionHeader)
	case s.method > methodDeflate:
		return s, false, fmt.Sprintf("a section is packed by method %d, which this dagrun does not know", s.method)
	case s.method == methodStored && s.bytes != s.stored:
		return s, false, fmt.Sprintf("a section of %d bytes that are %d unpacked, though it is not packed", s.stored, s.bytes)
	case s.bytes/packing > s.stored:
		return s, false, fmt.Sprintf("a section of %d bytes is said to have %d unpacked; more than %d times as many are not allowed", s.stored, s.bytes, packing)
	}
	return s, false, ""
}

// end is where the section ends, zeros included.
func (s *section) end() uint64 { return (uint64(s.at) + sectionHeader + s.stored + 7) &^ 7 }

// unpack returns what the section holds. What was not packed aliases the file.
func (s *section) unpack(file []byte) (out []byte, wrong string) {
	from := uint64(s.at) + sectionHeader
	b := file[from : from+s.stored : from+s.stored]
	if got := crc32.Checksum(b, sums); got != s.sum {
		return nil, fmt.Sprintf("a section has the checksum %08x instead of %08x: the file was changed or damaged", got, s.sum)
	}
	if s.method == methodStored {
		return b, ""
	}
	out = make([]byte, s.bytes)
	unpacker := flate.NewReader(bytes.NewReader(b))
	if n, err := io.ReadFull(unpacker, out); err != nil {
		return nil, fmt.Sprintf("a section cannot be unpacked behind its byte %d of %d: %v", n, s.bytes, err)
	}
	if n, _ := unpacker.Read(make([]byte, 1)); n > 0 {
		return nil, fmt.Sprintf("a section has more than the %d bytes that it is said to have", s.bytes)
	}
	return out, ""
}

// differences replaces the words and the tail of each record by their difference from those of the record of the same kind and size before it:
// calls that repeat pack many times better, and unpack faster. The bytes are whole records.
func differences(out, records []byte) {
	follow(records, func(at, before, size int) {
		copy(out[at:at+frameBytes], records[at:])
		for k := frameBytes; k < size; k += 8 {
			value := word(records[at+k:], 0)
			if before >= 0 {
				value -= word(records[before+k:], 0)
			}
			binary.LittleEndian.PutUint64(out[at+k:], value)
		}
	})
}

// sumUp undoes differences, in place. What is no record ends it; decoding then says so.
func sumUp(records []byte) {
	follow(records, func(at, before, size int) {
		if before < 0 {
			return
		}
		now, last := records[at:at+size], records[before:before+size]
		for k := frameBytes; k < size; k += 8 {
			binary.LittleEndian.PutUint64(now[k:], word(now[k:], 0)+word(last[k:], 0))
		}
	})
}

// follow calls visit for each record with the offset of the last record of the same kind and size, or -1.
func follow(records []byte, visit func(at, before, size int)) {
	var last [256]struct {
		known bool
		f     frame
		at    int
	}
	for at := 0; at < len(records); {
		f, _, wrong := frameOf(records[at:])
		if wrong != "" {
			return
		}
		l := &last[(uint32(f.kind)*31+f.size/8)%uint32(len(last))]
		before := -1
		if l.known && l.f.kind == f.kind && l.f.size == f.size {
			before = l.at
		}
		visit(at, before, int(f.size))
		l.known, l.f, l.at = true, f, at
		at += int(f.size)
	}
}
