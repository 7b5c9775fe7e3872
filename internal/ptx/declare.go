// Declarations of variables, parameters and registers, with their initialisers.

package ptx

import (
	"encoding/binary"
	"math"
	"strconv"
)

// shape is what comes before the names of a declaration.
type shape struct {
	typ     Type
	vector  uint8
	align   int
	pointer bool
	points  Space
	pointee int
	managed bool
}

// shape reads types, alignments and attributes up to the first name.
func (p *parser) shape() shape {
	s := shape{vector: 1}
	for p.err == nil && p.token.kind == dotToken {
		word := p.text[p.token.start+1 : p.token.end]
		if t, ok := typesByName[word]; ok {
			s.typ = t
			p.next()
			continue
		}
		switch word {
		case "align":
			p.next()
			pos, n := p.integerAt()
			if p.err == nil && (n < 1 || n > 1<<20 || n&(n-1) != 0) {
				p.fail(pos, "an alignment must be a power of two, not %d", n)
			}
			if s.pointer {
				s.pointee = int(n)
			} else {
				s.align = int(n)
			}
			continue
		case "v2", "v4", "v8":
			s.vector = word[1] - '0'
		case "ptr":
			s.pointer = true
		case "global", "const", "local", "shared":
			s.points = spacesByName[word]
		case "attribute":
			s.managed = p.attribute() || s.managed
			continue
		default:
			p.fail(p.token.pos, "%s is not possible in a declaration; expected a type such as .b32", p.describe(p.token))
			return s
		}
		p.next()
	}
	if p.err == nil && s.typ == NoType {
		p.fail(p.token.pos, "expected a type such as .b32, not %s", p.describe(p.token))
	}
	return s
}

// declarations reads what follows a state space, up to the semicolon.
func (p *parser) declarations(space Space, linkage Linkage, managed bool) {
	if p.isMark('[') { // .const[2], in old PTX
		p.next()
		p.integer()
		p.expectMark(']', "after the number of a bank")
	}
	s := p.shape()
	s.managed = s.managed || managed
	for p.err == nil {
		if space == Reg {
			p.register(s)
		} else {
			p.variable(space, linkage, s)
		}
		if !p.isMark(',') {
			break
		}
		p.next()
	}
	p.expectMark(';', "after a declaration")
}

// register reads one name of a .reg declaration.
func (p *parser) register(s shape) {
	pos, name := p.wordAt(wordToken)
	if len(p.scopes) == 0 {
		p.fail(pos, "register %s is declared outside a function", short(name))
		return
	}
	if !p.isMark('<') {
		p.count(pos, 1)
		p.declare(pos, name, symbol{registerSymbol, int32(len(p.declared))})
		p.declared = append(p.declared, declared{name, s.typ, s.vector, NoRegister})
		return
	}
	n := p.copies()
	if p.err != nil || n == 0 {
		return
	}
	p.count(pos, n)
	in := &p.scopes[len(p.scopes)-1]
	if len(in.groups) >= maxOperands {
		p.fail(pos, "more than %d groups of registers in a block", maxOperands)
		return
	}
	in.groups = append(in.groups, group{prefix: name, count: int32(n), typ: s.typ, vector: s.vector})
}

// copies reads the <n> after a name.
func (p *parser) copies() int64 {
	p.next()
	pos := p.token.pos
	c := p.unary()
	p.expectMark('>', "after the number of registers")
	if p.err == nil && (c.kind != Integer || c.value < 0) {
		p.fail(pos, "a number of registers cannot be negative")
	}
	return c.value
}

func (p *parser) count(pos Position, n int64) {
	if n > maxRegisters || p.registers+int(n) > maxRegisters {
		p.fail(pos, "more than %d registers are declared in %s", maxRegisters, short(p.function.Name))
		return
	}
	p.registers += int(n)
	if p.allRegs += int(n); p.allRegs > maxAllRegs {
		p.fail(pos, "more than %d registers are declared in this module; split it", maxAllRegs)
	}
}

