// The layout of a part, as format.h describes it: its header, its blocks, and the frame that every record has. A test compares the numbers
// here with format.h.

package recording

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

const (
	formatMagic   = "KAGRECE1"
	formatVersion = 2
	blockBytes    = 65536
	blockMagic    = "BLOK"

	headerBytes = 72 // of struct file_header
	blockHeader = 24 // of struct block_header
	frameBytes  = 16 // of struct record_header
	nodeBytes   = 24 // of struct graph_node
	edgeBytes   = 16 // of struct graph_edge
	runBytes    = 16 // of struct access_run

	modeMeasured = 1
	modeHost     = 4
	commonWords  = 6 // with which every call begins

	conditionalNode = 13 // CUgraphNodeType
)

// wrongVersion says that a part was written by another version of the recorder, "" if this dagrun reads it. Version 1 has neither
// code nor contents, and says of no function which library it is of.
func wrongVersion(version uint32) string {
	if version == formatVersion || version == formatVersion-1 {
		return ""
	}
	return fmt.Sprintf("version %d of the format; this dagrun reads versions %d and %d", version, formatVersion-1, formatVersion)
}

// Notes of the recorder.
const (
	NoteCut = 1 + iota
	NoteRefused
	NoteUnmeasured
	NoteUncovered
	NoteAllocator
	NoteText
	NoteGraph // what the Python package tried with a graph: JSON, and the sequence at which it was done
	NoteContents
	NoteTable // a library got a table of undocumented functions, other than the CUDA runtime
)

// shape is what a record of a kind must have at least. Words and bytes behind these are of later versions.
type shape struct {
	name  string
	words int // behind the common words of calls
}

// shapes are the kinds that this version knows, by number.
var shapes = [...]shape{
	Thread: {"thread", 2}, Note: {"note", 2}, Place: {"place", 1}, Image: {"image", 3}, Code: {"code", 3}, Module: {"module", 5}, Function: {"function", 7},
	Graph: {"graph", 5}, Access: {"access", 4}, Tensor: {"tensor", 7}, TensorTrace: {"tensor trace", 1}, ProcessInfo: {"process", 0}, Contents: {"contents", 4},
	Buffer: {"buffer", 4}, Node: {"node", 2}, Pointer: {"pointer", 5}, Use: {"use", 7},

	Launch: {"launch", 13}, Copy: {"copy", 16}, Set: {"set", 9}, EventRecord: {"record", 4}, StreamWait: {"wait", 4}, EventSync: {"event sync", 1},
	EventQuery: {"event query", 1}, StreamSync: {"stream sync", 1}, StreamQuery: {"stream query", 1}, ContextSync: {"context sync", 0},
	EventCreate: {"event create", 2}, EventDestroy: {"event destroy", 1}, StreamCreate: {"stream create", 3}, StreamDestroy: {"stream destroy", 1},
	Alloc: {"alloc", 7}, Free: {"free", 4}, HostFunction: {"host function", 4}, MemoryWait: {"memory wait", 6}, MemoryWrite: {"memory write", 6},
	CaptureBegin: {"capture begin", 2}, CaptureEnd: {"capture end", 2}, Instantiate: {"instantiate", 2}, Update: {"update", 3}, GraphLaunch: {"graph launch", 4},
	GraphDestroy: {"graph destroy", 1}, ExecDestroy: {"exec destroy", 1}, Context: {"context", 3}, Pool: {"pool", 3}, TensorMap: {"tensor map", 3},
	Prefetch: {"prefetch", 4}, Unload: {"unload", 1}, Peer: {"peer", 2}, Uncovered: {"uncovered", 0}, NodeAccess: {"node access", 11}, Green: {"green", 4},
	HostAccess: {"host access", 4},
}

// known tells whether this version knows a kind, and call whether it is a call of the driver.
func (k Kind) known() bool { return int(k) < len(shapes) && shapes[k].name != "" }
func (k Kind) call() bool  { return k >= Launch }

// Words is how many words a call of this kind has at least, behind those that all calls have.
func (k Kind) Words() int {
	if !k.known() {
		return 0
	}
	return shapes[k].words
}

// String is the kind's name as in format.h, without its prefix.
func (k Kind) String() string {
	if !k.known() {
		return fmt.Sprintf("kind %d", uint16(k))
	}
	return shapes[k].name
}

// frame is the header of a record.
type frame struct {
	size, tail, thread uint32
	kind               Kind
	words              uint16
}

// frameOf reads the header of the record with which b begins. Short tells that b ends before the record does; wrong says what does not agree.
func frameOf(b []byte) (f frame, short bool, wrong string) {
	if len(b) < frameBytes {
		return f, true, fmt.Sprintf("%d bytes are left, and a record has at least %d", len(b), frameBytes)
	}
	f = frame{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:]),
		Kind(binary.LittleEndian.Uint16(b[4:])), binary.LittleEndian.Uint16(b[6:])}
	need := (frameBytes + 8*uint64(f.words) + uint64(f.tail) + 7) &^ 7
	if uint64(f.size) != need {
		return f, false, fmt.Sprintf("a record (%s) of %d bytes, whose %d words and %d more bytes make %d", f.kind, f.size, f.words, f.tail, need)
	}
	if uint64(len(b)) < need {
		return f, true, fmt.Sprintf("a record (%s) of %d bytes, where %d are left", f.kind, f.size, len(b))
	}
	return f, false, ""
}

// Encode returns the record as it is in a file.
func (r *Record) Encode() []byte {
	size := (frameBytes + 8*len(r.Words) + len(r.Tail) + 7) &^ 7
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, size), uint32(size))
	b = binary.LittleEndian.AppendUint16(b, uint16(r.Kind))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.Words)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Tail)))
	b = binary.LittleEndian.AppendUint32(b, r.Thread)
	for _, w := range r.Words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return append(append(b, r.Tail...), make([]byte, size-frameBytes-8*len(r.Words)-len(r.Tail))...)
}

// hostOrder tells that words of the file are words of this machine.
var hostOrder = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// wordsOf returns the words in b: b itself where the machine allows that.
func wordsOf(b []byte) []uint64 {
	n := len(b) / 8
	if n == 0 {
		return nil
	}
	if at := unsafe.Pointer(unsafe.SliceData(b)); hostOrder && uintptr(at)%8 == 0 {
		return unsafe.Slice((*uint64)(at), n)
	}
	words := make([]uint64, n)
	for k := range words {
		words[k] = binary.LittleEndian.Uint64(b[8*k:])
	}
	return words
}

func word(b []byte, k int) uint64 { return binary.LittleEndian.Uint64(b[8*k:]) }
func half(b []byte, k int) uint32 { return binary.LittleEndian.Uint32(b[4*k:]) }

// Error is what is wrong with a file, and where.
type Error struct {
	File   string
	Offset int64 // from the beginning of the file
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, e.Text) }
