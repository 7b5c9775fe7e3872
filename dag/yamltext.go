// The text of a pipeline file: encoding, lines and positions, and the errors of the YAML parser with their right places.

package dag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/dagrun/dagrun/internal/words"
)

// MaxFile is how large a pipeline file may be.
const MaxFile = 64 << 20

// maxNesting is how deep lists and mappings may stand in each other. The format itself needs no more than about ten.
const maxNesting = 100

// text is the source of a file with its lines.
type text struct {
	source []byte
	starts []int32 // of each line, in bytes
}

// problem is a mistake in the text as such.
type problem struct {
	pos     Pos
	message string
	hint    string
}

// newText checks the encoding and finds the lines. Lines end as YAML says: LF, CRLF or CR.
func newText(source []byte) (*text, *problem) {
	if len(source) > MaxFile {
		return &text{}, &problem{message: fmt.Sprintf("file of %d bytes is over the limit of %s", len(source), words.Bytes(MaxFile))}
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
func (t *text) position(at int) Pos {
	lo, hi := 0, len(t.starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; int(t.starts[mid]) <= at {
			lo = mid
		} else {
			hi = mid
		}
	}
	return Pos{int32(lo + 1), int32(1 + utf8.RuneCount(t.source[t.starts[lo]:at]))}
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
func (t *text) offset(pos Pos) int {
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

// document reads the one YAML document of the text; nil without a problem where there is nothing in it.
func (t *text) document() (root *yaml.Node, bad *problem) {
	// yaml.v3 panics on some inputs that its own fuzzing has not found.
	defer func() {
		if r := recover(); r != nil {
			root, bad = nil, &problem{pos: Pos{1, 1}, message: fmt.Sprintf("YAML: cannot be read (%v)", r)}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(t.source))
	var first yaml.Node
	if err := decoder.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, t.diagnose(err)
	}
	var second yaml.Node
	err := decoder.Decode(&second)
	switch {
	case err == nil:
		return nil, &problem{pos: t.secondDocument(&second), message: "a second YAML document begins here", hint: "a pipeline file holds one"}
	case !errors.Is(err, io.EOF):
		return nil, t.diagnose(err)
	}
	if first.Kind != yaml.DocumentNode || len(first.Content) == 0 {
		return nil, nil
	}
	return first.Content[0], nil
}

// secondDocument finds the --- in front of a node, which yaml.v3 does not keep.
func (t *text) secondDocument(n *yaml.Node) Pos {
	for line := int32(n.Line); line > 0; line-- {
		if strings.HasPrefix(t.line(line), "---") {
			return Pos{line, 1}
		}
	}
	return Pos{int32(n.Line), int32(n.Column)}
}

// lineOfYAML is where yaml.v3 says that an error is.
var lineOfYAML = regexp.MustCompile(`^line (\d+): `)

// diagnose turns an error of yaml.v3 into one with the right place, as far as that can be found.
func (t *text) diagnose(err error) *problem {
	if found := t.findBroken(); found != nil {
		return found
	}
	message, line := strings.TrimPrefix(err.Error(), "yaml: "), int64(1)
	if m := lineOfYAML.FindStringSubmatch(message); m != nil {
		message = message[len(m[0]):]
		line, _ = strconv.ParseInt(m[1], 10, 32)
		// yaml.v3's parser counts lines from 0 and, unlike its scanner, does not add 1 in messages.
		for _, m := range []string{"node content", "key", "'-' indicator", "',' or", "<"} {
			if strings.HasPrefix(message, "did not find expected "+m) {
				line++
			}
		}
	}
	line = min(line, int64(len(t.starts)))
	start := t.line(int32(line))
	column := 1 + utf8.RuneCountInString(start) - utf8.RuneCountInString(strings.TrimLeft(start, " \t"))
	if anchor, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		return t.unknownAlias(strings.TrimSuffix(anchor, "' referenced"))
	}
	return &problem{pos: Pos{int32(line), int32(column)}, message: "YAML: " + message}
}

// unknownAlias finds an alias that has no anchor. Neither is allowed.
func (t *text) unknownAlias(name string) *problem {
	at := max(bytes.Index(t.source, []byte("*"+name)), 0)
	return &problem{pos: t.position(at), message: fmt.Sprintf("aliases (*%s) are not allowed", name), hint: "write the value out, or use params and foreach"}
}

// position of a YAML node.
func position(n *yaml.Node) Pos { return Pos{int32(n.Line), int32(n.Column)} }
