// Scalars as YAML text, quoted only if they must be, and the comments of a source.

package file

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// trivia is what a line of the source holds beside content.
type trivia struct {
	comment string // with its #; "": none
	column  int32  // of the comment, from 1
	content bool
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

const quotedStyles = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// keyText writes a key.
func keyText(key *yaml.Node) string { return scalarText(key) }

// scalarText writes a scalar so that it reads the same, inside of brackets too.
func scalarText(n *yaml.Node) string {
	quoted := n.Style&quotedStyles != 0
	switch {
	case isNull(n) && n.Value == "":
		return "~"
	case !quoted && n.Tag != "!!str":
		return n.Value
	case plainText(n.Value) && !(quoted && looksTyped(n.Value)):
		return n.Value
	}
	return quote(n.Value)
}

// plainText reports whether a text can stand without quotes inside of brackets.
func plainText(s string) bool {
	if s == "" || s != strings.TrimSpace(s) || strings.HasSuffix(s, ":") || s == "---" || s == "..." {
		return false
	}
	if strings.ContainsAny(s, ",[]{}?\n\r\t\"") || strings.Contains(s, ": ") || strings.Contains(s, " #") {
		return false
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == utf8.RuneError || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
			return false
		}
	}
	switch s[0] {
	case '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', '=', ':':
		return false
	case '-':
		return len(s) > 1 && s[1] != ' '
	}
	return true
}

// looksTyped reports whether plain text might be read as something else than a string: a number, a date, a truth value, null.
func looksTyped(s string) bool {
	switch strings.ToLower(s) {
	case "~", "null", "true", "false", "yes", "no", "on", "off", "<<":
		return true
	}
	if strings.IndexByte("0123456789+-.", s[0]) < 0 {
		return false
	}
	return strings.Trim(s, "0123456789+-.eExXoObBaAcCdDfFnNiI_:TtZ ") == ""
}

// quote writes a text in the quotes that need the fewest escapes.
func quote(s string) string {
	control := strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff'
	})
	if !control && strings.ContainsAny(s, `"\`) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r == '\u2028' || r == '\u2029' || r == '\ufeff':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// span is a part of the source, in bytes.
type span struct{ from, to int }

// trivia finds the comments of the source and which lines hold content. A # inside of a scalar begins none.
func (t *text) trivia(root *yaml.Node) []trivia {
	spans := t.opaque(root)
	lines := make([]trivia, len(t.starts))
	if n := len(lines); n > 0 && int(t.starts[n-1]) == len(t.source) {
		lines = lines[:n-1] // after the last line break there is no further line
	}
	next := 0
	for k := range lines {
		from, to := int(t.starts[k]), len(t.source)
		if k+1 < len(t.starts) {
			to = int(t.starts[k+1])
		}
		column := int32(0)
		for at := from; at < to; {
			for next < len(spans) && spans[next].to <= at {
				next++
			}
			if next < len(spans) && spans[next].from <= at {
				lines[k].content = true
				column += int32(utf8.RuneCount(t.source[at:min(spans[next].to, to)]))
				at = min(spans[next].to, to)
				continue
			}
			c := t.source[at]
			if c == '#' && (at == from || isBlank(t.source[at-1])) {
				lines[k].comment = strings.TrimRight(string(t.source[at:to]), " \t\r\n")
				lines[k].column = column + 1
				break
			}
			if !isBlank(c) && !isBreak(c) {
				lines[k].content = true
			}
			_, size := utf8.DecodeRune(t.source[at:])
			at += size
			column++
		}
	}
	return lines
}

// opaque returns where quoted and block scalars stand, in order.
func (t *text) opaque(root *yaml.Node) []span {
	var spans []span
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Style&quotedStyles != 0 {
			if from := t.offset(position(n)); from >= 0 {
				spans = append(spans, t.scalarSpan(n, from))
			}
		}
		for _, c := range n.Content {
			visit(c)
		}
	}
	visit(root)
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	return spans
}

// scalarSpan returns where the text of a quoted or block scalar stands that begins at a byte.
func (t *text) scalarSpan(n *yaml.Node, from int) span {
	s := &brokenScan{text: t, at: from}
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		s.doubleQuoted()
	case n.Style&yaml.SingleQuotedStyle != 0:
		s.singleQuoted()
	default:
		// A comment may follow the block scalar indicator; the text is on the next lines, indented like the first of them.
		s.nextLine()
		from = min(s.at, len(t.source))
		indent := -1
		for s.at < len(t.source) {
			blanks := 0
			for s.peek(blanks) == ' ' {
				blanks++
			}
			if !isBreak(s.peek(blanks)) {
				if indent < 0 {
					indent = max(blanks, 1)
				}
				if blanks < indent {
					break
				}
			}
			s.nextLine()
		}
	}
	return span{from, min(s.at, len(t.source))}
}
