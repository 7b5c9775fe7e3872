// Operands of instructions.

package ptx

import "strings"

// operands reads a list up to the semicolon into the buffer.
func (p *parser) operands(op Opcode) {
	for p.err == nil {
		if len(p.buffer) >= maxOperands {
			p.fail(p.token.pos, "more than %d operands", maxOperands)
			return
		}
		if (op == OpBra || op == OpBrx) && p.token.kind == wordToken {
			p.jump(op)
		} else {
			p.buffer = append(p.buffer, p.operand())
		}
		if !p.isMark(',') {
			return
		}
		p.next()
	}
}

// jump reads an operand of a branch: a label, or the index of an indirect one.
func (p *parser) jump(op Opcode) {
	t := p.token
	name := p.text[t.start:t.end]
	if s, id := p.find(name); s.kind == registerSymbol && op == OpBrx {
		p.buffer = append(p.buffer, Operand{Kind: RegisterKind, Index: int32(id), Extra: -1})
	} else if s.kind == registerSymbol {
		p.fail(t.pos, "a branch to a register cannot be followed; use brx.idx with .branchtargets")
	} else {
		p.refer(t)
	}
	p.next()
}

// refer adds an operand that names a label.
func (p *parser) refer(t token) {
	in := &p.scopes[len(p.scopes)-1]
	in.references = append(in.references, reference{p.text[t.start:t.end], t.pos, int32(len(p.function.Code)), int32(len(p.buffer)), -1})
	p.buffer = append(p.buffer, Operand{Kind: LabelKind, Index: -1, Extra: -1})
}

// call reads (results), callee, (arguments), prototype: always four operands, even if some are left out.
func (p *parser) call() {
	absent := Operand{Kind: None, Index: -1, Extra: -1}
	if p.isMark('(') {
		p.buffer = append(p.buffer, p.list('(', ')', List))
		p.expectMark(',', "after the results of a call")
	} else {
		p.buffer = append(p.buffer, absent)
	}
	p.buffer = append(p.buffer, p.operand())
	if p.err == nil && p.isMark(',') {
		p.next()
		if p.isMark('(') {
			p.buffer = append(p.buffer, p.list('(', ')', List))
			if p.isMark(',') {
				p.next()
				p.prototype()
			}
		} else {
			p.buffer = append(p.buffer, absent)
			p.prototype()
		}
	}
	for p.err == nil && len(p.buffer) < 4 {
		p.buffer = append(p.buffer, absent)
	}
}

// prototype reads the last operand of an indirect call: the label of a prototype or of a list of targets.
func (p *parser) prototype() {
	t := p.token
	if p.word(wordToken) == "" {
		return
	}
	if id, ok := p.m.Function(p.text[t.start:t.end]); ok {
		p.buffer = append(p.buffer, Operand{Kind: FunctionKind, Index: int32(id), Extra: -1})
		return
	}
	p.refer(t)
}

// list reads elements between two marks.
func (p *parser) list(open, end byte, kind Kind) Operand {
	p.enter()
	p.expectMark(open, "at the start of a list")
	var few [8]Operand
	parts := few[:0]
	for p.err == nil && !p.isMark(end) {
		if len(parts) >= maxOperands {
			p.fail(p.token.pos, "more than %d elements", maxOperands)
		}
		parts = append(parts, p.operand())
		if !p.isMark(',') {
			break
		}
		p.next()
	}
	p.expectMark(end, "at the end of a list")
	p.leave()
	return p.withElements(kind, parts)
}

func (p *parser) withElements(kind Kind, parts []Operand) Operand {
	at := len(p.function.elements)
	p.function.elements = append(p.function.elements, parts...)
	return Operand{Kind: kind, Index: int32(at), Extra: int32(len(parts))}
}

// operand reads one operand, and a second one after a bar.
func (p *parser) operand() Operand {
	o := p.single()
	if p.err == nil && p.isMark('|') {
		p.next()
		o = p.withElements(Pair, []Operand{o, p.single()})
	}
	return o
}

func (p *parser) single() Operand {
	t := p.token
	switch {
	case t.kind == wordToken:
		return p.name(false)
	case p.isMark('['):
		return p.address()
	case p.isMark('{'):
		return p.list('{', '}', Vector)
	case p.isMark('!'), p.isMark('-'):
		if at := t.end; at < len(p.text) && classes[p.text[at]]&wordStart != 0 {
			p.next()
			return p.name(true)
		}
	}
	c := p.expression(binding("^")) // a bar means a pair
	return Operand{Kind: c.kind, Index: -1, Extra: -1, Value: c.value}
}

