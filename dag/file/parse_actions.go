// What the nodes of a pipeline file do: copies and fills, and which keys go with which action. Kernels and maps are in parse_launch.go.

package file

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

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
			p.mistake(position(f[k].key), "make it two nodes", "node %q has two actions, %s and %s", words.Shorten(name), nodeKeys.keys[action], nodeKeys.keys[k])
			return -1
		}
	}
	if action < 0 && p.hasStrangeKey(item) {
		return -1 // that key was meant as the action
	}
	if action < 0 {
		p.mistake(position(item), "it needs one of memcpy, memset, kernel, map, call, host, repeat, if, or a communication such as allreduce",
			"node %q has no action", words.Shorten(name))
		return -1
	}
	foreign := false
	for k := range nodeRows {
		if of := nodeRows[k].of; f[k].value != nil && of != 0 && of>>action&1 == 0 {
			p.mistake(position(f[k].key), "", "a %s takes no %s", nodeKeys.keys[action], nodeKeys.keys[k])
			foreign = true
		}
	}
	if foreign {
		return -1
	}
	return action
}

var copyKeys = keySet{"memcpy", []string{"from", "to"}}

func (p *parser) copy(node *dag.Node, f *[nodeKeyCount]field, accesses []dag.Access) ([]dag.Access, bool) {
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
	wanted := node.Device
	if err := p.pipeline.Copy(node, dst, src); err != nil {
		p.mistake(position(n), p.declaredBoth(src.Buffer, dst.Buffer), "%s%s", err, p.repetition())
		return nil, false
	}
	if wanted >= 0 && wanted != node.Device && !(p.pipeline.Roams(src.Buffer) || p.pipeline.Roams(dst.Buffer)) {
		to, from := &p.pipeline.Buffers[dst.Buffer], &p.pipeline.Buffers[src.Buffer]
		if (to.Place == dag.Device || from.Place == dag.Device) && !(to.Place == dag.Device && to.Device == wanted) &&
			!(from.Place == dag.Device && from.Device == wanted) {
			p.mistake(position(f[nodeDevice].value), "", "neither side of the copy is on device %d", wanted)
			return nil, false
		}
		node.Device = wanted
	}
	return append(accesses, dag.Access{Range: src, Mode: dag.Read}, dag.Access{Range: dst, Mode: dag.Write}), true
}

var setKeys = keySet{"memset", []string{"to", "value"}}

func (p *parser) set(node *dag.Node, f *[nodeKeyCount]field, accesses []dag.Access) ([]dag.Access, bool) {
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
	bits, err := b.DType.FillBits(value)
	switch {
	case b.Place == dag.Host:
		p.mistake(position(s[0].value), "fill it with init, or copy to it", "memset cannot fill %q, which is in host memory", b.Name)
		return nil, false
	case node.Device >= 0 && node.Device != b.Device && !p.pipeline.Roams(dst.Buffer):
		p.mistake(position(f[nodeDevice].value), "", "memset is to run on device %d, but %q is on device %d", node.Device, b.Name, b.Device)
		return nil, false
	case err != nil:
		p.mistake(position(s[1].value), "", "value %s", err)
		return nil, false
	}
	wanted := node.Device
	if err := p.pipeline.Memset(node, dst, bits); err != nil {
		p.mistake(position(s[0].value), "copy a tile of a buffer that has the value", "%s", err)
		return nil, false
	}
	if wanted >= 0 && p.pipeline.Roams(dst.Buffer) {
		node.Device = wanted
	}
	return append(accesses, dag.Access{Range: dst, Mode: dag.Write}), true
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
