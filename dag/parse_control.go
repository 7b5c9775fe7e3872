// Loops and branches of a pipeline file: repeat, if and else, and the bodies in them.

package dag

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag/expr"
	"gopkg.in/yaml.v3"
)

// isControl reports whether a node is a loop or a branch.
func isControl(f *[nodeKeyCount]field) bool {
	return f[nodeRepeat].value != nil || f[nodeIf].value != nil
}

// controlItem reads a loop or branch, which a foreach may repeat.
func (p *parser) controlItem(item *yaml.Node, f *[nodeKeyCount]field) {
	if f[nodeForeach].value == nil {
		p.node(item, f)
		return
	}
	inner := &yaml.Node{Kind: yaml.SequenceNode}
	for _, k := range [...]int{nodeNodes, nodeElse} {
		if n := f[k].value; n != nil && n.Kind == yaml.SequenceNode {
			inner.Content = append(inner.Content, n.Content...)
		}
	}
	p.foreach(f[nodeForeach].value, inner, func() int64 { return 1 + p.countItems(inner) }, func() { p.node(item, f) })
}

// levels are the bodies that are being read or have been, with the state of the parser that belongs to a list of nodes.
type levels struct {
	open     []*level // around the list that is being read, the outermost first
	finished []*level
	names    map[string]struct{} // of the nodes of finished bodies
	nodes    int                 // in finished bodies
}

// level is the state of the parser that belongs to one list of nodes.
type level struct {
	pipeline Pipeline // its nodes and accesses only
	nodes    map[string]NodeID
	leftOut  map[string]struct{}
	pending  []pendingAfter
	patterns afterPatterns
}

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

// swap exchanges the parser's list of nodes with another.
func (p *parser) swap(l *level) {
	pl := p.pipeline
	pl.Nodes, l.pipeline.Nodes = l.pipeline.Nodes, pl.Nodes
	pl.accesses, l.pipeline.accesses = l.pipeline.accesses, pl.accesses
	pl.accessStart, l.pipeline.accessStart = l.pipeline.accessStart, pl.accessStart
	p.nodes, l.nodes = l.nodes, p.nodes
	p.leftOut, l.leftOut = l.leftOut, p.leftOut
	p.pending, l.pending = l.pending, p.pending
	p.patterns, l.patterns = l.patterns, p.patterns
}

// finishBodies resolves the after: lists of all bodies, once every name is known.
func (p *parser) finishBodies() {
	if len(p.levels.finished) == 0 {
		return
	}
	if p.pipeline.Sync == SyncExplicit {
		for i := range p.pipeline.Nodes {
			if n := &p.pipeline.Nodes[i]; n.Control != nil {
				p.mistake(n.Pos, "leave sync out", "%s", explicitControl)
				return
			}
		}
	}
	top := &level{}
	p.swap(top)
	p.levels.open = []*level{top}
	for _, body := range p.levels.finished {
		p.swap(body)
		p.readAfter()
		p.checkStreams()
		if node, problem := p.pipeline.tileInBody(); node != nil {
			p.mistake(node.Pos, noTileHint, "node %q: %s", shorten(node.Name), problem)
		}
		p.swap(body)
	}
	p.levels.open = nil
	p.swap(top)
}

