// Kernel and map nodes of a pipeline file: their arguments as written. What the kernel makes of them is decided in resolve.go.

package dag

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag/expr"
	"gopkg.in/yaml.v3"
)

// What every CUDA device allows.
var (
	maxGrid  = [3]int64{1<<31 - 1, 65535, 65535}
	maxBlock = [3]int64{1024, 1024, 64}
)

func (p *parser) kernel(node *Node, f *[nodeKeyCount]field) ([]Access, bool) {
	label, ok := p.expanded(f[nodeKernel].value, "kernel")
	if !ok {
		return nil, false
	}
	spec := launchSpec{Label: label, Kernel: label, Module: broken, Device: node.Device}
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
	var nodes []*yaml.Node
	if list := f[nodeArgs].value; list != nil && !isNull(list) {
		if list.Kind != yaml.SequenceNode {
			p.wrongKind(list, "args", "a list")
			return nil, false
		}
		nodes = list.Content
		spec.Args = make([]argSpec, len(nodes))
		for k, n := range nodes {
			a, fine := p.arg(n)
			spec.Args[k], ok = a, ok && fine
		}
	}
	if n := f[nodeGrid].value; n != nil {
		size, fine := p.size3(n, "grid", 0, maxGrid)
		if size[1] == 0 || size[2] == 0 {
			size = [3]uint32{0, 1, 1} // nothing is launched
		}
		spec.Grid, ok = size, ok && fine
	}
	if n := f[nodeBlock].value; n != nil {
		size, fine := p.size3(n, "block", 1, maxBlock)
		if threads := size[0] * size[1] * size[2]; fine && threads > 1024 {
			p.mistake(position(n), "", "block has %d threads; no device allows more than 1024", threads)
			fine = false
		}
		spec.Block, ok = size, ok && fine
	}
	if n := f[nodeShared].value; n != nil {
		v, fine := p.between(n, "shared", 0, 1<<30)
		spec.Shared, spec.HasShared, ok = uint32(v), true, ok && fine
	}
	if !ok {
		return nil, false
	}
	return p.launch(node, f, &spec, nodes, nodeKernel)
}

// launch resolves a kernel or map node and puts what is wrong with it in its place. nodes are the places of spec.Args.
func (p *parser) launch(node *Node, f *[nodeKeyCount]field, spec *launchSpec, nodes []*yaml.Node, action int) ([]Access, bool) {
	accesses, problems := p.pipeline.resolveLaunch(p.options.Library, node, spec)
	for _, bad := range problems {
		at := f[action].value
		switch {
		case bad.Part == launchArg && nodes[bad.Arg] != nil:
			at = nodes[bad.Arg]
		case bad.Part == launchArgs && f[nodeArgs].value != nil:
			at = f[nodeArgs].value
		case bad.Part == launchGrid && f[nodeGrid].value != nil:
			at = f[nodeGrid].value
		case bad.Part == launchDevice && f[nodeDevice].value != nil:
			at = f[nodeDevice].value
		}
		p.mistake(position(at), bad.Hint, "%s%s", bad.Message, p.repetition())
	}
	return accesses, len(problems) == 0
}