// variable reads one name of a declaration in memory.
func (p *parser) variable(space Space, linkage Linkage, s shape) {
	pos, name := p.wordAt(wordToken)
	copies, many := int64(1), false
	if p.isMark('<') {
		copies, many = p.copies(), true
		if copies > maxCopies {
			p.fail(pos, "%s<%d> declares more than %d variables", short(name), copies, maxCopies)
		}
		p.countCopies(pos, copies)
	}
	v := p.newVariable(pos, name, space, linkage, s)
	if p.isMark('=') {
		p.next()
		p.initialise(&v)
	}
	for i := int64(0); i < copies && p.err == nil; i++ {
		if many {
			v.Name = name + strconv.FormatInt(i, 10)
		}
		p.add(v)
	}
}

func (p *parser) countCopies(pos Position, n int64) {
	if p.allRegs += int(n); p.allRegs > maxAllRegs {
		p.fail(pos, "more than %d variables are declared in this module; split it", maxAllRegs)
	}
}

// newVariable reads the dimensions after a name.
func (p *parser) newVariable(pos Position, name string, space Space, linkage Linkage, s shape) Variable {
	v := Variable{Name: name, Space: space, Type: s.typ, Vector: s.vector, Linkage: linkage, Managed: s.managed, Pointer: s.pointer,
		Points: s.points, Pointee: s.pointee, Owner: p.id, Position: pos}
	element := int64(s.typ.Size()) * int64(s.vector)
	if v.Align = s.align; v.Align == 0 {
		v.Align = int(element)
	}
	v.Size = element
	most := int64(maxSize)
	if space == Param {
		most = maxParameter
	}
	for i := 0; p.err == nil && p.isMark('['); i++ {
		p.next()
		v.Array = true
		if i == maxDimensions {
			p.fail(p.token.pos, "more than %d dimensions", maxDimensions)
		}
		if p.isMark(']') {
			p.next()
			v.Open = true
			continue
		}
		at, n := p.integerAt()
		p.expectMark(']', "after a dimension")
		if p.err == nil && (n < 0 || n > most || n > 0 && v.Size > most/n) {
			p.fail(at, "%s is too large: %d bytes at most", short(name), most)
		}
		v.Size *= n
	}
	if v.Open {
		v.Size = 0
	}
	return v
}

// add puts a variable into the tables.
func (p *parser) add(v Variable) VariableID {
	id := VariableID(len(p.m.Variables))
	if v.Name != "_" && len(p.scopes) == 0 {
		if old, ok := p.m.names[v.Name]; ok && old.kind == variableSymbol {
			// An .extern declaration and the definition are the same variable.
			if known := &p.m.Variables[old.id]; (known.Linkage == Extern || v.Linkage == Extern) && known.Space == v.Space {
				if v.Linkage != Extern {
					*known = v
				}
				return VariableID(old.id)
			}
		}
	}
	if v.Name != "_" {
		p.declare(v.Position, v.Name, symbol{variableSymbol, int32(id)})
	}
	p.m.Variables = append(p.m.Variables, v)
	switch {
	case len(p.scopes) == 0:
		p.m.Globals = append(p.m.Globals, id)
	case p.function.Defined:
		p.function.Locals = append(p.function.Locals, id)
	}
	return id
}

// initialise reads the value of a variable.
func (p *parser) initialise(v *Variable) {
	if p.isMark('{') {
		p.values(v)
	} else {
		p.value(v)
	}
	element := int64(v.Type.Size()) * int64(v.Vector)
	if n := int64(len(v.Init)); v.Open {
		v.Size = (n + element - 1) / element * element
		v.Open = false
	} else if n > v.Size && p.err == nil {
		p.fail(p.token.pos, "%s has %d bytes, but its initial value has %d", short(v.Name), v.Size, n)
	}
}

