// Loops and branches declared by Go calls.

package dag

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag/expr"
)

// Loop says how often the body of Builder.Repeat runs. Of Times, Until and While exactly one must be given; the other fields belong to
// Until and While.
type Loop struct {
	Times  int64  // that many passes, 0 included if Until and While are ""
	Until  string // a condition such as "d_rr < 1e-6": tested after each pass, the loop ends once it holds
	While  string // a condition that is tested before each pass: the loop ends once it does not hold
	Most   int64  // the most passes
	Every  int64  // test only every so many passes, and after the last; 0: 1
	OrStop bool   // it is no failure that Most passes were not enough
	Expect *int64 // how many passes the last replay must have made; nil: not checked
}

// Repeat declares a loop. What body declares becomes the body of the loop: its nodes have ids of their own, which count from 0 and are
// valid inside of body only, for After too. Buffers belong to the whole pipeline, wherever they are declared. All nodes of a body have the
// priority of the loop. They may run on several devices; the host then tests the condition.
func (b *Builder) Repeat(name string, loop Loop, body func()) NodeID {
	c := &Control{Times: loop.Times, Every: max(loop.Every, 1), OrStop: loop.OrStop, Expect: loop.Expect}
	node := Node{Name: name, Kind: Repeat, Control: c}
	text := loop.Until
	if loop.While != "" {
		text, c.While = loop.While, true
	}
	switch tested := text != ""; {
	case loop.Until != "" && loop.While != "", tested && loop.Times != 0:
		b.wrong("node", name, "a loop has one of Times, Until and While", "")
	case !tested && (loop.Most != 0 || loop.Every != 0 || loop.OrStop || loop.Expect != nil):
		b.wrong("node", name, "Most, Every, OrStop and Expect belong to a loop with Until or While", "")
	case tested && loop.Most < 1:
		b.wrong("node", name, "a loop with Until or While needs Most: how many passes it may take", "")
	case tested && loop.Every < 0:
		b.wrong("node", name, fmt.Sprintf("the condition is tested every %d passes; the number must be at least 1", loop.Every), "")
	case tested:
		c.Times = loop.Most
		b.condition(name, c, text)
	}
	return b.control(node, body)
}

// If declares a branch: on the device, then runs if the condition holds, and otherwise, which may be nil, if it does not. For their
// nodes the same holds as for those of Repeat.
func (b *Builder) If(name, condition string, then, otherwise func()) NodeID {
	c := &Control{Every: 1}
	b.condition(name, c, condition)
	if otherwise == nil {
		return b.control(Node{Name: name, Kind: Branch, Control: c}, then)
	}
	return b.control(Node{Name: name, Kind: Branch, Control: c}, then, otherwise)
}

// ControlLike declares a loop or branch of another version of a graph: the node, with other bodies and with a condition that reads other elements.
func (b *Builder) ControlLike(node Node, operands []Range, bodies ...func()) NodeID {
	if node.Control == nil || node.Kind != Repeat && node.Kind != Branch {
		b.wrong("node", node.Name, "it is neither a loop nor a branch", "")
		return b.Node(Node{Name: node.Name})
	}
	old := node.Control
	c := &Control{Times: old.Times, While: old.While, Every: old.Every, OrStop: old.OrStop, Expect: old.Expect}
	if old.Condition != nil {
		condition := *old.Condition
		condition.Operands = slices.Clone(operands)
		c.Condition = &condition
	}
	if c.Condition == nil && len(operands) > 0 || len(bodies) == 0 {
		b.wrong("node", node.Name, fmt.Sprintf("a %s like it cannot have %d bodies and a condition of %d elements", node.Kind, len(bodies), len(operands)), "")
		return b.Node(Node{Name: node.Name})
	}
	node.Control = c
	return b.control(node, bodies...)
}

func (b *Builder) condition(name string, c *Control, text string) {
	condition, err := NewCondition(text, goConditionNames{b})
	if err != nil {
		b.wrong("node", name, fmt.Sprintf("condition %q: %v", text, err), "")
		return
	}
	c.Condition = condition
}

// control declares a node with bodies.
func (b *Builder) control(node Node, declare ...func()) NodeID {
	ok := node.Kind == Repeat || node.Control.Condition != nil
	var bodies []*Draft
	for _, body := range declare {
		if body == nil {
			b.wrong("node", node.Name, "there is no function that declares its body", "")
			ok = false
			continue
		}
		bodies = append(bodies, b.body(body))
	}
	if !ok {
		return b.Node(Node{Name: node.Name})
	}
	b.pipeline.enclose(&node, bodies)
	return b.Node(node)
}

// body collects what a function declares.
func (b *Builder) body(declare func()) *Draft {
	body := &Draft{}
	b.pipeline.Swap(body)
	b.depth++
	if b.depth > MaxBodyDepth {
		b.wrong("pipeline", b.pipeline.Name, fmt.Sprintf("loops and branches are nested deeper than %d levels", MaxBodyDepth), "")
	} else {
		declare()
	}
	b.depth--
	b.pipeline.Swap(body)
	return body
}

// goConditionNames gives the names of a condition of a Go call: those of buffers.
type goConditionNames struct{ *Builder }

// Variable finds nothing: a Go program writes numbers into the text.
func (goConditionNames) Variable(string) (expr.Value, bool) { return expr.Value{}, false }

func (s goConditionNames) Shape(buffer string) ([]int64, bool) { return builderScope(s).Shape(buffer) }

func (s goConditionNames) IsBuffer(name string) bool { return s.bufferNamed(name) >= 0 }

func (s goConditionNames) Operand(text string) (Range, DType, error) {
	slice, err := expr.ParseSlice(text)
	if err != nil {
		return Range{}, InvalidDType, err
	}
	name, err := slice.Name.Expand(s)
	if err != nil {
		return Range{}, InvalidDType, err
	}
	id := s.bufferNamed(name)
	if id < 0 {
		return Range{}, InvalidDType, fmt.Errorf("unknown buffer %q", name)
	}
	buffer := s.pipeline.Buffers[id]
	if buffer.Place == Host {
		return Range{}, InvalidDType, fmt.Errorf("%q is in host memory; a condition reads device buffers", name)
	}
	r := s.Whole(id)
	if slice.Kind != expr.Whole {
		rows, columns, err := slice.Extent(s, name, buffer.Shape)
		if err != nil {
			return Range{}, InvalidDType, err
		}
		if r, err = s.pipeline.Extent(id, rows, columns); err != nil {
			return Range{}, InvalidDType, err
		}
	}
	return r, buffer.DType, nil
}
