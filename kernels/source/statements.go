// Statement expressions, an extension of C++ that NVRTC lacks: ({ int a = 1; a + 1; }) becomes a lambda that is called where it stands.

package source

import (
	"cmp"
	"slices"
)

// edit is text that takes the place of other text.
type edit struct {
	from, to int32
	text     string
}

// bracket is one that is open.
type bracket struct {
	open        token
	after       token // the token before it
	start, last int   // tokens that begin the statement that is read, and the one before it
	statements  bool
	stays       bool // it leaves the function around it, or has directives
	types       []edit
}

// withLambdas returns source text whose statement expressions are lambdas. Lines stay. What leaves the function around it stays as it is.
func withLambdas(text []byte) []byte {
	var edits []edit
	var open []bracket
	in := tokens(string(text), 0)
	for i, t := range in {
		var top *bracket
		if n := len(open); n > 0 {
			top = &open[n-1]
		}
		switch t.text {
		case "\n":
			open = open[:0]
		case "(", "[", "{":
			b := bracket{open: t, start: i + 1}
			if i > 0 {
				b.after = in[i-1]
			}
			open = append(open, b)
		case ")", "]", "}":
			if top == nil {
				break
			}
			done := *top
			if open = open[:len(open)-1]; len(open) == 0 {
				break
			}
			around := &open[len(open)-1]
			around.stays = around.stays || done.stays
			if isTypeOf(done.after.text) && i+2 < len(in) && in[i+1].word() && in[i+2].text == "=" {
				around.types = append(around.types, edit{done.after.at, t.at + 1, "auto"}) // a lambda may be in what it names
			}
			if t.text == "}" {
				if done.after.text == "(" && i+1 < len(in) && in[i+1].text == ")" {
					edits = append(edits, done.lambda(in, i)...)
				}
				around.last, around.start = around.start, i+1
			}
		case "return", "goto", "#":
			if top != nil {
				top.stays = true
			}
		case ";":
			if top != nil {
				if top.start < i { // else it ends with what braces are in
					top.last = top.start
				}
				top.statements, top.start = true, i+1
			}
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out []byte
	done := int32(0)
	for _, e := range edits {
		out = append(append(out, text[done:e.from]...), e.text...)
		done = e.to
	}
	return append(out, text[done:]...)
}

func isTypeOf(word string) bool {
	return word == "__typeof__" || word == "__typeof" || word == "typeof"
}

// lambda returns the edits for braces that end with a token, none if they hold no statements.
func (b *bracket) lambda(in []token, end int) []edit {
	if !b.statements || b.stays {
		return nil
	}
	edits := append(b.types, edit{b.open.at, b.open.at, "[&]"}, edit{in[end].at + 1, in[end].at + 1, "()"})
	if b.start == end && !slices.Contains([]string{"{", "if", "for", "while", "do", "switch"}, in[b.last].text) {
		edits = append(edits, edit{in[b.last].at, in[b.last].at, "return "})
	}
	return edits
}
