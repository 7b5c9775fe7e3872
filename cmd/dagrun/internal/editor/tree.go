// The shape of a file while it is typed: mappings, lists and scalars with their places, of text that need not be YAML yet.

package editor

import "strings"

type kind uint8

const (
	scalar kind = iota
	mapping
	list
)

// node is a piece of a file. Nothing about it is wrong: what does not fit is passed over.
type node struct {
	kind     kind
	from, to int    // bytes
	text     string // of a scalar, without quotes
	entries  []entry
}

// entry is an item of a list, or a key of a mapping with its value.
type entry struct {
	key      string
	from, to int   // of the key
	colon    bool  // there is one behind the key
	value    *node // nil: none
}

// get returns the value of a key, or nil.
func (n *node) get(key string) *node {
	if n == nil || n.kind != mapping {
		return nil
	}
	for k := range n.entries {
		if n.entries[k].key == key {
			return n.entries[k].value
		}
	}
	return nil
}

// mostDepth is how deep collections are followed into each other.
const mostDepth = 100

// scan reads a text once, from its beginning to its end.
type scan struct {
	source []byte
	at     int
	depth  int
}

// outline reads the shape of a text.
func outline(source []byte) *node {
	s := &scan{source: source}
	root := &node{kind: mapping, to: len(source)}
	for s.next() {
		before := s.at
		switch part := s.block(s.column()); part.kind {
		case mapping:
			root.entries = append(root.entries, part.entries...)
		case scalar: // a key that is still being typed
			root.entries = append(root.entries, entry{key: part.text, from: part.from, to: part.to})
		}
		if s.at == before {
			s.skipLine()
		}
	}
	return root
}

func (s *scan) peek(k int) byte {
	if s.at+k < len(s.source) {
		return s.source[s.at+k]
	}
	return '\n'
}

func (s *scan) ended() bool { return s.at >= len(s.source) }
func isBreak(c byte) bool   { return c == '\n' || c == '\r' }
func isSpace(c byte) bool   { return c == ' ' || c == '\t' || isBreak(c) }
func isFlow(c byte) bool    { return strings.IndexByte(",[]{}", c) >= 0 }
func (s *scan) dash() bool  { return !s.ended() && s.peek(0) == '-' && isSpace(s.peek(1)) }
func (s *scan) lineStart() int {
	return strings.LastIndexAny(string(s.source[max(0, s.at-4096):s.at]), "\r\n") + 1 + max(0, s.at-4096)
}
func (s *scan) column() int   { return s.at - s.lineStart() }
func (s *scan) comment() bool { return s.peek(0) == '#' && (s.at == 0 || isSpace(s.source[s.at-1])) }
func (s *scan) beginsLine() bool {
	return strings.Trim(string(s.source[s.lineStart():s.at]), " \t-\ufeff") == ""
}

func (s *scan) blanks() {
	for !s.ended() && (s.peek(0) == ' ' || s.peek(0) == '\t') {
		s.at++
	}
}

func (s *scan) skipLine() {
	for !s.ended() && !isBreak(s.peek(0)) {
		s.at++
	}
	for !s.ended() && isBreak(s.peek(0)) {
		s.at++
	}
}

// next goes to the next thing that begins a line, and reports whether there is one.
func (s *scan) next() bool {
	if s.at == 0 && strings.HasPrefix(string(s.source[:min(3, len(s.source))]), byteOrderMark) {
		s.at = len(byteOrderMark)
	}
	for !s.ended() {
		s.blanks()
		if !s.ended() && !isBreak(s.peek(0)) && !s.comment() && s.beginsLine() && !strings.HasPrefix(string(s.source[s.at:min(s.at+3, len(s.source))]), "---") {
			return true
		}
		s.skipLine()
	}
	return false
}

// block reads what begins here, at a column of its line.
func (s *scan) block(column int) *node {
	if s.depth++; s.depth > mostDepth {
		s.depth--
		s.skipLine()
		return &node{from: s.at, to: s.at}
	}
	defer func() { s.depth-- }()
	n := &node{from: s.at}
	_, _, _, keyed := s.key()
	switch {
	case s.dash():
		n.kind = list
		for s.next() && s.column() == column && s.dash() {
			s.at++
			s.blanks()
			item := entry{from: s.at, to: s.at}
			if here := s.at; !s.lineEnds() || s.next() && s.column() > column {
				item.value = s.block(s.column())
			} else if s.at < here {
				s.at = here
			}
			n.entries = append(n.entries, item)
			n.to = s.at
		}
	case keyed:
		n.kind = mapping
		for s.next() && s.column() >= column {
			from, to, behind, keyed := s.key()
			switch {
			case s.column() > column:
				s.skipLine() // the rest of a value, or a mistake
			case s.dash():
				return n
			case !keyed:
				value := s.inline(column)
				n.entries = append(n.entries, entry{key: value.text, from: value.from, to: value.to})
			default:
				e := entry{key: unquoted(string(s.source[from:to])), from: from, to: to, colon: true}
				s.at = behind
				s.blanks()
				if !s.lineEnds() {
					e.value = s.inline(column)
				} else if s.next() && (s.column() > column || s.column() == column && s.dash()) {
					e.value = s.block(s.column())
				}
				n.entries = append(n.entries, e)
			}
			n.to = s.at
		}
	default:
		return s.inline(column - 1)
	}
	return n
}

