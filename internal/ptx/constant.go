// Numbers and constant expressions, in immediates, sizes and initialisers.

package ptx

import (
	"math"
	"strconv"
	"strings"
)

// constant is the value of a number or of an expression: an integer, or the bits of a float.
type constant struct {
	kind  Kind // Integer, Float32 or Float64
	value int64
}

func (c constant) float() float64 {
	return Operand{Kind: c.kind, Value: c.value}.Float()
}

// literal is the value of one number token.
func literal(word string) (constant, bool) {
	if len(word) == 1 {
		return constant{Integer, int64(word[0] - '0')}, true
	}
	if word[0] == '0' {
		switch word[1] {
		case 'f', 'F':
			bits, err := strconv.ParseUint(word[2:], 16, 32)
			return constant{Float32, int64(bits)}, err == nil && len(word) == 10
		case 'd', 'D':
			bits, err := strconv.ParseUint(word[2:], 16, 64)
			return constant{Float64, int64(bits)}, err == nil && len(word) == 18
		}
	}
	digits := strings.TrimRight(word, "uU")
	base := 10
	switch {
	case len(digits) > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'):
		base, digits = 16, digits[2:]
	case len(digits) > 2 && digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B'):
		base, digits = 2, digits[2:]
	case strings.ContainsAny(digits, ".eE"):
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil && !math.IsInf(f, 0) || len(digits) != len(word) {
			return constant{}, false
		}
		return constant{Float64, int64(math.Float64bits(f))}, true
	case len(digits) > 1 && digits[0] == '0':
		base, digits = 8, digits[1:]
	}
	v, err := strconv.ParseUint(digits, base, 64)
	return constant{Integer, int64(v)}, err == nil
}

// binding returns how tightly a binary operator binds; 0 if it is not an operator.
func binding(op string) int {
	switch op {
	case "||":
		return 1
	case "&&":
		return 2
	case "|":
		return 3
	case "^":
		return 4
	case "&":
		return 5
	case "==", "!=":
		return 6
	case "<", "<=", ">", ">=":
		return 7
	case "<<", ">>":
		return 8
	case "+", "-":
		return 9
	case "*", "/", "%":
		return 10
	}
	return 0
}

// operator is the operator at the current token, of one or two characters.
func (p *parser) operator() string {
	if p.token.kind != markToken {
		return ""
	}
	if p.token.end < len(p.text) {
		switch two := p.text[p.token.start : p.token.end+1]; two {
		case "||", "&&", "==", "!=", "<=", ">=", "<<", ">>":
			return two
		}
	}
	return p.text[p.token.start:p.token.end]
}

func (p *parser) takeOperator(op string) {
	p.next()
	if len(op) == 2 {
		p.next()
	}
}

// expression evaluates a constant expression whose operators bind at least as tightly as given.
func (p *parser) expression(least int) constant {
	left := p.unary()
	for p.err == nil {
		op := p.operator()
		b := binding(op)
		if b == 0 || b < least {
			break
		}
		pos := p.token.pos
		p.takeOperator(op)
		right := p.expression(b + 1)
		left = p.binary(pos, op, left, right)
	}
	if p.err == nil && least <= 1 && p.isMark('?') {
		p.next()
		p.enter()
		yes := p.expression(1)
		p.expectMark(':', "in a conditional expression")
		no := p.expression(1)
		p.leave()
		if left.value != 0 {
			return yes
		}
		return no
	}
	return left
}

func (p *parser) binary(pos Position, op string, a, b constant) constant {
	if a.kind != Integer || b.kind != Integer {
		x, y, z := a.float(), b.float(), 0.0
		switch op {
		case "+":
			z = x + y
		case "-":
			z = x - y
		case "*":
			z = x * y
		case "/":
			z = x / y
		default:
			p.fail(pos, "%s of floats is not a constant", op)
		}
		return constant{Float64, int64(math.Float64bits(z))}
	}
	truth := func(yes bool) constant {
		if yes {
			return constant{Integer, 1}
		}
		return constant{Integer, 0}
	}
	x, y := a.value, b.value
	switch op {
	case "||":
		return truth(x != 0 || y != 0)
	case "&&":
		return truth(x != 0 && y != 0)
	case "==":
		return truth(x == y)
	case "!=":
		return truth(x != y)
	case "<":
		return truth(x < y)
	case "<=":
		return truth(x <= y)
	case ">":
		return truth(x > y)
	case ">=":
		return truth(x >= y)
	case "|":
		x |= y
	case "^":
		x ^= y
	case "&":
		x &= y
	case "<<":
		x <<= uint64(y) & 63
	case ">>":
		x >>= uint64(y) & 63
	case "+":
		x += y
	case "-":
		x -= y
	case "*":
		x *= y
	case "/", "%":
		if y == 0 {
			p.fail(pos, "division by zero in a constant")
			return constant{Integer, 0}
		}
		if op == "/" {
			x /= y
		} else {
			x %= y
		}
	}
	return constant{Integer, x}
}

func (p *parser) unary() constant {
	t := p.token
	switch {
	case t.kind == numberToken:
		c, ok := literal(p.text[t.start:t.end])
		if !ok {
			p.fail(t.pos, "%s is not a number; PTX writes 12, 0x1f, 017, 0b11, 1.5, 0f3F800000 and 0d3FF0000000000000", short(p.text[t.start:t.end]))
		}
		p.next()
		return c
	case t.kind == wordToken && p.text[t.start:t.end] == "WARP_SZ":
		p.next()
		return constant{Integer, 32}
	case p.isMark('('):
		p.next()
		if p.token.kind == dotToken { // a cast: (.s64) or (.u64)
			p.next()
			p.expectMark(')', "after the type of a cast")
			p.enter()
			c := p.unary()
			p.leave()
			return c
		}
		p.enter()
		c := p.expression(1)
		p.leave()
		p.expectMark(')', "to close the expression")
		return c
	case p.isMark('-'), p.isMark('+'), p.isMark('~'), p.isMark('!'):
		p.next()
		p.enter()
		c := p.unary()
		p.leave()
		return negate(t.mark, c)
	}
	p.fail(t.pos, "expected a number, not %s", p.describe(t))
	return constant{Integer, 0}
}

func negate(op byte, c constant) constant {
	switch {
	case op == '+':
	case op == '-' && c.kind == Integer:
		c.value = -c.value
	case op == '-' && c.kind == Float32:
		c.value ^= 1 << 31
	case op == '-':
		c.value ^= math.MinInt64
	case op == '~':
		c.value = ^c.value
	case c.value == 0:
		c.value = 1
	default:
		c.value = 0
	}
	return c
}

// integer reads a constant expression that is an integer.
func (p *parser) integer() int64 {
	pos := p.token.pos
	if t := p.token; t.kind == numberToken && t.end-t.start < 10 { // the usual case, for .loc
		v := int64(0)
		for _, c := range []byte(p.text[t.start:t.end]) {
			if c < '0' || c > '9' {
				v = -1
				break
			}
			v = v*10 + int64(c-'0')
		}
		if v >= 0 && p.text[t.start] != '0' {
			p.next()
			if p.token.kind != markToken || binding(p.operator()) == 0 {
				return v
			}
			p.at, p.token = t.end, t
			p.line, p.lineStart = t.pos.Line, t.start-int(t.pos.Column)+1
		}
	}
	c := p.expression(1)
	if p.err == nil && c.kind != Integer {
		p.fail(pos, "expected an integer")
	}
	return c.value
}

// integerAt is like integer, and also returns its place.
func (p *parser) integerAt() (Position, int64) {
	pos := p.token.pos
	return pos, p.integer()
}
