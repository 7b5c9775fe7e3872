// What a buffer is expected to hold after a run.

package file

import (
	"math"

	"gopkg.in/yaml.v3"

	"github.com/dagrun/dagrun/dag"
)

// The places of expectKeys.
const (
	expectFile = iota
	expectValue
	expectSum
	expectExpr
	expectRTol
	expectATol
	expectNorm
	expectDiffering
	expectKeyCount
)

var expectKeys = keySet{"expect", []string{"file", "value", "sum", "expr", "rtol", "atol", "norm", "differing"}}

// norms are the words of norm.
var norms = wordsFrom(dag.NormL1, dag.NormMax)

func (p *parser) expect(n *yaml.Node, b *dag.Buffer, sound bool) (*dag.Expect, bool) {
	var f [expectKeyCount]field
	if p.bareFile(n, "expect") {
		return nil, false
	}
	if n.Kind == yaml.ScalarNode && !isNull(n) || n.Kind == yaml.SequenceNode {
		f[expectValue] = field{n, n} // a number is short for {value: NUMBER}
	} else if !p.fields(n, &expectKeys, f[:]) {
		return nil, false
	}
	kind := p.exactlyOne(n, "expect", f[:expectRTol])
	if kind < 0 {
		return nil, false
	}
	value, ok := f[kind].value, true
	e := &dag.Expect{}
	switch kind {
	case expectFile:
		e.Kind = dag.ExpectFile
		e.File, ok = p.dataFile(value, "file")
	case expectValue:
		e.Kind = dag.ExpectValue
		if value.Kind == yaml.SequenceNode {
			e.Values, ok = p.listed(value, b, "value")
		} else {
			e.Value, ok = p.number(value, "value")
		}
	case expectSum:
		e.Kind = dag.ExpectSum
		e.Value, ok = p.number(value, "sum")
		if _, truth := e.Value.Bool(); truth {
			p.mistake(position(value), "", "sum must be a number, not %s", e.Value)
			ok = false
		}
		if b.DType.Complex() {
			p.mistake(position(value), "use value, expr or file", "complex numbers cannot be compared by their sum")
			ok = false
		}
	case expectExpr:
		e.Kind = dag.ExpectExpr
		e.Expr, ok = p.perElement(value, "expr", b)
	}
	e.RTol, e.ATol = defaultTolerance(b.DType), 0
	if f[expectRTol].value != nil || f[expectATol].value != nil {
		e.RTol = 0
	}
	for k, to := range map[int]*float64{expectRTol: &e.RTol, expectATol: &e.ATol} {
		if f[k].value == nil {
			continue
		}
		v, fine := p.float(f[k].value, expectKeys.keys[k])
		if fine && v < 0 {
			p.mistake(position(f[k].value), "", "%s must not be negative, but is %v", expectKeys.keys[k], v)
			fine = false
		}
		*to, ok = v, ok && fine
	}
	ok = p.judgement(e, &f) && ok
	return e, sound && ok
}

// judgement reads norm and differing.
func (p *parser) judgement(e *dag.Expect, f *[expectKeyCount]field) bool {
	norm, differing := f[expectNorm], f[expectDiffering]
	for _, given := range []field{norm, differing} {
		if given.value != nil && e.Kind == dag.ExpectSum {
			p.mistake(position(given.key), "", "sum takes no %s", given.key.Value)
			return false
		}
	}
	if norm.value != nil && differing.value != nil {
		p.mistake(position(differing.key), "", "expect is either by norm or by how many elements are differing, not both")
		return false
	}
	ok := true
	if norm.value != nil {
		word := p.word(norm.value, "norm", norms...)
		e.Norm, _ = dag.ParseNorm(word)
		ok = word != ""
	}
	if differing.value != nil {
		e.Differing, ok = p.between(differing.value, "differing", 0, math.MaxInt64)
	}
	return ok
}
