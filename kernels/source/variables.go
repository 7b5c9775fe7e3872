// Variables that CUDA C declares and launches share. A kernel uses what its text names, or the text of what it names in turn, so that the
// answer depends on no compiler.

package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// alwaysUsed is the unit of declarations that code can use without naming them: operators and conversions.
const alwaysUsed = "operator"

// units are the declarations of a source by name: the text of each. Declarations of one name count together.
type units map[string][][]token

func (u units) add(name string, text []token) {
	if name != "" {
		u[name] = append(u[name], text)
	}
}

// reach marks every word that the text of a name has, and that of the names in it.
func (u units) reach(name string, reached map[string]bool) {
	if reached[name] {
		return
	}
	reached[name] = true
	for _, text := range u[name] {
		for _, t := range text {
			if t.word() {
				u.reach(t.text, reached)
			}
		}
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
	switch first := d[0].text; {
	case slices.Contains([]string{"struct", "class", "union", "enum"}, first) && !returnsType(d):
		for _, t := range d[1:] {
			if t.word() && t.text != "class" && t.text != "struct" {
				return t.text
			}
		}
		return alwaysUsed
	case first == "typedef":
		return d[len(d)-1].text
	case first == "using":
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

// declaredVariables are the variables of a source that launches share, with what tells who uses them and how large they are.
type declaredVariables struct {
	symbols   []dag.Symbol     // in order
	places    map[string]int   // of symbols by name
	units     units            // what the text of each declaration names
	constants map[string]int64 // integers

	substituted int // words of templates of structures, with arguments in the place of parameters
}

// note keeps what a declaration says for later: the words of its text, and the value of a constant. text has its body too.
func (all *declaredVariables) note(d, text []token) {
	all.units.add(unitName(d), text)
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
		if v, ok := all.constant(d[i+1 : end]); ok {
			all.constants[d[i-1].text] = v
		}
		i = end
	}
}

// constant evaluates an integer expression of numbers and constants that are known.
func (all *declaredVariables) constant(in []token) (int64, bool) {
	var plain []token
	for _, t := range in {
		if t.word() {
			v, ok := all.constants[t.text]
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

// declare records the variables that a declaration makes. text has the initialiser in braces too.
func (all *declaredVariables) declare(d, text []token, space string, files []string, types map[string][]token) {
	initialised := hasToken(d, "=") || hasToken(text, "{") && !isType(withoutSpace(d))
	constant := hasToken(d, "__constant__")
	var words []token
	name, named := token{}, false
	pointers, count, known, external := 0, int64(1), true, false
	done := func() {
		if !named || name.text == "" {
			return
		}
		s := dag.Symbol{Name: space + name.text, Constant: constant, Initialised: initialised, Place: fmt.Sprintf("%s:%d", files[name.file], name.line)}
		element := takeApart(append(slices.Clone(words), token{text: "x"}), types)
		s.Constant = s.Constant || element.constant && element.stars+pointers == 0
		all.units.add(name.text, text)
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
		if i, known := all.places[s.Name]; !known {
			all.places[s.Name] = len(all.symbols)
			all.symbols = append(all.symbols, s)
		} else if !external {
			all.symbols[i] = s
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
			v, ok := all.constant(in[min(i+1, len(in)):min(end, len(in))])
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
