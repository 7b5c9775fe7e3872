// Scalars of a pipeline file: words, numbers, and names with variables in them. Also the names that expressions may use.

package file

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// cacheSize bounds the cache of parsed texts: repetitions meet the same few texts over and over, a long file never.
const cacheSize = 4096

func (p *parser) cached(s string) *parsedText {
	const short = 8
	if len(p.loops) == 0 && len(s) > short && p.memory == nil {
		return &parsedText{} // most likely read once
	}
	if c, ok := p.cache[s]; ok {
		return c
	}
	if len(p.cache) >= cacheSize {
		clear(p.cache)
	}
	c := &parsedText{}
	p.cache[s] = c
	return c
}

func (p *parser) parsedExpr(s string) (*expr.Expr, error) {
	c := p.cached(s)
	if c.expr == nil && c.exprErr == nil {
		c.expr, c.exprErr = expr.Parse(s)
	}
	return c.expr, c.exprErr
}

func (p *parser) parsedSlice(s string) (*expr.Slice, error) {
	c := p.cached(s)
	if c.slice == nil && c.sliceErr == nil {
		c.slice, c.sliceErr = expr.ParseSlice(s)
	}
	return c.slice, c.sliceErr
}

// Variable makes the parser the scope of its expressions.
func (p *parser) Variable(name string) (expr.Value, bool) {
	for k := len(p.loops) - 1; k >= 0; k-- {
		if b := &p.loops[k]; b.name == name {
			p.usesUnknown = p.usesUnknown || b.broken
			return b.value, true
		}
	}
	if b, ok := p.params[name]; ok {
		p.usesUnknown = p.usesUnknown || b.broken
		return b.value, true
	}
	return p.options.rankVariable(name)
}

// Shape makes the parser the scope of its expressions.
func (p *parser) Shape(buffer string) ([]int64, bool) {
	id, ok := p.buffers[buffer]
	switch {
	case !ok:
		return nil, false
	case id == broken:
		p.usesUnknown = true
		return []int64{1, 1}, true
	}
	return p.pipeline.Buffers[id].Shape, true
}

// string returns the text of a scalar as it stands.
func (p *parser) string(n *yaml.Node, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		p.wrongKind(n, what, "a single value")
		return "", false
	}
	return n.Value, true
}

// expanded returns the text of a scalar with its variables replaced.
func (p *parser) expanded(n *yaml.Node, what string) (string, bool) {
	s, ok := p.string(n, what)
	if !ok || strings.IndexByte(s, '$') < 0 {
		return s, ok
	}
	c := p.cached(s)
	var err error
	if c.template == nil {
		if c.template, err = expr.ParseTemplate(s); err != nil {
			p.exprMistake(n, err)
			return "", false
		}
	}
	p.usesUnknown = false
	s, err = c.template.Expand(p)
	switch {
	case p.usesUnknown:
		return "", false
	case err != nil:
		p.exprMistake(n, err)
		return "", false
	}
	return s, true
}

