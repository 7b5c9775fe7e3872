// Signatures of the kernels in CUDA C: every __global__ function with its namespace, template and parameters, and the variables that
// all launches share. Function bodies are skipped.

package source

import "fmt"

// cudaSource is what a source declares.
type cudaSource struct {
	kernels []sourceKernel
	globals []string // writable variables, in order
	types   map[string][]token
	structs structures
	err     error // why the source is not read to its end

	launches map[string][]Launched // by the kernel's name without namespaces
	declaredVariables
}

func parseCUDA(p *preprocessor) cudaSource {
	parser := &signatureParser{in: p.out, files: p.files, out: cudaSource{types: map[string][]token{}, structs: structures{}}}
	parser.out.units, parser.out.constants, parser.out.places, parser.known = units{}, map[string]int64{}, map[string]int{}, map[string][]int{}
	parser.scope(false, "")
	parser.out.launches = launchesOf(p.out, p.files, &surroundings{&parser.out.declaredVariables, parser.out.types, parser.out.structs}, parser.out.kernels)
	return parser.out
}

type signatureParser struct {
	in    []token
	files []string
	at    int
	out   cudaSource
	known map[string][]int // kernels by name: indices into out.kernels
	depth int
}

// scope reads declarations to the end of the scope. c is true inside extern "C" { }; space is the namespace, "a::b::".
func (p *signatureParser) scope(c bool, space string) {
	if p.depth++; p.depth > 200 {
		p.at = len(p.in)
	}
	defer func() { p.depth-- }()
	for p.at < len(p.in) && p.out.err == nil {
		switch t := p.in[p.at].text; {
		case t == "}":
			p.at++
			if p.depth > 1 { // else it closes nothing
				return
			}
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
			p.take(d, text, c, space)
			if p.few(d); p.out.err != nil {
				return
			}
			p.out.note(d, text)
			p.out.structs.note(text, &p.out.declaredVariables, p.out.types)
			if hasToken(d, "__device__") || hasToken(d, "__constant__") || hasToken(d, "__managed__") {
				p.out.declare(d, text, space, p.files, p.out.types)
			}
		}
	}
}

// few refuses a source that declares more than people write.
func (p *signatureParser) few(d []token) {
	what := ""
	switch {
	case len(p.out.kernels) > mostKernels:
		what = fmt.Sprintf("%d kernels", mostKernels)
	case len(p.out.symbols) > mostVariables:
		what = fmt.Sprintf("%d variables that launches share", mostVariables)
	default:
		return
	}
	p.out.err = fmt.Errorf("%s:%d: a file of kernels and its headers have at most %s", p.files[d[0].file], d[0].line, what)
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
					if p.in[p.at].text == "{" { // of an initialiser
						p.skipBraces()
						continue
					}
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

// take interprets one declaration, whose text has its body too. Every __global__ must make a kernel: none is lost without a word.
func (p *signatureParser) take(d, text []token, c bool, space string) {
	marks := globals(text)
	switch {
	case len(d) == 0:
	case d[0].text == "typedef" && len(d) > 2:
		p.typedef(d[1:len(d)-1], d[len(d)-1].text)
	case d[0].text == "using" && len(d) > 3 && d[2].text == "=":
		p.typedef(d[3:], d[1].text)
	case d[0].text == "enum" && !hasToken(d, "("):
		p.enum(d[1:])
	case hasToken(d, "__global__") && p.kernel(d, len(text) > len(d) && text[len(d)].text == "{", c, space):
		marks = marks[1:]
	case hasToken(d, "__global__"):
	case hasToken(d, "__device__") || hasToken(d, "__managed__"):
		p.variable(d, space)
	}
	if len(marks) > 0 && p.out.err == nil {
		p.out.err = fmt.Errorf("%s:%d: the __global__ function here cannot be read, and would be missing among the kernels: declare it by itself, outside of functions and types, without macros that hide its name or its parameters",
			p.files[marks[0].file], marks[0].line)
	}
}

// globals are the places of __global__ in a text, without those of friends.
func globals(text []token) []token {
	var marks []token
	friend := false
	for _, t := range text {
		switch t.text {
		case "friend":
			friend = true
		case ";", "{", "}":
			friend = false
		case "__global__":
			if !friend {
				marks = append(marks, t)
			}
		}
	}
	return marks
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

// kernel reads the declaration of one, which may have been declared before; false if it cannot.
func (p *signatureParser) kernel(d []token, defined, c bool, space string) bool {
	k := sourceKernel{defined: defined}
	for len(d) > 0 && d[0].text == "template" {
		params, rest := templateHeader(d)
		if params == nil {
			return true // an explicit instantiation or specialisation of a template that is known
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
	if open == 0 || open == len(d) || !d[open-1].word() || d[open-1].text == "void" {
		return false
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
		return false
	}
	for _, a := range args {
		if len(a) == 0 || len(args) == 1 && len(a) == 1 && a[0].text == "void" {
			continue
		}
		k.raw = append(k.raw, a)
	}
	for _, i := range p.known[k.name] {
		if known := &p.out.kernels[i]; sameParameters(known, &k) {
			for j := range k.raw { // a declaration may leave names out
				if len(k.raw[j]) > len(known.raw[j]) {
					known.raw[j] = k.raw[j]
				}
			}
			if known.symbol == "" {
				known.symbol = k.symbol
			}
			if defined { // its place is more useful than that of a declaration
				known.defined, known.file, known.line = true, k.file, k.line
			}
			return true
		}
	}
	p.known[k.name] = append(p.known[k.name], len(p.out.kernels))
	p.out.kernels = append(p.out.kernels, k)
	return true
}
