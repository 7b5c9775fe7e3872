// Finds the mistake in text that yaml.v3 cannot parse. yaml.v3 gives no column, and its line is off by one or that of the enclosing
// collection. The scan also knows syntax of other languages that breaks YAML.

package file

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
)

// brokenScan walks text the way YAML's tokens go, up to the first place that no token fits.
type brokenScan struct {
	*text
	at    int
	flow  []int // where the open brackets stand
	found *problem
	// blocks are the columns of the open block collections, outermost first.
	blocks []int
	open   bool   // the last line ended in a key or dash without a value: anything deeper may follow
	value  int    // a plain value's further lines begin to the right of this column; -1: there is none
	lone   []byte // the plain value above, if it has no key
	loneAt int
	keyed  []bool // of blocks: a key was seen at that column
}

// findBroken returns what is wrong in a text that yaml.v3 could not read, or nil if it sees nothing.
func (t *text) findBroken() *problem {
	s := &brokenScan{text: t, value: -1, open: true}
	for s.at < len(s.source) && s.found == nil {
		s.blockLine()
	}
	return s.found
}

func (s *brokenScan) fail(at int, hint, format string, args ...any) {
	if s.found == nil {
		s.found = &problem{pos: s.position(at), message: fmt.Sprintf(format, args...), hint: hint}
	}
	s.at = len(s.source)
}

