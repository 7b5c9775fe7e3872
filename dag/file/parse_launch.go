// Kernel and map nodes of a pipeline file: their arguments as written. Package dag finds the kernel and checks them.

package file

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

func (p *parser) kernel(node *dag.Node, f *[nodeKeyCount]field) ([]dag.Access, bool) {
	label, ok := p.expanded(f[nodeKernel].value, "kernel")
	if !ok {
		return nil, false
	}
	spec := dag.LaunchSpec{Label: label, Kernel: label, Module: broken, Device: node.Device}
	if module, kernel, dotted := strings.Cut(label, "."); dotted {
		id, known := p.modules[module]
		if !known {
			p.unknownModule(f[nodeKernel].value, module)
			ok = false
		} else if id == broken {
			ok = false
		}
		spec.Module, spec.Kernel = id, kernel
	}
	nodes, fine := p.args(f[nodeArgs].value, &spec)
	ok = ok && fine
	for k := range nodeRows {
		if f[k].value != nil && nodeRows[k].launch != nil {
			ok = nodeRows[k].launch(p, f[k], &spec) && ok
		}
	}
	if !ok {
		return nil, false
	}
	accesses, ok := p.launch(node, f, &spec, nodes, nodeKernel)
	if ok && spec.Module >= 0 {
		_, name, _ := strings.Cut(node.Launch.Name, ".")
		node.Launch.Name = p.pipeline.Modules[spec.Module].Name + "." + name
	}
	return accesses, ok
}

// args reads the arguments of a kernel: a list is by position, a mapping by the names of its parameters. It returns their places.
func (p *parser) args(n *yaml.Node, spec *dag.LaunchSpec) (nodes []*yaml.Node, ok bool) {
	ok = true
	switch {
	case n == nil || isNull(n):
		return nil, true
	case n.Kind == yaml.SequenceNode:
		nodes = n.Content
	case n.Kind == yaml.MappingNode:
		spec.Names, nodes, ok = p.named(n)
	default:
		p.wrongList(n, "args", "a list")
		return nil, false
	}
	spec.Args = make([]dag.ArgumentSpec, len(nodes))
	for k, n := range nodes {
		if spec.Call {
			if a, found, fine := p.wordArgument(spec, spec.Names[k], n); found {
				spec.Args[k], ok = a, ok && fine
				continue
			}
		}
		a, fine := p.arg(n)
		spec.Args[k], ok = a, ok && fine
	}
	return nodes, ok
}

// launch resolves a kernel or map node and puts what is wrong with it in its place. nodes are the places of spec.Args.
func (p *parser) launch(node *dag.Node, f *[nodeKeyCount]field, spec *dag.LaunchSpec, nodes []*yaml.Node, action int) ([]dag.Access, bool) {
	accesses, problems := p.pipeline.Launch(p.options.Library, node, spec)
	for _, bad := range problems {
		at := f[action].value
		switch {
		case bad.Part == dag.PartArg && nodes[bad.Arg] != nil:
			at = nodes[bad.Arg]
		case bad.Part == dag.PartArgs && f[nodeArgs].value != nil:
			at = f[nodeArgs].value
		case bad.Part == dag.PartGrid && f[nodeGrid].value != nil:
			at = f[nodeGrid].value
		case bad.Part == dag.PartCluster && f[nodeCluster].value != nil:
			at = f[nodeCluster].value
		case bad.Part == dag.PartDevice && f[nodeDevice].value != nil:
			at = f[nodeDevice].value
		}
		if !p.counting && p.mistakes.wants(position(at)) {
			hint := bad.Hint
			if hint == "" {
				hint = p.launchHint(node, spec, &bad)
			}
			p.mistake(position(at), hint, "%s%s", bad.Message, p.repetition())
		}
	}
	if len(problems) == 0 && spec.Module >= 0 && spec.Map == nil {
		p.launched = append(p.launched, launched{node.Launch, spec, nodes, f[action].value, p.repetition()})
	}
	return accesses, len(problems) == 0
}

func (p *parser) unknownModule(n *yaml.Node, module string) {
	hint := "declare it under modules:"
	if _, kernel, _ := strings.Cut(n.Value, "."); p.options.Library != nil && len(p.pipeline.Modules) == 0 {
		if near := words.Suggest(kernel, p.options.Library.Names()); near != "" {
			hint = fmt.Sprintf("declare it under modules:, or write %s for the kernel of the library", near)
		}
	}
	if full := n.Value; p.isCall(full) {
		hint = fmt.Sprintf("%s is a call; write call: %s", full, full)
	}
	near := p.near(module, func() []string {
		var names []string
		for k := range p.pipeline.Modules {
			names = append(names, p.pipeline.Modules[k].Name)
		}
		return names
	})
	if near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.mistake(position(n), hint, "unknown module %q", words.Shorten(module))
}

