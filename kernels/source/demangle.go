// Names in compiled code: from the symbol of a kernel that is not extern "C" back to what its author wrote (Itanium C++ ABI).

package source

import (
	"fmt"
	"strconv"
	"strings"
)

// mangledName is what a symbol says.
type mangledName struct {
	name   string   // "ns::scan"
	args   []string // of the template; nil: none
	params []string // types; nil where they could not be read
}

// full is the name with its template's arguments.
func (m *mangledName) full() string {
	if m.args == nil {
		return m.name
	}
	return m.name + "<" + strings.Join(m.args, ", ") + ">"
}

// signature is the name with its types: "ns::scan<4>(float*)".
func (m *mangledName) signature() string {
	if m.params == nil {
		return m.full()
	}
	return m.full() + "(" + strings.Join(m.params, ", ") + ")"
}

// demangle reads a symbol; ok is false where it is not a mangled name of a function.
func demangle(symbol string) (m mangledName, ok bool) {
	rest, mangled := strings.CutPrefix(symbol, "_Z")
	if !mangled || len(symbol) > 1<<14 {
		return m, false
	}
	d := &demangler{in: rest}
	name, args, ok := d.functionName()
	if !ok || name == "" {
		return m, false
	}
	m = mangledName{name: name, args: args}
	d.template = args
	if args != nil { // the type of the result comes first
		d.typ()
	}
	var params []string
	for d.in != "" && d.in[0] != '.' && !d.bad {
		params = append(params, d.typ())
	}
	if !d.bad && len(params) > 0 {
		if len(params) == 1 && params[0] == "void" {
			params = []string{}
		}
		m.params = params
	}
	return m, true
}

type demangler struct {
	in       string
	known    []string // what S_, S0_, ... stand for
	template []string // what T_, T0_, ... stand for
	depth    int
	bad      bool
}

func (d *demangler) take(prefix string) bool {
	rest, ok := strings.CutPrefix(d.in, prefix)
	if ok {
		d.in = rest
	}
	return ok
}

func (d *demangler) fail() string {
	d.bad, d.in = true, ""
	return ""
}

// functionName reads the name of a function, with its template's arguments apart.
func (d *demangler) functionName() (name string, args []string, ok bool) {
	d.take("L")
	if !d.take("N") {
		if name = d.unscoped(); name == "" {
			return "", nil, false
		}
		if strings.HasPrefix(d.in, "I") {
			d.known = append(d.known, name)
			args = d.arguments()
		}
		return name, args, !d.bad
	}
	for d.take("r") || d.take("V") || d.take("K") { // qualifiers of member functions
	}
	for !d.take("E") {
		switch {
		case d.bad || d.in == "":
			return "", nil, false
		case strings.HasPrefix(d.in, "I"):
			if args != nil {
				return "", nil, false
			}
			args = d.arguments()
			if !strings.HasPrefix(d.in, "E") { // a member of a template
				name += "<" + strings.Join(args, ", ") + ">"
				args = nil
				d.known = append(d.known, name)
			}
		default:
			part := ""
			if strings.HasPrefix(d.in, "S") {
				part = d.substitution()
				name = part
				continue
			}
			d.take("L")
			if part = d.sourceName(); part == "" {
				return "", nil, false
			}
			if name != "" {
				part = name + "::" + part
			}
			name = part
			if !strings.HasPrefix(d.in, "E") {
				d.known = append(d.known, name)
			}
		}
	}
	return strings.TrimPrefix(name, "(anonymous namespace)::"), args, !d.bad
}

// unscoped reads a name outside of namespaces, or one in std.
func (d *demangler) unscoped() string {
	if d.take("St") {
		return "std::" + d.sourceName()
	}
	return d.sourceName()
}

func (d *demangler) sourceName() string {
	n := 0
	for n < len(d.in) && d.in[n] >= '0' && d.in[n] <= '9' {
		n++
	}
	length, err := strconv.Atoi(d.in[:n])
	if err != nil || length <= 0 || length > len(d.in)-n {
		return d.fail()
	}
	name := d.in[n : n+length]
	d.in = d.in[n+length:]
	if strings.HasPrefix(name, "_GLOBAL__N_") || strings.HasPrefix(name, "_INTERNAL_") {
		return "(anonymous namespace)"
	}
	return name
}

// arguments reads "I...E", the arguments of a template.
func (d *demangler) arguments() []string {
	d.take("I")
	args := []string{}
	for !d.take("E") {
		if d.bad || d.in == "" {
			d.fail()
			return args
		}
		if d.take("J") { // a pack
			for !d.take("E") && !d.bad && d.in != "" {
				args = append(args, d.argument())
			}
			continue
		}
		args = append(args, d.argument())
	}
	return args
}

