// Signatures of the kernels in CUDA C: every __global__ function with its namespace, template and parameters, and the variables that
// all launches share. Function bodies are skipped.

package source

import (
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// sourceKernel is a kernel as its source declares it, or as compiled code has it.
type sourceKernel struct {
	name     string       // with its namespaces: "ns::scan"
	symbol   string       // its name in compiled code, where that is known
	compiled *mangledName // what the symbol says; nil: it was read from CUDA C
	file     string
	line     int32
	template []templateParam // nil: it is no template
	raw      [][]token       // its parameters in CUDA C
	params   []dag.KernelParam
	err      error // why it cannot be launched

	floatAtomics string          // the place where its code adds floats atomically, if any
	registers    int             // of a thread, where a cubin says it
	symbols      []dag.SymbolUse // of PTX: variables that it uses
}

// templateParam is a parameter of a template: a type, or a value.
type templateParam struct {
	name     string
	kind     string // "typename", or the type of a value
	standard []token
	pack     bool
}

// cudaSource is what a source declares.
type cudaSource struct {
	kernels []sourceKernel
	globals []string // writable variables, in order
	types   map[string][]token

	symbols   []dag.Symbol     // variables that launches share, in order
	units     units            // what the text of each declaration names
	constants map[string]int64 // integers
}

func parseCUDA(p *preprocessor) cudaSource {
	parser := &signatureParser{in: p.out, files: p.files, out: cudaSource{types: map[string][]token{}, units: units{}, constants: map[string]int64{}}}
	parser.scope(false, "")
	return parser.out
}

type signatureParser struct {
	in    []token
	files []string
	at    int
	out   cudaSource
	depth int
}

// scope reads declarations to the end of the scope. c is true inside extern "C" { }; space is the namespace, "a::b::".
func (p *signatureParser) scope(c bool, space string) {
	if p.depth++; p.depth > 200 {
		p.at = len(p.in)
	}
	defer func() { p.depth-- }()
	for p.at < len(p.in) {
		switch t := p.in[p.at].text; {
		case t == "}":
			p.at++
			return
		case t == ";":
			p.at++
		case t == "extern" && p.peek(1) == `"C"` && p.peek(2) == "{":
			p.at += 3
			p.scope(true, space)
		case t == "namespace" || t == "inline" && p.peek(1) == "namespace":
			inner := space
			inline := t == "inline"
			for p.at < len(p.in) && p.in[p.at].text != "{" && p.in[p.at].text != ";" && p.in[p.at].text != "=" {
				if t := p.in[p.at]; t.word() && !inline && t.text != "namespace" && t.text != "inline" {
					inner += t.text + "::"
				}
				p.at++
			}
			if p.peek(0) == "{" {
				p.at++
				p.scope(c, inner)
			} else {
				p.declaration()
			}
		default:
			start := p.at
			d := p.declaration()
			text := p.in[start:p.at]
			p.take(d, c, space)
			p.note(d, text)
			if hasToken(d, "__device__") || hasToken(d, "__constant__") || hasToken(d, "__managed__") {
				p.symbols(d, text, space)
			}
		}
	}
}

func (p *signatureParser) peek(k int) string {
	if p.at+k < len(p.in) {
		return p.in[p.at+k].text
	}
	return ""
}

// declaration reads up to a semicolon, or past a body in braces, which it omits.
func (p *signatureParser) declaration() []token {
	start, parens := p.at, 0
	for ; p.at < len(p.in); p.at++ {
		switch p.in[p.at].text {
		case "(", "[":
			parens++
		case ")", "]":
			parens--
		case ";":
			if parens <= 0 {
				d := p.in[start:p.at]
				p.at++
				return d
			}
		case "{":
			if parens > 0 {
				p.skipBraces()
				p.at--
				continue
			}
			d := p.in[start:p.at]
			p.skipBraces()
			if isType(d) || initialises(d) || !hasToken(d, "(") { // an initialiser or a type: the declaration continues to a semicolon
				d = append([]token(nil), d...)
				for p.at < len(p.in) && p.in[p.at].text != ";" && p.in[p.at].text != "}" {
					d = append(d, p.in[p.at])
					p.at++
				}
				if p.peek(0) == ";" {
					p.at++
				}
			}
			return d
		case "}":
			return p.in[start:p.at]
		}
	}
	return p.in[start:]
}

// isType reports whether a declaration that has braces declares a type.
func isType(d []token) bool {
	if len(d) > 0 && d[0].text == "template" {
		_, d = templateHeader(d)
	}
	return len(d) > 0 && slices.Contains([]string{"struct", "class", "union", "enum", "typedef"}, d[0].text) && !hasToken(d, "__global__")
}

func (p *signatureParser) skipBraces() {
	depth := 0
	for ; p.at < len(p.in); p.at++ {
		switch p.in[p.at].text {
		case "{":
			depth++
		case "}":
			if depth--; depth == 0 {
				p.at++
				return
			}
		}
	}
}

// initialises reports whether a declaration has an initialiser: an = that is not the default of a template's or function's parameter.
func initialises(d []token) bool {
	angles := 0
	for _, t := range d {
		switch t.text {
		case "<":
			angles++
		case ">":
			angles--
		case "=":
			if angles <= 0 {
				return true
			}
		case "(":
			if angles <= 0 {
				return false
			}
		}
	}
	return false
}

func hasToken(d []token, text string) bool {
	return slices.ContainsFunc(d, func(t token) bool { return t.text == text })
}

// take interprets one declaration.
func (p *signatureParser) take(d []token, c bool, space string) {
	switch {
	case len(d) == 0:
	case d[0].text == "typedef" && len(d) > 2:
		p.typedef(d[1:len(d)-1], d[len(d)-1].text)
	case d[0].text == "using" && len(d) > 3 && d[2].text == "=":
		p.typedef(d[3:], d[1].text)
	case d[0].text == "enum" && !hasToken(d, "("):
		p.enum(d[1:])
	case hasToken(d, "__global__"):
		p.kernel(d, c, space)
	case hasToken(d, "__device__") || hasToken(d, "__managed__"):
		p.variable(d, space)
	}
}

func (p *signatureParser) typedef(d []token, name string) {
	if len(d) > 0 && d[0].text == "enum" {
		d = []token{{text: "int"}}
	}
	for _, t := range d {
		if t.text == "struct" || t.text == "(" || t.text == "[" || t.text == "{" {
			return
		}
	}
	p.out.types[name] = d
}

// enum notes the type that holds an enumeration.
func (p *signatureParser) enum(d []token) {
	if len(d) > 0 && (d[0].text == "class" || d[0].text == "struct") {
		d = d[1:]
	}
	if len(d) == 0 || !d[0].word() {
		return
	}
	holds := []token{{text: "int"}}
	if len(d) > 2 && d[1].text == ":" {
		holds = d[2:]
	}
	p.out.types[d[0].text] = holds
}

// variable records a variable that kernels can write. A function has a parenthesis before any initialiser.
func (p *signatureParser) variable(d []token, space string) {
	d = withoutAttributes(d)
	name := ""
	for _, t := range d {
		switch t.text {
		case "(", "const", "constexpr", "__constant__", "template", "operator", "struct", "class", "union":
			return
		case "=", "[", ",":
			if name != "" {
				p.out.globals = append(p.out.globals, space+name)
			}
			return
		}
		if t.word() {
			name = t.text
		}
	}
	if name != "" {
		p.out.globals = append(p.out.globals, space+name)
	}
}

// withoutAttributes drops __attribute__((...)), __align__(...), alignas(...), __launch_bounds__(...) and [[...]].
func withoutAttributes(d []token) []token {
	var out []token
	for i := 0; i < len(d); i++ {
		switch d[i].text {
		case "__attribute__", "__align__", "alignas", "__launch_bounds__", "__declspec", "__maxnreg__", "__cluster_dims__", "__block_size__":
			if i+1 < len(d) && d[i+1].text == "(" {
				if _, end := arguments(d, i+1); end > 0 {
					i = end
				}
			}
			continue
		case "[":
			if i+1 < len(d) && d[i+1].text == "[" {
				for i < len(d) && d[i].text != "]" {
					i++
				}
				i++
				continue
			}
		}
		out = append(out, d[i])
	}
	return out
}

// templateHeader splits "template <...> rest". The parameters are nil for "template <>" and for "template" without "<".
func templateHeader(d []token) (params []templateParam, rest []token) {
	if len(d) < 2 || d[1].text != "<" {
		return nil, d[min(1, len(d)):]
	}
	parts, end := angled(d, 1)
	if end < 0 {
		return nil, nil
	}
	for _, part := range parts {
		if len(part) == 0 {
			continue
		}
		var param templateParam
		for k, t := range part {
			if t.text == "=" {
				param.standard, part = part[k+1:], part[:k]
				break
			}
		}
		var kind []token
		for _, t := range part {
			if t.text == "." {
				param.pack = true
				continue
			}
			kind = append(kind, t)
		}
		if n := len(kind) - 1; n > 0 && kind[n].word() && !completes(kind[n].text) {
			param.name, kind = kind[n].text, kind[:n]
		}
		param.kind = textOf(kind)
		if param.kind == "class" {
			param.kind = "typename"
		}
		params = append(params, param)
	}
	return params, d[end+1:]
}

// angled reads "<a, b, c>" and returns the index of its end, or -1.
func angled(in []token, open int) ([][]token, int) {
	parts, angles, others := [][]token{nil}, 0, 0
	for i := open; i < len(in); i++ {
		switch t := in[i].text; {
		case t == "(" || t == "[" || t == "{":
			others++
		case t == ")" || t == "]" || t == "}":
			others--
		case others > 0:
		case t == "<":
			if angles++; angles == 1 {
				continue
			}
		case t == ">":
			if angles--; angles == 0 {
				return parts, i
			}
		case t == "," && angles == 1:
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], in[i])
	}
	return nil, -1
}

