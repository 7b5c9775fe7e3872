// Functions and their bodies: headers, blocks, labels, instructions.

package ptx

import "strings"

const poolSize = 1 << 12 // operands allocated at once

// parseFunction reads an entry or a function, from its directive to its end.
func (p *parser) parseFunction(linkage Linkage, entry bool) {
	p.next()
	p.open()
	defer func() { p.scopes, p.function, p.id = p.scopes[:0], nil, NoFunction }()
	fresh := Function{Entry: entry, Linkage: linkage, Alias: NoFunction}
	p.function, p.id = &fresh, FunctionID(len(p.m.Functions))
	p.registers, p.location, p.declared = 0, -1, p.declared[:0]
	for p.isDot(".attribute") {
		p.attribute()
	}
	if !entry && p.isMark('(') {
		fresh.Results = p.parameters()
	}
	for p.isDot(".attribute") {
		p.attribute()
	}
	fresh.Position = p.token.pos
	fresh.Name = p.word(wordToken)
	if p.err != nil {
		return
	}
	id, known := p.m.Function(fresh.Name)
	if _, taken := p.m.names[fresh.Name]; taken && !known {
		p.fail(fresh.Position, "%s is declared twice", short(fresh.Name))
		return
	}
	if !known {
		id = p.id
		p.m.names[fresh.Name] = symbol{functionSymbol, int32(id)}
		p.m.Functions = append(p.m.Functions, Function{Name: fresh.Name, Entry: entry, Alias: NoFunction})
	}
	p.id = id
	for _, r := range fresh.Results {
		if r.Variable != NoVariable {
			p.m.Variables[r.Variable].Owner = id
		}
	}
	if p.isMark('(') {
		fresh.Params = p.parameters()
	}
	p.limits()
	if p.isMark(';') {
		p.next()
		if old := &p.m.Functions[id]; p.err == nil && !old.Defined {
			fresh.Alias = old.Alias
			*old = fresh
		}
		return
	}
	if p.err == nil && p.m.Functions[id].Defined {
		p.fail(fresh.Position, "%s already has a body", short(fresh.Name))
		return
	}
	if p.err == nil && !p.isMark('{') {
		p.fail(p.token.pos, "expected { or ; after the head of %s, not %s", short(fresh.Name), p.describe(p.token))
		return
	}
	fresh.Defined = true
	p.m.Functions[id].Defined = true
	p.body()
	if p.err == nil {
		p.close() // the scope of the parameters: the last one in which labels are resolved
		p.m.Functions[id] = fresh
	}
}

// parameters reads a list in parentheses: .param and .reg declarations.
func (p *parser) parameters() (list []Parameter) {
	p.next()
	total := int64(0)
	for p.err == nil && !p.isMark(')') {
		t := p.token
		if t.kind != dotToken || p.text[t.start:t.end] != ".param" && p.text[t.start:t.end] != ".reg" {
			p.fail(t.pos, "expected .param or .reg, not %s", p.describe(t))
			break
		}
		p.next()
		s := p.shape()
		pos, name := p.wordAt(wordToken)
		if p.err != nil {
			break
		}
		if p.text[t.start:t.end] == ".reg" {
			if p.function.Entry {
				p.fail(t.pos, "a kernel takes its parameters in .param space, not in registers")
				break
			}
			p.count(pos, 1)
			at := len(p.declared)
			p.declared = append(p.declared, declared{name, s.typ, s.vector, NoRegister})
			if name != "_" {
				p.declare(pos, name, symbol{registerSymbol, int32(at)})
			}
			list = append(list, Parameter{NoVariable, p.named(symbol{registerSymbol, int32(at)})})
		} else {
			v := p.newVariable(pos, name, Param, Internal, s)
			if total += v.Size; p.err == nil && p.function.Entry && total > maxKernelParameters {
				p.fail(pos, "the parameters of a kernel have %d bytes at most, and these have %d up to %s", maxKernelParameters, total, short(name))
			}
			list = append(list, Parameter{p.add(v), NoRegister})
		}
		if !p.isMark(',') {
			break
		}
		p.next()
	}
	p.expectMark(')', "after the parameters")
	return list
}