// name reads an operand that starts with a word.
func (p *parser) name(negated bool) Operand {
	t := p.token
	name := p.text[t.start:t.end]
	o := Operand{Index: -1, Extra: -1, Negated: negated}
	if name == "_" {
		p.next()
		o.Kind = Discard
		return o
	}
	s, id := p.find(name)
	switch s.kind {
	case registerSymbol:
		p.next()
		o.Kind, o.Index = RegisterKind, int32(id)
		o.Part = p.part()
		if p.isMark('+') {
			o.Value = p.expressionAfterName()
		}
		return o
	case variableSymbol:
		p.next()
		o.Kind, o.Extra = VariableKind, s.id
		switch {
		case p.isMark('+'), p.isMark('-'):
			o.Value = p.expressionAfterName()
		case p.isMark('['):
			return p.indexed(VariableID(s.id))
		}
		return o
	case functionSymbol:
		p.next()
		o.Kind, o.Index = FunctionKind, s.id
		return o
	}
	if special, ok := specialsByName[name]; ok {
		p.next()
		special.Negated = negated
		special.Part = p.part()
		return special
	}
	if name == "WARP_SZ" {
		c := p.expression(binding("^"))
		o.Kind, o.Value = c.kind, c.value
		return o
	}
	p.fail(t.pos, "%s is not declared: there is no register, variable or function with this name here", short(name))
	return o
}

// part reads the .x after a register.
func (p *parser) part() Part {
	if p.token.kind != dotToken {
		return Whole
	}
	word := p.text[p.token.start+1 : p.token.end]
	part := OtherPart
	switch word {
	case "x", "r":
		part = X
	case "y", "g":
		part = Y
	case "z", "b":
		part = Z
	case "w", "a":
		part = W
	case "b0":
		part = Byte0
	case "b1":
		part = Byte1
	case "b2":
		part = Byte2
	case "b3":
		part = Byte3
	case "h0":
		part = Half0
	case "h1":
		part = Half1
	default:
		if !strings.HasPrefix(word, "b") && !strings.HasPrefix(word, "h") {
			p.fail(p.token.pos, ".%s is not a part of a register; expected .x, .y, .z, .w, or .b0 to .b3, .h0, .h1", short(word))
		}
	}
	p.next()
	return part
}

// address reads [base + offset], and the coordinates that may follow within the brackets.
func (p *parser) address() Operand {
	p.next()
	o := p.base()
	if p.isMark(',') {
		var few [8]Operand
		parts := append(few[:0], o)
		for p.err == nil && p.isMark(',') {
			p.next()
			if len(parts) >= maxOperands {
				p.fail(p.token.pos, "more than %d elements", maxOperands)
				break
			}
			p.enter()
			parts = append(parts, p.operand())
			p.leave()
		}
		o = p.withElements(TextureAddress, parts)
	}
	p.expectMark(']', "after an address")
	return o
}

// base reads what an address adds up: a register, a variable, both, numbers.
func (p *parser) base() Operand {
	o := Operand{Kind: Address, Index: -1, Extra: -1}
	minus := false
	for first := true; p.err == nil; first = false {
		if t := p.token; t.kind == wordToken {
			p.addName(&o, t)
			if minus && p.err == nil {
				p.fail(t.pos, "%s cannot be subtracted in an address", short(p.text[t.start:t.end]))
			}
		} else {
			if !first && !minus && p.isMark('-') { // [%rd1+-4]
				p.next()
				minus = true
			}
			c := p.expression(binding("*"))
			if p.err == nil && c.kind != Integer {
				p.fail(t.pos, "an offset must be an integer")
			}
			if minus {
				c.value = -c.value
			}
			o.Value += c.value
		}
		if !p.isMark('+') && !p.isMark('-') {
			break
		}
		minus = p.isMark('-')
		p.next()
	}
	if p.isMark('[') && o.Extra >= 0 && o.Index < 0 && o.Value == 0 {
		return p.indexed(VariableID(o.Extra))
	}
	return o
}

func (p *parser) addName(o *Operand, t token) {
	name := p.text[t.start:t.end]
	s, id := p.find(name)
	p.next()
	switch {
	case p.err != nil:
	case s.kind == registerSymbol && o.Index < 0:
		o.Index = int32(id)
		o.Part = p.part()
	case s.kind == variableSymbol && o.Extra < 0:
		o.Extra = s.id
	case name == "WARP_SZ":
		o.Value += 32
	case s.kind == noSymbol:
		p.fail(t.pos, "%s is not declared: there is no register or variable with this name here", short(name))
	default:
		p.fail(t.pos, "%s cannot be part of this address", short(name))
	}
}

// indexed reads a[r+4]: an address whose register and number count elements.
func (p *parser) indexed(v VariableID) Operand {
	p.next()
	o := p.base()
	p.expectMark(']', "after an index")
	if p.err == nil && o.Extra >= 0 {
		p.fail(p.token.pos, "an index must be a register or a number")
		return o
	}
	o.Extra = int32(v)
	known := &p.m.Variables[v]
	o.Value *= int64(known.Type.Size()) * int64(known.Vector)
	o.Scaled = o.Index >= 0
	return o
}
