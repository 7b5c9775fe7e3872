// Package operands finds the buffers and slices in the text of a condition.
package operands

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag/expr"
)

// Span is a part of a text.
type Span struct{ Lo, Hi int }

// Find finds the buffers and slices in a condition's text.
func Find(text string, isBuffer func(string) bool) []Span {
	var found []Span
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case unicode.IsDigit(r):
			at = numberEnd(text, at)
			continue
		case r != '_' && !unicode.IsLetter(r):
			at += size
			continue
		}
		name := at
		at = nameEnd(text, at)
		word := text[name:at]
		open := at
		for open < len(text) && text[open] == ' ' {
			open++
		}
		if open < len(text) && text[open] == '(' {
			end := closingParenthesis(text, open)
			if word == "len" {
				at = end
				continue
			}
			if expr.LooksLikeSlice(text[name:end]) || isBuffer(word) {
				if end < len(text) && text[end] == '(' { // the columns
					end = closingParenthesis(text, end)
				}
				found = append(found, Span{name, end})
				at = end
			}
			continue
		}
		if strings.ContainsAny(word, ".$") || isBuffer(word) {
			found = append(found, Span{name, at})
		}
	}
	return found
}

// numberEnd is where a number ends that begins at a digit.
func numberEnd(text string, at int) int {
	for at < len(text) {
		c := text[at]
		sign := (c == '+' || c == '-') && (text[at-1] == 'e' || text[at-1] == 'E')
		if !sign && c != '.' && c != '_' && !('0' <= c && c <= '9') && !('a' <= c && c <= 'z') && !('A' <= c && c <= 'Z') {
			break
		}
		at++
	}
	return at
}

// nameEnd is where a name ends that may have points and variables in it, such as r.$i.
func nameEnd(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			at += size
		case r == '.' && at+1 < len(text) && text[at+1] != '.':
			at++
		case r == '$' && at+1 < len(text) && text[at+1] == '(':
			at = closingParenthesis(text, at+1)
		case r == '$':
			at++
		default:
			return at
		}
	}
	return at
}

// closingParenthesis is the place after the parenthesis that closes the one at open, or the end of the text.
func closingParenthesis(text string, open int) int {
	depth := 0
	for at := open; at < len(text); at++ {
		switch text[at] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return len(text)
}