// limits reads the directives between a head and its body.
func (p *parser) limits() {
	f := p.function
	three := func(to *[3]int32) {
		*to = [3]int32{1, 1, 1}
		for i := range to {
			to[i] = int32(p.integer())
			if !p.isMark(',') {
				return
			}
			p.next()
		}
	}
	for p.err == nil && p.token.kind == dotToken {
		t := p.token
		if p.text[t.start:t.end] == ".pragma" {
			f.Pragmas = append(f.Pragmas, p.pragma()...)
			continue
		}
		p.next()
		switch p.text[t.start:t.end] {
		case ".maxntid":
			three(&f.Limits.MaxThreads)
		case ".reqntid":
			three(&f.Limits.RequiredThreads)
		case ".reqnctapercluster":
			three(&f.Limits.RequiredCluster)
		case ".minnctapersm":
			f.Limits.MinBlocks = int32(p.integer())
		case ".maxnctapersm":
			f.Limits.MaxBlocks = int32(p.integer())
		case ".maxnreg":
			f.Limits.MaxRegisters = int32(p.integer())
		case ".maxclusterrank":
			f.Limits.MaxClusterRank = int32(p.integer())
		case ".explicitcluster":
			f.Limits.ExplicitCluster = true
		case ".blocksareclusters":
			f.Limits.BlocksAreCluster = true
		case ".noreturn":
			f.NoReturn = true
		case ".abi_preserve", ".abi_preserve_control":
			p.integer()
		default:
			p.fail(t.pos, "%s is not a directive of a kernel or function; expected .maxntid, .reqntid, .minnctapersm or the like", p.describe(t))
		}
	}
}

// body reads { ... }, with the blocks in it.
func (p *parser) body() {
	start := p.token.pos
	p.next()
	p.open()
	p.enter()
	for p.err == nil {
		t := p.token
		switch {
		case p.isMark('}'):
			p.leave()
			p.close()
			p.next()
			return
		case p.isMark('{'):
			p.body()
		case p.isMark(';'):
			p.next()
		case t.kind == dotToken:
			p.local()
		case t.kind == wordToken || p.isMark('@'):
			p.statement()
		case t.kind == endToken:
			p.fail(start, "the block that starts here has no closing brace")
		default:
			p.fail(t.pos, "expected an instruction, not %s", p.describe(t))
		}
	}
}

// local reads a directive in a body.
func (p *parser) local() {
	t := p.token
	switch word := p.text[t.start:t.end]; word {
	case ".reg", ".local", ".shared", ".param", ".global", ".const", ".tex":
		p.next()
		p.declarations(spacesByName[word[1:]], Internal, false)
	case ".sreg":
		for p.err == nil && !p.isMark(';') && p.token.kind != endToken {
			p.next()
		}
		p.expectMark(';', "after .sreg")
	case ".loc":
		p.loc()
	case ".file":
		p.file()
	case ".section":
		p.section()
	case ".pragma":
		p.function.Pragmas = append(p.function.Pragmas, p.pragma()...)
	case ".extern", ".visible", ".weak", ".common":
		p.next() // linkage has no meaning in a body
	case ".branchtargets", ".calltargets", ".callprototype":
		p.fail(t.pos, "%s needs a label before it", word)
	default:
		p.limitsOrFail(t)
	}
}

// limitsOrFail reads .maxnreg and the like in a body, where some compilers put them.
func (p *parser) limitsOrFail(t token) {
	switch p.text[t.start:t.end] {
	case ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".noreturn":
		p.limits()
	default:
		p.fail(t.pos, "%s is not a directive that a body can have; expected .reg, .shared, .local, .param, .loc or .pragma", p.describe(t))
	}
}

