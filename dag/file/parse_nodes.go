// Nodes of a pipeline file, with the bodies of loops and branches and the files that it uses: each of them holds nodes again.

package file

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

func (p *parser) readNodes(ctx context.Context, f field) {
	p.nodes = map[string]dag.NodeID{}
	if p.memory != nil {
		p.nodes = p.memory.names
		clear(p.nodes)
	}
	p.leftOut = map[string]struct{}{}
	if isNull(f.value) {
		return
	}
	p.nodeItems(ctx, f.value)
}

func (p *parser) nodeItems(ctx context.Context, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.wrongKind(n, "nodes", "a list")
		return
	}
	for k, item := range n.Content {
		if len(p.loops) == 0 && p.within == nil && !p.shared {
			n.Content[k] = nil // not needed again; a long file's tree takes more memory than its graph
		}
		var f [nodeKeyCount]field
		if !p.fields(item, &nodeKeys, f[:]) {
			continue
		}
		switch {
		case isControl(&f):
			p.controlItem(ctx, item, &f)
		case f[nodeElse].value != nil:
			p.mistake(position(f[nodeElse].key), "", "else belongs to an if")
		case f[nodeForeach].value == nil && f[nodeNodes].value == nil:
			p.node(ctx, item, &f)
		case f[nodeNodes].value == nil:
			p.foreach(f[nodeForeach].value, &yaml.Node{}, func() int64 { return 1 }, func() { p.node(ctx, item, &f) })
		case f[nodeForeach].value == nil:
			if !p.hasStrangeKey(item) { // else it may be the foreach
				p.mistake(position(f[nodeNodes].key), "", "nodes: inside of a node belongs to a foreach, a repeat or an if")
			}
		default:
			p.repeatedNodes(ctx, &f)
		}
	}
}

func (p *parser) repeatedNodes(ctx context.Context, f *[nodeKeyCount]field) {
	for k := range f {
		if f[k].value != nil && k != nodeForeach && k != nodeNodes {
			p.mistake(position(f[k].key), "write it on each of its nodes", "a foreach with nodes: has no %s of its own", f[k].key.Value)
		}
	}
	inner := f[nodeNodes].value
	p.foreach(f[nodeForeach].value, inner, func() int64 { return p.countItems(inner) }, func() { p.nodeItems(ctx, inner) })
}

// countItems counts the nodes that a list makes, up to the budget.
func (p *parser) countItems(n *yaml.Node) int64 {
	total := int64(0)
	if n.Kind != yaml.SequenceNode {
		return 0
	}
	for _, item := range n.Content {
		if total += p.countItem(item, "nodes", p.countItems); total > p.budget {
			break
		}
	}
	return total
}

// node reads one node in the present repetition.
func (p *parser) node(ctx context.Context, item *yaml.Node, f *[nodeKeyCount]field) {
	if f[nodeUse].value != nil {
		p.use(ctx, item, f)
		return
	}
	if p.idle {
		if f[nodeName].value == nil {
			p.mistake(position(item), "", "node has no name")
			return
		}
		p.unused(item, f, f[nodeName].value.Value)
		return
	}
	name, named := p.nodeName(item, f)
	if f[nodeWhen].value != nil {
		if wanted, ok := p.condition(f[nodeWhen].value); !ok || !wanted {
			if named && ok {
				p.leftOut[name] = struct{}{}
				p.unused(item, f, name)
			} else if named {
				p.nodes[name] = broken
			}
			return
		}
	}
	if named {
		named = p.freshNode(f[nodeName].value, name)
	}
	node := dag.Node{Pos: position(item)}
	if named {
		node.Name, named = p.fullName(f[nodeName].value, name)
	}
	node.Device = -1
	ok := readRows(p, nodeRows[:], f[:], &node)
	if isControl(f) {
		p.control(ctx, item, f, node, named && ok)
		return
	}
	action := p.action(item, f, name)
	if action < 0 {
		return
	}
	node.Kind = dag.Communicate
	if action <= nodeHost {
		node.Kind = [...]dag.Kind{dag.Memcpy, dag.Memset, dag.Kernel, dag.Map, dag.Call, dag.HostFunction}[action-nodeMemcpy]
	}
	var few [8]dag.Access
	var accesses []dag.Access
	var fine bool
	switch action {
	case nodeMemcpy:
		accesses, fine = p.copy(&node, f, few[:0])
	case nodeMemset:
		accesses, fine = p.set(&node, f, few[:0])
	case nodeKernel:
		accesses, fine = p.kernel(&node, f)
	case nodeMap:
		accesses, fine = p.mapNode(&node, f)
	case nodeCall:
		accesses, fine = p.call(&node, f)
	case nodeHost:
		accesses, fine = p.hostFunction(&node, f)
	default:
		var takesPart bool
		accesses, takesPart, fine = p.communication(&node, item, f, action)
		if fine && !takesPart && named {
			delete(p.nodes, name)
			p.leftOut[name] = struct{}{}
			return
		}
	}
	if !named || !ok || !fine {
		return
	}
	pl := p.pipeline
	if len(pl.Nodes) >= dag.MaxNodes {
		p.mistake(position(item), "", "file has more than %d nodes, the limit", int64(dag.MaxNodes))
		return
	}
	p.append(f, name, node, accesses)
}

