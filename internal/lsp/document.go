// Documents as an editor holds them: their text, its lines, and positions in UTF-16 code units.

package lsp

import (
	"bytes"
	"fmt"
	"sort"
	"unicode/utf8"
)

// Position is a place in a document. Both count from 0; Character counts UTF-16 code units.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Range is what lies from Start up to, not including, End.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Change replaces a range of a document, or all of it where Range is nil.
type Change struct {
	Range *Range `json:"range"`
	Text  string `json:"text"`
}

// Text is a text with its lines. Nothing changes it: an edit makes another.
type Text struct {
	Source []byte
	starts []int // of each line, in bytes
}

// NewText finds the lines of a text. They end in LF, CRLF or CR, as the protocol says.
func NewText(source []byte) *Text {
	t := &Text{Source: source, starts: append(make([]int, 0, 1+bytes.Count(source, []byte{'\n'})), 0)}
	for i, c := range source {
		if c == '\n' || c == '\r' && (i+1 == len(source) || source[i+1] != '\n') {
			t.starts = append(t.starts, i+1)
		}
	}
	return t
}

// Lines is how many lines there are; an empty text has one.
func (t *Text) Lines() int { return len(t.starts) }

// Line returns where a line begins and where it ends, without its line break. Lines count from 0, and line must be one of them.
func (t *Text) Line(line int) (start, end int) {
	start, end = t.starts[line], len(t.Source)
	if line+1 < len(t.starts) {
		end = t.starts[line+1]
	}
	for end > start && (t.Source[end-1] == '\n' || t.Source[end-1] == '\r') {
		end--
	}
	return start, end
}

// Offset returns the byte at a position. As the protocol says, a character behind the end of a line means that end; so does a line
// behind the last one for the text. A position within a character means its beginning.
func (t *Text) Offset(p Position) int {
	if p.Line < 0 {
		return 0
	}
	if p.Line >= len(t.starts) {
		return len(t.Source)
	}
	at, end := t.Line(p.Line)
	for units := p.Character; units > 0 && at < end; {
		r, size := utf8.DecodeRune(t.Source[at:end])
		if units -= width(r); units < 0 {
			break
		}
		at += size
	}
	return at
}

// Position returns the position of a byte.
func (t *Text) Position(offset int) Position {
	offset = min(max(offset, 0), len(t.Source))
	line := sort.SearchInts(t.starts, offset+1) - 1
	units := 0
	for at := t.starts[line]; at < offset; {
		r, size := utf8.DecodeRune(t.Source[at:])
		at += size
		units += width(r)
	}
	return Position{line, units}
}

// Range returns the positions of two bytes.
func (t *Text) Range(from, to int) Range { return Range{t.Position(from), t.Position(to)} }

// All is the range of the whole text.
func (t *Text) All() Range { return t.Range(0, len(t.Source)) }

// width is how many UTF-16 code units a character takes.
func width(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// Apply makes changes one after the other.
func (t *Text) Apply(changes []Change) (*Text, error) {
	for _, c := range changes {
		if c.Range == nil {
			t = NewText([]byte(c.Text))
			continue
		}
		from, to := t.Offset(c.Range.Start), t.Offset(c.Range.End)
		if from > to {
			return nil, &Error{CodeInvalidParams, fmt.Sprintf("a change ends on line %d before it begins on line %d", c.Range.End.Line, c.Range.Start.Line)}
		}
		edited := make([]byte, 0, len(t.Source)-(to-from)+len(c.Text))
		edited = append(append(append(edited, t.Source[:from]...), c.Text...), t.Source[to:]...)
		t = NewText(edited)
	}
	return t, nil
}