func (s *brokenScan) peek(k int) byte {
	if s.at+k < len(s.source) {
		return s.source[s.at+k]
	}
	return '\n'
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
func isBreak(c byte) bool { return c == '\n' || c == '\r' }

// spaces skips blanks, and a comment behind one.
func (s *brokenScan) spaces() {
	for s.at < len(s.source) && isBlank(s.source[s.at]) {
		s.at++
	}
	if s.at < len(s.source) && s.source[s.at] == '#' && (s.at == 0 || isBlank(s.source[s.at-1]) || isBreak(s.source[s.at-1])) {
		for s.at < len(s.source) && !isBreak(s.source[s.at]) {
			s.at++
		}
	}
}

func (s *brokenScan) nextLine() {
	for s.at < len(s.source) && s.source[s.at] != '\n' {
		s.at++
	}
	s.at++
}

// blockLine reads one line outside of brackets, or more where brackets, quotes or a block scalar go on.
func (s *brokenScan) blockLine() {
	start := s.at
	for s.peek(0) == ' ' {
		s.at++
	}
	tab := -1
	if s.peek(0) == '\t' {
		tab = s.at
	}
	s.spaces()
	switch {
	case s.at >= len(s.source):
		return
	case isBreak(s.source[s.at]):
		s.nextLine()
		return
	case tab >= 0:
		s.fail(tab, "indent with spaces", "a tab cannot indent")
		return
	case s.at == start && (strings.HasPrefix(string(s.source[s.at:min(s.at+3, len(s.source))]), "---") || s.peek(0) == '%'):
		s.nextLine()
		s.blocks, s.keyed, s.open, s.value = nil, nil, true, -1
		return
	}
	column := s.at - start
	if s.value >= 0 && column > s.value {
		s.continued()
		return
	}
	s.value, s.lone = -1, nil
	s.indent(column)
	s.entry(start)
}

// continued reads a further line of a plain value, which cannot hold a key.
func (s *brokenScan) continued() {
	from := s.at
	for s.at < len(s.source) && !isBreak(s.source[s.at]) {
		if s.source[s.at] == ':' && (isBlank(s.peek(1)) || isBreak(s.peek(1))) {
			if s.lone != nil {
				s.notKey(s.loneAt, s.lone)
			}
			s.fail(from, "indent it like the keys above", "this key is indented deeper, but the line above has a value already")
			return
		}
		if s.source[s.at] == '#' && isBlank(s.source[s.at-1]) {
			break
		}
		s.at++
	}
	s.nextLine()
}

// indent checks that a line begins where some open collection does, or deeper where that is possible.
func (s *brokenScan) indent(column int) {
	last := func() int {
		if len(s.blocks) == 0 {
			return -1
		}
		return s.blocks[len(s.blocks)-1]
	}
	if s.open && column > last() {
		s.push(column)
		return
	}
	for last() > column {
		s.blocks, s.keyed = s.blocks[:len(s.blocks)-1], s.keyed[:len(s.keyed)-1]
	}
	if last() != column {
		s.fail(s.at, "begin it below the line it belongs to", "indentation matches no line above")
	}
}

func (s *brokenScan) push(column int) {
	s.blocks, s.keyed = append(s.blocks, column), append(s.keyed, false)
}

// entry reads dashes, a key and a value that stand on one line.
func (s *brokenScan) entry(start int) {
	s.open = true
	for s.found == nil && s.peek(0) == '-' && (isBlank(s.peek(1)) || isBreak(s.peek(1))) {
		s.at++
		s.spaces()
		if isBreak(s.peek(0)) {
			s.nextLine()
			return
		}
		s.push(s.at - start)
	}
	column := s.at - start
	keys := 0
	for s.found == nil && s.at < len(s.source) {
		from := s.at
		if s.peek(0) == ':' && (isBlank(s.peek(1)) || isBreak(s.peek(1))) {
			s.fail(from, "", "a key is missing before this colon")
			return
		}
		isPlain := s.scalar(column)
		if s.found != nil || s.at >= len(s.source) {
			return
		}
		end := s.at
		s.spaces()
		if s.peek(0) == ':' && (isBlank(s.peek(1)) || isBreak(s.peek(1))) {
			if bracket := openInKey(s.source[from:end]); isPlain && bracket >= 0 {
				s.missingColon(from, from+bracket)
				return
			}
			if keys++; keys > 1 {
				s.secondKey(from, "a second key on one line", `put a value with ": " in it in quotes`)
				return
			}
			if last := len(s.blocks) - 1; last >= 0 && s.blocks[last] == column {
				s.keyed[last] = true
			}
			s.at++
			s.spaces()
			if isBreak(s.peek(0)) {
				s.nextLine()
				return
			}
			continue
		}
		if !isBreak(s.peek(0)) {
			s.fail(s.at, "", "unexpected %s after %s", quoteRune(s.source[s.at:]), describeToken(s.source[from:end]))
			return
		}
		s.open = false
		if isPlain {
			s.value = column
			if keys == 0 {
				s.value, s.lone, s.loneAt = column-1, s.source[from:end], from
				s.loneScalar(from, end, column)
			}
		}
		s.nextLine()
		return
	}
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.$]*$`)

var unspacedKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.$]*:[^ ]`)

// loneScalar looks at a line of plain text without a key among lines that have keys.
func (s *brokenScan) loneScalar(from, end, column int) {
	last := len(s.blocks) - 1
	if last < 0 || s.blocks[last] != column || !s.keyed[last] && column > 0 {
		return
	}
	s.notKey(from, s.source[from:end])
}

// notKey reports plain text where a key is needed.
func (s *brokenScan) notKey(from int, plain []byte) {
	if unspacedKey.Match(plain) {
		s.noSpace(from + strings.IndexByte(string(plain), ':'))
		return
	}
	word, rest, _ := strings.Cut(string(plain), " ")
	hint := fmt.Sprintf("write %s: %s", word, words.Shorten(rest))
	if rest == "" || !plainKey.MatchString(word) {
		hint = ""
	}
	s.fail(from, hint, "%q is not a key: no colon follows it", words.Shorten(string(plain)))
}

func (s *brokenScan) noSpace(colon int) {
	s.fail(colon, "write a space after it", "a space is missing after the colon of a key")
}