// control reads a loop or a branch.
func (p *parser) control(item *yaml.Node, f *[nodeKeyCount]field, node Node, ok bool) {
	if p.within != nil {
		p.mistake(position(item), "put the loop or branch into the outer file", "a file that another file uses cannot have loops or branches")
		return
	}
	node.Kind, node.Control = Repeat, &Control{Every: 1}
	key := nodeRepeat
	if f[nodeIf].value != nil {
		node.Kind, key = Branch, nodeIf
	}
	if f[nodeRepeat].value != nil && f[nodeIf].value != nil {
		p.mistake(position(f[nodeIf].key), "put one into the other", "node %q has two actions, repeat and if", shorten(node.Name))
		return
	}
	for k := nodeMemcpy; k <= nodeShared; k++ {
		if f[k].value != nil {
			p.mistake(position(f[k].key), "write it on a node of its body", "a %s takes no %s", nodeKeys.keys[key], nodeKeys.keys[k])
			ok = false
		}
	}
	for _, k := range [...]int{nodePeer, nodeDevice, nodeRank, nodeUse} {
		if f[k].value != nil {
			p.mistake(position(f[k].key), "write it on the nodes of its body", "a %s takes no %s", nodeKeys.keys[key], nodeKeys.keys[k])
			ok = false
		}
	}
	if f[nodeElse].value != nil && key != nodeIf {
		p.mistake(position(f[nodeElse].key), "", "else belongs to an if")
		ok = false
	}
	if f[nodeNodes].value == nil {
		if !p.unknownKeys {
			p.mistake(position(item), "write its nodes as a list under nodes", "the %s %q has no nodes", nodeKeys.keys[key], shorten(node.Name))
		}
		return
	}
	c := node.Control
	if key == nodeRepeat {
		ok = p.repeat(f[nodeRepeat].value, &node) && ok
	} else if c.Condition = p.test(f[nodeIf].value); c.Condition == nil {
		ok = false
	}
	for _, k := range [...]int{nodeNodes, nodeElse} {
		if f[k].value != nil {
			body := p.body(f[k], node.Name)
			ok = ok && body != nil
			c.declared = append(c.declared, body)
		}
	}
	if !ok {
		return
	}
	node.Device = c.declared[0].firstDevice()
	for _, body := range c.declared {
		body.inherit(node.Priority)
	}
	if err := c.problem(p.pipeline, &node); err != nil {
		p.mistake(node.Pos, "", "%s %q: %s", nodeKeys.keys[key], shorten(node.Name), err)
		return
	}
	p.warnCondition(f[nodeRepeat].value, &node)
	if len(p.pipeline.Nodes)+p.levels.nodes >= MaxNodes {
		p.mistake(position(item), "", "file has more than %d nodes, the limit", int64(MaxNodes))
		return
	}
	p.append(f, node.Name, node, nil)
}

// body reads the nodes of a body. It returns nil if some are wrong.
func (p *parser) body(f field, owner string) *Pipeline {
	if len(p.levels.open) >= MaxBodyDepth {
		p.mistake(position(f.key), "", "loops and branches are nested deeper than %d levels", MaxBodyDepth)
		return nil
	}
	l := &level{nodes: map[string]NodeID{}, leftOut: map[string]struct{}{}, pipeline: Pipeline{accessStart: []int32{0}}}
	before := len(p.mistakes.list)
	p.swap(l) // l holds the list around now
	p.levels.open = append(p.levels.open, l)
	p.nodeItems(f.value)
	p.levels.open = p.levels.open[:len(p.levels.open)-1]
	fine := len(p.mistakes.list) == before && !p.anyBroken()
	if fine && len(p.pipeline.Nodes) == 0 {
		p.mistake(position(f.key), "", "the body of %q has no nodes%s", shorten(owner), p.repetition())
		fine = false
	}
	p.swap(l)
	if p.levels.names == nil {
		p.levels.names = map[string]struct{}{}
	}
	for name := range l.nodes {
		p.levels.names[name] = struct{}{}
	}
	p.levels.nodes += len(l.pipeline.Nodes)
	if !fine {
		return nil
	}
	// The lists of nodes and accesses are complete; what after: lists add goes into the nodes themselves.
	p.levels.finished = append(p.levels.finished, l)
	body := &Pipeline{Nodes: l.pipeline.Nodes, accesses: l.pipeline.accesses, accessStart: l.pipeline.accessStart}
	return body
}

