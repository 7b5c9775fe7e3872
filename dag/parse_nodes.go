// Nodes of a pipeline file: copies, fills, and the keys that every node may have. Kernels and maps are in parse_launch.go.

package dag

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// The places of nodeKeys.
const (
	nodeName = iota
	nodeMemcpy
	nodeMemset
	nodeKernel
	nodeMap
	nodeAllReduce
	nodeReduce
	nodeBroadcast
	nodeAllGather
	nodeReduceScatter
	nodeAllToAll
	nodeExchange
	nodeSend
	nodeReceive
	nodeTemplate
	nodeArgs
	nodeWith
	nodeGrid
	nodeBlock
	nodeShared
	nodeCooperative
	nodeAfter
	nodeStream
	nodePriority
	nodeCost
	nodeDevice
	nodePeer
	nodeWhen
	nodeForeach
	nodeNodes
	nodeRank
	nodeUse
	nodeRepeat
	nodeIf
	nodeElse
	nodeKeyCount
)

var nodeKeys = keySet{"a node", []string{"name", "memcpy", "memset", "kernel", "map", "allreduce", "reduce", "broadcast", "allgather", "reducescatter", "alltoall", "exchange", "send", "recv", "template", "args", "with", "grid", "block", "shared", "cooperative", "after", "stream", "priority", "cost", "device", "peer", "when", "foreach", "nodes", "rank", "use", "repeat", "if", "else"}}

// maxStream is the largest stream that a node can be bound to.
const maxStream = 1<<16 - 1

// pendingAfter is an after: list that waits for all names to be known.
type pendingAfter struct {
	node  NodeID
	list  *yaml.Node
	names []string
}

func (p *parser) readNodes(f field) {
	p.nodes = map[string]NodeID{}
	if p.memory != nil {
		p.nodes = p.memory.names
		clear(p.nodes)
	}
	p.leftOut = map[string]struct{}{}
	if isNull(f.value) {
		return
	}
	p.nodeItems(f.value)
}

func (p *parser) nodeItems(n *yaml.Node) {
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
			p.controlItem(item, &f)
		case f[nodeElse].value != nil:
			p.mistake(position(f[nodeElse].key), "", "else belongs to an if")
		case f[nodeForeach].value == nil && f[nodeNodes].value == nil:
			p.node(item, &f)
		case f[nodeNodes].value == nil:
			p.foreach(f[nodeForeach].value, &yaml.Node{}, func() int64 { return 1 }, func() { p.node(item, &f) })
		case f[nodeForeach].value == nil:
			if !p.hasStrangeKey(item) { // else it may be the foreach
				p.mistake(position(f[nodeNodes].key), "", "nodes: inside of a node belongs to a foreach, a repeat or an if")
			}
		default:
			p.repeatedNodes(&f)
		}
	}
}

