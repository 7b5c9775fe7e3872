// The lexer: splits text into tokens, each with its place.

package ptx

import (
	"fmt"
	"strings"
)

type tokenKind uint8

const (
	endToken    tokenKind = iota
	wordToken             // an identifier: foo, %r1, $L__BB0_1, _
	dotToken              // a dotted word: .global, .shared::cta
	numberToken           // 12, 0x1f, 1.5, 0f3F800000
	stringToken           // "text"
	markToken             // any other character
)

type token struct {
	kind  tokenKind
	mark  byte // of markToken
	start int
	end   int
	pos   Position
}

// Error is an error in a text, with its place.
type Error struct {
	Position Position
	Message  string
}

// Error returns line:column: message.
func (e *Error) Error() string { return e.Position.String() + ": " + e.Message }

const (
	wordStart = 1 << iota // may start an identifier
	wordPart              // may continue one
	digit
	blank
)

var classes = func() (c [256]uint8) {
	for b := range 256 {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '_', b == '$', b == '%':
			c[b] = wordStart | wordPart
		case b >= '0' && b <= '9':
			c[b] = wordPart | digit
		case b == ' ', b == '\t', b == '\r', b == '\n', b == '\f', b == '\v':
			c[b] = blank
		}
	}
	c['%'] = wordStart
	return c
}()

type lexer struct {
	text      string
	at        int
	line      int32
	lineStart int
	token     token
	err       *Error
}

func (l *lexer) position(at int) Position {
	return Position{Line: l.line, Column: int32(at-l.lineStart) + 1}
}

func (l *lexer) fail(pos Position, format string, args ...any) {
	if l.err == nil {
		l.err = &Error{pos, fmt.Sprintf(format, args...)}
	}
	l.at = len(l.text)
	l.token = token{kind: endToken, start: l.at, end: l.at, pos: pos}
}

// skip passes white space and comments.
func (l *lexer) skip() {
	text := l.text
	for l.at < len(text) {
		switch c := text[l.at]; {
		case c == '\n':
			l.at++
			l.line++
			l.lineStart = l.at
		case classes[c]&blank != 0:
			l.at++
		case c == '/' && l.at+1 < len(text) && text[l.at+1] == '/':
			if end := strings.IndexByte(text[l.at:], '\n'); end >= 0 {
				l.at += end
			} else {
				l.at = len(text)
			}
		case c == '/' && l.at+1 < len(text) && text[l.at+1] == '*':
			end := strings.Index(text[l.at+2:], "*/")
			if end < 0 {
				l.fail(l.position(l.at), "the comment that starts here has no end; add */")
				return
			}
			body := text[l.at : l.at+2+end+2]
			if n := strings.Count(body, "\n"); n > 0 {
				l.line += int32(n)
				l.lineStart = l.at + strings.LastIndexByte(body, '\n') + 1
			}
			l.at += len(body)
		case c == '@' && strings.HasPrefix(text[l.at:], "@@"): // old debug lines: @@DWARF ...
			if end := strings.IndexByte(text[l.at:], '\n'); end >= 0 {
				l.at += end
			} else {
				l.at = len(text)
			}
		default:
			return
		}
	}
}

// next reads one token into l.token.
func (l *lexer) next() {
	l.skip()
	text, at := l.text, l.at
	if at >= len(text) {
		l.token = token{kind: endToken, start: at, end: at, pos: l.position(at)}
		return
	}
	t := token{start: at, pos: l.position(at)}
	c := text[at]
	switch {
	case classes[c]&wordStart != 0:
		at++
		for at < len(text) && classes[text[at]]&wordPart != 0 {
			at++
		}
		t.kind = wordToken
	case classes[c]&digit != 0:
		t.kind = numberToken
		at = l.number(at)
	case c == '.' && at+1 < len(text) && classes[text[at+1]]&(wordStart|wordPart) != 0:
		at = dottedWord(text, at)
		t.kind = dotToken
	case c == '"':
		end := at + 1
		for end < len(text) && text[end] != '"' && text[end] != '\n' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) || text[end] == '\n' {
			l.fail(t.pos, "the string that starts here has no end on its line; add a quote")
			return
		}
		t.kind, at = stringToken, end+1
	case c < ' ' || c > '~':
		l.fail(t.pos, "byte 0x%02x is not part of PTX; this is not PTX text, or it is damaged", c)
		return
	default:
		t.kind, t.mark = markToken, c
		at++
	}
	t.end = at
	l.at = at
	l.token = t
}

// dottedWord returns the end of the dotted word at a place: letters, digits and double colons.
func dottedWord(text string, at int) int {
	at++
	for at < len(text) {
		if classes[text[at]]&wordPart != 0 {
			at++
		} else if text[at] == ':' && at+2 < len(text) && text[at+1] == ':' && classes[text[at+2]]&wordPart != 0 {
			at += 2
		} else {
			break
		}
	}
	return at
}

// number returns the end of the number at a place. constant.go computes its value.
func (l *lexer) number(at int) int {
	text := l.text
	for at < len(text) && classes[text[at]]&wordPart != 0 {
		at++
	}
	word := text[l.at:at]
	if len(word) > 1 && word[0] == '0' && strings.IndexByte("xXfFdDbB", word[1]) >= 0 {
		return at
	}
	if at < len(text) && text[at] == '.' && (at+1 >= len(text) || text[at+1] < 'a' || text[at+1] > 'z') {
		at++
		for at < len(text) && classes[text[at]]&wordPart != 0 {
			at++
		}
	}
	if e := text[at-1]; (e == 'e' || e == 'E') && at+1 < len(text) && (text[at] == '-' || text[at] == '+') && classes[text[at+1]]&digit != 0 {
		at++
		for at < len(text) && classes[text[at]]&digit != 0 {
			at++
		}
	}
	return at
}

// maxWord is how many bytes an instruction's name may have.
const maxWord = 256

// instructionWord reads on after a word: the dotted words that follow it. The result has no white space.
func (l *lexer) instructionWord() string {
	start, text := l.token.start, l.text
	at := l.token.end
	for at+1 < len(text) && text[at] == '.' && classes[text[at+1]]&wordPart != 0 {
		at = dottedWord(text, at)
	}
	l.at = at
	word := text[start:at]
	l.next()
	for l.token.kind == dotToken { // white space within the word
		word += l.text[l.token.start:l.token.end]
		if len(word) > maxWord {
			l.fail(l.token.pos, "an instruction's name is longer than %d bytes", maxWord)
			return word
		}
		l.next()
	}
	return word
}
