// Slices in the syntax of other languages, such as x[lo:hi], and what to write instead.

package expr

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// sliceStart returns where the first of the parentheses at the end of text opens, or -1 if there are none or they belong to a $(i+1).
func sliceStart(text string) int {
	first := -1
	for {
		open := lastParentheses(text)
		if open < 0 {
			return first
		}
		first = open
		text = strings.TrimRight(text[:open], " ")
	}
}

// lastParentheses returns where the parentheses at the end of text open, or -1 if there are none or they belong to a $(i+1).
func lastParentheses(text string) int {
	if !strings.HasSuffix(text, ")") {
		return -1
	}
	depth := 0
	for pos := len(text) - 1; pos >= 0; pos-- {
		switch text[pos] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				if pos > 0 && text[pos-1] == '$' {
					return -1
				}
				return pos
			}
		}
	}
	return -1
}

// bracketsToParentheses turns the [0:4] of other languages into the right form, for a hint.
func bracketsToParentheses(name, brackets string) string {
	inside, _, _ := strings.Cut(strings.TrimPrefix(brackets, "["), "]")
	return name + RightBounds(inside)
}

// boundMarks are what people write between the bounds of a slice, the right ones first, then those of other languages.
var boundMarks = []struct {
	text string
	part bool // which part of how many it is
}{{" of ", true}, {"...", false}, {"..", false}, {":", false}, {" to ", false}, {" off ", true}, {" in ", true}, {"/", true}, {",", false}}

// cutBounds splits the inside of a slice at the mark between its bounds; mark is -1 if there is none.
func cutBounds(inside string) (lo, hi string, mark int) {
	for k := range boundMarks {
		for at := range outermost(inside) {
			if strings.HasPrefix(inside[at:], boundMarks[k].text) {
				return strings.TrimSpace(inside[:at]), strings.TrimSpace(inside[at+len(boundMarks[k].text):]), k
			}
		}
	}
	return strings.TrimSpace(inside), "", -1
}

// outermost lists the places of a text that are in no parentheses of their own.
func outermost(text string) iter.Seq[int] {
	return func(yield func(int) bool) {
		depth := 0
		for at := range len(text) {
			switch text[at] {
			case '(', '[':
				depth++
			case ')', ']':
				depth--
			}
			if depth == 0 && !yield(at) {
				return
			}
		}
	}
}

// cutDimensions splits the inside of a slice at a comma between two dimensions, as in "i of k, 0:4".
func cutDimensions(inside string) (rows, columns string, ok bool) {
	for at := range outermost(inside) {
		if inside[at] == ',' {
			rows, columns = strings.TrimSpace(inside[:at]), strings.TrimSpace(inside[at+1:])
			_, _, first := cutBounds(rows)
			_, _, second := cutBounds(columns)
			return rows, columns, first >= 0 && second >= 0 && boundMarks[second].text != ","
		}
	}
	return "", "", false
}

// wrongBounds reports whether the bounds are written as in another language.
func wrongBounds(inside string) bool {
	if _, _, two := cutDimensions(inside); two {
		return true
	}
	_, _, mark := cutBounds(inside)
	return mark >= 0 && boundMarks[mark].text != " of " && boundMarks[mark].text != ".."
}

// RightBounds turns the inside of a slice that is written as in another language into the right form: "0:4" into "(0..4)".
func RightBounds(inside string) string {
	if rows, columns, ok := cutDimensions(inside); ok {
		return RightBounds(rows) + RightBounds(columns)
	}
	lo, hi, mark := cutBounds(inside)
	switch {
	case mark < 0 && lo == "":
		return "(lo..hi)"
	case mark < 0:
		if n, err := strconv.ParseInt(lo, 10, 32); err == nil && n >= 0 {
			return fmt.Sprintf("(%d..%d)", n, n+1)
		}
		return "(" + lo + ".." + lo + "+1)"
	case boundMarks[mark].part:
		return "(" + lo + " of " + hi + ")"
	case boundMarks[mark].text == ",":
		return "(" + lo + ".." + hi + "), or (" + lo + " of " + hi + ") for one of its parts"
	}
	return "(" + lo + ".." + hi + ")"
}

// bracesToParentheses turns the {i} of ${i} into the right form, for a hint.
func bracesToParentheses(braces string) string {
	inside, _, found := strings.Cut(strings.TrimPrefix(braces, "{"), "}")
	inside = strings.TrimSpace(inside)
	switch {
	case !found || inside == "":
		return "$i or $(i+1)"
	case ValidName(inside):
		return "$" + inside
	}
	return "$(" + inside + ")"
}

// Plain returns the text of a template without variables.
func (t *Template) Plain() (string, bool) {
	if t == nil {
		return "", true
	}
	switch len(t.parts) {
	case 0:
		return "", true
	case 1:
		return t.parts[0].literal, t.parts[0].term == nil
	}
	return "", false
}
