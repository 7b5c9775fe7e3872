// Reads the members of structures that kernels take by value: {struct: [1, 2]} and {struct: {x: 1, y: d_y}}.

package file

import (
	"gopkg.in/yaml.v3"

	"github.com/dagrun/dagrun/dag"
)

const structKey = "struct"

// structure reads the members of a structure: a list is by position, a mapping by their names. arg reads those that are no lists or mappings.
func (p *parser) structure(n *yaml.Node, depth int, arg func(*yaml.Node) (dag.ArgumentSpec, bool)) (dag.StructureSpec, bool) {
	v := dag.StructureSpec{Whole: true}
	if depth == dag.MostNested {
		p.mistake(position(n), "", "structures are nested more than %d deep", dag.MostNested)
		return v, false
	}
	ok := true
	add := func(item *yaml.Node) {
		inner, fine := p.member(item, depth, arg)
		v.List, ok = append(v.List, inner), ok && fine
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			add(item)
		}
	case yaml.MappingNode:
		var members []*yaml.Node
		v.Names, members, ok = p.named(n)
		for _, member := range members {
			add(member)
		}
	default:
		p.wrongKind(n, structKey, "a list of members, or a mapping by their names")
		return v, false
	}
	return v, ok
}

// member reads a number, a number of a type as in {i32: n}, a buffer or slice for a pointer, or the members of a structure, vector or array.
func (p *parser) member(n *yaml.Node, depth int, arg func(*yaml.Node) (dag.ArgumentSpec, bool)) (dag.StructureSpec, bool) {
	switch n.Kind {
	case yaml.SequenceNode:
		return p.structure(n, depth+1, arg)
	case yaml.MappingNode:
		if len(n.Content) == 2 && p.isKey(n.Content[0]) {
			if t, ok := dag.ParseDType(n.Content[0].Value); ok && t.Components() == 1 {
				v, fine := p.number(n.Content[1], "a number")
				return dag.StructureSpec{Number: v, DType: t}, fine
			}
		}
		return p.structure(n, depth+1, arg)
	}
	a, ok := arg(n)
	if a.IsBuffer || a.Null {
		return dag.StructureSpec{Memory: &a}, ok
	}
	return dag.StructureSpec{Number: a.Value}, ok
}
