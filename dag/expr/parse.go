// Parses expressions: precedence, calls, buffers with a slice, x(lo..hi) and a(i of k)(j of k halo 1), and names with variables, up.$i.

package expr

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dagrun/dagrun/internal/words"
)

// Parse reads an expression.
func Parse(text string) (*Expr, error) { return parse(text, false) }

// ParseMap reads an elementwise computation such as "y = a*x + b": the name of its output, and the expression, in which exp,
// log, sin, cos and tanh are known and rand is not.
func ParseMap(text string) (out string, e *Expr, err error) {
	p := &parser{lexer: lexer{text: text}, elementwise: true}
	if err := p.begin(); err != nil {
		return "", nil, err
	}
	const form = `an elementwise computation is written "y = a*x + b"`
	if p.token.kind != tokenName || IsKeyword(p.token.text) {
		return "", nil, errorAt(p.token.offset, form, "missing the name of the result")
	}
	out = p.token.text
	if err := p.advance(); err != nil {
		return "", nil, err
	}
	if !p.symbol("=") {
		if p.symbol("(") {
			return "", nil, errorAt(p.token.offset, "name the slice in with: and use the name here", "a slice cannot stand in the expression")
		}
		return "", nil, errorAt(p.token.offset, form, `missing "=" after %q`, shorten(out))
	}
	if err := p.advance(); err != nil {
		return "", nil, err
	}
	root, xerr := p.whole()
	if xerr != nil {
		return "", nil, xerr
	}
	return out, &Expr{Text: text, Root: root, parsed: true}, nil
}

func parse(text string, elementwise bool) (*Expr, error) {
	p := &parser{lexer: lexer{text: text}, elementwise: elementwise}
	if err := p.begin(); err != nil {
		return nil, err
	}
	root, err := p.whole()
	if err != nil {
		return nil, err
	}
	return &Expr{Text: text, Root: root, parsed: true}, nil
}

type parser struct {
	lexer
	token       token
	depth       int
	elementwise bool
}

// begin reads the first token.
func (p *parser) begin() error {
	if len(p.text) > MaxText {
		return errorAt(0, "", "expression of %d bytes is over the limit of %d", len(p.text), MaxText)
	}
	if err := p.advance(); err != nil {
		return err
	}
	return nil
}

func (p *parser) advance() *Error {
	t, err := p.next()
	p.token = t
	return err
}

func (p *parser) symbol(s string) bool { return p.token.kind == tokenSymbol && p.token.text == s }

func (p *parser) word(s string) bool { return p.token.kind == tokenName && p.token.text == s }

// whole reads an expression that must end where the text ends.
func (p *parser) whole() (*Term, *Error) {
	t, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.token.kind != tokenEnd {
		return nil, p.unexpected("")
	}
	return t, nil
}

// moreArguments is what follows an argument of a function.
const moreArguments = `"," or ")"`

// unexpected is the error for a token that cannot stand where it does.
func (p *parser) unexpected(wanted string) *Error {
	hint := ""
	switch {
	case p.token.kind == tokenEnd:
		if wanted == "" {
			wanted = "a number or a name"
		}
		return errorAt(p.token.offset, "", "expression ends where %s is expected", wanted)
	case p.symbol("="):
		hint = "write == to compare"
	case p.symbol(".."):
		hint = "a slice x(lo..hi) can stand for a buffer, or in len(...)"
	case p.word("of"):
		hint = "a slice x(i of k) can stand for a buffer, or in len(...)"
	case p.symbol(")") && wanted == "":
		hint = `a "(" is missing before it`
	case p.symbol(",") && wanted == "":
		hint = `commas separate the arguments of a function: is a "(" missing before it?`
	case wanted == moreArguments && (p.token.kind == tokenName || p.token.kind == tokenNumber || p.symbol("(")):
		hint = "a comma or an operator is missing before it"
	case wanted != "":
		hint = "expected " + wanted + " here"
	case p.word("if"):
		hint = selectHint
	case p.token.kind == tokenName && (p.word("div") || p.word("mod")):
		hint = "write floor(a / b) or a % b"
	case p.token.kind == tokenName || p.token.kind == tokenNumber || p.symbol("("):
		hint = "is an operator or a comma missing before it?"
	}
	return errorAt(p.token.offset, hint, "unexpected %q", shorten(p.token.text))
}

func (p *parser) deeper(offset int) *Error {
	if p.depth++; p.depth > MaxDepth {
		return errorAt(offset, "", "expression is nested deeper than %d levels", MaxDepth)
	}
	return nil
}

func (p *parser) or() (*Term, *Error) {
	return p.leftAssociative(func() (Op, bool) { return Or, p.word("or") }, p.and)
}

func (p *parser) and() (*Term, *Error) {
	return p.leftAssociative(func() (Op, bool) { return And, p.word("and") }, p.not)
}

