// Signatures of the kernels in CUDA C: every extern "C" __global__ function with its parameters, and the variables that all
// launches share. Function bodies are skipped.

package source

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// sourceKernel is a kernel as its source declares it.
type sourceKernel struct {
	name   string
	line   int
	params []dag.KernelParam
	err    error // why it cannot be launched

	floatAtomics string // where its code adds floats atomically
}

// cudaSource is what a source declares.
type cudaSource struct {
	kernels []sourceKernel
	globals []string // writable variables, in order
}

var cudaTypes = map[string]dag.DType{
	"float": dag.F32, "double": dag.F64, "bool": dag.Bool,
	"half": dag.F16, "__half": dag.F16, "f16": dag.F16, "__nv_bfloat16": dag.BF16, "nv_bfloat16": dag.BF16, "bf16": dag.BF16,
	"char": dag.I8, "signed char": dag.I8, "int8_t": dag.I8, "unsigned char": dag.U8, "uint8_t": dag.U8, "uchar": dag.U8,
	"short": dag.I16, "int16_t": dag.I16, "unsigned short": dag.U16, "uint16_t": dag.U16, "ushort": dag.U16,
	"int": dag.I32, "int32_t": dag.I32, "unsigned int": dag.U32, "uint32_t": dag.U32, "uint": dag.U32,
	"long": dag.I64, "long long": dag.I64, "int64_t": dag.I64, "ptrdiff_t": dag.I64, "ssize_t": dag.I64,
	"unsigned long": dag.U64, "unsigned long long": dag.U64, "uint64_t": dag.U64, "size_t": dag.U64, "ulong": dag.U64,
	"void": dag.InvalidDType,
}

func parseCUDA(source string, read func(name string) ([]byte, error)) cudaSource {
	p := &signatureParser{in: preprocess(source, read), types: map[string]string{}}
	p.scope(false, false)
	return p.out
}

type signatureParser struct {
	in    []token
	at    int
	types map[string]string // typedefs
	out   cudaSource
	depth int
}