// word returns a scalar that is one of a few words.
func (p *parser) word(n *yaml.Node, what string, known ...string) string {
	s, ok := p.string(n, what)
	if !ok {
		return ""
	}
	for _, w := range known {
		if s == w {
			return w
		}
	}
	hint := ""
	if near := words.Suggest(s, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	last := len(known) - 1
	p.mistake(position(n), hint, "%s must be %s or %s, not %s", what, strings.Join(known[:last], ", "), known[last], kindText(n))
	return ""
}

// truth returns a scalar that is true or false.
func (p *parser) truth(n *yaml.Node, what string) (value, ok bool) {
	switch p.word(n, what, "true", "false") {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// number evaluates a scalar.
func (p *parser) number(n *yaml.Node, what string) (expr.Value, bool) {
	s, ok := p.string(n, what)
	if !ok {
		return expr.Value{}, false
	}
	if v, ok := smallInteger(s); ok {
		return expr.Int(v), true
	}
	e, err := p.parsedExpr(s)
	if err != nil {
		p.exprMistake(n, err)
		return expr.Value{}, false
	}
	return p.evaluate(n, e)
}

func (p *parser) evaluate(n *yaml.Node, e *expr.Expr) (expr.Value, bool) {
	p.usesUnknown = false
	v, err := e.Eval(p)
	switch {
	case p.usesUnknown:
		return expr.Value{}, false
	case err != nil:
		p.exprMistakeAt(n, err, p.repetition())
		return expr.Value{}, false
	}
	return v, true
}

// smallInteger reads the plain integers that most numbers of a file are.
func smallInteger(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 15 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	n := int64(0)
	for k := 0; k < len(s); k++ {
		c := s[k] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, true
}

// integer evaluates a scalar that must be integral.
func (p *parser) integer(n *yaml.Node, what string) (int64, bool) {
	v, ok := p.number(n, what)
	if !ok {
		return 0, false
	}
	i, err := expr.Integral(v, 0, what)
	if err != nil {
		p.exprMistake(n, err)
		return 0, false
	}
	return i, true
}

// between evaluates an integer that must lie in lo..hi, both included.
func (p *parser) between(n *yaml.Node, what string, lo, hi int64) (int64, bool) {
	v, ok := p.integer(n, what)
	switch {
	case !ok:
		return 0, false
	case v < lo && lo == 0:
		p.mistake(position(n), "", "%s must not be negative, but is %d", what, v)
		return 0, false
	case v < lo:
		p.mistake(position(n), "", "%s must be at least %d, but is %d", what, lo, v)
		return 0, false
	case v > hi && hi == math.MaxInt32:
		p.mistake(position(n), "", "%s does not fit in 32 bits: %d", what, v)
		return 0, false
	case v > hi:
		p.mistake(position(n), "", "%s must be at most %d, but is %d", what, hi, v)
		return 0, false
	}
	return v, true
}

// size3 reads one to three expressions.
func (p *parser) size3(n *yaml.Node, what string, least int64, most [3]int64) ([3]uint32, bool) {
	size := [3]uint32{1, 1, 1}
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	if len(items) < 1 || len(items) > 3 {
		p.mistake(position(n), "", "%s must be one to three numbers, not %d", what, len(items))
		return size, false
	}
	ok := true
	for k, item := range items {
		v, fine := p.between(item, what+"."+"xyz"[k:k+1], least, min(most[k], math.MaxUint32))
		size[k], ok = uint32(v), ok && fine
	}
	return size, ok
}

// float evaluates a scalar as a float64.
func (p *parser) float(n *yaml.Node, what string) (float64, bool) {
	v, ok := p.number(n, what)
	if ok && v.Kind() == expr.Bool {
		p.mistake(position(n), "", "%s must be a number, not %s", what, v)
		return 0, false
	}
	return v.Float(), ok
}

// exprMistake reports an error of the expression language at its place inside of a scalar.
func (p *parser) exprMistake(n *yaml.Node, err error) { p.exprMistakeAt(n, err, "") }

// exprMistakeAt adds for which values of variables the error arose.
func (p *parser) exprMistakeAt(n *yaml.Node, err error, when string) {
	var e *expr.Error
	if !errors.As(err, &e) {
		p.mistake(position(n), "", "%s", err)
		return
	}
	pos := p.inside(n, e.Offset)
	if p.counting || !p.mistakes.wants(pos) {
		return
	}
	if p.cutAtComma(n, n.Value) {
		return
	}
	message, hint := e.Message+when, e.Hint
	switch e.Unknown {
	case expr.UnknownVariable:
		message, hint = p.unknownVariable(e.Name)
	case expr.UnknownBuffer:
		if near := p.near(e.Name, p.bufferNames); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
	case expr.UnknownFunction:
		if _, known := p.buffers[e.Name]; known {
			message, hint = fmt.Sprintf("%q is a buffer, and a number is needed here",
				e.Name), fmt.Sprintf("a slice such as %s(lo..hi) can stand for a buffer, or in len(...)", e.Name)
		}
	}
	if notFinite(n.Value) {
		pos, message, hint = position(n), fmt.Sprintf("%s is not a finite number", n.Value), ""
	}
	p.mistake(pos, hint, "%s", message)
}

// cutAtComma reports a value in brackets that ends at a comma within its parentheses, for want of quotes: "min(1" of [min(1, i)].
func (p *parser) cutAtComma(n *yaml.Node, value string) bool {
	open := strings.IndexByte(value, '(')
	if n.Style != 0 || open < 1 || strings.Count(n.Value, "(") <= strings.Count(n.Value, ")") {
		return false
	}
	at := p.text.offset(position(n))
	if at < 0 || !bytes.HasPrefix(p.text.source[at:], []byte(n.Value+",")) {
		return false
	}
	rest := p.text.line(int32(n.Line))[n.Column-1:]
	if end := valueEnd([]byte(rest)); end > len(n.Value) {
		rest = rest[:end]
	}
	if _, known := p.buffers[value[:open]]; known {
		inside, _, _ := strings.Cut(rest[strings.IndexByte(rest, '(')+1:], ")")
		p.mistake(position(n), "write "+n.Value[:strings.IndexByte(n.Value, '(')]+expr.RightBounds(inside), "a slice is not written with a comma")
		return true
	}
	p.mistake(position(n), fmt.Sprintf("put it in quotes: %q", words.Shorten(rest)), "the value ends at a comma, within its parentheses")
	return true
}

// maxNear is how many suggestions are looked for among the names of a file: with thousands of mistakes among thousands of names
// it would take all the time.
const maxNear = 100

// near suggests one of the file's names.
func (p *parser) near(name string, candidates ...func() []string) string {
	if p.suggested++; p.suggested > maxNear {
		return ""
	}
	var all []string
	for _, c := range candidates {
		all = append(all, c()...)
	}
	return words.Suggest(name, all)
}

// notFinite reports whether a text is one of the ways to write an infinity or no number.
func notFinite(s string) bool {
	switch strings.ToLower(strings.TrimLeft(s, "+-")) {
	case ".inf", ".nan", "inf", "nan", "infinity":
		return true
	}
	return false
}

func (p *parser) unknownVariable(name string) (message, hint string) {
	if _, ok := p.buffers[name]; ok {
		return fmt.Sprintf("expected a number here, but %q is a buffer", name), fmt.Sprintf("its length is len(%s)", name)
	}
	near := p.near(name, p.variableNames)
	if near == "" {
		near = words.Suggest(strings.ToLower(name), []string{"true", "false"})
		if strings.EqualFold(name, "true") || strings.EqualFold(name, "false") {
			near = strings.ToLower(name)
		}
	}
	if near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if p.inParams {
		hint = "a param is a number, true, false, or an expression of the params before it"
	}
	return fmt.Sprintf("unknown name %q", words.Shorten(name)), hint
}

// variableNames lists params and loop variables as declared.
func (p *parser) variableNames() []string {
	names := append([]string(nil), p.names...)
	for k := range p.loops {
		names = append(names, p.loops[k].name)
	}
	return names
}

func (p *parser) bufferNames() []string {
	if p.within != nil {
		return slices.Sorted(maps.Keys(p.buffers))
	}
	names := make([]string, 0, len(p.pipeline.Buffers))
	for k := range p.pipeline.Buffers {
		if b := &p.pipeline.Buffers[k]; !b.Scratch {
			names = append(names, b.Name)
		}
	}
	return names
}

// inside returns the place of a byte of a scalar's value: exact where the value stands in the file as it is, else its beginning.
func (p *parser) inside(n *yaml.Node, offset int) dag.Pos {
	pos := position(n)
	at := p.text.offset(pos)
	if at < 0 || offset > len(n.Value) {
		return pos
	}
	source := p.text.source[at:]
	quote := 0
	if len(source) > 0 && (source[0] == '"' || source[0] == '\'') {
		quote = 1
	}
	if quote+offset > len(source) || string(source[quote:quote+offset]) != n.Value[:offset] || strings.ContainsAny(n.Value[:offset], "\n") {
		return pos
	}
	pos.Column += int32(quote + utf8.RuneCountInString(n.Value[:offset]))
	return pos
}

// repetition says for messages where in the repetitions they arose: " (i = 3, j = 0)".
func (p *parser) repetition() string {
	if len(p.loops) == 0 {
		return ""
	}
	var b strings.Builder
	for k := range p.loops {
		if k > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s = %s", p.loops[k].name, p.loops[k].value)
	}
	return " (" + b.String() + ")"
}

// usableName checks the name of a param, a loop variable or a module: one that expressions can hold and that is not taken.
func (p *parser) usableName(n *yaml.Node, name, what string) bool {
	switch {
	case len(name) > dag.MaxName:
		p.mistake(position(n), "", "the name has %d bytes; at most %d are allowed", len(name), dag.MaxName)
		return false
	case expr.IsKeyword(name):
		p.mistake(position(n), "", "%q is a keyword of expressions and cannot name a %s", name, what)
		return false
	case !expr.ValidName(name):
		p.mistake(position(n), "a letter or _, then letters, digits and _", "%q cannot name a %s", words.Shorten(name), what)
		return false
	}
	if first, ok := p.params[name]; ok && what != "module" {
		if what == "param" {
			p.mistake(position(n), "", "key %q is given twice; the first is on line %d", name, first.pos.Line)
		} else {
			p.mistake(position(n), "", "%q is a param already (line %d)", name, first.pos.Line)
		}
		return false
	}
	return true
}

// lookup returns the value of a key in a mapping, or nil. For peeking only: it reports nothing.
func lookup(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for k := 0; k+1 < len(n.Content); k += 2 {
		if n.Content[k].Value == key {
			return n.Content[k+1]
		}
	}
	return nil
}

// rankVariable returns the value of a name that expressions know without a declaration. A param, variable or buffer of the same name hides
// it.
func (o *Options) rankVariable(name string) (expr.Value, bool) {
	switch name {
	case "rank":
		return expr.Int(int64(o.Rank)), true
	case "ranks":
		return expr.Int(int64(max(o.Ranks, 1))), true
	case "local_rank":
		return expr.Int(int64(o.LocalRank)), true
	}
	return expr.Value{}, false
}

// version reads what a file says of its format. What a newer one means cannot be known: then nothing else of it is judged.
func (p *parser) version(root *yaml.Node) bool {
	written := lookup(root, "version")
	if root.Kind != yaml.MappingNode {
		return true
	}
	if written == nil && misspeltVersion(root) {
		return true
	}
	if written == nil {
		p.mistake(position(root), `write "version: 1" as the first line`, "version is missing")
		return true
	}
	n, ok := p.integer(written, "version")
	switch {
	case !ok:
		return true
	case n > Version:
		p.mistake(position(written), "", "version %d is newer than this dagrun, which reads version %d", n, Version)
		return false
	case n < Version:
		p.mistake(position(written), "write 1", "there is no version %d", n)
	}
	return true
}

// misspeltVersion reports whether a key is a misspelt version, which is then reported as an unknown key.
func misspeltVersion(root *yaml.Node) bool {
	for k := 0; k < len(root.Content); k += 2 {
		if words.Suggest(root.Content[k].Value, fileKeys.keys) == "version" {
			return true
		}
	}
	return false
}
