// Buffers with a slice, x(lo..hi) and a(i of k)(j of k halo 1), and names with variables, up.$i.

package expr

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// SliceKind is the form of a slice.
type SliceKind uint8

const (
	Whole  SliceKind = iota // x
	Bounds                  // x(Lo..Hi), each may be missing
	Part                    // x(Lo of Hi), x(Lo of Hi halo Halo)
)

// Slice is a buffer, or some of it along its first dimension and its second.
type Slice struct {
	Name    *Template
	Axis          // along the first dimension
	Columns *Axis // along the second; nil: all of it
	Offset  int   // of the name, in the text
}

// Axis is a slice along one dimension.
type Axis struct {
	Kind   SliceKind
	Lo, Hi *Term // nil where left out
	Halo   *Term // Part: how many elements more on each side; nil: none
}

// Template is text with variables: up.$i, $(i+1), $$ for a dollar.
type Template struct {
	Text  string
	parts []part
}

type part struct {
	literal string
	term    *Term // nil: literal
}

// ParseSlice reads a buffer with an optional slice. Unlike in len(...), the name may hold any characters: what stands in front of
// the parentheses at the end.
func ParseSlice(text string) (*Slice, error) {
	if len(text) > MaxText {
		return nil, errorAt(0, "", "text of %d bytes is over the limit of %d", len(text), MaxText)
	}
	name, open := text, sliceStart(text)
	if open >= 0 {
		name = strings.TrimRight(text[:open], " ")
	} else if bracket := strings.IndexByte(text, '['); bracket > 0 && text[len(text)-1] == ']' {
		return nil, errorAt(bracket, "write "+bracketsToParentheses(text[:bracket], text[bracket:]), "a slice is not written with brackets")
	}
	if name == "" {
		return nil, errorAt(0, "", "a buffer's name is missing")
	}
	template, err := ParseTemplate(name)
	if err != nil {
		return nil, err
	}
	s := &Slice{Name: template}
	if open < 0 {
		return s, nil
	}
	p := &parser{lexer: lexer{text: text, pos: open}}
	if err := p.slices(s); err != nil {
		return nil, err
	}
	return s, nil
}

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

// LooksLikeSlice reports whether text ends in the parentheses of a slice, as x(0..4) does and len(x(0..4)) does not.
func LooksLikeSlice(text string) bool {
	open := sliceStart(text)
	if open < 0 {
		return false
	}
	p := parser{lexer: lexer{text: text, pos: open + 1}}
	return p.looksLikeSlice()
}

// slice reads name or name(...) and leaves the lexer right behind it, the next token unread.
func (p *parser) slice() (*Slice, *Error) {
	p.skipSpace()
	s := &Slice{Offset: p.pos}
	name, err := p.template(true)
	if err != nil {
		return nil, err
	}
	s.Name = name
	p.skipSpace()
	if p.at("[") {
		return nil, errorAt(p.pos, "write "+bracketsToParentheses(s.Name.Text, p.text[p.pos:]), "a slice is not written with brackets")
	}
	if !p.at("(") {
		return s, nil
	}
	return s, p.slices(s)
}

// slices reads the slices along the first dimension and, if there is one, along the second.
func (p *parser) slices(s *Slice) *Error {
	if err := p.bounds(s, &s.Axis); err != nil {
		return err
	}
	p.skipSpace()
	if !p.at("(") {
		return nil
	}
	s.Columns = new(Axis)
	if err := p.bounds(s, s.Columns); err != nil {
		return err
	}
	p.skipSpace()
	if p.at("(") {
		return errorAt(p.pos, "leave the third slice out: what follows the second dimension is whole", "a slice of %q has at most two dimensions", shorten(s.Name.Text))
	}
	return nil
}

// bounds reads (lo..hi), (i of k) or (i of k halo h) of the slice s into a.
func (p *parser) bounds(s *Slice, a *Axis) (err *Error) {
	open := p.pos
	if err := p.deeper(open); err != nil {
		return err
	}
	defer func() { p.depth-- }()
	p.pos++
	if inside := p.inParentheses(); wrongBounds(inside) {
		return errorAt(open, "write "+s.Name.Text+RightBounds(inside), "bad slice of %q", shorten(s.Name.Text))
	}
	if err := p.advance(); err != nil {
		return err
	}
	if !p.symbol("..") {
		if a.Lo, err = p.or(); err != nil {
			return err
		}
	}
	switch {
	case p.symbol(".."):
		a.Kind = Bounds
		if err := p.advance(); err != nil {
			return err
		}
		if !p.symbol(")") {
			if a.Hi, err = p.or(); err != nil {
				return err
			}
		}
	case p.word("of"):
		a.Kind = Part
		if err := p.advance(); err != nil {
			return err
		}
		if a.Hi, err = p.or(); err != nil {
			return err
		}
		if p.word("halo") {
			if err := p.advance(); err != nil {
				return err
			}
			if a.Halo, err = p.or(); err != nil {
				return err
			}
		}
	case p.token.kind == tokenEnd:
		return p.unexpected("\")\"")
	default:
		return errorAt(open, "write x(lo..hi), x(..hi), x(lo..) or x(i of k)", "bad slice of %q", shorten(s.Name.Text))
	}
	if p.word("halo") && a.Kind == Bounds {
		return errorAt(p.token.offset, "write x(i of k halo h), or move the bounds", "a halo goes with a part")
	}
	if !p.symbol(")") {
		return p.unexpected("\")\"")
	}
	return nil
}

// bracketsToParentheses turns the [0:4] of other languages into the right form, for a hint.
func bracketsToParentheses(name, brackets string) string {
	inside, _, _ := strings.Cut(strings.TrimPrefix(brackets, "["), "]")
	return name + RightBounds(inside)
}