func (p *parser) repeatedNodes(f *[nodeKeyCount]field) {
	for k := range f {
		if f[k].value != nil && k != nodeForeach && k != nodeNodes {
			p.mistake(position(f[k].key), "write it on each of its nodes", "a foreach with nodes: has no %s of its own", f[k].key.Value)
		}
	}
	inner := f[nodeNodes].value
	p.foreach(f[nodeForeach].value, inner, func() int64 { return p.countItems(inner) }, func() { p.nodeItems(inner) })
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
func (p *parser) node(item *yaml.Node, f *[nodeKeyCount]field) {
	if f[nodeUse].value != nil {
		p.use(item, f)
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
	node := Node{Pos: position(item)}
	if named {
		node.Name, named = p.fullName(f[nodeName].value, name)
	}
	ok := p.common(&node, f)
	if isControl(f) {
		p.control(item, f, node, named && ok)
		return
	}
	action := p.action(item, f, name)
	if action < 0 {
		return
	}
	node.Kind = Communicate
	if action <= nodeMap {
		node.Kind = [...]Kind{Memcpy, Memset, Kernel, Map}[action-nodeMemcpy]
	}
	var few [8]Access
	var accesses []Access
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
	if len(pl.Nodes) >= MaxNodes {
		p.mistake(position(item), "", "file has more than %d nodes, the limit", int64(MaxNodes))
		return
	}
	p.append(f, name, node, accesses)
}

// append adds a complete node.
func (p *parser) append(f *[nodeKeyCount]field, name string, node Node, accesses []Access) {
	pl := p.pipeline
	id := NodeID(len(pl.Nodes))
	p.nodes[name] = id
	pl.Nodes = append(pl.Nodes, node)
	pl.accesses = append(pl.accesses, accesses...)
	pl.accessStart = append(pl.accessStart, int32(len(pl.accesses)))
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

// pairOf reads a mapping that needs both of its keys.
func (p *parser) pairOf(n *yaml.Node, set *keySet, c *[2]field, hint string) bool {
	if !p.fields(n, set, c[:]) {
		return false
	}
	for k := range c {
		if c[k].value == nil {
			if !p.unknownKeys {
				p.mistake(position(n), hint, "%s has no %s", set.what, set.keys[k])
			}
			return false
		}
	}
	return true
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
	if err := checkName(name); err != nil {
		p.mistake(position(f[nodeName].value), "", "%s", err)
		return "", false
	}
	return name, true
}

// freshNode takes a node's name. Until the node is complete it counts as broken.
func (p *parser) freshNode(at *yaml.Node, name string) bool {
	id, ok := p.nodes[name]
	if !ok && p.levels.taken(name) {
		p.mistake(position(at), "", "node %q is declared twice%s; names are unique in the whole file, bodies included", shorten(name), p.repetition())
		return false
	}
	if !ok {
		p.nodes[name] = broken
		return true
	}
	switch {
	case id == broken:
		p.mistake(position(at), "", "node %q is declared twice%s", shorten(name), p.repetition())
	case len(p.loops) > 0 && p.pipeline.Nodes[id].Pos.Line == int32(at.Line) && strings.IndexByte(at.Value, '$') < 0:
		p.mistake(position(at), fmt.Sprintf("put a variable of the foreach in its name, as in %s.$%s", shorten(name), p.loops[len(p.loops)-1].name), "each repetition declares the node %q again", shorten(name))
	default:
		p.mistake(position(at), "", "node %q is declared twice%s; the first is on line %d", shorten(name), p.repetition(), p.pipeline.Nodes[id].Pos.Line)
	}
	return false
}

// condition evaluates a when.
func (p *parser) condition(n *yaml.Node) (value, ok bool) {
	v, ok := p.number(n, "when")
	if !ok {
		return false, false
	}
	value, ok = v.Bool()
	if !ok {
		p.mistake(position(n), "compare it, as in n > 0", "when must be true or false, not the number %s", v)
	}
	return value, ok
}

// action returns which of the actions the node has, or -1.
func (p *parser) action(item *yaml.Node, f *[nodeKeyCount]field, name string) int {
	action := -1
	for k := nodeMemcpy; k <= nodeReceive; k++ {
		switch {
		case f[k].value == nil:
		case action < 0:
			action = k
		default:
			p.mistake(position(f[k].key), "make it two nodes", "node %q has two actions, %s and %s", shorten(name), nodeKeys.keys[action], nodeKeys.keys[k])
			return -1
		}
	}
	if action < 0 && p.hasStrangeKey(item) {
		return -1 // that key was meant as the action
	}
	if action < 0 {
		p.mistake(position(item), "it needs one of memcpy, memset, kernel, map, repeat, if, or a communication such as allreduce", "node %q has no action", shorten(name))
		return -1
	}
	isKernel, isMap := action == nodeKernel, action == nodeMap
	foreign := false
	for _, k := range [...]int{nodeTemplate, nodeArgs, nodeGrid, nodeBlock, nodeShared, nodeCooperative, nodeWith, nodePeer, nodeRank} {
		allowed := isKernel && k != nodeWith && k != nodeRank || isMap && (k == nodeWith || k == nodePeer) || k == nodeRank && (action == nodeSend || action == nodeReceive)
		if f[k].value != nil && !allowed {
			p.mistake(position(f[k].key), "", "a %s takes no %s", nodeKeys.keys[action], nodeKeys.keys[k])
			foreign = true
		}
	}
	if foreign {
		return -1
	}
	return action
}

// common reads what every node may say beside its action.
func (p *parser) common(node *Node, f *[nodeKeyCount]field) bool {
	ok := true
	node.Device = -1
	for _, k := range [...]int{nodeStream, nodePriority, nodeCost, nodeDevice, nodePeer} {
		n := f[k].value
		if n == nil {
			continue
		}
		fine := true
		switch k {
		case nodeStream:
			var v int64
			v, fine = p.between(n, "stream", 0, maxStream)
			node.Stream = OnStream(int32(v))
		case nodePriority:
			switch p.word(n, "priority", "high", "normal", "low") {
			case "high":
				node.Priority = High
			case "low":
				node.Priority = Low
			case "":
				fine = false
			}
		case nodeCost:
			fine = p.cost(n, node)
		case nodeDevice:
			var v int64
			v, fine = p.between(n, "device", 0, MaxDevices-1)
			node.Device, node.Fixed = int32(v), true
		case nodePeer:
			node.Peer, fine = p.truth(n, "peer")
		}
		ok = ok && fine
	}
	return ok
}

var costKeys = keySet{"cost", []string{"us"}}

func (p *parser) cost(n *yaml.Node, node *Node) bool {
	var f [1]field
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		hint := "write {us: 12.5}"
		if e, err := p.parsedExpr(n.Value); err == nil {
			if _, err = e.Eval(p); err == nil {
				hint = fmt.Sprintf("write {us: %s}", shorten(n.Value))
			}
		}
		p.mistake(position(n), hint, "cost needs a unit")
		return false
	}
	if !p.fields(n, &costKeys, f[:]) {
		return false
	}
	if f[0].value == nil {
		p.mistake(position(n), "write {us: 12.5}", "cost is empty")
		return false
	}
	us, ok := p.float(f[0].value, "us")
	if ok && us < 0 {
		p.mistake(position(f[0].value), "", "us must not be negative, but is %v", us)
		return false
	}
	node.CostUS, node.HasCost = us, ok
	return ok
}

var copyKeys = keySet{"memcpy", []string{"from", "to"}}

func (p *parser) copy(node *Node, f *[nodeKeyCount]field, accesses []Access) ([]Access, bool) {
	n := f[nodeMemcpy].value
	var c [2]field
	if !p.pairOf(n, &copyKeys, &c, "write {from: x, to: d_x}") {
		return nil, false
	}
	src, ok1 := p.reference(c[0].value, "from")
	dst, ok2 := p.reference(c[1].value, "to")
	if !ok1 || !ok2 {
		return nil, false
	}
	if err := p.pipeline.copyProblem(dst, src); err != nil {
		p.mistake(position(n), p.declaredBoth(src.Buffer, dst.Buffer), "%s%s", err, p.repetition())
		return nil, false
	}
	device := p.pipeline.copyDevice(dst, src)
	if node.Device >= 0 && node.Device != device && !(p.pipeline.roams(src.Buffer) || p.pipeline.roams(dst.Buffer)) {
		to, from := &p.pipeline.Buffers[dst.Buffer], &p.pipeline.Buffers[src.Buffer]
		if (to.Place == Device || from.Place == Device) && !(to.Place == Device && to.Device == node.Device) && !(from.Place == Device && from.Device == node.Device) {
			p.mistake(position(f[nodeDevice].value), "", "neither side of the copy is on device %d", node.Device)
			return nil, false
		}
		device = node.Device
	}
	node.Device, node.Copy = device, &Copy{dst, src}
	node.Work = copyWork(src)
	return append(accesses, Access{src, Read}, Access{dst, Write}), true
}

var setKeys = keySet{"memset", []string{"to", "value"}}

func (p *parser) set(node *Node, f *[nodeKeyCount]field, accesses []Access) ([]Access, bool) {
	n := f[nodeMemset].value
	var s [2]field
	if !p.pairOf(n, &setKeys, &s, "write {to: d_x, value: 0}") {
		return nil, false
	}
	dst, ok1 := p.reference(s[0].value, "to")
	value, ok2 := p.number(s[1].value, "value")
	if !ok1 || !ok2 {
		return nil, false
	}
	b := &p.pipeline.Buffers[dst.Buffer]
	bits, err := setBits(b.DType, value)
	switch {
	case b.Place == Host:
		p.mistake(position(s[0].value), "fill it with init, or copy to it", "memset cannot fill %q, which is in host memory", b.Name)
		return nil, false
	case node.Device >= 0 && node.Device != b.Device && !p.pipeline.roams(dst.Buffer):
		p.mistake(position(f[nodeDevice].value), "", "memset is to run on device %d, but %q is on device %d", node.Device, b.Name, b.Device)
		return nil, false
	case err != nil:
		p.mistake(position(s[1].value), "", "value %s", err)
		return nil, false
	}
	if err := p.pipeline.setProblem(dst, bits); err != nil {
		p.mistake(position(s[0].value), "copy a tile of a buffer that has the value", "%s", err)
		return nil, false
	}
	if node.Device < 0 || !p.pipeline.roams(dst.Buffer) {
		node.Device = b.Device
	}
	node.Set = &Set{dst, bits}
	node.Work = setWork(dst)
	return append(accesses, Access{dst, Write}), true
}

// after notes the names of a node's explicit predecessors, which may be declared later.
func (p *parser) after(id NodeID, n *yaml.Node) {
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
					p.mistake(position(at), "let the loop or branch itself come after it, or before", "after: does not cross the border of a body, and %q is on the other side", shorten(name))
					continue
				}
				hint := ""
				if p.mistakes.wants(position(at)) {
					hint = p.nearNode(name)
				}
				p.mistake(position(at), hint, "unknown node %q", shorten(name))
			case id == pending.node:
				p.mistake(position(at), "", "node %q depends on itself", shorten(name))
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
			p.mistake(node.Pos, "a stream belongs to one device", "stream %d has %q on device %d and %q on device %d", stream, shorten(earlier.Name), earlier.Device, shorten(node.Name), node.Device)
		case earlier.Priority != node.Priority:
			p.mistake(node.Pos, "a stream has one priority", "stream %d has %q of %s priority and %q of %s priority", stream, shorten(earlier.Name), earlier.Priority, shorten(node.Name), node.Priority)
		}
	}
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