func (p *parser) leftAssociative(operator func() (Op, bool), operand func() (*Term, *Error)) (*Term, *Error) {
	left, err := operand()
	for err == nil {
		op, ok := operator()
		if !ok {
			return left, nil
		}
		offset := p.token.offset
		if err = p.advance(); err != nil {
			break
		}
		var right *Term
		if right, err = operand(); err == nil {
			left = &Term{Op: op, Args: []*Term{left, right}, Offset: offset}
		}
	}
	return nil, err
}

func (p *parser) not() (*Term, *Error) {
	if !p.word("not") {
		return p.comparison()
	}
	offset := p.token.offset
	if err := p.deeper(offset); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return nil, err
	}
	operand, err := p.not()
	if err != nil {
		return nil, err
	}
	return &Term{Op: Not, Args: []*Term{operand}, Offset: offset}, nil
}

func (p *parser) comparisonOp() (Op, bool) {
	if p.token.kind != tokenSymbol {
		return 0, false
	}
	switch p.token.text {
	case "<":
		return Less, true
	case "<=":
		return LessEq, true
	case ">":
		return Greater, true
	case ">=":
		return GreaterEq, true
	case "==":
		return Equal, true
	case "!=":
		return NotEqual, true
	}
	return 0, false
}

func (p *parser) comparison() (*Term, *Error) {
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	op, ok := p.comparisonOp()
	if !ok {
		return left, nil
	}
	offset := p.token.offset
	if err := p.advance(); err != nil {
		return nil, err
	}
	right, err := p.sum()
	if err != nil {
		return nil, err
	}
	if _, again := p.comparisonOp(); again {
		return nil, errorAt(p.token.offset, "write a < b and b < c", "comparisons do not chain")
	}
	return &Term{Op: op, Args: []*Term{left, right}, Offset: offset}, nil
}

func (p *parser) sum() (*Term, *Error) {
	return p.leftAssociative(func() (Op, bool) {
		if p.symbol("+") {
			return Add, true
		}
		return Sub, p.symbol("-")
	}, p.product)
}

func (p *parser) product() (*Term, *Error) {
	return p.leftAssociative(func() (Op, bool) {
		switch {
		case p.symbol("*"):
			return Mul, true
		case p.symbol("/"):
			return Div, true
		}
		return Mod, p.symbol("%")
	}, p.unary)
}

func (p *parser) unary() (*Term, *Error) {
	if !p.symbol("-") && !p.symbol("+") {
		return p.primary()
	}
	minus, offset := p.symbol("-"), p.token.offset
	if err := p.deeper(offset); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if err := p.advance(); err != nil {
		return nil, err
	}
	if least := p.token; minus && least.kind == tokenNumber && least.value == Int(math.MinInt64) {
		return &Term{Op: Literal, Value: least.value, Offset: offset}, p.advance()
	}
	operand, err := p.unary()
	if err != nil || !minus {
		return operand, err
	}
	// A signed number is a literal, so that it prints as it reads.
	if v, err := negate(operand.Value); operand.Op == Literal && operand.Value.kind != Bool && err == nil {
		return &Term{Op: Literal, Value: v, Offset: offset}, nil
	}
	return &Term{Op: Neg, Args: []*Term{operand}, Offset: offset}, nil
}

func (p *parser) primary() (*Term, *Error) {
	t := p.token
	switch {
	case t.kind == tokenNumber:
		if t.value.kind == Rational && t.value.num == math.MinInt64 {
			return nil, errorAt(t.offset, "", "integer %s does not fit in 64 bits", t.text)
		}
		return &Term{Op: Literal, Value: t.value, Offset: t.offset}, p.advance()
	case t.kind == tokenName && (t.text == "true" || t.text == "false"):
		return &Term{Op: Literal, Value: BoolValue(t.text == "true"), Offset: t.offset}, p.advance()
	case t.kind == tokenName && !IsKeyword(t.text):
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.symbol("(") {
			return p.call(t)
		}
		return &Term{Op: Variable, Name: t.text, Offset: t.offset}, nil
	case p.symbol("("):
		if err := p.deeper(t.offset); err != nil {
			return nil, err
		}
		defer func() { p.depth-- }()
		if err := p.advance(); err != nil {
			return nil, err
		}
		inner, err := p.or()
		if err != nil {
			return nil, err
		}
		return inner, p.closing()
	}
	return nil, p.unexpected("a number or a name")
}

func (p *parser) closing() *Error {
	if !p.symbol(")") {
		return p.unexpected(`")"`)
	}
	return p.advance()
}

// function describes how many arguments a function takes.
type function struct {
	name        string
	least, most int
	elementwise bool // in map expressions only
}

var functions = []function{
	{"abs", 1, 1, false}, {"ceil", 1, 1, false}, {"cols", 1, 1, false}, {"cos", 1, 1, true}, {"exp", 1, 1, true}, {"floor", 1, 1, false},
	{"ld", 1, 1, false}, {"len", 1, 1, false}, {"log", 1, 1, true}, {"log2", 1, 1, false}, {"max", 1, 1 << 10, false}, {"min", 1, 1 << 10, false},
	{"pow", 2, 2, false}, {"rand", 3, 3, false}, {"rows", 1, 1, false}, {"select", 3, 3, false},
	{"sin", 1, 1, true}, {"sqrt", 1, 1, false}, {"tanh", 1, 1, true},
}