// isCall reports whether a name is that of a library call.
func (p *parser) isCall(name string) bool {
	calls := dag.CallsOf(p.options.Library)
	return calls != nil && slices.Contains(calls.Names(), name)
}

// arg reads one argument: a number, a buffer, a slice, {in: b}, {out: b}, {inout: b}, or a number of a type as in {i32: n}.
func (p *parser) arg(n *yaml.Node) (dag.ArgumentSpec, bool) {
	switch {
	case n.Kind == yaml.MappingNode:
		return p.taggedArg(n)
	case n.Kind == yaml.ScalarNode && n.Value == "null" && isNull(n):
		return dag.ArgumentSpec{Null: true}, true
	case n.Kind != yaml.ScalarNode || isNull(n):
		p.wrongKind(n, "an argument", "a buffer, a slice or a number")
		return dag.ArgumentSpec{}, false
	}
	s := n.Value
	if v, ok := smallInteger(s); ok {
		return dag.ArgumentSpec{Value: expr.Int(v)}, true
	}
	if id, ok := p.buffers[s]; ok {
		r, ok := p.whole(id)
		return dag.ArgumentSpec{IsBuffer: true, Range: r}, ok
	}
	e, err := p.parsedExpr(s)
	if err != nil && p.gluedArguments(n) {
		return dag.ArgumentSpec{}, false
	}
	if err != nil && p.meansBuffer(s) && !calculates(s, err) {
		r, ok := p.reference(n, "an argument")
		return dag.ArgumentSpec{IsBuffer: true, Range: r}, ok
	}
	if err != nil {
		p.exprMistake(n, err)
		return dag.ArgumentSpec{}, false
	}
	if name := e.Root; name.Op == expr.Variable {
		if _, known := p.Variable(name.Name); !known {
			p.unknownArgument(n, name.Name)
			return dag.ArgumentSpec{}, false
		}
	}
	v, ok := p.evaluate(n, e)
	return dag.ArgumentSpec{Value: v}, ok
}

// calculates reports whether an expression is wrong because it computes with a slice, as 2*x(0..4) and x(0..4) + 1 do.
func calculates(s string, err error) bool {
	var wrong *expr.Error
	return errors.As(err, &wrong) && wrong.Unknown == expr.SliceForNumber && (wrong.Offset > 0 || !strings.HasSuffix(s, ")"))
}

// gluedArguments reports two arguments, or two values of another list, without a comma between them.
func (p *parser) gluedArguments(n *yaml.Node) bool {
	s := n.Value
	depth := 0
	for k := range len(s) {
		switch s[k] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ' ':
			if left, right := strings.TrimRight(s[:k], " "), strings.TrimLeft(s[k:], " "); depth == 0 && p.isArgument(left) && p.isArgument(right) {
				p.mistake(p.inside(n, len(s)-len(right)), "", "a comma is missing before %q", words.Shorten(right))
				return true
			}
		}
	}
	return false
}

// isArgument reports whether a text can stand as an argument: a buffer, a slice or a number.
func (p *parser) isArgument(s string) bool {
	if _, known := p.buffers[s]; known || s == "" {
		return known
	}
	if _, err := expr.Parse(s); err == nil {
		return !strings.ContainsAny(s[:1], "+-(")
	}
	return !strings.ContainsAny(s[:1], "+-*/%(") && !strings.ContainsAny(s[len(s)-1:], "+-*/%") && p.meansBuffer(s)
}

// meansBuffer reports whether a text that is no expression was meant as a buffer: a slice, a dotted name, or one with variables.
func (p *parser) meansBuffer(s string) bool {
	if expr.LooksLikeSlice(s) || strings.HasSuffix(s, "]") {
		return true
	}
	if open := strings.LastIndexByte(s, '('); open > 0 && s[open-1] != '$' {
		if _, known := p.buffers[s[:open]]; known || strings.ContainsAny(s[:open], "$.") && !strings.ContainsAny(s[:open], " ,(") {
			return true
		}
	}
	if s == "" || strings.ContainsAny(s[:1], "$0123456789.-+(") {
		return false
	}
	return !strings.ContainsAny(s, " ,") && strings.ContainsAny(s, "$.")
}

