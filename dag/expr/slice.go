// Buffers with a slice, x(lo..hi) and x(i of k), and names with variables, up.$i.

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
	Part                    // x(Lo of Hi)
)

// Slice is a buffer, or some of it along its first dimension.
type Slice struct {
	Name   *Template
	Kind   SliceKind
	Lo, Hi *Term // nil where left out
	Offset int   // of the name, in the text
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
// the last parentheses, if those hold a slice.
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
	if err := p.bounds(s); err != nil {
		return nil, err
	}
	return s, nil
}

// sliceStart returns where the parentheses at the end of text open, or -1 if there are none or they belong to a $(i+1).
func sliceStart(text string) int {
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
	return s, p.bounds(s)
}

// bounds reads (lo..hi) or (i of k) into s.
func (p *parser) bounds(s *Slice) (err *Error) {
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
		if s.Lo, err = p.or(); err != nil {
			return err
		}
	}
	switch {
	case p.symbol(".."):
		s.Kind = Bounds
		if err := p.advance(); err != nil {
			return err
		}
		if !p.symbol(")") {
			if s.Hi, err = p.or(); err != nil {
				return err
			}
		}
	case p.word("of"):
		s.Kind = Part
		if err := p.advance(); err != nil {
			return err
		}
		if s.Hi, err = p.or(); err != nil {
			return err
		}
	case p.token.kind == tokenEnd:
		return p.unexpected("\")\"")
	default:
		return errorAt(open, "write x(lo..hi), x(..hi), x(lo..) or x(i of k)", "bad slice of %q", shorten(s.Name.Text))
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

// wrongBounds reports whether the bounds are written as in another language.
func wrongBounds(inside string) bool {
	_, _, mark := cutBounds(inside)
	return mark >= 0 && boundMarks[mark].text != " of " && boundMarks[mark].text != ".."
}

// RightBounds turns the inside of a slice that is written as in another language into the right form: "0:4" into "(0..4)".
func RightBounds(inside string) string {
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
	for _, t := range []*Term{s.Lo, s.Hi} {
		if t != nil {
			walk(t, visit)
		}
	}
}

// Range evaluates the slice of a buffer whose first dimension is length, or -1 where it has none: elements lo (included) to
// hi (excluded) along that dimension. Errors carry the place of the bound. Name is for messages.
func (s *Slice) Range(scope Scope, name string, length int64) (lo, hi int64, err error) {
	if err := s.checkAlone(); err != nil {
		return 0, 0, err
	}
	if scope == nil {
		return 0, 0, errors.New("there is no scope to look names up in")
	}
	if s.Kind == Whole {
		return 0, max(length, 0), nil
	}
	if length < 0 {
		return 0, 0, errorAt(s.Offset, "", "%s is a single element, it has no slices", name)
	}
	lo, hi = 0, length
	if s.Lo != nil {
		if lo, err = evalInt(s.Lo, scope, "a slice"); err != nil {
			return 0, 0, err
		}
	}
	if s.Hi != nil {
		if hi, err = evalInt(s.Hi, scope, "a slice"); err != nil {
			return 0, 0, err
		}
	}
	if s.Kind == Part {
		part, parts := lo, hi
		if parts < 1 {
			return 0, 0, errorAt(s.Hi.Offset, s.swapped(part > 0 || s.Hi.Op != Literal), "%s cannot be cut into %d parts", name, parts)
		}
		if part < 0 || part >= parts {
			return 0, 0, errorAt(s.Lo.Offset, s.swapped(part > parts), "part %d of %d: parts are numbered 0 to %d", part, parts, parts-1)
		}
		size, longer := length/parts, length%parts
		lo = part*size + min(part, longer)
		hi = lo + size
		if part < longer {
			hi++
		}
		return lo, hi, nil
	}
	offset := func(t *Term) int {
		if t == nil {
			return s.Offset
		}
		return t.Offset
	}
	switch {
	case lo < 0:
		return 0, 0, errorAt(offset(s.Lo), "", "slice of %s starts at %d, before its first element", name, lo)
	case hi > length:
		return 0, 0, errorAt(offset(s.Hi), "", "slice %d..%d is outside %s, which has %d", lo, hi, name, length)
	case lo > length:
		return 0, 0, errorAt(offset(s.Lo), "", "slice %d..%d is outside %s, which has %d", lo, hi, name, length)
	case lo > hi:
		return 0, 0, errorAt(offset(s.Lo), s.swapped(s.Lo != nil && s.Hi != nil), "slice %d..%d of %s is reversed", lo, hi, name)
	}
	return lo, hi, nil
}

// swapped is the hint to swap the bounds, if they are likely to be the wrong way round.
func (s *Slice) swapped(likely bool) string {
	if !likely {
		return ""
	}
	var b strings.Builder
	b.WriteString("write " + s.Name.Text + "(")
	s.Hi.print(&b, 0)
	if s.Kind == Part {
		b.WriteString(" of ")
	} else {
		b.WriteString("..")
	}
	s.Lo.print(&b, 0)
	return b.String() + ")"
}
