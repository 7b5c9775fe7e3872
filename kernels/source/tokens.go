// The words and marks of CUDA C, with their places.

package source

import "strings"

// token is a word, a number, a string or a punctuation mark, with its place.
type token struct {
	text  string
	line  int32
	at    int32 // offset in the file
	file  int16 // index into preprocessor.files
	space bool  // white space or a comment precedes it
}

func (t token) word() bool {
	return t.text != "" && (isWord(t.text[0]) && (t.text[0] < '0' || t.text[0] > '9'))
}

// tokens splits source text. A directive starts with a "#" token and ends with an "\n" token.
func tokens(source string, file int16) []token { return firstTokens(source, file, len(source)) }

// firstTokens splits source text until it has more than most tokens.
func firstTokens(source string, file int16, most int) []token {
	out := make([]token, 0, min(len(source)/5, most)+2)
	line, space, atStart, inDirective := int32(1), false, true, false
	for i := 0; i < len(source) && len(out) <= most; {
		c := source[i]
		switch {
		case c == '\\' && continues(source, i) > 0:
			line++
			i += continues(source, i)
			continue
		case c == '\n':
			if inDirective {
				out = append(out, token{text: "\n", line: line, at: int32(i), file: file})
			}
			line++
			i++
			atStart, inDirective, space = true, false, true
			continue
		case c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r':
			i++
			space = true
			continue
		case c == '/' && strings.HasPrefix(source[i:], "//"):
			for i < len(source) && source[i] != '\n' {
				if n := continues(source, i); n > 0 {
					line++
					i += n - 1
				}
				i++
			}
			space = true
			continue
		case c == '/' && strings.HasPrefix(source[i:], "/*"):
			end := strings.Index(source[i+2:], "*/")
			if end < 0 {
				end = len(source) - i - 4
			}
			line += int32(strings.Count(source[i:i+2+max(end, 0)], "\n"))
			i = min(i+2+max(end, 0)+2, len(source))
			space = true
			continue
		}
		start := i
		switch {
		case c == '#' && atStart:
			inDirective = true
			i++
		case atStart && strings.HasPrefix(source[i:], "%:"): // another spelling
			inDirective = true
			out = append(out, token{"#", line, int32(start), file, space})
			atStart, space = false, false
			i += 2
			continue
		case c == '#' && strings.HasPrefix(source[i:], "##"):
			i += 2
		case c == '"' || c == '\'':
			for i++; i < len(source) && source[i] != c && source[i] != '\n'; i++ {
				if source[i] == '\\' && i+1 < len(source) {
					i++
				}
			}
			i = min(i+1, len(source))
		case isWord(c):
			for i < len(source) && (isWord(source[i]) || source[i] == '.' && c >= '0' && c <= '9') {
				i++
			}
		default:
			i++
			if i < len(source) && twoMarks(c, source[i]) {
				i++
			}
		}
		out = append(out, token{source[start:i], line, int32(start), file, space})
		atStart, space = false, false
	}
	return append(out, token{text: "\n", line: line, at: int32(len(source)), file: file})
}

// continues is the length of a backslash and the line break behind it, or 0.
func continues(source string, at int) int {
	switch rest := source[at:]; {
	case strings.HasPrefix(rest, "\\\n"):
		return 2
	case strings.HasPrefix(rest, "\\\r\n"):
		return 3
	}
	return 0
}

// twoMarks reports whether two punctuation marks are one token.
func twoMarks(a, b byte) bool {
	switch a {
	case '&', '|', ':':
		return b == a
	case '=', '!', '<', '>':
		return b == '='
	}
	return a == '-' && b == '>'
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func contains(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}