func (p *parser) values(v *Variable) {
	p.enter()
	p.next()
	for p.err == nil && !p.isMark('}') {
		if p.isMark('{') {
			p.values(v)
		} else {
			p.value(v)
		}
		if !p.isMark(',') {
			break
		}
		p.next()
	}
	p.expectMark('}', "after the values of "+short(v.Name))
	p.leave()
}

// value reads one number, or one address such as name, name+4, generic(name) or 0xff00(name).
func (p *parser) value(v *Variable) {
	size := v.Type.Size()
	if t := p.token; t.kind == numberToken && t.end < len(p.text) && (p.text[t.end] == ',' || p.text[t.end] == '}') { // the usual case
		c, ok := literal(p.text[t.start:t.end])
		if !ok {
			p.fail(t.pos, "%s is not a number", short(p.text[t.start:t.end]))
		}
		p.next()
		v.Init = appendValue(v.Init, v.Type, size, c)
		return
	}
	if p.token.kind != wordToken || p.text[p.token.start:p.token.end] == "WARP_SZ" {
		c := p.expression(1)
		if p.isMark('(') && c.kind == Integer { // mask(name)
			p.next()
			p.relocation(v, size, c.value)
			p.expectMark(')', "after the name that a mask applies to")
			return
		}
		v.Init = appendValue(v.Init, v.Type, size, c)
		return
	}
	p.relocation(v, size, 0)
}

func (p *parser) relocation(v *Variable, size int, mask int64) {
	r := Relocation{Offset: int64(len(v.Init)), Size: uint8(size), Variable: NoVariable, Function: NoFunction}
	for mask != 0 && mask&1 == 0 {
		mask = int64(uint64(mask) >> 1)
		r.Shift++
	}
	pos, name := p.wordAt(wordToken)
	if name == "generic" && p.isMark('(') {
		p.next()
		r.Generic = true
		pos, name = p.wordAt(wordToken)
	}
	s, _ := p.find(name)
	switch {
	case p.err != nil:
		return
	case s.kind == variableSymbol:
		r.Variable = VariableID(s.id)
	case s.kind == functionSymbol:
		r.Function = FunctionID(s.id)
	case name == v.Name: // the variable holds its own address
		r.Variable = VariableID(len(p.m.Variables))
	default:
		p.fail(pos, "%s is not declared above", short(name))
		return
	}
	r.Addend = p.expressionAfterName()
	if r.Generic {
		p.expectMark(')', "after generic(name")
		r.Addend += p.expressionAfterName()
	}
	v.Init = append(v.Init, make([]byte, size)...)
	v.Relocate = append(v.Relocate, r)
}

// expressionAfterName reads the +4-8 after a name.
func (p *parser) expressionAfterName() (sum int64) {
	for p.err == nil && (p.isMark('+') || p.isMark('-')) {
		minus := p.token.mark == '-'
		p.next()
		c := p.expression(binding("*"))
		if c.kind != Integer {
			p.fail(p.token.pos, "an offset must be an integer")
		}
		if minus {
			c.value = -c.value
		}
		sum += c.value
	}
	return sum
}

// appendValue appends one value in little-endian order.
func appendValue(to []byte, t Type, size int, c constant) []byte {
	bits := uint64(c.value)
	switch {
	case t == F32 && c.kind != Float32:
		bits = uint64(math.Float32bits(float32(c.float())))
	case t == F64 && c.kind != Float64:
		bits = math.Float64bits(c.float())
	}
	switch size {
	case 1:
		return append(to, byte(bits))
	case 2:
		return binary.LittleEndian.AppendUint16(to, uint16(bits))
	case 4:
		return binary.LittleEndian.AppendUint32(to, uint32(bits))
	case 8:
		return binary.LittleEndian.AppendUint64(to, bits)
	}
	to = binary.LittleEndian.AppendUint64(to, bits)
	return append(to, make([]byte, size-8)...)
}
