// What every part of the parser uses: limits, small steps over tokens, names and scopes.

package ptx

// Limits on hostile input. Real modules stay far below each.
const (
	maxSource     = 16 << 20 // bytes
	maxNesting    = 64       // blocks, expressions and initialisers in each other
	maxRegisters  = 1 << 20  // declared in one function
	maxAllRegs    = 1 << 25  // declared in a module
	maxCopies     = 1 << 12  // variables that one name<n> declares
	maxOperands   = 1 << 10  // operands and elements of one instruction
	maxDimensions = 16
	maxSize       = 1 << 40 // bytes of a variable
	maxParameter  = 1 << 20 // bytes of a parameter
	// maxKernelParameters is how many bytes the parameters of a kernel may have, on GPUs since Volta.
	maxKernelParameters = 32764
)

// group is a declaration such as %r<100>.
type group struct {
	prefix string
	count  int32
	typ    Type
	vector uint8
	ids    []int32 // by number: RegisterID + 1, or 0 before the first use
}

// declared is a register declared by its own name.
type declared struct {
	name   string
	typ    Type
	vector uint8
	id     RegisterID // NoRegister before its first use
}

// reference is a use of a label that may be declared further down: in an operand, or in a list of targets.
type reference struct {
	name        string
	pos         Position
	instruction int32
	operand     int32
	list        LabelID // -1 for an operand
}

// scope is what one pair of braces declares.
type scope struct {
	groups     []group
	names      []namedSymbol
	index      map[string]symbol // takes over from names when there are many
	labels     []LabelID
	references []reference
}

type namedSymbol struct {
	name string
	symbol
}

const indexFrom = 8 // names of a scope before it gets a map

type parser struct {
	lexer
	m         *Module
	forms     map[string]*Form
	function  *Function
	id        FunctionID
	scopes    []scope
	declared  []declared
	pool      []Operand // operands of many instructions share an array
	buffer    []Operand
	registers int // declared in this function
	allRegs   int
	depth     int
	location  int32
}

func newParser(text string) *parser {
	return &parser{
		lexer: lexer{text: text, line: 1},
		m:     &Module{AddressSize: 32, Files: map[int]string{}, names: map[string]symbol{}},
		forms: map[string]*Form{}, id: NoFunction, location: -1,
	}
}

func (p *parser) isMark(mark byte) bool {
	return p.token.kind == markToken && p.token.mark == mark
}

func (p *parser) isDot(word string) bool {
	return p.token.kind == dotToken && p.text[p.token.start:p.token.end] == word
}

func (p *parser) expectMark(mark byte, where string) {
	if !p.isMark(mark) {
		p.fail(p.token.pos, "expected %c %s, not %s", mark, where, p.describe(p.token))
		return
	}
	p.next()
}

// word reads a token of a kind.
func (p *parser) word(kind tokenKind) string {
	t := p.token
	if t.kind != kind {
		want := map[tokenKind]string{wordToken: "a name", numberToken: "a number", stringToken: "a text in quotes", dotToken: "a dotted word"}[kind]
		p.fail(t.pos, "expected %s, not %s", want, p.describe(t))
		return ""
	}
	p.next()
	return p.text[t.start:t.end]
}

// wordAt is like word, and also returns its place.
func (p *parser) wordAt(kind tokenKind) (Position, string) {
	pos := p.token.pos
	return pos, p.word(kind)
}

// enter and leave count how deep things are nested.
func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail(p.token.pos, "nested more than %d levels deep", maxNesting)
	}
}

func (p *parser) leave() { p.depth-- }

// describe names a token in a message.
func (p *parser) describe(t token) string {
	switch {
	case t.kind == endToken:
		return "the end of the text"
	case t.kind == stringToken:
		return short(p.text[t.start:t.end])
	}
	return `"` + short(p.text[t.start:t.end]) + `"`
}

// short shortens very long words.
func short(word string) string {
	if len(word) > 80 {
		return word[:77] + "..."
	}
	return word
}

