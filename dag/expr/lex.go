// Tokens of the expression language, with hints for the syntax of other languages.

package expr

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenNumber
	tokenName
	tokenSymbol // one of + - * / % ( ) , < <= > >= == != = ..
	tokenTemplate
)

type token struct {
	kind   tokenKind
	offset int
	text   string
	value  Value
}

// lexer reads one token ahead. In template mode names may hold dots, $i and $(i+1), as buffers' names do.
type lexer struct {
	text string
	pos  int
}

// IsKeyword reports whether a name is a word of the language and so cannot name anything.
func IsKeyword(name string) bool {
	switch name {
	case "and", "or", "not", "of", "true", "false":
		return true
	}
	return false
}

// ValidName reports whether a name can stand in expressions: a letter or _, then letters, digits and _.
func ValidName(name string) bool {
	return name != "" && nameEnd(name, 0) == len(name) && !IsKeyword(name)
}

func isLetter(r rune) bool { return r == '_' || unicode.IsLetter(r) }

// nameEnd returns where the name that starts at pos ends; pos where none does.
func nameEnd(text string, pos int) int {
	for start := pos; pos < len(text); {
		c := text[pos]
		switch {
		case c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			pos++
			continue
		case '0' <= c && c <= '9':
			if pos == start {
				return pos
			}
			pos++
			continue
		case c < utf8.RuneSelf:
			return pos
		}
		r, size := utf8.DecodeRuneInString(text[pos:])
		if !isLetter(r) && (pos == start || !unicode.IsDigit(r) && !unicode.IsMark(r)) {
			return pos
		}
		pos += size
	}
	return pos
}

func (l *lexer) skipSpace() {
	for l.pos < len(l.text) {
		switch l.text[l.pos] {
		case ' ', '\t', '\n', '\r':
			l.pos++
		default:
			return
		}
	}
}

func (l *lexer) at(s string) bool { return strings.HasPrefix(l.text[l.pos:], s) }

// selectHint is for those who write conditions as other languages do.
const selectHint = "write select(c, a, b), which is a if c is true, else b"