func (d *demangler) argument() string {
	if !d.take("L") {
		return d.typ()
	}
	t := d.typ()
	end := strings.IndexByte(d.in, 'E')
	if end < 0 || t == "" {
		return d.fail()
	}
	value := d.in[:end]
	d.in = d.in[end+1:]
	if strings.HasPrefix(value, "n") {
		value = "-" + value[1:]
	}
	switch t {
	case "bool":
		return map[string]string{"0": "false", "1": "true"}[value]
	case "unsigned int":
		return value + "u"
	case "unsigned long":
		return value + "ul"
	case "long":
		return value + "l"
	case "int", "long long", "unsigned long long", "short", "unsigned short", "char", "signed char", "unsigned char":
		return value
	}
	return "(" + t + ")" + value
}

var builtinTypes = map[byte]string{'v': "void", 'b': "bool", 'c': "char", 'a': "signed char", 'h': "unsigned char", 's': "short", 't': "unsigned short",
	'i': "int", 'j': "unsigned int", 'l': "long", 'm': "unsigned long", 'x': "long long", 'y': "unsigned long long", 'f': "float", 'd': "double", 'w': "wchar_t", 'z': "..."}

// typ reads a type.
func (d *demangler) typ() string {
	if d.depth++; d.depth > 100 || d.in == "" {
		return d.fail()
	}
	defer func() { d.depth-- }()
	c := d.in[0]
	if t, ok := builtinTypes[c]; ok {
		d.in = d.in[1:]
		return t
	}
	note := func(t string) string {
		d.known = append(d.known, t)
		return t
	}
	switch {
	case c >= '0' && c <= '9':
		return d.templated(note(d.sourceName()))
	case c == 'P':
		d.in = d.in[1:]
		return note(d.typ() + "*")
	case c == 'R' || c == 'O':
		d.in = d.in[1:]
		return note(d.typ() + "&")
	case c == 'K':
		d.in = d.in[1:]
		if t := d.typ(); strings.HasSuffix(t, "*") {
			return note(t + " const")
		} else {
			return note("const " + t)
		}
	case c == 'V' || c == 'r':
		d.in = d.in[1:]
		return note(d.typ())
	case d.take("Dh"):
		return "half"
	case strings.HasPrefix(d.in, "St"):
		return d.templated(note(d.unscoped()))
	case c == 'S':
		return d.templated(d.substitution())
	case c == 'T':
		n, ok := d.number("T")
		if !ok || n >= len(d.template) {
			return d.fail()
		}
		return note(d.template[n])
	case c == 'N':
		inner := demangler{in: d.in, known: d.known, template: d.template, depth: d.depth}
		name, args, ok := inner.functionName()
		d.in, d.known = inner.in, inner.known
		if !ok {
			return d.fail()
		}
		m := mangledName{name: name, args: args}
		return note(m.full())
	}
	return d.fail()
}

// templated reads what follows the name of a class template.
func (d *demangler) templated(name string) string {
	if !strings.HasPrefix(d.in, "I") {
		return name
	}
	t := name + "<" + strings.Join(d.arguments(), ", ") + ">"
	d.known = append(d.known, t)
	return t
}

// number reads the number of S_, S0_, T_, T0_ and so on.
func (d *demangler) number(prefix string) (int, bool) {
	text, rest, ok := strings.Cut(strings.TrimPrefix(d.in, prefix), "_")
	if !ok {
		return 0, false
	}
	d.in = rest
	if text == "" {
		return 0, true
	}
	base := 36
	if prefix == "T" {
		base = 10
	}
	n, err := strconv.ParseInt(strings.ToLower(text), base, 32)
	return int(n) + 1, err == nil && n >= 0
}

func (d *demangler) substitution() string {
	n, ok := d.number("S")
	if !ok || n >= len(d.known) {
		return d.fail()
	}
	return d.known[n]
}

// sameArgument compares arguments of templates as they are written: 16, 16u and 0x10 are the same.
func sameArgument(a, b string) bool {
	return normalArgument(a) == normalArgument(b)
}

func normalArgument(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if v, err := strconv.ParseInt(strings.TrimRight(s, "uUlL"), 0, 64); err == nil {
		return fmt.Sprint(v)
	}
	switch s {
	case "true":
		return "1"
	case "false":
		return "0"
	}
	return strings.ReplaceAll(canonical(s), " *", "*")
}

// variableName is a variable's name as C++ has it.
func variableName(symbol string) string {
	if d, ok := demangle(symbol); ok {
		return d.name
	}
	return symbol
}