// find looks a name up in the scopes of the function, inner ones first, then in the module.
func (p *parser) find(name string) (symbol, RegisterID) {
	digits := len(name)
	for digits > 0 && name[digits-1] >= '0' && name[digits-1] <= '9' {
		digits--
	}
	number := -1
	if n := len(name) - digits; n > 0 && n < 9 && (n == 1 || name[digits] != '0') {
		number = 0
		for _, c := range []byte(name[digits:]) {
			number = number*10 + int(c-'0')
		}
	}
	for i := len(p.scopes) - 1; i >= 0; i-- {
		s := &p.scopes[i]
		if s.index != nil {
			if found, ok := s.index[name]; ok {
				return found, p.named(found)
			}
		} else {
			for j := range s.names {
				if s.names[j].name == name {
					return s.names[j].symbol, p.named(s.names[j].symbol)
				}
			}
		}
		if number < 0 {
			continue
		}
		for j := range s.groups {
			if g := &s.groups[j]; int32(number) < g.count && g.prefix == name[:digits] {
				return symbol{registerSymbol, -1}, p.numbered(g, number)
			}
		}
	}
	return p.m.names[name], NoRegister
}

// numbered returns a register of a group, which gets its id at its first use.
func (p *parser) numbered(g *group, number int) RegisterID {
	if g.ids == nil {
		g.ids = make([]int32, g.count)
	}
	if g.ids[number] == 0 {
		p.function.Registers = append(p.function.Registers, Register{g.prefix, int32(number), g.typ, g.vector})
		g.ids[number] = int32(len(p.function.Registers))
	}
	return RegisterID(g.ids[number] - 1)
}

// named returns the register that a symbol stands for, which gets its id at its first use.
func (p *parser) named(s symbol) RegisterID {
	if s.kind != registerSymbol {
		return NoRegister
	}
	d := &p.declared[s.id]
	if d.id == NoRegister {
		d.id = RegisterID(len(p.function.Registers))
		p.function.Registers = append(p.function.Registers, Register{d.name, -1, d.typ, d.vector})
	}
	return d.id
}

// declare adds a name to the innermost scope, or to the module.
func (p *parser) declare(pos Position, name string, s symbol) {
	if len(p.scopes) == 0 {
		if _, twice := p.m.names[name]; twice {
			p.fail(pos, "%s is declared twice", short(name))
			return
		}
		p.m.names[name] = s
		return
	}
	in := &p.scopes[len(p.scopes)-1]
	if in.index == nil && len(in.names) == indexFrom {
		in.index = make(map[string]symbol, 2*indexFrom)
		for _, n := range in.names {
			in.index[n.name] = n.symbol
		}
	}
	if in.index != nil {
		if _, twice := in.index[name]; twice {
			p.fail(pos, "%s is declared twice in this block", short(name))
		}
		in.index[name] = s
		return
	}
	for _, n := range in.names {
		if n.name == name {
			p.fail(pos, "%s is declared twice in this block", short(name))
		}
	}
	in.names = append(in.names, namedSymbol{name, s})
}

// open starts a scope, reusing the memory of one that was closed.
func (p *parser) open() {
	if len(p.scopes) < cap(p.scopes) {
		p.scopes = p.scopes[:len(p.scopes)+1]
		s := &p.scopes[len(p.scopes)-1]
		*s = scope{groups: s.groups[:0], names: s.names[:0], labels: s.labels[:0], references: s.references[:0]}
		return
	}
	p.scopes = append(p.scopes, scope{})
}

// close ends a scope. Its labels are known now; references to other labels are left to the scope around it.
func (p *parser) close() {
	s := &p.scopes[len(p.scopes)-1]
	unknown := s.references
	if len(s.labels) > 0 && len(s.references) > 0 {
		labels := make(map[string]LabelID, len(s.labels))
		for _, id := range s.labels {
			labels[p.function.Labels[id].Name] = id
		}
		unknown = unknown[:0]
		for _, r := range s.references {
			id, ok := labels[r.name]
			switch {
			case !ok:
				unknown = append(unknown, r)
			case r.list >= 0:
				p.function.Labels[r.list].Targets[r.operand] = id
			default:
				p.function.Code[r.instruction].Operands[r.operand].Index = int32(id)
			}
		}
	}
	p.scopes = p.scopes[:len(p.scopes)-1]
	if len(unknown) == 0 {
		return
	}
	if len(p.scopes) > 0 {
		outer := &p.scopes[len(p.scopes)-1]
		if len(outer.references) < len(unknown) { // move the shorter list: deep blocks would move the long one at each level
			outer.references, unknown = unknown, outer.references
			s.references = unknown
		}
		outer.references = append(outer.references, unknown...)
		return
	}
	first := unknown[0]
	for _, r := range unknown {
		if r.pos.Line < first.pos.Line || r.pos.Line == first.pos.Line && r.pos.Column < first.pos.Column {
			first = r
		}
	}
	p.fail(first.pos, "label %s is not declared in %s", short(first.name), short(p.function.Name))
}
