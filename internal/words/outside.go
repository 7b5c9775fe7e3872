// Escapes text from outside (names, paths, headers of files) so that it cannot control the terminal on which it is printed.

package words

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Steers reports whether a character does more to a terminal than appear: control characters other than tab and line feed, and the
// invisible characters that reverse, hide or annotate the text after them.
func Steers(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case unicode.IsControl(r):
		return true
	case r < 0x61c:
		return false
	}
	return r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 ||
		r >= 0xfff9 && r <= 0xfffb || r >= 0xe0000 && r <= 0xe007f
}

// Safe escapes characters that would control a terminal: \x1b for an escape, \u202e for a right-to-left override, \xff for a byte that is not
// UTF-8. Tabs and line feeds stay.
func Safe(s string) string { return spell(s, func(r rune) bool { return Steers(r) }) }

// Line is Safe for text that must stay on one line: tabs and line feeds are escaped too.
func Line(s string) string {
	return spell(s, func(r rune) bool { return r == '\n' || r == '\t' || Steers(r) })
}

func spell(s string, steers func(rune) bool) string {
	clean := utf8.ValidString(s)
	if clean && strings.IndexFunc(s, steers) < 0 {
		return s
	}
	var b strings.Builder
	for at, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[at:]); size == 1 {
				fmt.Fprintf(&b, `\x%02x`, s[at])
				continue
			}
		}
		switch {
		case !steers(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < ' ':
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff: // as JSON escapes it, so that a JSON document stays valid
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Writer writes text as Safe escapes it. A character that is split between two writes stays whole. It may be used by several goroutines.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte // the beginning of a character
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Write implements [io.Writer].
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	end := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if c := text[len(text)-back]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-back:]) {
				end = len(text) - back
			}
			break
		}
	}
	safe := Safe(string(text[:end]))
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.to, safe); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteTrusted writes text unescaped, such as colours around text that went through Safe.
func (w *Writer) WriteTrusted(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := Safe(string(w.rest))
	w.rest = nil
	_, err := io.WriteString(w.to, rest+text)
	return err
}

// Flush writes the remaining bytes of an incomplete character.
func (w *Writer) Flush() error { return w.WriteTrusted("") }