// scope reads declarations to the end of the scope. c is true inside extern "C" { }, named inside a namespace.
func (p *signatureParser) scope(c, named bool) {
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
			p.scope(true, named)
		case t == "namespace" || t == "inline" && p.peek(1) == "namespace":
			for p.at < len(p.in) && p.in[p.at].text != "{" && p.in[p.at].text != ";" && p.in[p.at].text != "=" {
				p.at++
			}
			if p.peek(0) == "{" {
				p.at++
				p.scope(c, true)
			} else {
				p.declaration()
			}
		default:
			d := p.declaration()
			p.take(d, c)
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
			isType := len(d) > 0 && (d[0].text == "struct" || d[0].text == "class" || d[0].text == "union" || d[0].text == "enum" || d[0].text == "typedef")
			if isType || initialises(d) || !hasToken(d, "(") { // an initialiser or a type: the declaration continues to a semicolon
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
		case ">>":
			angles -= 2
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
	for _, t := range d {
		if t.text == text {
			return true
		}
	}
	return false
}

// take interprets one declaration.
func (p *signatureParser) take(d []token, c bool) {
	switch {
	case len(d) == 0:
	case d[0].text == "typedef" && len(d) > 2:
		p.typedef(d[1:len(d)-1], d[len(d)-1].text)
	case d[0].text == "using" && len(d) > 3 && d[2].text == "=":
		p.typedef(d[3:], d[1].text)
	case hasToken(d, "__global__"):
		p.kernel(d, c)
	case hasToken(d, "__device__") || hasToken(d, "__managed__"):
		p.variable(d)
	}
}

func (p *signatureParser) typedef(d []token, name string) {
	var words []string
	for _, t := range d {
		if !t.word() || t.text == "struct" {
			return
		}
		words = append(words, t.text)
	}
	p.types[name] = strings.Join(words, " ")
}

// variable records a variable that kernels can write. A function has a parenthesis before any initialiser.
func (p *signatureParser) variable(d []token) {
	d = withoutAttributes(d)
	name := ""
	for _, t := range d {
		switch t.text {
		case "(", "const", "constexpr", "__constant__", "template", "operator":
			return
		case "=", "[", ",":
			if name != "" {
				p.out.globals = append(p.out.globals, name)
			}
			return
		}
		if t.word() {
			name = t.text
		}
	}
	if name != "" {
		p.out.globals = append(p.out.globals, name)
	}
}

// withoutAttributes drops __attribute__((...)), __align__(...), alignas(...) and __launch_bounds__(...).
func withoutAttributes(d []token) []token {
	var out []token
	for i := 0; i < len(d); i++ {
		switch d[i].text {
		case "__attribute__", "__align__", "alignas", "__launch_bounds__", "__declspec", "__maxnreg__", "__cluster_dims__":
			if i+1 < len(d) && d[i+1].text == "(" {
				if _, end := arguments(d, i+1); end > 0 {
					i = end
				}
			}
			continue
		}
		out = append(out, d[i])
	}
	return out
}

func (p *signatureParser) kernel(d []token, c bool) {
	template := hasToken(d, "template")
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
	if open == 0 || open == len(d) {
		return
	}
	k := sourceKernel{name: d[open-1].text, line: d[open-1].line}
	for _, known := range p.out.kernels {
		if known.name == k.name {
			return
		}
	}
	args, end := arguments(d, open)
	switch {
	case end < 0:
		return
	case template:
		k.err = fmt.Errorf(`kernel %q is a template; declare an extern "C" __global__ function that calls it`, k.name)
	case !c:
		k.err = fmt.Errorf(`kernel %q is not extern "C", so the module has it under a mangled name; write extern "C" before __global__`, k.name)
	}
	for _, a := range args {
		if len(a) == 0 || len(args) == 1 && len(a) == 1 && a[0].text == "void" {
			continue
		}
		param, err := p.param(a, len(k.params))
		if err != nil && k.err == nil {
			k.err = fmt.Errorf("kernel %q: %w", k.name, err)
		}
		k.params = append(k.params, param)
	}
	p.out.kernels = append(p.out.kernels, k)
}

// param interprets a parameter such as "const float *__restrict__ x".
func (p *signatureParser) param(d []token, index int) (dag.KernelParam, error) {
	var words []string
	stars, constant, structure, name := 0, false, false, ""
	for i := 0; i < len(d); i++ {
		switch t := d[i].text; t {
		case "=":
			i = len(d)
		case "const":
			constant = constant || stars == 0
		case "volatile", "__restrict__", "__restrict", "restrict", "register", "__grid_constant__", "__attribute__", "typename":
		case "*":
			stars++
		case "[":
			stars++
			for i < len(d) && d[i].text != "]" {
				i++
			}
		case "&", "&&":
			return dag.KernelParam{}, fmt.Errorf("parameter %d is a reference, which a kernel cannot take", index+1)
		case "struct", "class", "union", "enum":
			structure = true
		case "(", ")", "<", ">", ",", "...":
			return dag.KernelParam{}, fmt.Errorf("parameter %d: %q cannot be understood; numbers and pointers can be passed", index+1, textOf(d))
		case "std", "cuda", "::":
		default:
			if stars > 0 {
				name = t
			} else {
				words = append(words, t)
			}
		}
	}
	if stars == 0 && len(words) > 1 && !completes(words[len(words)-1]) {
		name, words = words[len(words)-1], words[:len(words)-1]
	}
	if stars > 0 && name == "" && len(words) > 1 && !completes(words[len(words)-1]) { // x[]
		name, words = words[len(words)-1], words[:len(words)-1]
	}
	if name == "" {
		name = fmt.Sprintf("p%d", index+1)
	}
	dtype, known := p.dtype(strings.Join(words, " "))
	if stars > 0 {
		param := dag.KernelParam{Name: name, Buffer: true, Mode: dag.ReadWrite, Size: 8}
		if stars == 1 && known {
			param.DType = dtype
		}
		if constant && stars == 1 {
			param.Mode = dag.Read
		}
		return param, nil
	}
	if !known || structure || dtype == dag.InvalidDType {
		return dag.KernelParam{Name: name}, fmt.Errorf("parameter %s is of type %s; numbers and pointers can be passed, structures cannot", name, strings.Join(words, " "))
	}
	return dag.KernelParam{Name: name, DType: dtype, Size: int32(dtype.Size())}, nil
}

// completes reports whether a word can end a type, such as int in "unsigned int".
func completes(word string) bool {
	switch word {
	case "int", "long", "short", "char", "unsigned", "signed", "float", "double":
		return true
	}
	return false
}

func textOf(d []token) string {
	var words []string
	for _, t := range d {
		words = append(words, t.text)
	}
	return strings.Join(words, " ")
}

// dtype finds a type by its words, in any order and through typedefs.
func (p *signatureParser) dtype(text string) (dag.DType, bool) {
	for range 20 {
		if t, ok := cudaTypes[canonical(text)]; ok {
			return t, true
		}
		next, ok := p.types[text]
		if !ok {
			return 0, false
		}
		text = next
	}
	return 0, false
}

// canonical normalises a C integer type: "long unsigned int" becomes "unsigned long".
func canonical(text string) string {
	var unsigned, signed bool
	longs, base := 0, ""
	for _, w := range strings.Fields(text) {
		switch w {
		case "unsigned":
			unsigned = true
		case "signed":
			signed = true
		case "long":
			longs++
		case "int":
			if base == "" {
				base = "int"
			}
		case "const", "volatile":
		default:
			if base != "" && base != "int" {
				return text
			}
			base = w
		}
	}
	switch {
	case longs > 0 && (base == "" || base == "int"):
		base = strings.TrimSpace(strings.Repeat("long ", min(longs, 2)))
	case base == "" && (unsigned || signed):
		base = "int"
	}
	if unsigned {
		return "unsigned " + base
	}
	if signed && base == "char" {
		return "signed char"
	}
	return base
}