// next reads a token.
func (l *lexer) next() (token, *Error) {
	l.skipSpace()
	start := l.pos
	if start == len(l.text) {
		return token{kind: tokenEnd, offset: start}, nil
	}
	c := l.text[start]
	if '0' <= c && c <= '9' {
		return l.number()
	}
	if end := nameEnd(l.text, start); end > start {
		l.pos = end
		return token{kind: tokenName, offset: start, text: l.text[start:end]}, nil
	}
	size := 1
	hint := ""
	switch c {
	case '+', '-', '(', ')', ',', '%':
	case '*':
		if l.at("**") {
			hint = "write pow(a, b)"
		}
	case '/':
		if l.at("//") {
			hint = "write floor(a / b)"
		}
	case '<', '>':
		if l.at("<=") || l.at(">=") {
			size = 2
		} else if l.at("<<") || l.at(">>") {
			hint = "shifts are pow(2, n) times or over"
		}
	case '=':
		if l.at("==") {
			size = 2
		}
	case '!':
		if l.at("!=") {
			size = 2
		} else {
			hint = "write not"
		}
	case '&':
		hint = "write and"
	case '|':
		hint = "write or"
	case '^':
		hint = "write pow(a, b)"
	case '[':
		hint = "a slice is written x(lo..hi)"
	case '?':
		hint = selectHint
	case '$':
		hint = "in an expression a variable has no dollar"
		if end := nameEnd(l.text, start+1); end > start+1 {
			hint = "in an expression write " + l.text[start+1:end] + " without the dollar"
		}
	case ':':
		hint = "a slice is written x(lo..hi)"
	case '"', '\'':
		hint = "expressions hold numbers and names only"
	case '.':
		if !l.at("..") {
			hint = "write a digit before the point"
		} else {
			size = 2
		}
	default:
		r, _ := utf8.DecodeRuneInString(l.text[start:])
		return token{}, errorAt(start, "", "unexpected character %s", strconv.QuoteRune(r))
	}
	if hint != "" {
		shown := l.text[start : start+1]
		if two := start + 2; two <= len(l.text) && l.text[start+1] == c {
			shown = l.text[start:two]
		}
		return token{}, errorAt(start, hint, "unexpected %q", shown)
	}
	l.pos += size
	return token{kind: tokenSymbol, offset: start, text: l.text[start:l.pos]}, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number reads 12, 0xff, 1.5, 1e6 or 2.5e-3. The .. of a slice is not part of a number.
func (l *lexer) number() (token, *Error) {
	start, text := l.pos, l.text
	if l.at("0x") || l.at("0X") {
		return l.hexadecimal()
	}
	pos := start
	digits := func() {
		for pos < len(text) && isDigit(text[pos]) {
			pos++
		}
	}
	digits()
	isFloat := false
	if pos < len(text) && text[pos] == '.' && !strings.HasPrefix(text[pos:], "..") {
		pos++
		if pos == len(text) || !isDigit(text[pos]) {
			return token{}, errorAt(start, "write a digit after the point", "bad number %q", text[start:pos])
		}
		digits()
		isFloat = true
	}
	if pos < len(text) && (text[pos] == 'e' || text[pos] == 'E') {
		mark := pos
		pos++
		if pos < len(text) && (text[pos] == '+' || text[pos] == '-') {
			pos++
		}
		from := pos
		digits()
		if pos == from {
			pos = mark
		} else {
			isFloat = true
		}
	}
	if end := nameEnd(text, pos); end > pos || pos < len(text) && text[pos] == '_' {
		for end < len(text) && (isDigit(text[end]) || nameEnd(text, end) > end) {
			end = max(end+1, nameEnd(text, end))
		}
		return token{}, badNumber(start, text[start:pos], text[start:end])
	}
	literal := text[start:pos]
	if len(literal) > 1 && literal[0] == '0' && isDigit(literal[1]) {
		plain := strings.TrimLeft(literal, "0")
		if plain == "" || !isDigit(plain[0]) {
			plain = "0" + plain
		}
		return token{}, errorAt(start, "write "+plain, "number %s has a leading zero", literal)
	}
	l.pos = pos
	t := token{kind: tokenNumber, offset: start, text: literal}
	if isFloat {
		f, err := strconv.ParseFloat(literal, 64)
		if err != nil || math.IsInf(f, 0) {
			return token{}, errorAt(start, "", "number %s is too large for a 64-bit float", literal)
		}
		t.value = FloatValue(f)
		return t, nil
	}
	n, err := strconv.ParseInt(literal, 10, 64)
	if err != nil {
		// The one magnitude that fits only with a sign in front is left to the parser.
		if literal == "9223372036854775808" {
			t.value = Value{kind: Rational, num: math.MinInt64}
			return t, nil
		}
		return token{}, errorAt(start, "", "integer %s does not fit in 64 bits", shorten(literal))
	}
	t.value = Int(n)
	return t, nil
}

// hexadecimal reads 0xff.
func (l *lexer) hexadecimal() (token, *Error) {
	start, end := l.pos, l.pos+2
	for end < len(l.text) && (isDigit(l.text[end]) || nameEnd(l.text, end) > end) {
		end = max(end+1, nameEnd(l.text, end))
	}
	literal := l.text[start:end]
	n, err := strconv.ParseInt(literal[2:], 16, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return token{}, errorAt(start, "", "integer %s does not fit in 64 bits", shorten(literal))
	case err != nil && strings.Contains(literal, "_"):
		return token{}, errorAt(start, "write "+strings.ReplaceAll(literal, "_", ""), "bad number %q", shorten(literal))
	case err != nil:
		return token{}, errorAt(start, "a hexadecimal number has digits 0 to 9 and a to f", "bad number %q", shorten(literal))
	}
	l.pos = end
	return token{kind: tokenNumber, offset: start, text: literal, value: Int(n)}, nil
}

func badNumber(offset int, digits, all string) *Error {
	hint := ""
	switch {
	case strings.Contains(all, "_") && strings.Trim(all, "0123456789_") == "":
		hint = "write " + strings.ReplaceAll(all, "_", "")
	default:
		if rest := all[len(digits):]; ValidName(rest) {
			hint = "write " + digits + "*" + rest
		}
	}
	return errorAt(offset, hint, "bad number %q", shorten(all))
}

// shorten keeps messages readable where the text is not.
func shorten(s string) string {
	const longest = 40
	if len(s) <= longest {
		return s
	}
	cut := longest - 3
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