// append adds a complete node.
func (p *parser) append(f *[nodeKeyCount]field, name string, node dag.Node, accesses []dag.Access) {
	id := p.pipeline.Add(node, accesses...)
	p.nodes[name] = id
	if f[nodeAfter].value != nil {
		p.after(id, f[nodeAfter].value)
	}
}

// unused checks the keys of a node that its when: leaves out. It ignores the values, which may be invalid: that may be why the node is left out.
func (p *parser) unused(item *yaml.Node, f *[nodeKeyCount]field, name string) {
	p.passed = true
	if isControl(f) {
		return
	}
	var c [2]field
	switch action := p.action(item, f, name); action {
	case nodeMemcpy:
		p.pairOf(f[action].value, &copyKeys, &c, "write {from: x, to: d_x}")
	case nodeMemset:
		p.pairOf(f[action].value, &setKeys, &c, "write {to: d_x, value: 0}")
	}
}

func (p *parser) nodeName(item *yaml.Node, f *[nodeKeyCount]field) (string, bool) {
	if f[nodeName].value == nil {
		p.mistake(position(item), "", "node has no name")
		return "", false
	}
	name, ok := p.expanded(f[nodeName].value, "name")
	if !ok {
		return "", false
	}
	if err := dag.CheckName(name); err != nil {
		p.mistake(position(f[nodeName].value), "", "%s", err)
		return "", false
	}
	return name, true
}

// freshNode takes a node's name. Until the node is complete it counts as broken.
func (p *parser) freshNode(at *yaml.Node, name string) bool {
	id, ok := p.nodes[name]
	if !ok && p.levels.taken(name) {
		p.mistake(position(at), "", "node %q is declared twice%s; names are unique in the whole file, bodies included", words.Shorten(name), p.repetition())
		return false
	}
	if !ok {
		p.nodes[name] = broken
		return true
	}
	switch {
	case id == broken:
		p.mistake(position(at), "", "node %q is declared twice%s", words.Shorten(name), p.repetition())
	case len(p.loops) > 0 && p.pipeline.Nodes[id].Pos.Line == int32(at.Line) && strings.IndexByte(at.Value, '$') < 0:
		p.mistake(position(at), fmt.Sprintf("put a variable of the foreach in its name, as in %s.$%s", words.Shorten(name), p.loops[len(p.loops)-1].name),
			"each repetition declares the node %q again", words.Shorten(name))
	default:
		p.mistake(position(at), "", "node %q is declared twice%s; the first is on line %d", words.Shorten(name), p.repetition(), p.pipeline.Nodes[id].Pos.Line)
	}
	return false
}

// after notes the names of a node's explicit predecessors, which may be declared later.
func (p *parser) after(id dag.NodeID, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.wrongList(n, "after", "a list of nodes")
		return
	}
	names := make([]string, len(n.Content))
	for k, c := range n.Content {
		names[k], _ = p.expanded(c, "a node's name")
	}
	p.pending = append(p.pending, pendingAfter{id, n, names})
}

// readAfter resolves the names of all after: lists.
func (p *parser) readAfter() {
	for _, pending := range p.pending {
		node := &p.pipeline.Nodes[pending.node]
		for k, name := range pending.names {
			at := pending.list.Content[k]
			if name == "" {
				if at.Kind == yaml.ScalarNode && at.Value == "" && !isNull(at) {
					p.mistake(position(at), "", "the name is empty")
				}
				continue
			}
			id, ok := p.nodes[name]
			switch {
			case !ok && strings.Contains(name, "*"):
				if problem, hint := p.afterPattern(pending.node, p.prefixed(name)); problem != "" {
					p.mistake(position(at), hint, "%s", problem)
				}
			case !ok:
				if _, out := p.leftOut[name]; out || p.inBrokenUse(name) || hasPrefixOf(name, p.leftOutUses) {
					continue
				}
				if p.levels.taken(name) {
					p.mistake(position(at), "let the loop or branch itself come after it, or before",
						"after: does not cross the border of a body, and %q is on the other side", words.Shorten(name))
					continue
				}
				hint := ""
				if p.mistakes.wants(position(at)) {
					hint = p.nearNode(name)
				}
				p.mistake(position(at), hint, "unknown node %q", words.Shorten(name))
			case id == pending.node:
				p.mistake(position(at), "", "node %q depends on itself", words.Shorten(name))
			case id != broken:
				node.After = append(node.After, id)
			}
		}
	}
}

