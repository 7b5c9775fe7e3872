// foreach: its variables, their values, and the limit on how much it may repeat.

package file

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// foreach runs body once for every combination of the variables, the last one fastest. Size says how many nodes or buffers one
// repetition makes, so that too many are refused before the first is made, and rest is what it makes them from.
func (p *parser) foreach(n, rest *yaml.Node, size func() int64, body func()) {
	if n.Kind != yaml.MappingNode {
		p.wrongKind(n, "foreach", "a mapping such as {i: 4}")
		return
	}
	if len(n.Content) == 0 {
		p.mistake(position(n), "write {i: 4}", "foreach has no variable")
		return
	}
	for k := 0; k+1 < len(n.Content); k += 2 {
		if !p.usableVariable(n, k) {
			return
		}
	}
	// An outermost foreach counts everything inside it. Mistakes in ranges are reported later, when the foreach is expanded.
	if len(p.loops) == 0 {
		p.counting = true
		total := p.repetitions(n, rest, size)
		p.counting = false
		if total > p.budget {
			limit, hint := "the limit of a file", listHint(n)
			if p.options.mostRepeated() < dag.MaxNodes {
				limit, hint = "the limit here", "dagrun check allows more"
			}
			p.mistake(position(n), hint, "foreach makes more than %d nodes or buffers, %s", p.options.mostRepeated(), limit)
			return
		}
		p.budget -= total
	}
	p.variable(n, 0, body)
}

func (p *parser) usableVariable(n *yaml.Node, k int) bool {
	key := n.Content[k]
	if !p.isEntry(key, n.Content[k+1]) || !p.usableName(key, key.Value, "variable") {
		return false
	}
	if _, ok := p.buffers[key.Value]; ok {
		p.mistake(position(key), "", "%q is a buffer already", key.Value)
		return false
	}
	for i := range p.loops {
		if p.loops[i].name == key.Value {
			p.mistake(position(key), "", "%q is a variable of a foreach around this one", key.Value)
			return false
		}
	}
	for i := 0; i < k; i += 2 {
		if n.Content[i].Value == key.Value {
			p.duplicateKey(key, n.Content[i])
			return false
		}
	}
	return true
}

// listHint says how a variable gets one value instead of a count: a large count was often meant as a value.
func listHint(n *yaml.Node) string {
	for k := len(n.Content) - 2; k >= 0; k -= 2 {
		if value := n.Content[k+1]; value.Kind == yaml.ScalarNode && !isNull(value) {
			name, text := n.Content[k].Value, words.Shorten(value.Value)
			return fmt.Sprintf("%s: %s counts from 0; for that one value write %s: [%s]", name, text, name, text)
		}
	}
	return ""
}

// variable runs through the values of variable k and, for each, through the variables after it.
func (p *parser) variable(n *yaml.Node, k int, body func()) {
	if k >= len(n.Content) {
		body()
		return
	}
	var values sequence
	ok := false
	if !p.idle {
		values, ok = p.values(n.Content[k+1], n.Content[k].Value)
	}
	depth := len(p.loops)
	p.loops = append(p.loops, binding{name: n.Content[k].Value, pos: position(n.Content[k])})
	defer func() { p.loops = p.loops[:depth] }()
	if ok && values.count == 0 {
		p.loops[depth].broken = true
		p.idleBody(n, func() { p.variable(n, k+2, body) })
		return
	}
	if !ok {
		// Read the body once with an unknown value, so that its other mistakes are found too.
		p.loops[depth].broken = true
		p.variable(n, k+2, body)
		return
	}
	for i := range values.count {
		if p.stopped() {
			return
		}
		v, ok := p.value(values, i)
		p.loops[depth].value, p.loops[depth].broken = v, !ok
		p.variable(n, k+2, body)
	}
}

// idleBody checks the keys of the body of a foreach that repeats nothing, because with other params it may repeat something. It ignores
// the values, which may be invalid: that may be why nothing is repeated. A foreach inside another is checked the first time only.
func (p *parser) idleBody(n *yaml.Node, body func()) {
	p.passed = true
	if _, ok := p.idled[n]; ok {
		return
	}
	if p.idled == nil {
		p.idled = map[*yaml.Node]struct{}{}
	}
	p.idled[n] = struct{}{}
	p.idle = true
	body()
	p.idle = false
}

// sequence is the values of a variable: start, start+step, ..., or the items of a list.
type sequence struct {
	count       int64
	start, step int64
	list        *yaml.Node
}

var rangeKeys = keySet{"the range of a foreach", []string{"from", "to", "step"}}

