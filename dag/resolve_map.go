// From the text of a map node to its launch: which names are the output, the inputs and the numbers.

package dag

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
)

// MapLaunch reads a map node's text. Lookup says what a name in it stands for; where it knows no such name it reports that
// itself, at that offset of the text, and returns false. Each name is looked up once. Scope gives the lengths of buffers for
// len. The error is an *expr.Error with its place in the text; without one the spec is nil only if a lookup failed.
func MapLaunch(text string, scope expr.Scope, lookup func(name string, offset int) (ArgumentSpec, bool)) (*LaunchSpec, error) {
	out, e, err := expr.ParseMap(text)
	if err != nil {
		return nil, err
	}
	if lookup == nil {
		return nil, &expr.Error{Message: "nobody knows the names in it"}
	}
	offsets := map[string]int{}
	e.Walk(func(t *expr.Term) {
		if _, seen := offsets[t.Name]; t.Op == expr.Variable && !seen {
			offsets[t.Name] = t.Offset
		}
	})
	m := &MapSpec{Text: text, Out: out}
	var inputs, scalars []ArgumentSpec
	output, ok := lookup(out, strings.Index(text, out))
	if ok && !output.IsBuffer {
		return nil, &expr.Error{Offset: strings.Index(text, out), Message: fmt.Sprintf("%s is a number; the result of a map goes to a buffer", out)}
	}
	variables := e.Variables()
	for _, name := range variables {
		a, found := output, ok
		if name != out {
			a, found = lookup(name, offsets[name])
		}
		switch {
		case !found:
			ok = false
		case a.IsBuffer:
			m.Inputs, inputs = append(m.Inputs, name), append(inputs, a)
		default:
			m.Scalars, scalars = append(m.Scalars, name), append(scalars, a)
		}
	}
	if m.Expr, err = e.Bind(scope, variables...); err != nil && ok {
		return nil, err
	}
	if !ok {
		return nil, nil
	}
	args := append([]ArgumentSpec{output}, inputs...)
	return &LaunchSpec{Label: text, Module: -1, Device: -1, Map: m, Args: append(args, scalars...)}, nil
}

func (r *resolution) findMap(library Library) bool {
	m := r.spec.Map
	out := &r.spec.Args[0]
	n := r.elements(out)
	m.OutType = r.pipeline.Buffers[out.Range.Buffer].DType
	m.InTypes, m.Single = make([]DType, len(m.Inputs)), nil
	for i := range 1 + len(m.Inputs) {
		if b := &r.pipeline.Buffers[r.spec.Args[i].Range.Buffer]; !b.DType.isNumber() {
			r.problemOf(i, fmt.Sprintf("map: %q is of type %s; a map computes with single numbers", b.Name, b.DType),
				"use a kernel, or a buffer of "+b.DType.Component().String())
			return false
		}
	}
	for i := range m.Inputs {
		in := &r.spec.Args[1+i]
		m.InTypes[i] = r.pipeline.Buffers[in.Range.Buffer].DType
		if partOverlap(out.Range, in.Range) {
			r.problemOf(1+i, fmt.Sprintf("map: %s (%s) and %s (%s) overlap, so that elements would be overwritten before they are read",
				m.Inputs[i], r.pipeline.rangeText(in.Range), m.Out, r.pipeline.rangeText(out.Range)), "")
		}
		switch k := r.elements(in); {
		case k == 1 && n != 1:
			if m.Single == nil {
				m.Single = make([]bool, len(m.Inputs))
			}
			m.Single[i] = true
		case k != n:
			r.problemOf(1+i, fmt.Sprintf("map: %s has %s, %s has %d", m.Inputs[i], words.Count(k, "element", "elements"), m.Out, n),
				"every buffer that a map reads needs as many elements as its result, or one")
		}
	}
	if m.ScalarTypes = nil; m.Integers() {
		for _, a := range r.spec.Args[1+len(m.Inputs):] {
			whole := I64
			if _, ok := a.Value.Int(); a.Value.Kind() == expr.Float || a.Value.Kind() == expr.Rational && !ok {
				whole = F64
			}
			m.ScalarTypes = append(m.ScalarTypes, whole)
		}
	}
	kernel, err := library.Map(m)
	if err != nil {
		r.problem(PartKernel, fmt.Sprintf("map: %v", err), "")
		return false
	}
	r.written = append([]ArgumentSpec{{Value: expr.Int(n)}}, r.spec.Args...)
	r.take(kernel, func(i int) int { return i - 1 })
	return len(r.problems) == 0
}

func (r *resolution) elements(a *ArgumentSpec) int64 {
	return a.Range.Bytes() / r.pipeline.Buffers[a.Range.Buffer].DType.Size()
}

// partOverlap reports whether two ranges share bytes without being the same.
func partOverlap(a, b Range) bool {
	return a.Overlaps(b) && a != b
}