func (p *signatureParser) kernel(d []token, c bool, space string) {
	var k sourceKernel
	for len(d) > 0 && d[0].text == "template" {
		params, rest := templateHeader(d)
		if params == nil {
			return // an explicit instantiation or specialisation of a template that is known
		}
		k.template, d = append(k.template, params...), rest
	}
	for i := range d {
		if d[i].text == "extern" && i+1 < len(d) && d[i+1].text == `"C"` {
			c = true
		}
	}
	d = withoutAttributes(d)
	open := 0
	for open < len(d) && d[open].text != "(" {
		open++
	}
	if open == 0 || open == len(d) || !d[open-1].word() {
		return
	}
	name := d[open-1]
	k.name, k.line, k.file = space+name.text, name.line, p.files[name.file]
	for i := open - 1; i >= 2 && d[i-1].text == "::" && d[i-2].word(); i -= 2 { // defined outside of its namespace
		k.name = d[i-2].text + "::" + k.name
	}
	if c && k.template == nil {
		k.symbol = name.text
	}
	args, end := arguments(d, open)
	if end < 0 {
		return
	}
	for _, a := range args {
		if len(a) == 0 || len(args) == 1 && len(a) == 1 && a[0].text == "void" {
			continue
		}
		k.raw = append(k.raw, a)
	}
	for i := range p.out.kernels {
		if known := &p.out.kernels[i]; known.name == k.name && sameParameters(known, &k) {
			for j := range k.raw { // a declaration may leave names out
				if len(k.raw[j]) > len(known.raw[j]) {
					known.raw[j] = k.raw[j]
				}
			}
			if known.symbol == "" {
				known.symbol = k.symbol
			}
			return
		}
	}
	p.out.kernels = append(p.out.kernels, k)
}

// sameParameters reports whether two kernels of one name are one kernel, declared and defined.
func sameParameters(a, b *sourceKernel) bool {
	if len(a.raw) != len(b.raw) || len(a.template) != len(b.template) {
		return false
	}
	for i := range a.raw {
		if a.typeOf(i) != b.typeOf(i) {
			return false
		}
	}
	return true
}

// textOf writes tokens as one would.
func textOf(d []token) string {
	var b strings.Builder
	for i, t := range d {
		if i > 0 && !slices.Contains([]string{"(", "<", "::", "*", "&", "["}, d[i-1].text) && !slices.Contains([]string{",", ")", ">", "::", "<", "[", "]", "("}, t.text) {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}