// inParentheses returns the text up to the parenthesis that closes the one before the lexer, or to the end.
func (p *parser) inParentheses() string {
	for pos, depth := p.pos, 1; pos < len(p.text); pos++ {
		switch p.text[pos] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return p.text[p.pos:pos]
			}
		}
	}
	return p.text[p.pos:]
}

// boundMarks are what people write between the bounds of a slice, the right ones first, then those of other languages.
var boundMarks = []struct {
	text string
	part bool // which part of how many it is
}{{" of ", true}, {"...", false}, {"..", false}, {":", false}, {" to ", false}, {" off ", true}, {" in ", true}, {"/", true}, {",", false}}

// cutBounds splits the inside of a slice at the mark between its bounds; mark is -1 if there is none.
func cutBounds(inside string) (lo, hi string, mark int) {
	for k := range boundMarks {
		depth := 0
		for at := range len(inside) {
			switch inside[at] {
			case '(', '[':
				depth++
			case ')', ']':
				depth--
			}
			if depth == 0 && strings.HasPrefix(inside[at:], boundMarks[k].text) {
				return strings.TrimSpace(inside[:at]), strings.TrimSpace(inside[at+len(boundMarks[k].text):]), k
			}
		}
	}
	return strings.TrimSpace(inside), "", -1
}

// cutDimensions splits the inside of a slice at a comma between two dimensions, as in "i of k, 0:4".
func cutDimensions(inside string) (rows, columns string, ok bool) {
	depth := 0
	for at := range len(inside) {
		switch inside[at] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth != 0 {
				continue
			}
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
		return "(" + lo + ".." + lo + "+1)"
	case boundMarks[mark].part:
		return "(" + lo + " of " + hi + ")"
	case boundMarks[mark].text == ",":
		return "(" + lo + ".." + hi + "), or (" + lo + " of " + hi + ") for one of its parts"
	}
	return "(" + lo + ".." + hi + ")"
}

// ParseTemplate reads a name or a path.
func ParseTemplate(text string) (*Template, error) {
	if strings.IndexByte(text, '$') < 0 {
		return &Template{Text: text, parts: []part{{literal: text}}}, nil
	}
	if len(text) > MaxText {
		return nil, errorAt(0, "", "text of %d bytes is over the limit of %d", len(text), MaxText)
	}
	p := &parser{lexer: lexer{text: text}}
	t, err := p.template(false)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// template reads text with variables up to the end, or, of a buffer's name, as far as the name goes.
func (p *parser) template(name bool) (*Template, *Error) {
	start := p.pos
	t := &Template{}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.parts = append(t.parts, part{literal: literal.String()})
			literal.Reset()
		}
	}
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		if c != '$' {
			size := 1
			if name {
				if size = p.nameCharacter(); size == 0 {
					break
				}
			}
			literal.WriteString(p.text[p.pos : p.pos+size])
			p.pos += size
			continue
		}
		dollar := p.pos
		p.pos++
		end := nameEnd(p.text, p.pos)
		switch {
		case p.at("$"):
			literal.WriteByte('$')
			p.pos++
		case end > p.pos:
			flush()
			t.parts = append(t.parts, part{term: &Term{Op: Variable, Name: p.text[p.pos:end], Offset: p.pos}})
			p.pos = end
		case p.at("("):
			flush()
			if err := p.deeper(dollar); err != nil {
				return nil, err
			}
			p.pos++
			if err := p.advance(); err != nil {
				return nil, err
			}
			term, err := p.or()
			if err != nil {
				return nil, err
			}
			if !p.symbol(")") {
				return nil, p.unexpected(`")"`)
			}
			p.depth--
			t.parts = append(t.parts, part{term: term})
		case p.at("{"):
			return nil, errorAt(dollar, "write "+bracesToParentheses(p.text[p.pos:]), "a variable is not written with braces")
		default:
			return nil, errorAt(dollar, "write $i, $(i+1), or $$ for a dollar", "lone $")
		}
	}
	flush()
	t.Text = p.text[start:p.pos]
	if name && t.Text == "" {
		err := p.advance()
		if err == nil {
			err = p.unexpected("a buffer's name")
		}
		return nil, err
	}
	return t, nil
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

// nameCharacter returns the size of the character here if a buffer's name can hold it, else 0.
func (p *parser) nameCharacter() int {
	if end := nameEnd(p.text, p.pos); end > p.pos {
		return end - p.pos
	}
	switch c := p.text[p.pos]; {
	case isDigit(c):
		return 1
	case c == '.' && !p.at(".."):
		return 1
	case c < utf8.RuneSelf:
		return 0
	}
	return 0
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

// Expand puts the variables' values in.
func (t *Template) Expand(scope Scope) (string, error) {
	if plain, ok := t.Plain(); ok {
		return plain, nil
	}
	if scope == nil {
		return "", errors.New("there is no scope to look names up in")
	}
	var b []byte
	for _, p := range t.parts {
		if p.term == nil {
			b = append(b, p.literal...)
			continue
		}
		v, err := eval(p.term, scope)
		if err != nil {
			return "", err
		}
		if n, ok := v.Int(); ok {
			v = Int(n)
		}
		b = append(b, v.String()...)
	}
	return string(b), nil
}

func (s *Slice) walk(visit func(*Term)) {
	for _, p := range s.Name.parts {
		if p.term != nil {
			walk(p.term, visit)
		}
	}
	s.eachTerm(func(t *Term) error {
		walk(t, visit)
		return nil
	})
}