// lineEnds reports whether nothing but a comment follows on the line.
func (s *scan) lineEnds() bool { return s.ended() || isBreak(s.peek(0)) || s.comment() }

// key finds a key that begins here, and where its colon ends.
func (s *scan) key() (from, to, behind int, ok bool) {
	start := s.at
	defer func() { s.at = start }()
	if s.ended() || isFlow(s.peek(0)) {
		return 0, 0, 0, false
	}
	if c := s.peek(0); c == '"' || c == '\'' {
		s.quoted()
		to = s.at
		s.blanks()
	} else {
		for !s.lineEnds() && !(s.peek(0) == ':' && isSpace(s.peek(1))) {
			s.at++
		}
		to = start + len(strings.TrimRight(string(s.source[start:s.at]), " \t"))
	}
	return start, to, s.at + 1, s.peek(0) == ':' && isSpace(s.peek(1))
}

// inline reads a value that begins within a line whose block has a column.
func (s *scan) inline(column int) *node {
	from := s.at
	switch c := s.peek(0); c {
	case '{', '[':
		return s.flow(column)
	case '"', '\'':
		return s.quoted()
	case '|', '>':
		s.skipLine()
		for !s.ended() {
			start := s.at
			s.blanks()
			if !s.lineEnds() && s.column() <= column {
				s.at = start
				break
			}
			s.skipLine()
		}
		return &node{from: from, to: s.at}
	}
	for !s.lineEnds() {
		s.at++
	}
	text := strings.TrimRight(string(s.source[from:s.at]), " \t")
	return &node{from: from, to: from + len(text), text: text}
}

// quoted reads a text in quotes, which ends with its line if they are not closed.
func (s *scan) quoted() *node {
	from, quote := s.at, s.peek(0)
	for s.at++; !s.ended() && !isBreak(s.peek(0)); s.at++ {
		if c := s.peek(0); c == '\\' && quote == '"' && !isBreak(s.peek(1)) {
			s.at++
		} else if c == quote {
			s.at++
			break
		}
	}
	s.at = min(s.at, len(s.source))
	return &node{from: from, to: s.at, text: unquoted(string(s.source[from:s.at]))}
}

func unquoted(text string) string {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		return text
	}
	return strings.TrimSuffix(text[1:], text[:1])
}

// flow reads what is in brackets. Where they are not closed, it ends in front of a line that begins an entry of the block around it.
func (s *scan) flow(column int) *node {
	n := &node{kind: mapping, from: s.at}
	if s.peek(0) == '[' {
		n.kind = list
	}
	if s.depth++; s.depth > mostDepth {
		s.depth--
		s.skipLine()
		return n
	}
	defer func() { s.depth--; n.to = s.at }()
	s.at++
	for !s.ended() {
		switch c := s.peek(0); {
		case s.comment():
			s.skipLine()
		case isBreak(c):
			start := s.at
			s.skipLine()
			s.blanks()
			if _, _, _, keyed := s.key(); s.column() <= column && (s.dash() || keyed) && !s.ended() {
				s.at = start
				return n
			}
		case isSpace(c), c == ',':
			s.at++
		case c == '}' || c == ']':
			s.at++
			return n
		case n.kind == list:
			value := s.flowValue(column)
			n.entries = append(n.entries, entry{from: value.from, to: value.from, value: value})
		default:
			key := s.flowValue(column)
			e := entry{key: key.text, from: key.from, to: key.to}
			s.blanks()
			if s.peek(0) == ':' && !s.ended() {
				e.colon = true
				s.at++
				s.blanks()
				if c := s.peek(0); !s.lineEnds() && c != ',' && c != '}' && c != ']' {
					e.value = s.flowValue(column)
				}
			}
			n.entries = append(n.entries, e)
		}
	}
	return n
}

// flowValue reads one value within brackets; it takes at least one byte.
func (s *scan) flowValue(column int) *node {
	switch s.peek(0) {
	case '{', '[':
		return s.flow(column)
	case '"', '\'':
		return s.quoted()
	}
	from := s.at
	for s.at++; !s.lineEnds() && !isFlow(s.peek(0)); s.at++ {
		if s.peek(0) == ':' && (isSpace(s.peek(1)) || isFlow(s.peek(1))) {
			break
		}
	}
	text := strings.TrimRight(string(s.source[from:s.at]), " \t")
	return &node{from: from, to: from + len(text), text: text}
}