// openInKey returns where a bracket opens in plain text that a colon follows, or -1. It belongs to the value of a key whose own colon is
// missing, or has no space behind it.
func openInKey(plain []byte) int {
	for k := 1; k < len(plain); k++ {
		if c := plain[k]; (c == '{' || c == '[') && (isBlank(plain[k-1]) || plain[k-1] == ':') {
			return k
		}
	}
	return -1
}

// missingColon reports that no colon, or none with a space behind it, stands between a key and the bracket of its value.
func (s *brokenScan) missingColon(from, bracket int) {
	key := strings.TrimRight(string(s.source[from:bracket]), " \t")
	if strings.HasSuffix(key, ":") {
		s.noSpace(bracket - 1)
		return
	}
	s.fail(from+len(key), "", "a colon is missing after %q", words.Shorten(key))
}

// secondKey reports a key that stands where the value of another one is: as a mapping it needs braces, as the next key a comma.
func (s *brokenScan) secondKey(from int, message, hint string) {
	line := s.source[from:min(len(s.source), from+200)]
	if end := strings.IndexAny(string(line), "\r\n"); end >= 0 {
		line = line[:end]
	}
	word, _, _ := strings.Cut(string(line), ":")
	if value, key, two := strings.Cut(strings.TrimSpace(word), ", "); two {
		s.fail(from+len(value), `put the keys in braces: a "{" is missing`, "a comma before %q, but the keys are not in braces", words.Shorten(key))
		return
	} else if value, key, two = strings.Cut(strings.TrimSpace(word), " "); two {
		s.fail(from+len(value)+1, "", "a comma is missing before %q", words.Shorten(key))
		return
	}
	s.fail(s.at, "write {"+words.Shorten(string(line[:valueEnd(line)]))+"}, or "+hint, "%s", message)
}

// valueEnd returns where the comma or bracket is that ends the value which text begins with, or where a comment begins.
func valueEnd(text []byte) int {
	depth := 0
	for k, c := range text {
		switch {
		case c == '{' || c == '[' || c == '(':
			depth++
		case depth > 0 && (c == '}' || c == ']' || c == ')'):
			depth--
		case depth == 0 && (c == ',' || c == '}' || c == ']') || c == '#' && k > 0 && isBlank(text[k-1]):
			return len(strings.TrimRight(string(text[:k]), " \t"))
		}
	}
	return len(strings.TrimRight(string(text), " \t"))
}

func quoteRune(b []byte) string {
	r, _ := utf8.DecodeRune(b)
	return fmt.Sprintf("%q", string(r))
}

func describeToken(b []byte) string {
	switch b[0] {
	case '"', '\'':
		return "the closing quote"
	case '{', '[':
		return "the closing bracket"
	}
	return fmt.Sprintf("%q", words.Shorten(string(b)))
}

// scalar reads what can stand as a key or a value. It reports whether that was plain text.
func (s *brokenScan) scalar(column int) (plain bool) {
	switch c := s.peek(0); c {
	case '"':
		s.doubleQuoted()
	case '\'':
		s.singleQuoted()
	case '{', '[':
		s.brackets()
	case '|', '>':
		s.blockScalar(column)
	case '@', '`', '%':
		s.fail(s.at, "put it in quotes", "a value cannot begin with %q", string(c))
	case '*', '&':
		if next := s.peek(1); isBlank(next) || isBreak(next) {
			s.fail(s.at, "put it in quotes", "a value cannot begin with %q", string(c))
			return false
		}
		s.plain()
	case '}', ']':
		s.fail(s.at, "", "%q closes nothing", string(c))
	case ',':
		s.fail(s.at, "", `unexpected ","`)
	default:
		s.plain()
		return true
	}
	return false
}

// plain reads plain text outside of brackets.
func (s *brokenScan) plain() {
	for s.at < len(s.source) && !isBreak(s.source[s.at]) {
		c := s.source[s.at]
		if c == ':' && (isBlank(s.peek(1)) || isBreak(s.peek(1))) || c == '#' && isBlank(s.source[s.at-1]) {
			break
		}
		s.at++
	}
	for s.at > 0 && isBlank(s.source[s.at-1]) {
		s.at--
	}
}

