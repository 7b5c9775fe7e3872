// The keys of repeat and if in a pipeline file, and the conditions of loops and branches. parse_nodes.go reads their bodies.

package file

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// taken reports whether a node of another list has a name.
func (l *levels) taken(name string) bool {
	for _, around := range l.open {
		if _, ok := around.nodes[name]; ok {
			return true
		}
	}
	_, ok := l.names[name]
	return ok
}

var repeatKeys = keySet{"repeat", []string{"times", "until", "while", "most", "every", "or_stop", "expect"}}

const (
	repeatTimes = iota
	repeatUntil
	repeatWhile
	repeatMost
	repeatEvery
	repeatOrStop
	repeatExpect
	repeatKeyCount
)

// repeat reads what a loop says of its passes.
func (p *parser) repeat(n *yaml.Node, node *dag.Node) bool {
	var f [repeatKeyCount]field
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		p.mistake(position(n), fmt.Sprintf("write {times: %s} or {until: CONDITION, most: N}", words.Shorten(n.Value)), "repeat must be a mapping, not %s",
			kindText(n))
		return false
	}
	if !p.fields(n, &repeatKeys, f[:]) {
		return false
	}
	ok := !p.unknownKeys
	c := node.Control
	tests := 0
	for _, k := range [...]int{repeatTimes, repeatUntil, repeatWhile} {
		if f[k].value == nil {
			continue
		}
		if tests++; tests > 1 {
			p.mistake(position(f[k].key), "", "a repeat has one of times, until and while")
			return false
		}
	}
	if tests == 0 {
		if ok {
			p.mistake(position(n), "write {times: 20}, {until: d_error < 1e-6, most: 500} or {while: d_left > 0, most: 500}",
				"repeat has neither times nor until nor while")
		}
		return false
	}
	limit, least := repeatMost, int64(1)
	if f[repeatTimes].value != nil {
		limit, least = repeatTimes, 0
		for _, k := range [...]int{repeatMost, repeatEvery, repeatOrStop, repeatExpect} {
			if f[k].value != nil {
				p.mistake(position(f[k].key), "", "%s belongs to until and while, not to times", repeatKeys.keys[k])
				ok = false
			}
		}
	} else {
		test := repeatUntil
		if f[repeatWhile].value != nil {
			test, c.While = repeatWhile, true
		}
		c.Condition = p.test(f[test].value)
		ok = ok && c.Condition != nil
		if f[repeatMost].value == nil {
			p.mistake(position(f[test].key), fmt.Sprintf("write {%s: ..., most: 500}", repeatKeys.keys[test]),
				"repeat %s needs most: how many passes it may take", repeatKeys.keys[test])
			return false
		}
	}
	for _, r := range []struct {
		key   int
		least int64
		to    *int64
	}{{limit, least, &c.Times}, {repeatEvery, 1, &c.Every}} {
		if f[r.key].value != nil {
			v, fine := p.between(f[r.key].value, repeatKeys.keys[r.key], r.least, dag.MaxPasses)
			*r.to, ok = v, ok && fine
		}
	}
	if n := f[repeatOrStop].value; n != nil {
		stop, fine := p.truth(n, "or_stop")
		c.OrStop, ok = stop, ok && fine
	}
	if n := f[repeatExpect].value; n != nil {
		ok = p.expectPasses(n, c) && ok
	}
	return ok
}

var expectPassesKeys = keySet{"the expect of a repeat", []string{"passes"}}

func (p *parser) expectPasses(n *yaml.Node, c *dag.Control) bool {
	var f [1]field
	if !p.fields(n, &expectPassesKeys, f[:]) {
		return false
	}
	if f[0].value == nil && p.unknownKeys {
		return false
	}
	if f[0].value == nil {
		p.mistake(position(n), "write {passes: 40}", "the expect of a repeat has no passes")
		return false
	}
	passes, ok := p.between(f[0].value, "passes", 0, dag.MaxPasses)
	c.Expect = &passes
	return ok
}

// test reads a condition. It returns nil if it is wrong.
func (p *parser) test(n *yaml.Node) *dag.Condition {
	s, ok := p.string(n, "a condition")
	if !ok {
		return nil
	}
	p.usesUnknown = false
	names := &fileConditionNames{p, n, false}
	c, err := dag.NewCondition(s, names)
	var wrong *expr.Error
	switch {
	case names.unknown || p.usesUnknown:
		return nil
	case errors.As(err, &wrong) && wrong.Unknown == expr.UnknownVariable:
		p.unknownOperand(p.inside(n, wrong.Offset), wrong.Name)
		return nil
	case err != nil:
		p.exprMistakeAt(n, err, p.repetition())
		return nil
	}
	return c
}

// unknownOperand reports a name of a condition that is neither a number nor a buffer.
func (p *parser) unknownOperand(pos dag.Pos, name string) {
	if p.counting || !p.mistakes.wants(pos) {
		return
	}
	hint := ""
	if near := p.near(name, p.bufferNames, p.variableNames); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	p.mistake(pos, hint, "unknown name %q: neither a buffer nor a param%s", words.Shorten(name), p.repetition())
}

// fileConditionNames gives the names of a condition in a file.
type fileConditionNames struct {
	p       *parser
	node    *yaml.Node
	unknown bool
}

func (c *fileConditionNames) Variable(name string) (expr.Value, bool) { return c.p.Variable(name) }
func (c *fileConditionNames) Shape(buffer string) ([]int64, bool)     { return c.p.Shape(buffer) }

func (c *fileConditionNames) IsBuffer(name string) bool {
	_, ok := c.p.buffers[name]
	return ok
}

func (c *fileConditionNames) Operand(text string) (dag.Range, dag.DType, error) {
	s, err := c.p.parsedSlice(text)
	if err != nil {
		return dag.Range{}, dag.InvalidDType, err
	}
	usesUnknown := c.p.usesUnknown
	r, ok := c.p.sliced(c.node, s)
	c.p.usesUnknown = c.p.usesUnknown || usesUnknown
	if !ok {
		c.unknown = true
		return dag.Range{}, dag.InvalidDType, errors.New("it is wrong")
	}
	b := &c.p.pipeline.Buffers[r.Buffer]
	if b.Place == dag.Host {
		return r, b.DType, fmt.Errorf("%q is in host memory; a condition reads device buffers", b.Name)
	}
	return r, b.DType, nil
}

// warnCondition warns of a loop whose condition cannot change.
func (p *parser) warnCondition(at *yaml.Node, node *dag.Node) {
	c := node.Control
	if node.Kind != dag.Repeat || c.Condition == nil {
		return
	}
	for _, r := range c.Condition.Operands {
		for _, body := range c.Declared() {
			if writes(body, r) {
				return
			}
		}
	}
	p.warning(position(at), "", "the condition of %q reads %s, which no node of its body writes", words.Shorten(node.Name),
		p.pipeline.RangeText(c.Condition.Operands[0]))
}

// writes reports whether a node of a body may write some of the bytes.
func writes(p *dag.Pipeline, r dag.Range) bool {
	for i := range p.Nodes {
		if c := p.Nodes[i].Control; c != nil {
			for _, body := range c.Declared() {
				if writes(body, r) {
					return true
				}
			}
		}
		for _, a := range p.Accesses(dag.NodeID(i)) {
			if a.Buffer == r.Buffer && a.Mode&dag.Write != 0 && a.Lo < r.Hi && r.Lo < a.Hi {
				return true
			}
		}
	}
	return false
}