// statement reads a label or an instruction.
func (p *parser) statement() {
	t := p.token
	if p.function.Begin.Line == 0 {
		p.function.Begin = t.pos
	}
	if t.kind == wordToken {
		if p.colonAfter(t) {
			p.label(t)
			return
		}
	}
	in := Instruction{Guard: NoRegister, Position: t.pos, Location: p.location}
	if p.isMark('@') {
		p.next()
		if p.isMark('!') {
			in.Negated = true
			p.next()
		}
		pos, name := p.wordAt(wordToken)
		if p.err != nil {
			return
		}
		s, id := p.find(name)
		if s.kind != registerSymbol {
			p.fail(pos, "%s is not a register that is declared here", short(name))
			return
		}
		in.Guard = id
		in.Position = p.token.pos
	}
	if p.token.kind != wordToken {
		p.fail(p.token.pos, "expected an instruction, not %s", p.describe(p.token))
		return
	}
	word := p.instructionWord()
	form := p.forms[word]
	if form == nil {
		if len(word) > maxWord {
			p.fail(in.Position, "an instruction's name is longer than %d bytes", maxWord)
			return
		}
		form = newForm(int32(len(p.m.Forms)), word)
		p.m.Forms = append(p.m.Forms, form)
		p.forms[word] = form
	}
	in.Form = form
	p.buffer = p.buffer[:0]
	if form.Op == OpCall {
		p.call()
	} else if !p.isMark(';') {
		p.operands(form.Op)
	}
	if p.err != nil {
		return
	}
	if !p.isMark(';') {
		p.fail(p.token.pos, "expected ; after %s, not %s", short(word), p.describe(p.token))
		return
	}
	p.next()
	n := len(p.buffer)
	if n > len(p.pool) {
		p.pool = make([]Operand, poolSize)
	}
	copy(p.pool, p.buffer)
	in.Operands, p.pool = p.pool[:n:n], p.pool[n:]
	p.function.Code = append(p.function.Code, in)
}

// colonAfter reports whether a colon follows a word, which makes it a label.
func (p *parser) colonAfter(t token) bool {
	at := t.end
	for at < len(p.text) && (p.text[at] == ' ' || p.text[at] == '\t') {
		at++
	}
	return at < len(p.text) && p.text[at] == ':'
}

func (p *parser) label(t token) {
	name := p.text[t.start:t.end]
	p.next()
	p.next()
	id := LabelID(len(p.function.Labels))
	in := &p.scopes[len(p.scopes)-1]
	in.labels = append(in.labels, id)
	p.function.Labels = append(p.function.Labels, Label{Name: name, Position: t.pos, At: int32(len(p.function.Code))})
	switch {
	case p.isDot(".branchtargets"):
		p.next()
		for i := int32(0); p.err == nil; i++ {
			if i == maxOperands {
				p.fail(p.token.pos, "more than %d targets", maxOperands)
			}
			in.references = append(in.references, reference{p.text[p.token.start:p.token.end], p.token.pos, 0, i, id})
			p.function.Labels[id].Targets = append(p.function.Labels[id].Targets, -1)
			p.word(wordToken)
			if !p.isMark(',') {
				break
			}
			p.next()
		}
		p.expectMark(';', "after .branchtargets")
	case p.isDot(".calltargets"):
		p.next()
		for p.err == nil {
			if len(p.function.Labels[id].Callees) == maxOperands {
				p.fail(p.token.pos, "more than %d targets", maxOperands)
			}
			pos, name := p.wordAt(wordToken)
			callee, ok := p.m.Function(name)
			if !ok && p.err == nil {
				p.fail(pos, "%s is not declared above as a function", short(name))
			}
			p.function.Labels[id].Callees = append(p.function.Labels[id].Callees, callee)
			if !p.isMark(',') {
				break
			}
			p.next()
		}
		p.expectMark(';', "after .calltargets")
	case p.isDot(".callprototype"):
		p.next()
		proto := &Prototype{}
		if p.isMark('(') {
			proto.Results = p.prototypeList()
		}
		p.word(wordToken) // the name that stands for the callee
		if p.isMark('(') {
			proto.Params = p.prototypeList()
		}
		for p.err == nil && p.token.kind == dotToken {
			proto.NoReturn = proto.NoReturn || p.isDot(".noreturn")
			p.next()
			if p.token.kind == numberToken {
				p.integer()
			}
		}
		p.expectMark(';', "after .callprototype")
		p.function.Labels[id].Prototype = proto
	}
}

// prototypeList reads the parameters of a prototype. Their names are ignored.
func (p *parser) prototypeList() (list []Variable) {
	p.next()
	for p.err == nil && !p.isMark(')') {
		space := spacesByName[strings.TrimPrefix(p.word(dotToken), ".")]
		s := p.shape()
		pos, name := p.wordAt(wordToken)
		if p.err == nil {
			list = append(list, p.newVariable(pos, name, space, Internal, s))
		}
		if !p.isMark(',') {
			break
		}
		p.next()
	}
	p.expectMark(')', "after the parameters of a prototype")
	return list
}