func (s *brokenScan) doubleQuoted() {
	start := s.at
	for s.at++; s.at < len(s.source); s.at++ {
		switch s.source[s.at] {
		case '"':
			s.at++
			return
		case '\\':
			if c := s.peek(1); !isBreak(c) && !strings.ContainsRune("0abt\tnvfre \"'/\\N_LPxuU", rune(c)) {
				s.fail(s.at, `write \\ for a backslash, or use single quotes`, `"\%c" means nothing in double quotes`, c)
				return
			}
			s.at++
		}
	}
	s.fail(start, "", "the quote that opens here is never closed")
}

func (s *brokenScan) singleQuoted() {
	start := s.at
	for s.at++; s.at < len(s.source); s.at++ {
		if s.source[s.at] != '\'' {
			continue
		}
		if s.peek(1) != '\'' {
			s.at++
			return
		}
		s.at++
	}
	s.fail(start, "", "the quote that opens here is never closed")
}

// blockScalar skips the lines of a | or > that are indented deeper than column.
func (s *brokenScan) blockScalar(column int) {
	for s.at++; strings.IndexByte("+-0123456789", s.peek(0)) >= 0; s.at++ {
	}
	if s.spaces(); !isBreak(s.peek(0)) {
		s.fail(s.at, "it belongs on the next line, indented", "text after the block scalar indicator")
		return
	}
	s.nextLine()
	for s.at < len(s.source) {
		indent := 0
		for s.peek(indent) == ' ' {
			indent++
		}
		if !isBreak(s.peek(indent)) && indent <= column {
			break
		}
		s.nextLine()
	}
	s.at-- // the caller continues after the end of the last line
	if s.at < len(s.source) && !isBreak(s.source[s.at]) {
		s.at++
	}
}

// brackets reads a flow collection to its end.
func (s *brokenScan) brackets() {
	keys := []int{0}     // by open bracket: the number of keys since the last comma
	complete := false    // there is content since the last comma or colon
	lastEnd := s.at      // where the content ends
	lastStart := s.at    // where the content begins
	newLine := false     // a line has begun since then
	isPlain := false     // the content is plain text
	s.flow = []int{s.at} // the first bracket
	s.at++
	for s.found == nil && len(s.flow) > 0 {
		s.spaces()
		if s.at >= len(s.source) {
			break
		}
		c := s.source[s.at]
		opened := s.flow[len(s.flow)-1]
		switch {
		case isBreak(c):
			s.at++
			newLine = true
			continue
		case newLine && c == '-' && isBlank(s.peek(1)):
			s.notClosed(opened)
			return
		case c == '}' || c == ']':
			if want := closing(s.source[opened]); c != want {
				s.fail(s.at, fmt.Sprintf("the one opened on line %d needs %q, or a %q is missing", s.position(opened).Line, string(want), string(opening(c))),
					"%q does not match the last open bracket", string(c))
				return
			}
			s.flow, keys = s.flow[:len(s.flow)-1], keys[:len(keys)-1]
			s.at++
			complete, isPlain, lastStart, lastEnd = true, false, opened, s.at
		case c == ',':
			s.at++
			complete = false
			keys[len(keys)-1] = 0
		case c == ':' && (complete || isBlank(s.peek(1)) || isBreak(s.peek(1))):
			if keys[len(keys)-1]++; keys[len(keys)-1] > 1 {
				if newLine {
					s.notClosed(opened)
					return
				}
				s.secondKey(lastStart, "a second key without a comma", `put a comma in front of the key, or quotes around a value with ": " in it`)
				return
			}
			if next := s.peek(1); isPlain && (next == '{' || next == '[') {
				s.noSpace(s.at)
				return
			}
			s.at++
			complete = false
		case complete && isPlain && (c == '{' || c == '[') && s.at > lastEnd && s.source[opened] == '{' && keys[len(keys)-1] == 0:
			s.missingColon(lastStart, s.at)
			return
		case complete:
			s.missingComma(lastStart, lastEnd, newLine, opened)
			return
		case c == '{' || c == '[':
			s.flow, keys = append(s.flow, s.at), append(keys, 0)
			s.at++
		case c == '@' || c == '`' || c == '%':
			s.fail(s.at, "put it in quotes", "a value cannot begin with %q", string(c))
			return
		default:
			lastStart, isPlain = s.at, c != '"' && c != '\''
			switch c {
			case '"':
				s.doubleQuoted()
			case '\'':
				s.singleQuoted()
			default:
				s.plainInBrackets()
			}
			complete, lastEnd = true, s.at
		}
		newLine = false
	}
	if s.found == nil && len(s.flow) > 0 {
		opened := s.flow[len(s.flow)-1]
		s.fail(opened, fmt.Sprintf("%q is missing", string(closing(s.source[opened]))), "%q is never closed", string(s.source[opened]))
	}
}

