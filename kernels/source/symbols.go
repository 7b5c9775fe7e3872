// Variables that launches share: __constant__ and __device__ variables of CUDA C, .const and .global ones of PTX, and which kernels use
// them. In CUDA C a kernel uses what its text names, or the text of what it names in turn, so that the answer depends on no compiler.

package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/internal/launch"
	"github.com/dagrun/dagrun/kernels/ptx"
	"github.com/dagrun/dagrun/kernels/ptx/access"
)

// alwaysUsed is the unit of declarations that code can use without naming them: operators and conversions.
const alwaysUsed = "operator"

// units are the declarations of a source by name: which words the text of each has. Declarations of one name count together.
type units map[string]map[string]bool

func (u units) add(name string, text []token) {
	if name == "" {
		return
	}
	words := u[name]
	if words == nil {
		words = map[string]bool{}
		u[name] = words
	}
	for _, t := range text {
		if t.word() {
			words[t.text] = true
		}
	}
}

// reach marks every word that the text of a name has, and that of the names in it.
func (u units) reach(name string, reached map[string]bool) {
	if reached[name] {
		return
	}
	reached[name] = true
	for word := range u[name] {
		u.reach(word, reached)
	}
}

// unitName is the name that a declaration gives something, or "".
func unitName(d []token) string {
	for len(d) > 0 && d[0].text == "template" {
		params, rest := templateHeader(d)
		if params == nil && len(rest) >= len(d) {
			return ""
		}
		d = rest
	}
	d = withoutAttributes(d)
	if hasToken(d, "operator") {
		return alwaysUsed
	}
	if len(d) == 0 {
		return ""
	}
	switch d[0].text {
	case "struct", "class", "union", "enum":
		for _, t := range d[1:] {
			if t.word() && t.text != "class" && t.text != "struct" {
				return t.text
			}
		}
		return alwaysUsed
	case "typedef":
		return d[len(d)-1].text
	case "using":
		if len(d) > 1 {
			return d[1].text
		}
		return ""
	}
	name := ""
	for _, t := range d {
		switch {
		case t.text == "(" || t.text == "=" || t.text == "[":
			return name
		case t.word():
			name = t.text
		}
	}
	return name
}

// note keeps what a declaration says for later: the words of its text, and the value of a constant. text has its body too.
func (p *signatureParser) note(d, text []token) {
	p.out.units.add(unitName(d), text)
	if !hasToken(d, "const") && !hasToken(d, "constexpr") {
		return
	}
	for i := 1; i < len(d); i++ {
		if d[i].text != "=" || !d[i-1].word() {
			continue
		}
		end, depth := i+1, 0
		for ; end < len(d) && (depth > 0 || d[end].text != ","); end++ {
			switch d[end].text {
			case "(":
				depth++
			case ")":
				depth--
			}
		}
		if v, ok := p.constant(d[i+1 : end]); ok {
			p.out.constants[d[i-1].text] = v
		}
		i = end
	}
}

// constant evaluates an integer expression of numbers and constants that are known.
func (p *signatureParser) constant(in []token) (int64, bool) {
	var plain []token
	for _, t := range in {
		if t.word() {
			v, ok := p.out.constants[t.text]
			if !ok {
				return 0, false
			}
			t.text = fmt.Sprint(v)
		} else if t.text != "" && t.text[0] >= '0' && t.text[0] <= '9' && strings.ContainsAny(t.text, ".'") {
			return 0, false
		}
		plain = append(plain, t)
	}
	c := &conditionParser{in: plain}
	v := c.binary(0)
	return v, len(plain) > 0 && !c.bad && c.at == len(plain)
}

