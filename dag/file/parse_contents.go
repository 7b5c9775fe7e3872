// What a buffer holds at first: numbers, expressions, random numbers or a file. Data files are not read here.

package file

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// The places of initKeys.
const (
	initRamp = iota
	initUniform
	initNormal
	initExpr
	initFile
	initSeed
	initKeyCount
)

var initKeys = keySet{"init", []string{"ramp", "uniform", "normal", "expr", "file", "seed"}}

// init reads a buffer's first contents. Sound says that the buffer has no mistake so far, and is handed on.
func (p *parser) init(n *yaml.Node, b *dag.Buffer, sound bool) (*dag.Init, bool) {
	if n.Kind == yaml.ScalarNode && n.Value == "zeros" {
		return &dag.Init{Kind: dag.InitZeros}, sound
	}
	if p.bareFile(n, "init") {
		return nil, false
	}
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		return p.initValue(n, b, sound)
	}
	if n.Kind == yaml.SequenceNode {
		values, ok := p.listed(n, b, "init")
		return &dag.Init{Kind: dag.InitValue, Values: values}, sound && ok
	}
	if n.Kind != yaml.MappingNode {
		p.wrongKind(n, "init", "zeros, a number, a list of all elements, or one of {ramp: }, {uniform: }, {normal: }, {expr: }, {file: }")
		return nil, false
	}
	var f [initKeyCount]field
	p.fields(n, &initKeys, f[:])
	kind := p.exactlyOne(n, "init", f[:initSeed])
	if kind < 0 {
		return nil, false
	}
	if f[initSeed].value != nil && kind != initUniform && kind != initNormal {
		p.mistake(position(f[initSeed].key), "", "%s takes no seed", initKeys.keys[kind])
		return nil, false
	}
	value, ok := f[kind].value, true
	in := &dag.Init{}
	switch kind {
	case initRamp:
		in.Kind = dag.InitRamp
		in.A, in.B, ok = p.pair(value, "ramp", "start", "step")
		ok = ok && (b.DType.Component().Float() || p.exactPair(value, "ramp", "start", "step"))
	case initUniform:
		in.Kind = dag.InitUniform
		if in.A, in.B, ok = p.pair(value, "uniform", "lowest", "highest"); ok && in.A > in.B {
			p.mistake(position(value), "", "uniform begins above its end: %v > %v", in.A, in.B)
			ok = false
		}
	case initNormal:
		in.Kind = dag.InitNormal
		if in.A, in.B, ok = p.pair(value, "normal", "mean", "standard deviation"); ok && in.B < 0 {
			p.mistake(position(value), "", "the standard deviation of normal must not be negative, but is %v", in.B)
			ok = false
		}
	case initExpr:
		in.Kind = dag.InitExpr
		in.Expr, ok = p.perElement(value, "expr", b)
	case initFile:
		in.Kind = dag.InitFile
		in.File, ok = p.dataFile(value, "file")
	}
	seed, fine := p.seed(f[initSeed])
	in.Seed = seed
	return in, sound && ok && fine
}

func (p *parser) initValue(n *yaml.Node, b *dag.Buffer, sound bool) (*dag.Init, bool) {
	// A word that does not name a number was probably meant to be zeros, or a key such as uniform.
	if _, known := p.Variable(n.Value); !known && expr.ValidName(n.Value) && n.Value != "true" && n.Value != "false" && !notFinite(n.Value) {
		hint := "write zeros, a number, or {ramp: [start, step]}, {uniform: [lo, hi]}, {normal: [mean, sd]}, {expr: ...}, {file: ...}"
		if near := p.near(n.Value, func() []string { return []string{"zeros"} }, p.variableNames); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		p.mistake(position(n), hint, "unknown init %q", words.Shorten(n.Value))
		return nil, false
	}
	v, ok := p.number(n, "init")
	if !ok {
		return nil, false
	}
	if _, err := b.DType.Component().Bits(v); err != nil {
		p.mistake(position(n), "", "init %s", err)
		return nil, false
	}
	return &dag.Init{Kind: dag.InitValue, Value: v}, sound
}

// bareFile reports, as a mistake, that the name of a file stands where a number could.
func (p *parser) bareFile(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || !hasSuffix(n.Value, ".npy", ".bin") {
		return false
	}
	p.mistake(position(n), fmt.Sprintf("write {file: %s}", words.Shorten(n.Value)), "%s is the name of a file", what)
	return true
}

// exactlyOne returns which of several keys is given.
func (p *parser) exactlyOne(n *yaml.Node, what string, f []field) int {
	given := -1
	for k := range f {
		switch {
		case f[k].value == nil:
		case given < 0:
			given = k
		default:
			p.mistake(position(f[k].key), "", "%s is either %s or %s, not both", what, f[given].key.Value, f[k].key.Value)
			return -1
		}
	}
	if given < 0 && !p.unknownKeys {
		p.mistake(position(n), "", "%s is incomplete", what)
	}
	return given
}

