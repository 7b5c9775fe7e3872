// The conditions of #if and #elif.

package source

import (
	"strconv"
	"strings"
)

type conditionParser struct {
	in    []token
	at    int
	depth int
	bad   bool
}

func (c *conditionParser) next() string {
	if c.at >= len(c.in) {
		return ""
	}
	c.at++
	return c.in[c.at-1].text
}

var conditionLevels = [][]string{{"||"}, {"&&"}, {"==", "!="}, {"<", ">", "<=", ">="}, {"+", "-"}, {"*", "/", "%"}}

func (c *conditionParser) binary(level int) int64 {
	if level == len(conditionLevels) {
		return c.unary()
	}
	a := c.binary(level + 1)
	for c.at < len(c.in) && contains(conditionLevels[level], c.in[c.at].text) {
		op := c.next()
		b := c.binary(level + 1)
		switch op {
		case "||":
			a = asInt(a != 0 || b != 0)
		case "&&":
			a = asInt(a != 0 && b != 0)
		case "==":
			a = asInt(a == b)
		case "!=":
			a = asInt(a != b)
		case "<":
			a = asInt(a < b)
		case ">":
			a = asInt(a > b)
		case "<=":
			a = asInt(a <= b)
		case ">=":
			a = asInt(a >= b)
		case "+":
			a += b
		case "-":
			a -= b
		case "*":
			a *= b
		default:
			if b == 0 {
				c.bad = true
				return 0
			}
			if op == "/" {
				a /= b
			} else {
				a %= b
			}
		}
	}
	return a
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (c *conditionParser) unary() int64 {
	if c.depth++; c.depth > mostConditions {
		c.bad = true
		return 0
	}
	defer func() { c.depth-- }()
	t := c.next()
	switch {
	case t == "!":
		return asInt(c.unary() == 0)
	case t == "-":
		return -c.unary()
	case t == "+":
		return c.unary()
	case t == "(":
		v := c.binary(0)
		if c.next() != ")" {
			c.bad = true
		}
		return v
	case t == "true":
		return 1
	case t == "":
		c.bad = true
		return 0
	}
	v, err := strconv.ParseInt(strings.TrimRight(t, "uUlL"), 0, 64)
	if err != nil && !isWord(t[0]) {
		c.bad = true
	}
	return v
}