// symbols records the variables that a declaration makes. text has the initialiser in braces too.
func (p *signatureParser) symbols(d, text []token, space string) {
	initialised := hasToken(d, "=") || hasToken(text, "{") && !isType(withoutSpace(d))
	constant := hasToken(d, "__constant__")
	var words []token
	name, named := token{}, false
	pointers, count, known, external := 0, int64(1), true, false
	done := func() {
		if !named || name.text == "" {
			return
		}
		s := dag.Symbol{Name: space + name.text, Constant: constant, Initialised: initialised, Place: fmt.Sprintf("%s:%d", p.files[name.file], name.line)}
		element := takeApart(append(slices.Clone(words), token{text: "x"}), p.out.types)
		s.Constant = s.Constant || element.constant && element.stars+pointers == 0
		p.out.units.add(name.text, text)
		size := int64(8)
		if element.stars+pointers == 0 {
			if t, ok := element.dtype(); ok {
				s.DType = t
			}
			size = s.DType.Size()
		}
		if known && !external {
			s.Bytes = size * count
		}
		if i := slices.IndexFunc(p.out.symbols, func(other dag.Symbol) bool { return other.Name == s.Name }); i < 0 {
			p.out.symbols = append(p.out.symbols, s)
		} else if !external {
			p.out.symbols[i] = s
		}
	}
	in := withoutAttributes(d)
	for i := 0; i < len(in); i++ {
		switch t := in[i]; {
		case t.text == "__constant__" || t.text == "__device__" || t.text == "__managed__" || t.text == "static" || t.text == "inline" || t.text == "constexpr" || t.text == "volatile":
			if t.text == "constexpr" {
				words = append(words, token{text: "const"})
			}
		case t.text == "extern":
			external = true
			if i+1 < len(in) && in[i+1].text == `"C"` {
				i, external = i+1, false
			}
		case t.text == "(" && !named, t.text == "operator", t.text == "template":
			return // a function
		case t.text == "<":
			_, end := angled(in, i)
			if end < 0 {
				return
			}
			words, i = append(words, in[i:end+1]...), end
		case t.text == "=":
			depth := 0
			for i++; i < len(in) && (depth > 0 || in[i].text != ","); i++ {
				switch in[i].text {
				case "(", "[", "<":
					depth++
				case ")", "]", ">":
					depth--
				}
			}
			i--
		case t.text == "[":
			end := i + 1
			for depth := 1; end < len(in); end++ {
				if in[end].text == "[" {
					depth++
				} else if in[end].text == "]" {
					if depth--; depth == 0 {
						break
					}
				}
			}
			v, ok := p.constant(in[min(i+1, len(in)):min(end, len(in))])
			if known = known && ok && v > 0 && v < 1<<40 && count < 1<<40; known {
				count *= v
			}
			i = end
		case t.text == ",":
			done()
			named, pointers, count, known = false, 0, 1, true
		case t.text == "*":
			pointers++
		case t.text == "(":
			return // of a function, whose name has been read
		case t.word() && i+1 < len(in) && slices.Contains([]string{"=", "[", ","}, in[i+1].text), t.word() && i+1 == len(in):
			if i+1 < len(in) && in[i+1].text == "(" || len(words) == 0 {
				return
			}
			name, named = t, true
		default:
			words = append(words, t)
		}
	}
	done()
}

// withoutSpace drops the words before a type that say where a variable lives.
func withoutSpace(d []token) []token {
	for len(d) > 0 && slices.Contains([]string{"__device__", "__constant__", "__managed__", "static", "extern"}, d[0].text) {
		d = d[1:]
	}
	return d
}

// Symbols implements [dag.Symbols].
func (m *Module) Symbols() []dag.Symbol {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.symbols)
	for i := range list {
		if size, ok := m.sizes[list[i].Name]; ok {
			list[i].Bytes = size
		}
	}
	return list
}