// values evaluates what a variable runs through.
func (p *parser) values(n *yaml.Node, name string) (sequence, bool) {
	switch n.Kind {
	case yaml.SequenceNode:
		return sequence{count: int64(len(n.Content)), list: n}, true
	case yaml.MappingNode:
		return p.valueRange(n)
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		p.wrongKind(n, "the range of "+name, "a count, a list, or {from: , to: , step: }")
		return sequence{}, false
	}
	if from, to, ok := strings.Cut(n.Value, ".."); ok && !strings.ContainsAny(n.Value, "()") {
		p.mistake(position(n), fmt.Sprintf("write {from: %s, to: %s}", strings.TrimSpace(from), strings.TrimSpace(to)),
			"the range of %s is a count, a list or a mapping, not %s", name, words.Shorten(n.Value))
		return sequence{}, false
	}
	count, ok := p.between(n, "the count of "+name, 0, math.MaxInt64)
	return sequence{count: count, step: 1}, ok
}

func (p *parser) valueRange(n *yaml.Node) (sequence, bool) {
	var f [3]field
	p.fields(n, &rangeKeys, f[:])
	unknownKeys := p.unknownKeys
	bounds, ok := [3]int64{0, 0, 1}, true
	for k := range f {
		if f[k].value == nil {
			continue
		}
		v, fine := p.integer(f[k].value, rangeKeys.keys[k])
		bounds[k], ok = v, ok && fine
	}
	from, to, step := bounds[0], bounds[1], bounds[2]
	switch {
	case f[1].value == nil && unknownKeys:
		return sequence{}, false
	case f[1].value == nil:
		p.mistake(position(n), "to is the end of the range, which is not included", "the range of a foreach has no to")
		return sequence{}, false
	case !ok:
		return sequence{}, false
	case step == 0:
		p.mistake(position(f[2].value), "", "step must not be 0")
		return sequence{}, false
	case step > 0 && from >= to || step < 0 && from <= to:
		return sequence{start: from, step: step}, true
	}
	span, stride := uint64(to)-uint64(from), uint64(step)
	if step < 0 {
		span, stride = uint64(from)-uint64(to), -uint64(step)
	}
	count := (span-1)/stride + 1
	return sequence{count: int64(min(count, math.MaxInt64)), start: from, step: step}, true
}

func (p *parser) value(s sequence, i int64) (expr.Value, bool) {
	if s.list == nil {
		return expr.Int(s.start + i*s.step), true
	}
	return p.number(s.list.Content[i], "a value of a foreach")
}

// repetitions counts what a foreach makes, up to a little above the budget.
func (p *parser) repetitions(n, rest *yaml.Node, size func() int64) int64 {
	if n.Kind != yaml.MappingNode {
		return 0
	}
	return p.countFrom(n, rest, 0, size)
}

// countFrom counts what variable k and those after it make. A repetition that makes nothing counts as one: it takes its time too.
func (p *parser) countFrom(n, rest *yaml.Node, k int, size func() int64) int64 {
	if k+1 >= len(n.Content) {
		return max(size(), 1)
	}
	values, ok := p.values(n.Content[k+1], n.Content[k].Value)
	if !ok {
		return 1
	}
	depth := len(p.loops)
	p.loops = append(p.loops, binding{name: n.Content[k].Value})
	defer func() { p.loops = p.loops[:depth] }()
	total := int64(0)
	for i := range values.count {
		v, ok := p.value(values, i)
		p.loops[depth].value, p.loops[depth].broken = v, !ok
		total += max(p.countFrom(n, rest, k+2, size), 1)
		if total > p.budget {
			return total
		}
		if i == 0 && !p.decides(n, rest, k) {
			hi, lo := bits.Mul64(uint64(total), uint64(values.count))
			if hi != 0 || lo > uint64(p.budget) {
				return p.budget + 1
			}
			return int64(lo)
		}
	}
	return total
}

// decides reports whether how much there is to repeat may depend on variable k: then every value has to be looked at.
func (p *parser) decides(n, rest *yaml.Node, k int) bool {
	for later := k + 3; later < len(n.Content); later += 2 {
		if mentions(n.Content[later], n.Content[k].Value) {
			return true
		}
	}
	return rangeMentions(rest, n.Content[k].Value)
}

// rangeMentions reports whether the range of a foreach inside of n mentions a name.
func rangeMentions(n *yaml.Node, name string) bool {
	for k, c := range n.Content {
		if n.Kind == yaml.MappingNode && k%2 == 1 && n.Content[k-1].Value == "foreach" {
			if mentions(c, name) {
				return true
			}
		} else if rangeMentions(c, name) {
			return true
		}
	}
	return false
}

// mentions reports whether an expression in n may use a name.
func mentions(n *yaml.Node, name string) bool {
	if n.Kind == yaml.ScalarNode {
		return strings.Contains(n.Value, name)
	}
	for _, c := range n.Content {
		if mentions(c, name) {
			return true
		}
	}
	return false
}