// anyBroken reports whether a node of the list has a mistake.
func (p *parser) anyBroken() bool {
	for _, id := range p.nodes {
		if id == broken {
			return true
		}
	}
	return false
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
func (p *parser) repeat(n *yaml.Node, node *Node) bool {
	var f [repeatKeyCount]field
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		p.mistake(position(n), fmt.Sprintf("write {times: %s} or {until: CONDITION, most: N}", shorten(n.Value)), "repeat must be a mapping, not %s", kindText(n))
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
			p.mistake(position(n), "write {times: 20}, {until: d_error < 1e-6, most: 500} or {while: d_left > 0, most: 500}", "repeat says neither times nor until nor while")
		}
		return false
	}
	limit := repeatMost
	if f[repeatTimes].value != nil {
		limit = repeatTimes
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
			p.mistake(position(f[test].key), fmt.Sprintf("write {%s: ..., most: 500}", repeatKeys.keys[test]), "repeat %s needs most: how many passes it may take", repeatKeys.keys[test])
			return false
		}
	}
	for _, r := range []struct {
		key   int
		least int64
		to    *int64
	}{{limit, int64(1 - flag(limit == repeatTimes)), &c.Times}, {repeatEvery, 1, &c.Every}} {
		if f[r.key].value != nil {
			v, fine := p.between(f[r.key].value, repeatKeys.keys[r.key], r.least, MaxPasses)
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

func (p *parser) expectPasses(n *yaml.Node, c *Control) bool {
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
	passes, ok := p.between(f[0].value, "passes", 0, MaxPasses)
	c.Expect = &passes
	return ok
}

// test reads a condition. It returns nil if it is wrong.
func (p *parser) test(n *yaml.Node) *Condition {
	s, ok := p.string(n, "a condition")
	if !ok {
		return nil
	}
	p.usesUnknown = false
	names := &fileConditionNames{p, n, false}
	c, err := newCondition(s, names)
	switch {
	case names.unknown || p.usesUnknown:
		return nil
	case err != nil && errors.Is(err, errReported):
		return nil
	case err != nil:
		p.exprMistakeAt(n, err, p.repetition())
		return nil
	}
	return c
}

// fileConditionNames gives the names of a condition in a file.
type fileConditionNames struct {
	p       *parser
	node    *yaml.Node
	unknown bool
}

func (c *fileConditionNames) Variable(name string) (expr.Value, bool) { return c.p.Variable(name) }
func (c *fileConditionNames) Shape(buffer string) ([]int64, bool)     { return c.p.Shape(buffer) }

func (c *fileConditionNames) isBuffer(name string) bool {
	_, ok := c.p.buffers[name]
	return ok
}

func (c *fileConditionNames) operand(text string) (Range, DType, error) {
	s, err := c.p.parsedSlice(text)
	if err != nil {
		return Range{}, InvalidDType, err
	}
	usesUnknown := c.p.usesUnknown
	r, ok := c.p.sliced(c.node, s)
	c.p.usesUnknown = c.p.usesUnknown || usesUnknown
	if !ok {
		c.unknown = true
		return Range{}, InvalidDType, errReported
	}
	b := &c.p.pipeline.Buffers[r.Buffer]
	if b.Place == Host {
		return r, b.DType, fmt.Errorf("%q is in host memory; a condition reads device buffers", b.Name)
	}
	return r, b.DType, nil
}

// warnCondition warns of a loop whose condition cannot change.
func (p *parser) warnCondition(at *yaml.Node, node *Node) {
	c := node.Control
	if node.Kind != Repeat || c.Condition == nil {
		return
	}
	for _, r := range c.Condition.Operands {
		for _, body := range c.declared {
			if body.writes(r) {
				return
			}
		}
	}
	p.warning(position(at), "", "the condition of %q reads %s, which no node of its body writes", shorten(node.Name), p.pipeline.rangeText(c.Condition.Operands[0]))
}

// writes reports whether a node of a body may write some of the bytes.
func (p *Pipeline) writes(r Range) bool {
	for i := range p.Nodes {
		if c := p.Nodes[i].Control; c != nil {
			for _, body := range c.declared {
				if body.writes(r) {
					return true
				}
			}
		}
		for _, a := range p.Accesses(NodeID(i)) {
			if a.Buffer == r.Buffer && a.Mode&Write != 0 && a.Lo < r.Hi && r.Lo < a.Hi {
				return true
			}
		}
	}
	return false
}