// Symbol implements [dag.Symbols]. Of cubins and fat binaries the variables are not known: any name may be one, and loading tells.
func (m *Module) Symbol(name string) (dag.Symbol, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*dag.Symbol
	for _, exact := range []bool{true, false} {
		for i := range m.symbols {
			if s := &m.symbols[i]; s.Name == name || variableName(s.Name) == name || !exact && named(variableName(s.Name), name) {
				found = append(found, s)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	switch {
	case len(found) > 1:
		var names []string
		for _, s := range found {
			names = append(names, s.Name)
		}
		return dag.Symbol{}, fmt.Errorf("%s: the variable %q is ambiguous: it may be %s", m.module.Path, name, strings.Join(names, " or "))
	case len(found) == 0 && (m.module.Kind == launch.Cubin || m.module.Kind == launch.Fatbin):
		m.ask(name)
		return dag.Symbol{Name: name, Initialised: true}, nil
	case len(found) == 0:
		return dag.Symbol{}, fmt.Errorf("%s: %w %q", m.module.Path, dag.ErrUnknownSymbol, name)
	}
	s := *found[0]
	if size, ok := m.sizes[s.Name]; ok {
		s.Bytes = size
	}
	m.ask(s.Name)
	return s, nil
}

// ask notes that a variable is used as a buffer.
func (m *Module) ask(name string) {
	if !slices.Contains(m.asked, name) {
		m.asked = append(m.asked, name)
	}
}

// variableName is a variable's name as C++ has it.
func variableName(symbol string) string {
	if d, ok := demangle(symbol); ok {
		return d.name
	}
	return symbol
}

// SymbolUses implements [dag.SymbolUser].
func (k *kernel) SymbolUses() []dag.SymbolUse {
	m := k.owner
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.module.Kind == launch.PTX:
		return k.declared.symbols
	case m.module.Kind != launch.Source: // no text tells which it uses
		var uses []dag.SymbolUse
		for _, name := range m.asked {
			uses = append(uses, dag.SymbolUse{Symbol: dag.Symbol{Name: name, Initialised: true}, Mode: dag.ReadWrite})
		}
		return uses
	case len(m.symbols) == 0:
		return nil
	}
	if k.uses == nil {
		k.uses = m.usesOf(k)
	}
	uses := slices.Clone(k.uses)
	for i := range uses {
		if size, ok := m.sizes[uses[i].Symbol.Name]; ok {
			uses[i].Symbol.Bytes = size
		}
	}
	return uses
}

// usesOf finds the variables that the text of a kernel leads to.
func (m *Module) usesOf(k *kernel) []dag.SymbolUse {
	reached := map[string]bool{}
	m.units.reach(alwaysUsed, reached)
	m.units.reach(k.declared.name[strings.LastIndexByte(k.declared.name, ':')+1:], reached)
	for _, t := range tokensOf(k.entry) { // a template's arguments may be functions and types
		if t.word() {
			m.units.reach(t.text, reached)
		}
	}
	uses := []dag.SymbolUse{}
	for _, s := range m.symbols {
		if !reached[s.Name[strings.LastIndexByte(s.Name, ':')+1:]] {
			continue
		}
		use := dag.SymbolUse{Symbol: s, Mode: dag.ReadWrite}
		if s.Constant {
			use.Mode, use.Evidence = dag.Read, dag.Proved
		}
		uses = append(uses, use)
	}
	return uses
}

// symbolsOfPTX lists the variables of PTX that launches share.
func symbolsOfPTX(m *ptx.Module) []dag.Symbol {
	var list []dag.Symbol
	for _, id := range m.Globals {
		if v := &m.Variables[id]; sharedVariable(v) {
			list = append(list, symbolOf(v))
		}
	}
	return list
}

// sharedVariable reports whether launches share a variable. Texts of printf are constants of the compiler's.
func sharedVariable(v *ptx.Variable) bool {
	return (v.Space == ptx.Global || v.Space == ptx.Const) && !strings.HasPrefix(v.Name, "$str")
}

func symbolOf(v *ptx.Variable) dag.Symbol {
	return dag.Symbol{Name: v.Name, Bytes: v.Size, Constant: v.Space == ptx.Const, Initialised: len(v.Init) > 0 || len(v.Relocate) > 0}
}

// usesInPTX are the variables that an entry uses by what its code shows.
func usesInPTX(m *ptx.Module, report *access.Report) []dag.SymbolUse {
	var uses []dag.SymbolUse
	for _, s := range report.Symbols {
		v := &m.Variables[s.Variable]
		if !sharedVariable(v) || !s.Reads && !s.Writes && !s.Undecided {
			continue
		}
		use := dag.SymbolUse{Symbol: symbolOf(v), Evidence: dag.Proved}
		switch {
		case v.Space == ptx.Const, s.Reads && !s.Writes && !s.Undecided:
			use.Mode = dag.Read
		default:
			use.Mode = dag.ReadWrite
			if s.Undecided {
				use.Evidence = dag.Declared
			}
		}
		uses = append(uses, use)
	}
	return uses
}

// confirmSymbols takes over the sizes of variables from compiled code, and refuses kernels whose code writes variables that their text
// does not show. The module is locked.
func (m *Module) confirmSymbols(text *ptx.Module, compiled *Compiled, confirmed map[ptx.FunctionID]*kernel) error {
	name := func(v *ptx.Variable) string {
		for _, s := range m.symbols {
			if compiled.Symbols["&"+s.Name] == v.Name || variableName(v.Name) == s.Name {
				return s.Name
			}
		}
		return ""
	}
	for _, id := range text.Globals {
		v := &text.Variables[id]
		if known := name(v); known != "" && sharedVariable(v) {
			if m.sizes == nil {
				m.sizes = map[string]int64{}
			}
			m.sizes[known] = v.Size
		}
	}
	if len(text.Globals) == 0 {
		return nil
	}
	for at, report := range access.AnalyseAll(text) {
		k := confirmed[text.Entries()[at]]
		if k == nil {
			continue
		}
		for _, s := range report.Symbols {
			v := &text.Variables[s.Variable]
			if !s.Writes || !sharedVariable(v) {
				continue
			}
			known := name(v)
			if known == "" {
				return fmt.Errorf("kernel %q writes the variable %s (%s), which is declared in a function: launches share it; declare it outside of functions",
					k.name, plainVariable(v.Name), s.WrittenAt)
			}
			if !slices.ContainsFunc(m.usesOf(k), func(u dag.SymbolUse) bool { return u.Symbol.Name == known }) {
				return fmt.Errorf("kernel %q writes the variable %s (%s), which its text does not name", k.name, known, s.WrittenAt)
			}
		}
	}
	return nil
}

// plainVariable is the name of a static variable of a function, _ZZ<function>E<length><name>, or the name as it is.
func plainVariable(symbol string) string {
	if !strings.HasPrefix(symbol, "_ZZ") {
		return variableName(symbol)
	}
	if end := strings.LastIndexByte(symbol, 'E'); end > 0 {
		if name := strings.TrimLeft(symbol[end+1:], "0123456789"); name != "" {
			return name
		}
	}
	return symbol
}
