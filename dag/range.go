// Ids of nodes and buffers, ranges of bytes, and accesses of them.

package dag

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/words"
)

// NodeID is a node: its place in the order of declaration, from 0.
type NodeID int32

// BufferID is a buffer: its place in the order of declaration, from 0.
type BufferID int32

// Range is a half-open range of bytes of a buffer, or a tile: of each row of its first dimension the same columns. Make one
// with Builder.Tile: a range has a Pitch only where it has several rows and some bytes between them.
type Range struct {
	Buffer BufferID
	Pitch  int32 // of a tile: the bytes from one row to the next, which are those of a row of the buffer; otherwise 0
	Lo, Hi int64 // of a tile: from the first byte of its first row to the end of its last row
}

// Tile reports whether the range has bytes between its rows that are not part of it.
func (r Range) Tile() bool { return r.Pitch != 0 }

// Box returns how many rows a tile has, and the bytes of each. Any other range is one row.
func (r Range) Box() (rows, width int64) {
	if r.Pitch <= 0 || r.Hi <= r.Lo {
		return 1, r.Hi - r.Lo
	}
	pitch := int64(r.Pitch)
	rows = (r.Hi-1)/pitch - r.Lo/pitch + 1
	return rows, r.Hi - r.Lo - (rows-1)*pitch
}

// Mode says what a node does with a byte range.
type Mode uint8

const (
	Read      Mode = 1
	Write     Mode = 2 // every byte is written before it is read
	ReadWrite Mode = 3
	Untouched Mode = 4 // of an argument: no thread of the launch reads or writes it, so it is no access
)

var modeNames = []string{"none", "in", "out", "inout", "unused"}

// String returns the word that a pipeline file uses.
func (m Mode) String() string { return words.Name(m, "Mode", modeNames) }

// Access is one node's use of a byte range of a buffer.
type Access struct {
	Range
	Mode Mode
}

// In is a node's reading of the range.
func (r Range) In() Access { return Access{r, Read} }

// Out is a node's writing of the range: every byte is written before it is read.
func (r Range) Out() Access { return Access{r, Write} }

// InOut is a node's reading and writing of the range.
func (r Range) InOut() Access { return Access{r, ReadWrite} }

// Unused is the range as an argument that no thread of a launch reads or writes.
func (r Range) Unused() Access { return Access{r, Untouched} }

// Bytes returns the size of the range: of a tile that of all its rows.
func (r Range) Bytes() int64 {
	rows, width := r.Box()
	return rows * width
}

// Pos is a place in a pipeline file; the zero Pos is "not from a file". Columns count from 1, in characters.
type Pos struct{ Line, Column int32 }

// OnLine names a place of the same file, where there is one.
func (pos Pos) OnLine() string {
	if pos.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d)", pos.Line)
}