// unknownArgument reports a name that is neither a buffer nor a number.
func (p *parser) unknownArgument(n *yaml.Node, name string) {
	if p.counting || !p.mistakes.wants(position(n)) || p.inBrokenUse(name) {
		return
	}
	hint := ""
	if near := p.near(name, p.bufferNames, p.variableNames); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.mistake(position(n), hint, "unknown name %q: neither a buffer nor a param", words.Shorten(name))
}

const startKey = "at"

var modeKeys = []string{"in", "out", "inout", "unused"}

// start takes at: out of an argument in braces: at which element of its slice its pointer points.
func (p *parser) start(n *yaml.Node) (at int64, rest []*yaml.Node, ok bool) {
	for k := 0; k+1 < len(n.Content); k += 2 {
		if n.Content[k].Value == startKey {
			at, ok = p.between(n.Content[k+1], startKey, 0, math.MaxInt32)
			return at, slices.Concat(n.Content[:k], n.Content[k+2:]), ok
		}
	}
	return 0, n.Content, true
}

func (p *parser) taggedArg(n *yaml.Node) (dag.ArgumentSpec, bool) {
	if isTexture(n) {
		return p.texture(n)
	}
	start, rest, ok := p.start(n)
	if !ok {
		return dag.ArgumentSpec{}, false
	}
	if len(rest) != 2 || !p.isKey(rest[0]) {
		p.mistake(position(n), "", "an argument in braces has one key: in, out, inout, unused (which can have at), struct, texture (which can have others), or the type of a number")
		return dag.ArgumentSpec{}, false
	}
	key, value := rest[0], rest[1]
	if len(n.Content) > 2 && !slices.Contains(modeKeys, key.Value) {
		p.mistake(position(n), "", "at goes with in, out, inout or unused")
		return dag.ArgumentSpec{}, false
	}
	if key.Value == structKey {
		v, ok := p.structure(value, 0, p.arg)
		return dag.ArgumentSpec{Struct: &v}, ok
	}
	for mode := dag.Read; mode <= dag.Untouched; mode++ {
		if key.Value != mode.String() {
			continue
		}
		r, ok := p.reference(value, key.Value)
		return dag.ArgumentSpec{IsBuffer: true, Range: r, Mode: mode, Start: start}, ok
	}
	t, ok := dag.ParseDType(key.Value)
	if !ok {
		hint := "it may be in, out, inout, unused, struct, texture, or the type of a number such as i32"
		if near := words.Suggest(key.Value, slices.Concat(modeKeys, []string{structKey, textureKey}, dag.DTypes())); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		p.mistake(position(key), hint, "unknown key %q in an argument", words.Shorten(key.Value))
		return dag.ArgumentSpec{}, false
	}
	v, ok := p.number(value, "a number")
	return dag.ArgumentSpec{Value: v, DType: t}, ok
}

// mapNode reads an elementwise node.
func (p *parser) mapNode(node *dag.Node, f *[nodeKeyCount]field) ([]dag.Access, bool) {
	n := f[nodeMap].value
	s, ok := p.string(n, "map")
	if !ok {
		return nil, false
	}
	m := mapNames{parser: p, node: n}
	if !m.with(f[nodeWith].value) {
		return nil, false
	}
	p.usesUnknown = false
	spec, err := dag.MapLaunch(s, lengthScope{p}, m.lookup)
	if err != nil && !m.unknown {
		p.exprMistakeAt(n, err, "")
	}
	if err == nil && !p.usesUnknown {
		ok = m.allUsed()
	}
	if spec == nil || err != nil || !ok || p.usesUnknown {
		return nil, false
	}
	places := make([]*yaml.Node, len(spec.Args))
	for k, name := range append([]string{spec.Map.Out}, spec.Map.Inputs...) {
		places[k] = m.place(name)
	}
	spec.Device = node.Device
	return p.launch(node, f, spec, places, nodeMap)
}

// mapNames is what the names of one map node stand for.
type mapNames struct {
	parser  *parser
	node    *yaml.Node
	names   []string // of with
	keys    []*yaml.Node
	values  []*yaml.Node
	used    []bool
	unknown bool // a mistake was reported by lookup
}