func (p *parser) nearNode(name string) string {
	if all := strings.Fields(name); len(all) > 1 && !slices.ContainsFunc(all, func(one string) bool { _, ok := p.nodes[one]; return !ok }) {
		return "a comma is missing between names: write " + strings.Join(all, ", ")
	}
	near := p.near(name, func() []string {
		names := make([]string, len(p.pipeline.Nodes))
		for k := range names {
			names[k] = p.pipeline.Nodes[k].Name
		}
		return names
	})
	if near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// checkStreams refuses streams that cannot be: those of two devices or two priorities.
func (p *parser) checkStreams() {
	first := map[int32]int32{}
	for i := range p.pipeline.Nodes {
		node := &p.pipeline.Nodes[i]
		stream := node.Stream.Number()
		if stream < 0 {
			continue
		}
		id, ok := first[stream]
		if !ok {
			first[stream] = int32(i)
			continue
		}
		earlier := &p.pipeline.Nodes[id]
		switch {
		case earlier.Device != node.Device && p.pipeline.Devices == 0: // spreading keeps the nodes of a stream together
			p.mistake(node.Pos, "a stream belongs to one device", "stream %d has %q on device %d and %q on device %d", stream, words.Shorten(earlier.Name),
				earlier.Device, words.Shorten(node.Name), node.Device)
		case earlier.Priority != node.Priority:
			p.mistake(node.Pos, "a stream has one priority", "stream %d has %q of %s priority and %q of %s priority", stream, words.Shorten(earlier.Name),
				earlier.Priority, words.Shorten(node.Name), node.Priority)
		}
	}
}

// isControl reports whether a node is a loop or a branch.
func isControl(f *[nodeKeyCount]field) bool {
	return f[nodeRepeat].value != nil || f[nodeIf].value != nil
}

// controlItem reads a loop or branch, which a foreach may repeat.
func (p *parser) controlItem(ctx context.Context, item *yaml.Node, f *[nodeKeyCount]field) {
	if f[nodeForeach].value == nil {
		p.node(ctx, item, f)
		return
	}
	inner := &yaml.Node{Kind: yaml.SequenceNode}
	for _, k := range [...]int{nodeNodes, nodeElse} {
		if n := f[k].value; n != nil && n.Kind == yaml.SequenceNode {
			inner.Content = append(inner.Content, n.Content...)
		}
	}
	p.foreach(f[nodeForeach].value, inner, func() int64 { return 1 + p.countItems(inner) }, func() { p.node(ctx, item, f) })
}

// swap exchanges the parser's list of nodes with another.
func (p *parser) swap(l *level) {
	p.pipeline.Swap(&l.pipeline)
	p.nodes, l.nodes = l.nodes, p.nodes
	p.leftOut, l.leftOut = l.leftOut, p.leftOut
	p.pending, l.pending = l.pending, p.pending
	p.patterns, l.patterns = l.patterns, p.patterns
}

// control reads a loop or a branch.
func (p *parser) control(ctx context.Context, item *yaml.Node, f *[nodeKeyCount]field, node dag.Node, ok bool) {
	if p.within != nil {
		p.mistake(position(item), "put the loop or branch into the outer file", "a file that another file uses cannot have loops or branches")
		return
	}
	node.Kind, node.Control = dag.Repeat, &dag.Control{Every: 1}
	key := nodeRepeat
	if f[nodeIf].value != nil {
		node.Kind, key = dag.Branch, nodeIf
	}
	if f[nodeRepeat].value != nil && f[nodeIf].value != nil {
		p.mistake(position(f[nodeIf].key), "put one into the other", "node %q has two actions, repeat and if", words.Shorten(node.Name))
		return
	}
	for k := range f {
		if f[k].value == nil || nodeRows[k].of == 0 && (k < nodeMemcpy || k > nodeReceive) {
			continue
		}
		hint := "write it on a node of its body"
		if k > nodeAfter {
			hint = "write it on the nodes of its body"
		}
		p.mistake(position(f[k].key), hint, "a %s takes no %s", nodeKeys.keys[key], nodeKeys.keys[k])
		ok = false
	}
	if f[nodeElse].value != nil && key != nodeIf {
		p.mistake(position(f[nodeElse].key), "", "else belongs to an if")
		ok = false
	}
	if f[nodeNodes].value == nil {
		if !p.unknownKeys {
			p.mistake(position(item), "write its nodes as a list under nodes", "the %s %q has no nodes", nodeKeys.keys[key], words.Shorten(node.Name))
		}
		return
	}
	c := node.Control
	if key == nodeRepeat {
		ok = p.repeat(f[nodeRepeat].value, &node) && ok
	} else if c.Condition = p.test(f[nodeIf].value); c.Condition == nil {
		ok = false
	}
	var bodies []*dag.Draft
	for _, k := range [...]int{nodeNodes, nodeElse} {
		if f[k].value != nil {
			body := p.body(ctx, f[k], node.Name)
			ok = ok && body != nil
			bodies = append(bodies, body)
		}
	}
	if !ok {
		return
	}
	if err := p.pipeline.Enclose(&node, bodies); err != nil {
		p.mistake(node.Pos, "", "%s %q: %s", nodeKeys.keys[key], words.Shorten(node.Name), err)
		return
	}
	p.warnCondition(f[nodeRepeat].value, &node)
	if len(p.pipeline.Nodes)+p.levels.nodes >= dag.MaxNodes {
		p.mistake(position(item), "", "file has more than %d nodes, the limit", int64(dag.MaxNodes))
		return
	}
	p.append(f, node.Name, node, nil)
}

// body reads the nodes of a body. It returns nil if some are wrong.
func (p *parser) body(ctx context.Context, f field, owner string) *dag.Draft {
	if len(p.levels.open) >= dag.MaxBodyDepth {
		p.mistake(position(f.key), "", "loops and branches are nested deeper than %d levels", dag.MaxBodyDepth)
		return nil
	}
	l := &level{nodes: map[string]dag.NodeID{}, leftOut: map[string]struct{}{}}
	before := len(p.mistakes.list)
	p.swap(l) // l holds the list around now
	p.levels.open = append(p.levels.open, l)
	p.nodeItems(ctx, f.value)
	p.levels.open = p.levels.open[:len(p.levels.open)-1]
	fine := len(p.mistakes.list) == before && !p.anyBroken()
	if fine && len(p.pipeline.Nodes) == 0 {
		p.mistake(position(f.key), "", "the body of %q has no nodes%s", words.Shorten(owner), p.repetition())
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
	p.levels.finished = append(p.levels.finished, l)
	return &l.pipeline
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

// use reads an item of nodes that uses another file.
func (p *parser) use(ctx context.Context, item *yaml.Node, f *[nodeKeyCount]field) {
	if len(p.levels.open) > 0 {
		p.mistake(position(f[nodeUse].key), "write the nodes out", "a body cannot use another file")
		return
	}
	ok := true
	for k := range f {
		if f[k].value != nil && !slices.Contains([]int{nodeName, nodeUse, nodeWith, nodeWhen, nodeForeach}, k) {
			p.mistake(position(f[k].key), "write it on the nodes of that file", "a use takes no %s", f[k].key.Value)
			ok = false
		}
	}
	if f[nodeName].value == nil {
		p.mistake(position(item), "the names of its nodes and buffers begin with it", "use has no name")
		return
	}
	if p.idle || p.budget < 0 {
		return
	}
	name, named := p.nodeName(item, f)
	if !named {
		return
	}
	if f[nodeWhen].value != nil {
		wanted, fine := p.condition(f[nodeWhen].value)
		if fine && !wanted {
			p.passed = true
			p.leftOutUses = append(p.leftOutUses, name+".")
			return
		}
		ok = ok && fine
	}
	ok = p.freshUse(f[nodeName].value, name) && ok
	file, path := p.usedFile(f[nodeUse].value)
	with, fine := p.boundNames(f[nodeWith].value)
	if !ok || file == nil || !fine || !p.readUse(ctx, item, f[nodeUse].value, name, path, file, with) {
		p.brokenUses = append(p.brokenUses, name+".")
	}
}

// freshUse takes the name of a use.
func (p *parser) freshUse(at *yaml.Node, name string) bool {
	first, taken := p.useNames[name]
	switch {
	case taken && first == position(at):
		p.mistake(first, "put a variable of the foreach in it, as in "+words.Shorten(name)+".$i", "each repetition is named %q", words.Shorten(name))
	case taken:
		p.mistake(position(at), "", "the name %q is given to two uses%s; the first is on line %d", words.Shorten(name), p.repetition(), first.Line)
	default:
		if p.useNames == nil {
			p.useNames = map[string]dag.Pos{}
		}
		p.useNames[name] = position(at)
	}
	return !taken
}

// readUse reads a file for one use. It reports whether the file has no mistake.
func (p *parser) readUse(ctx context.Context, item, at *yaml.Node, name, path string, file *usedFile, with []boundName) bool {
	pl := p.pipeline
	firstModule := len(pl.Modules)
	options := p.options
	options.Name, options.Params, options.Load, options.Save = p.shownPath(path), nil, nil, nil
	q := newParser(options)
	q.pipeline, q.uses, q.path, q.outside, q.saves, q.ended = pl, p.uses, path, file.outside, p.saves, p.ended
	q.within = &within{user: p, at: item, name: name, prefix: p.prefixed(name) + ".", folder: filepath.Dir(path), with: with,
		mistakes: p.mistakes.count(), firstNode: len(pl.Nodes), firstBuffer: len(pl.Buffers)}
	q.mistakes, q.warnings, q.cache, q.text = file.mistakes, file.warnings, file.cache, file.text
	q.budget, q.suggested = p.budget, p.suggested
	q.readUsed(ctx, file)
	file.mistakes, file.warnings = q.mistakes, q.warnings
	if most := p.options.mostRepeated(); most < dag.MaxNodes { // what it makes without foreach counts too: a short file may use it often
		made := int64(len(pl.Nodes) - q.within.firstNode + len(pl.Buffers) - q.within.firstBuffer)
		if q.budget = min(q.budget, p.budget-made); q.budget < 0 {
			p.mistake(position(at), "dagrun check allows more", "the files that are used make more than %d nodes or buffers, the limit here", most)
		}
	}
	p.budget, p.suggested, p.passed = q.budget, q.suggested, p.passed || q.passed
	if int64(len(pl.Buffers)) > dag.MaxNodes {
		p.mistake(position(at), "", "the pipeline has more than %d buffers, the limit", int64(dag.MaxNodes))
	}
	// From here on, they are what the use has made.
	for i := q.within.firstNode; i < len(pl.Nodes); i++ {
		pl.Nodes[i].Pos = position(item)
	}
	for i := q.within.firstBuffer; i < len(pl.Buffers); i++ {
		pl.Buffers[i].Pos = position(item)
	}
	for i := firstModule; i < len(pl.Modules); i++ {
		pl.Modules[i].Pos = position(item)
	}
	p.adopt(q, at)
	return q.mistakes.count() == 0 && p.mistakes.count() == q.within.mistakes
}

// readUsed reads the parts of a file that is used by another one.
func (p *parser) readUsed(ctx context.Context, file *usedFile) {
	if file.text == nil {
		file.root = p.usedRoot(file)
	}
	root := file.root
	if root == nil || !p.version(root) {
		return
	}
	var f [fileKeyCount]field
	if !p.fields(root, &fileKeys, f[:]) {
		return
	}
	unknownKeys := p.unknownKeys
	p.readParams(f[fileParams])
	p.readModules(f[fileModules])
	p.readBuffers(f[fileBuffers])
	p.agreeOnSync(root, f[fileSync])
	p.usedDevices(f[fileDevices])
	if f[fileNodes].value == nil && !unknownKeys {
		p.mistake(position(root), "", "nodes are missing")
	} else if f[fileNodes].value != nil {
		p.readNodes(ctx, f[fileNodes])
	}
	p.readAfter()
	p.confirm(ctx)
	if p.mistakes.count() == 0 && p.within.user.mistakes.count() == p.within.mistakes {
		p.allBound()
	}
}

// finishBodies resolves the after: lists of all bodies, once every name is known.
func (p *parser) finishBodies() {
	if len(p.levels.finished) == 0 {
		return
	}
	if p.pipeline.Sync == dag.SyncExplicit {
		for i := range p.pipeline.Nodes {
			if n := &p.pipeline.Nodes[i]; n.Control != nil {
				p.mistake(n.Pos, "leave sync out", "loops and branches need sync: auto")
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
		p.swap(body)
	}
	p.levels.open = nil
	p.swap(top)
}
