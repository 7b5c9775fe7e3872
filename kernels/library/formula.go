// Formulas: integer expressions over a kernel's scalar arguments, such as "rows*cols" or "ceil(n, 256)". They give extents, scratch
// bytes and operation counts. A result that does not fit 64 bits is an error.

package library

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

var errTooLarge = errors.New("does not fit 64 bits")

// formula is a parsed expression and its text, for documentation.
type formula struct {
	text string
	root *formulaTerm
}

type formulaTerm struct {
	op    byte // 'k' literal, 'v' variable, '+', '-', '*', '/', 'c' ceil(a, b), 'm' min, 'M' max
	value int64
	param int // index of the variable among the parameters
	args  []*formulaTerm
}

type formulaParser struct {
	text  string
	at    int
	index func(name string) int
}

func parseFormula(text string, index func(name string) int) (f *formula, err error) {
	p := &formulaParser{text: text, index: index}
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("formula %q: %v", text, r)
		}
	}()
	root := p.sum()
	if p.skip(); p.at != len(text) {
		panic(fmt.Sprintf("unexpected %q", text[p.at:]))
	}
	return &formula{strings.TrimSpace(text), root}, nil
}

func (p *formulaParser) skip() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

func (p *formulaParser) accept(set string) byte {
	p.skip()
	if p.at < len(p.text) && strings.IndexByte(set, p.text[p.at]) >= 0 {
		p.at++
		return p.text[p.at-1]
	}
	return 0
}

func (p *formulaParser) sum() *formulaTerm {
	t := p.product()
	for {
		op := p.accept("+-")
		if op == 0 {
			return t
		}
		t = &formulaTerm{op: op, args: []*formulaTerm{t, p.product()}}
	}
}

func (p *formulaParser) product() *formulaTerm {
	t := p.atom()
	for {
		op := p.accept("*/")
		if op == 0 {
			return t
		}
		t = &formulaTerm{op: op, args: []*formulaTerm{t, p.atom()}}
	}
}

func (p *formulaParser) atom() *formulaTerm {
	if p.accept("(") != 0 {
		t := p.sum()
		p.expect(")")
		return t
	}
	p.skip()
	rest := p.text[p.at:]
	word := rest[:strings.IndexAny(rest+" ", " +-*/(),")]
	p.at += len(word)
	if word == "" {
		panic("an operand is missing")
	}
	if v, err := strconv.ParseInt(word, 10, 64); err == nil {
		return &formulaTerm{op: 'k', value: v}
	}
	if op := map[string]byte{"ceil": 'c', "min": 'm', "max": 'M'}[word]; op != 0 && p.accept("(") != 0 {
		a := p.sum()
		p.expect(",")
		b := p.sum()
		p.expect(")")
		return &formulaTerm{op: op, args: []*formulaTerm{a, b}}
	}
	i := p.index(word)
	if i < 0 {
		panic(fmt.Sprintf("no parameter %q", word))
	}
	return &formulaTerm{op: 'v', param: i}
}

func (p *formulaParser) expect(set string) {
	if p.accept(set) == 0 {
		panic(set + " is missing")
	}
}

// eval returns the value for these parameter values.
func (f *formula) eval(values []int64) (int64, error) {
	v, ok := f.root.eval(values)
	if !ok {
		return 0, fmt.Errorf("%w: %s", errTooLarge, f.text)
	}
	return v, nil
}

func (t *formulaTerm) eval(values []int64) (int64, bool) {
	switch t.op {
	case 'k':
		return t.value, true
	case 'v':
		return values[t.param], true
	}
	a, okA := t.args[0].eval(values)
	b, okB := t.args[1].eval(values)
	if !okA || !okB {
		return 0, false
	}
	switch t.op {
	case '+':
		s := a + b
		return s, (s > a) == (b > 0)
	case '-':
		s := a - b
		return s, (s < a) == (b > 0)
	case '*':
		return product(a, b)
	case '/':
		if b == 0 {
			return 0, false
		}
		return a / b, true
	case 'c':
		if b <= 0 {
			return 0, false
		}
		q := a / b
		if a%b > 0 {
			q++
		}
		return q, true
	case 'm':
		return min(a, b), true
	}
	return max(a, b), true
}

func product(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 || lo > 1<<63-1 {
		return 0, false
	}
	if (a < 0) != (b < 0) {
		return -int64(lo), true
	}
	return int64(lo), true
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}