func (s *brokenScan) notClosed(opened int) {
	bracket := s.source[opened]
	s.fail(opened, fmt.Sprintf("%q or a comma is missing before line %d", string(closing(bracket)), s.position(s.at).Line), "%q is never closed", string(bracket))
}

func opening(closing byte) byte {
	if closing == '}' {
		return '{'
	}
	return '['
}

func closing(opening byte) byte {
	if opening == '{' {
		return '}'
	}
	return ']'
}

// missingComma reports what follows a complete value in brackets: often a slice or a variable in the form of other languages.
func (s *brokenScan) missingComma(start, end int, newLine bool, opened int) {
	word := string(s.source[start:end])
	rest := string(s.source[s.at:min(s.at+80, len(s.source))])
	if line := strings.IndexAny(rest, "\r\n"); line >= 0 {
		rest = rest[:line]
	}
	adjacent := s.at == end
	switch {
	case adjacent && rest[0] == '[':
		s.fail(s.at, "write "+rightSlice(word[1+strings.LastIndexAny(word, "( ,+-*/%<>="):], rest), "a slice is not written with brackets")
	case adjacent && rest[0] == '{' && strings.HasSuffix(word, "$"):
		s.fail(s.at-1, "write "+rightVariable(rest), "a variable is not written with braces")
	case newLine:
		s.notClosed(opened)
	default:
		s.fail(s.at, "", "a comma is missing before %s", quoteRune(s.source[s.at:]))
	}
}

// rightSlice turns [0:4] behind a name into the right form.
func rightSlice(name, brackets string) string {
	inside, _, closed := strings.Cut(brackets[1:], "]")
	if !closed {
		inside = ""
	}
	return name + expr.RightBounds(inside)
}

var plainVariable = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)

// rightVariable turns the {i} of ${i} into the right form.
func rightVariable(braces string) string {
	inside, _, closed := strings.Cut(braces[1:], "}")
	inside = strings.TrimSpace(inside)
	switch {
	case !closed || inside == "":
		return "$i or $(i+1)"
	case plainVariable.MatchString(inside):
		return "$" + inside
	}
	return "$(" + inside + ")"
}

// plainInBrackets reads plain text up to what ends it in a flow collection.
func (s *brokenScan) plainInBrackets() {
	for s.at < len(s.source) && !isBreak(s.source[s.at]) {
		c, next := s.source[s.at], s.peek(1)
		if strings.IndexByte(",[]{}", c) >= 0 || c == ':' && (isBlank(next) || isBreak(next) || strings.IndexByte(",[]{}", next) >= 0) ||
			c == '#' && isBlank(s.source[s.at-1]) {
			break
		}
		s.at++
	}
	for isBlank(s.source[s.at-1]) {
		s.at--
	}
}