func (m *mapNames) with(n *yaml.Node) bool {
	if n == nil || isNull(n) {
		return true
	}
	if n.Kind != yaml.MappingNode {
		m.parser.wrongKind(n, "with", "a mapping of names to buffers")
		return false
	}
	ok := true
	for k := 0; k+1 < len(n.Content); k += 2 {
		key := n.Content[k]
		if !m.parser.isEntry(key, n.Content[k+1]) {
			ok = false
			continue
		}
		for i, name := range m.names {
			if name == key.Value {
				m.parser.duplicateKey(key, m.keys[i])
				ok = false
			}
		}
		m.names, m.keys, m.values = append(m.names, key.Value), append(m.keys, key), append(m.values, n.Content[k+1])
	}
	m.used = make([]bool, len(m.names))
	return ok
}

func (m *mapNames) allUsed() bool {
	ok := true
	for k := range m.names {
		if !m.used[k] {
			m.parser.mistake(position(m.keys[k]), "", "with names %q, which the expression does not use", words.Shorten(m.names[k]))
			ok = false
		}
	}
	return ok
}

// place returns where with says what a name stands for, else the expression.
func (m *mapNames) place(name string) *yaml.Node {
	for k := range m.names {
		if m.names[k] == name {
			return m.values[k]
		}
	}
	return m.node
}

// lookup says what a name of the expression stands for: what with says, a buffer, a param or a variable of a foreach.
func (m *mapNames) lookup(name string, offset int) (dag.ArgumentSpec, bool) {
	p := m.parser
	for k := range m.names {
		if m.names[k] == name {
			m.used[k] = true
			return m.ok(p.arg(m.values[k]))
		}
	}
	if id, known := p.buffers[name]; known {
		r, ok := p.whole(id)
		return m.ok(dag.ArgumentSpec{IsBuffer: true, Range: r}, ok)
	}
	usesUnknown := p.usesUnknown
	if v, known := p.Variable(name); known {
		ok := p.usesUnknown == usesUnknown
		return m.ok(dag.ArgumentSpec{Value: v}, ok)
	}
	hint := ""
	if near := p.near(name, p.bufferNames, p.variableNames, func() []string { return m.names }); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.mistake(p.inside(m.node, offset), hint, "unknown name %q: neither a buffer nor a param", words.Shorten(name))
	return m.ok(dag.ArgumentSpec{}, false)
}

func (m *mapNames) ok(a dag.ArgumentSpec, ok bool) (dag.ArgumentSpec, bool) {
	m.unknown = m.unknown || !ok
	return a, ok
}

// lengthScope knows the lengths of buffers only: the variables of a map stay free.
type lengthScope struct{ p *parser }

func (s lengthScope) Variable(string) (expr.Value, bool)              { return expr.Value{}, false }
func (s lengthScope) Shape(buffer string) (shape []int64, known bool) { return s.p.Shape(buffer) }

// wordArgument reads an argument of a call for which words may stand. found is false if numbers are written for it.
func (p *parser) wordArgument(spec *dag.LaunchSpec, name string, n *yaml.Node) (a dag.ArgumentSpec, found, ok bool) {
	list := dag.WordsOf(p.options.Library, spec.Kernel, name)
	if list == nil {
		return dag.ArgumentSpec{}, false, true
	}
	text, ok := p.expanded(n, name)
	if !ok {
		return dag.ArgumentSpec{}, true, false
	}
	at := slices.Index(list, text)
	if at < 0 {
		hint := ""
		if near := words.Suggest(text, list); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		p.mistake(position(n), hint, "argument %s of call %q must be %s, not %s%s", name, spec.Label, words.List(list, "or"), words.Shorten(text), p.repetition())
		return dag.ArgumentSpec{}, true, false
	}
	return dag.ArgumentSpec{Value: expr.Int(int64(at))}, true, true
}

// call reads a library call.
func (p *parser) call(node *dag.Node, f *[nodeKeyCount]field) ([]dag.Access, bool) {
	label, ok := p.expanded(f[nodeCall].value, "call")
	if !ok {
		return nil, false
	}
	n := f[nodeArgs].value
	if n != nil && n.Kind == yaml.SequenceNode {
		p.mistake(position(n), "write {a: x, b: y, c: z}", "the arguments of a call are given by name")
		return nil, false
	}
	spec := dag.LaunchSpec{Label: label, Kernel: label, Module: -1, Device: node.Device, Call: true, Names: []string{}}
	if calls := dag.CallsOf(p.options.Library); calls != nil {
		if _, err := calls.ParameterNames(label); err != nil { // its arguments mean nothing
			return p.launch(node, f, &spec, nil, nodeCall)
		}
	}
	nodes, ok := p.args(n, &spec)
	if !ok {
		return nil, false
	}
	return p.launch(node, f, &spec, nodes, nodeCall)
}
