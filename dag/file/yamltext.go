// The text of a pipeline file: encoding, lines and positions, and the errors of the YAML parser with their right places.

package file

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// MaxBytes is how large a pipeline file may be.
const MaxBytes = 64 << 20

// maxNesting is how deep lists and mappings may stand in each other. The format itself needs no more than about ten.
const maxNesting = 100

// text is the source of a file with its lines.
type text struct {
	source []byte
	starts []int32 // of each line, in bytes
}

// problem is a mistake in the text as such.
type problem struct {
	pos     dag.Pos
	message string
	hint    string
}

// newText checks the encoding and finds the lines. Lines end as YAML says: LF, CRLF or CR.
func newText(source []byte) (*text, *problem) {
	if len(source) > MaxBytes {
		return &text{}, &problem{message: fmt.Sprintf("file of %d bytes is over the limit of %s", len(source), words.Bytes(MaxBytes))}
	}
	if bytes.HasPrefix(source, []byte{0xff, 0xfe}) || bytes.HasPrefix(source, []byte{0xfe, 0xff}) {
		return &text{}, &problem{message: "file is UTF-16", hint: "save it as UTF-8"}
	}
	source = bytes.TrimPrefix(source, []byte("\xef\xbb\xbf"))
	if zero := bytes.IndexByte(source[:min(len(source), 1<<13)], 0); zero >= 0 {
		return &text{}, &problem{message: fmt.Sprintf("byte %d is zero: the file is binary, or not UTF-8", zero)}
	}
	t := &text{source: source, starts: append(make([]int32, 0, 1+bytes.Count(source, []byte{'\n'})), 0)}
	for i := 0; i < len(source); i++ {
		c := source[i]
		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(source[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				return t, &problem{pos: t.position(i), message: fmt.Sprintf("byte 0x%02x is not UTF-8", c), hint: "save the file as UTF-8"}
			case r == '\u0085' || r == '\u2028' || r == '\u2029' || r < 0xa0 || r == '\ufeff' || r == '\ufffe' || r == '\uffff':
				return t, &problem{pos: t.position(i), message: fmt.Sprintf("character %U is not allowed in a pipeline file", r)}
			}
			i += size - 1
		case c == '\n' || c == '\r' && (i+1 == len(source) || source[i+1] != '\n'):
			t.starts = append(t.starts, int32(i+1))
		case c < ' ' && c != '\t' && c != '\r' || c == 0x7f:
			return t, &problem{pos: t.position(i), message: fmt.Sprintf("control character 0x%02x is not allowed in a pipeline file", c)}
		}
	}
	return t, nil
}

// position of a byte. The line it is on must be known already.
func (t *text) position(at int) dag.Pos {
	lo, hi := 0, len(t.starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; int(t.starts[mid]) <= at {
			lo = mid
		} else {
			hi = mid
		}
	}
	return dag.Pos{Line: int32(lo + 1), Column: int32(1 + utf8.RuneCount(t.source[t.starts[lo]:at]))}
}

// line returns a line without its end, or the beginning of a very long one; "" where there is none. Lines count from 1.
func (t *text) line(n int32) string {
	if n < 1 || int(n) > len(t.starts) {
		return ""
	}
	const longest = 1 << 14 // more than is ever shown
	line := t.source[t.starts[n-1]:min(len(t.source), int(t.starts[n-1])+longest)]
	if end := bytes.IndexAny(line, "\r\n"); end >= 0 {
		line = line[:end]
	}
	return string(line)
}

// offset returns the byte at a position, or -1.
func (t *text) offset(pos dag.Pos) int {
	if pos.Line < 1 || int(pos.Line) > len(t.starts) {
		return -1
	}
	at := int(t.starts[pos.Line-1])
	for column := pos.Column; column > 1; column-- {
		if at >= len(t.source) || t.source[at] == '\n' {
			return -1
		}
		_, size := utf8.DecodeRune(t.source[at:])
		at += size
	}
	return at
}

// position of a YAML node.
func position(n *yaml.Node) dag.Pos { return dag.Pos{Line: int32(n.Line), Column: int32(n.Column)} }