func (p *parser) unknownModule(n *yaml.Node, module string) {
	var names []string
	for k := range p.pipeline.Modules {
		names = append(names, p.pipeline.Modules[k].Name)
	}
	hint := "declare it under modules:"
	if near := suggest(module, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.mistake(position(n), hint, "unknown module %q", shorten(module))
}

// arg reads one argument: a number, a buffer, a slice, {in: b}, {out: b}, {inout: b}, or a number of a type as in {i32: n}.
func (p *parser) arg(n *yaml.Node) (argSpec, bool) {
	switch {
	case n.Kind == yaml.MappingNode:
		return p.taggedArg(n)
	case n.Kind != yaml.ScalarNode || isNull(n):
		p.wrongKind(n, "an argument", "a buffer, a slice or a number")
		return argSpec{}, false
	}
	s := n.Value
	if v, ok := smallInteger(s); ok {
		return argSpec{Value: expr.Int(v)}, true
	}
	if id, ok := p.buffers[s]; ok {
		r, ok := p.whole(id)
		return argSpec{IsBuffer: true, Range: r}, ok
	}
	e, err := p.parsedExpr(s)
	if err != nil && p.meansBuffer(s) {
		r, ok := p.reference(n, "an argument")
		return argSpec{IsBuffer: true, Range: r}, ok
	}
	if err != nil {
		p.exprMistake(n, err)
		return argSpec{}, false
	}
	if name := e.Root; name.Op == expr.Variable {
		if _, known := p.Variable(name.Name); !known {
			p.unknownArgument(n, name.Name)
			return argSpec{}, false
		}
	}
	v, ok := p.evaluate(n, e)
	return argSpec{Value: v}, ok
}

// meansBuffer reports whether a text that is no expression was meant as a buffer: a slice, a dotted name, or one with variables.
func (p *parser) meansBuffer(s string) bool {
	if expr.LooksLikeSlice(s) || strings.HasSuffix(s, "]") {
		return true
	}
	if s == "" || strings.ContainsAny(s[:1], "$0123456789.-+(") {
		return false
	}
	return !strings.ContainsAny(s, " ,") && strings.ContainsAny(s, "$.")
}

// unknownArgument reports a name that is neither a buffer nor a number.
func (p *parser) unknownArgument(n *yaml.Node, name string) {
	if p.muted || !p.mistakes.fresh(position(n)) {
		return
	}
	hint := ""
	if near := suggest(name, append(p.bufferNames(), p.variableNames()...)); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.mistake(position(n), hint, "unknown name %q: neither a buffer nor a param", shorten(name))
}

func (p *parser) taggedArg(n *yaml.Node) (argSpec, bool) {
	if len(n.Content) != 2 || !p.isKey(n.Content[0]) {
		p.mistake(position(n), "", "an argument in braces has one key: in, out, inout, or the type of a number")
		return argSpec{}, false
	}
	key, value := n.Content[0], n.Content[1]
	for mode := Read; mode <= ReadWrite; mode++ {
		if key.Value != mode.String() {
			continue
		}
		r, ok := p.reference(value, key.Value)
		return argSpec{IsBuffer: true, Range: r, Mode: mode}, ok
	}
	t, ok := ParseDType(key.Value)
	if !ok {
		hint := "it may be in, out, inout, or the type of a number such as i32"
		if near := suggest(key.Value, append([]string{"in", "out", "inout"}, DTypes()...)); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		p.mistake(position(key), hint, "unknown key %q in an argument", shorten(key.Value))
		return argSpec{}, false
	}
	v, ok := p.number(value, "a number")
	return argSpec{Value: v, DType: t}, ok
}

// mapNode reads an elementwise node.
func (p *parser) mapNode(node *Node, f *[nodeKeyCount]field) ([]Access, bool) {
	n := f[nodeMap].value
	s, ok := p.string(n, "map")
	if !ok {
		return nil, false
	}
	out, e, err := expr.ParseMap(s)
	if err != nil {
		p.exprMistake(n, err)
		return nil, false
	}
	m := mapReading{parser: p, node: n, spec: &MapSpec{Text: s, Out: out}}
	if !m.with(f[nodeWith].value) || !m.bindLengths(e) {
		return nil, false
	}
	if !m.output() {
		ok = false
	}
	ok = m.operands() && ok
	for k := range m.names {
		if !m.used[k] {
			p.mistake(position(m.keys[k]), "", "with names %q, which the expression does not use", shorten(m.names[k]))
			ok = false
		}
	}
	if !ok {
		return nil, false
	}
	spec := launchSpec{Label: "map", Module: broken, Args: m.args, Device: node.Device, Map: m.spec}
	return p.launch(node, f, &spec, m.places, nodeMap)
}

// mapReading is one map node while it is read.
type mapReading struct {
	parser *parser
	node   *yaml.Node
	spec   *MapSpec
	names  []string // of with
	keys   []*yaml.Node
	values []*yaml.Node
	used   []bool
	args   []argSpec
	places []*yaml.Node // of args
}

func (m *mapReading) with(n *yaml.Node) bool {
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
		if !m.parser.isKey(key) {
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

// lengthScope knows buffers only: variables of a map stay free.
type lengthScope struct{ p *parser }

func (s lengthScope) Variable(string) (expr.Value, bool)         { return expr.Value{}, false }
func (s lengthScope) Length(buffer string) (n int64, known bool) { return s.p.Length(buffer) }

// bindLengths puts numbers in the place of len(...).
func (m *mapReading) bindLengths(e *expr.Expr) bool {
	m.spec.Expr = e
	has := false
	e.Walk(func(t *expr.Term) { has = has || t.Op == expr.Buffer })
	if !has {
		return true
	}
	m.parser.poisoned = false
	bound, err := e.Bind(lengthScope{m.parser}, e.Variables()...)
	if err != nil && !m.parser.poisoned {
		m.parser.exprMistake(m.node, err)
	}
	m.spec.Expr = bound
	return err == nil && !m.parser.poisoned
}

// buffer returns the range that a name of the expression stands for; isBuffer is false where it is no buffer's name.
func (m *mapReading) buffer(name string) (r Range, place *yaml.Node, isBuffer, ok bool) {
	p := m.parser
	for k := range m.names {
		if m.names[k] != name {
			continue
		}
		m.used[k] = true
		value := m.values[k]
		if !p.meansNumber(value) {
			r, ok := p.reference(value, "with")
			return r, value, true, ok
		}
		return Range{}, value, false, true
	}
	id, known := p.buffers[name]
	if !known {
		return Range{}, m.node, false, true
	}
	r, ok = p.whole(id)
	return r, m.node, true, ok
}

// meansNumber reports whether a value of with is a number and no buffer.
func (p *parser) meansNumber(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		return false
	}
	if _, ok := p.buffers[n.Value]; ok {
		return false
	}
	e, err := p.parsedExpr(n.Value)
	if err != nil {
		return false
	}
	if e.Root.Op == expr.Variable {
		_, known := p.Variable(e.Root.Name)
		return known
	}
	return true
}

func (m *mapReading) output() bool {
	r, place, isBuffer, ok := m.buffer(m.spec.Out)
	if !isBuffer {
		p := m.parser
		message, hint := fmt.Sprintf("unknown buffer %q", shorten(m.spec.Out)), ""
		if _, known := p.Variable(m.spec.Out); known || place != m.node {
			message = fmt.Sprintf("the result %q of a map must be a buffer", shorten(m.spec.Out))
		} else if near := suggest(m.spec.Out, p.bufferNames()); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		p.mistake(position(place), hint, "%s", message)
		return false
	}
	m.args, m.places = append(m.args, argSpec{IsBuffer: true, Range: r}), append(m.places, place)
	return ok
}

// operands sorts the names of the expression into inputs and scalars, each in order of first use.
func (m *mapReading) operands() bool {
	p, ok := m.parser, true
	var scalars []argSpec
	for _, name := range m.spec.Expr.Variables() {
		r, place, isBuffer, fine := m.buffer(name)
		if isBuffer {
			ok = ok && fine
			m.spec.Inputs = append(m.spec.Inputs, name)
			m.args, m.places = append(m.args, argSpec{IsBuffer: true, Range: r}), append(m.places, place)
			if fine && ok && overlapsPartly(r, m.args[0].Range) {
				p.mistake(position(place), "elements would be read after they were overwritten", "the input %s of the map overlaps its result %s", p.pipeline.rangeText(r), p.pipeline.rangeText(m.args[0].Range))
				ok = false
			}
			continue
		}
		var v expr.Value
		if place != m.node {
			v, fine = p.number(place, "with")
		} else {
			v, fine = m.scalar(name)
		}
		ok = ok && fine
		m.spec.Scalars = append(m.spec.Scalars, name)
		scalars = append(scalars, argSpec{Value: expr.FloatValue(v.Float())})
	}
	m.args = append(m.args, scalars...)
	m.places = append(m.places, make([]*yaml.Node, len(scalars))...)
	return ok
}

func overlapsPartly(a, b Range) bool {
	return a.Buffer == b.Buffer && a != b && a.Lo < b.Hi && b.Lo < a.Hi
}

func (m *mapReading) scalar(name string) (expr.Value, bool) {
	p := m.parser
	p.poisoned = false
	v, known := p.Variable(name)
	if known {
		return v, !p.poisoned
	}
	var at *expr.Term
	m.spec.Expr.Walk(func(t *expr.Term) {
		if at == nil && t.Op == expr.Variable && t.Name == name {
			at = t
		}
	})
	pos := p.inside(m.node, at.Offset)
	hint := ""
	if near := suggest(name, append(append(p.bufferNames(), p.variableNames()...), m.names...)); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.mistake(pos, hint, "unknown name %q: neither a buffer nor a param", shorten(name))
	return v, false
}
