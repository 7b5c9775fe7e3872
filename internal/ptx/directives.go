// Directives that are possible outside of functions and inside them.

package ptx

import "strings"

// attribute reads .attribute(.managed, .unified(1, 2)) and tells whether it says managed.
func (p *parser) attribute() (managed bool) {
	p.next()
	p.expectMark('(', "after .attribute")
	for depth := 1; depth > 0 && p.err == nil; p.next() {
		switch {
		case p.isMark('('):
			depth++
		case p.isMark(')'):
			depth--
		case p.isDot(".managed"):
			managed = true
		case p.token.kind == endToken:
			p.fail(p.token.pos, ".attribute has no closing parenthesis")
		}
	}
	return managed
}

func (p *parser) pragma() (texts []string) {
	p.next()
	for p.err == nil {
		texts = append(texts, strings.Trim(p.word(stringToken), `"`))
		if !p.isMark(',') {
			break
		}
		p.next()
	}
	p.expectMark(';', "after .pragma")
	return texts
}

// loc reads .loc 1 20 3 and what may follow: , function_name label+4, inlined_at 1 5 7.
func (p *parser) loc() {
	p.next()
	l := Location{File: int32(p.integer()), Line: int32(p.integer()), Column: int32(p.integer())}
	for p.isMark(',') {
		p.next()
		switch word := p.text[p.token.start:p.token.end]; word {
		case "function_name":
			p.next()
			p.word(wordToken)
			if p.isMark('+') {
				p.next()
				p.integer()
			}
		case "inlined_at":
			p.next()
			p.integer()
			p.integer()
			p.integer()
		default:
			p.fail(p.token.pos, "expected function_name or inlined_at in .loc, not %s", p.describe(p.token))
		}
	}
	if p.function != nil && p.err == nil {
		p.function.Locations = append(p.function.Locations, l)
		p.location = int32(len(p.function.Locations)) - 1
	}
}

// section skips .section .debug_str { ... }.
func (p *parser) section() {
	pos := p.token.pos
	p.next()
	p.next() // its name
	if !p.isMark('{') {
		p.fail(p.token.pos, "expected { after .section, not %s", p.describe(p.token))
		return
	}
	for depth := 0; p.err == nil; p.next() {
		switch {
		case p.isMark('{'):
			depth++
		case p.isMark('}'):
			if depth--; depth == 0 {
				p.next()
				return
			}
		case p.token.kind == endToken:
			p.fail(pos, "the section that starts here has no closing brace")
		}
	}
}

// file reads .file 1 "name", 123, 456.
func (p *parser) file() {
	p.next()
	index := p.integer()
	name := strings.Trim(p.word(stringToken), `"`)
	for p.isMark(',') {
		p.next()
		p.expression(1)
	}
	p.m.Files[int(index)] = name
}