// pair evaluates a list of two numbers.
func (p *parser) pair(n *yaml.Node, what, first, second string) (a, b float64, ok bool) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
		if n.Kind != yaml.AliasNode {
			hint := ""
			if n.Kind == yaml.SequenceNode && len(n.Content) == 1 && strings.Contains(n.Content[0].Value, " ") {
				hint = "is a comma missing in it?"
			}
			p.mistake(position(n), hint, "%s must be [%s, %s]", what, first, second)
		}
		return 0, 0, false
	}
	a, ok1 := p.float(n.Content[0], "the "+first+" of "+what)
	b, ok2 := p.float(n.Content[1], "the "+second+" of "+what)
	return a, b, ok1 && ok2
}

// exactPair reports integers of a pair that the pair cannot hold: it is two float64.
func (p *parser) exactPair(n *yaml.Node, what, first, second string) bool {
	for k, name := range []string{first, second} {
		v, ok := p.number(n.Content[k], name)
		exact, isInteger := v.Int()
		if back, _ := expr.FloatValue(v.Float()).Int(); ok && isInteger && back != exact {
			p.mistake(position(n.Content[k]), `write {expr: "START + STEP*i"}, which is exact`, "the %s of %s, %d, is too large to be exact", name, what, exact)
			return false
		}
	}
	return true
}

// elementScope is the parser's scope inside of an expression per element, where i is the index.
type elementScope struct{ p *parser }

func (s elementScope) Variable(name string) (expr.Value, bool) {
	if name == "i" {
		return expr.Value{}, false
	}
	return s.p.Variable(name)
}

func (s elementScope) Shape(buffer string) ([]int64, bool) { return s.p.Shape(buffer) }

// perElement reads an expression over the index i of an element.
func (p *parser) perElement(n *yaml.Node, what string, b *dag.Buffer) (*expr.Expr, bool) {
	s, ok := p.string(n, what)
	if !ok {
		return nil, false
	}
	e, err := p.parsedExpr(s)
	if err != nil {
		p.exprMistake(n, err)
		return nil, false
	}
	for k := range p.loops {
		if p.loops[k].name != "i" {
			continue
		}
		for _, name := range e.Variables() {
			if name == "i" {
				p.mistake(position(n), "rename the variable of the foreach", "i is the index of an element here")
				return nil, false
			}
		}
	}
	p.usesUnknown = false
	bound, err := e.Bind(elementScope{p}, "i")
	if p.usesUnknown {
		return nil, false
	}
	var f *expr.Function
	if err == nil {
		f, err = bound.Compile("i")
	}
	// Evaluate the first and the last element now, so that errors there are reported before anything runs.
	at := int64(0)
	if count := b.Bytes / b.DType.Component().Size(); err == nil && count > 0 {
		if _, err = f.Value(0); err == nil {
			at = count - 1
			_, err = f.Value(at)
		}
		if err != nil {
			p.exprMistakeAt(n, err, fmt.Sprintf(" (at i = %d)", at))
			return nil, false
		}
	}
	if err != nil {
		p.exprMistake(n, err)
		return nil, false
	}
	return bound, true
}

// dataFile returns the path of a file of elements.
func (p *parser) dataFile(n *yaml.Node, what string) (string, bool) {
	path, ok := p.expanded(n, what)
	if !ok {
		return "", false
	}
	if i := strings.IndexFunc(path, unicode.IsControl); i >= 0 {
		p.mistake(position(n), "", "%s has a control character (%U)", what, []rune(path[i:])[0])
		return "", false
	}
	if !hasSuffix(path, ".npy", ".bin") {
		p.mistake(position(n), "", "%s must be a .npy or .bin file, not %q", what, words.Shorten(path))
		return "", false
	}
	return p.fromRoot(path), true
}

// listed reads a list of numbers: those of all elements of a buffer, or the components of one for every element, [0, 0, 0, 1].
func (p *parser) listed(n *yaml.Node, b *dag.Buffer, what string) ([]expr.Value, bool) {
	if err := b.ValuesProblem(len(n.Content)); err != nil {
		p.mistake(position(n), "", "%s has %s", what, err)
		return nil, false
	}
	values, ok := make([]expr.Value, len(n.Content)), true
	for k, item := range n.Content {
		v, fine := p.number(item, "a number")
		if fine {
			if _, err := b.DType.Component().Bits(v); err != nil && what == "init" {
				p.mistake(position(item), "", "a number %s", err)
				fine = false
			}
		}
		values[k], ok = v, ok && fine
	}
	return values, ok
}