// Functions returns the names of the functions; with elementwise those of map expressions.
func Functions(elementwise bool) []string {
	var names []string
	for _, f := range functions {
		if f.elementwise && !elementwise || elementwise && f.name == "rand" {
			continue
		}
		names = append(names, f.name)
	}
	return names
}

func (p *parser) call(name token) (*Term, *Error) {
	k := slices.IndexFunc(functions, func(f function) bool { return f.name == name.text })
	if k < 0 {
		// x(0..4) where a number is wanted is a slice, not a call.
		if p.looksLikeSlice() {
			err := errorAt(name.offset, "its length is len("+shorten(name.text)+"(...))", "a slice is not a number")
			err.Unknown = SliceForNumber
			return nil, err
		}
		known := Functions(p.elementwise)
		hint := "there are " + strings.Join(known, ", ")
		if near := words.Suggest(name.text, known); near != "" {
			hint = "did you mean \"" + near + "\"?"
		} else if name.text == "if" {
			hint = selectHint
		}
		err := errorAt(name.offset, hint, "unknown function %q", shorten(name.text))
		err.Unknown, err.Name = UnknownFunction, name.text
		return nil, err
	}
	f := functions[k]
	switch {
	case f.elementwise && !p.elementwise:
		return nil, errorAt(name.offset, "", "%s is only available in map: expressions", f.name)
	case f.name == "rand" && p.elementwise:
		return nil, errorAt(name.offset, "fill a buffer with init: {expr: ...} and use it here", "rand is not available in map: expressions")
	}
	if err := p.deeper(name.offset); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := &Term{Op: Call, Name: f.name, Offset: name.offset}
	if measures(f.name) {
		// The lexer stands behind the opening parenthesis.
		s, err := p.slice()
		if err != nil {
			return nil, err
		}
		t.Args = []*Term{{Op: Buffer, Name: s.Name.Text, Slice: s, Offset: s.Offset}}
		if err := p.advance(); err != nil {
			return nil, err
		}
		return t, p.closing()
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for !p.symbol(")") {
		argument, err := p.or()
		if err != nil {
			return nil, err
		}
		t.Args = append(t.Args, argument)
		if !p.symbol(",") {
			break
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.symbol(")") {
			return nil, p.unexpected("an argument")
		}
	}
	if n := len(t.Args); p.symbol(")") && (n < f.least || n > f.most) {
		return nil, errorAt(name.offset, "", "%s takes %s, not %d", f.name, arguments(f), n)
	}
	if !p.symbol(")") {
		return nil, p.unexpected(moreArguments)
	}
	return t, p.advance()
}

func arguments(f function) string {
	switch {
	case f.most != f.least:
		return "1 to 1024 arguments"
	case f.least == 1:
		return "1 argument"
	case f.least == 2:
		return "2 arguments"
	}
	return "3 arguments"
}

// looksLikeSlice scans the parentheses that open here for the .. or of that only slices have.
func (p *parser) looksLikeSlice() bool {
	depth := 1
	for pos := p.pos; pos < len(p.text) && depth > 0; pos++ {
		switch p.text[pos] {
		case '(':
			depth++
		case ')':
			depth--
		case '.':
			if depth == 1 && strings.HasPrefix(p.text[pos:], "..") {
				return true
			}
		case ' ':
			if depth == 1 && strings.HasPrefix(p.text[pos:], " of ") {
				return true
			}
		}
	}
	return false
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

// LooksLikeSlice reports whether text ends in the parentheses of a slice, as x(0..4) does and len(x(0..4)) does not.
func LooksLikeSlice(text string) bool {
	open := sliceStart(text)
	if open < 0 {
		return false
	}
	p := parser{lexer: lexer{text: text, pos: open + 1}}
	return p.looksLikeSlice()
}

// measures reports whether a function measures a buffer or a slice of one.
func measures(function string) bool {
	switch function {
	case "len", "rows", "cols", "ld":
		return true
	}
	return false
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
		return errorAt(p.pos, "leave the third slice out: what follows the second dimension is whole", "a slice of %q has at most two dimensions",
			shorten(s.Name.Text))
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
	inside := p.inParentheses()
	if wrongBounds(inside) {
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
		hint := "write x(lo..hi), x(..hi), x(lo..) or x(i of k)"
		if _, err := strconv.ParseUint(inside, 10, 32); err == nil {
			hint = "write " + s.Name.Text + RightBounds(inside) + " for one element"
		}
		return errorAt(open, hint, "bad slice of %q", shorten(s.Name.Text))
	}
	if p.word("halo") && a.Kind == Bounds {
		return errorAt(p.token.offset, "write x(i of k halo h), or move the bounds", "a halo goes with a part")
	}
	if !p.symbol(")") {
		return p.unexpected("\")\"")
	}
	return nil
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
