// One declaration of CUDA C as tokens: what kind it is, its attributes, its template header, and how people write it.

package source

import (
	"slices"
	"strings"
)

func hasToken(d []token, text string) bool {
	return slices.ContainsFunc(d, func(t token) bool { return t.text == text })
}

// isType reports whether a declaration that has braces declares a type. A function that returns one names it before its own name.
func isType(d []token) bool {
	if len(d) > 0 && d[0].text == "template" {
		_, d = templateHeader(d)
	}
	if len(d) == 0 || hasToken(d, "__global__") {
		return false
	}
	switch d[0].text {
	case "typedef":
		return true
	case "struct", "class", "union", "enum":
		return !returnsType(d)
	}
	return false
}

// returnsType reports whether a declaration that begins with struct, class, union or enum is that of a function, such as struct X *f(int): two
// words are before its parentheses, where an attribute such as __align__(8) has one.
func returnsType(d []token) bool {
	angles := 0
	for i := 1; i < len(d); i++ {
		switch d[i].text {
		case "<":
			angles++
		case ">":
			angles--
		case ":", "=", "{":
			if angles <= 0 {
				return false
			}
		case "operator":
			return true
		case "(":
			if angles > 0 {
				continue
			}
			if i >= 3 && d[i-1].word() && (d[i-2].text == "*" || d[i-2].text == "&" || d[i-2].text == ">" || d[i-2].text == "::" || d[i-2].word() &&
				!attribute(d[i-1].text)) {
				return true
			}
			if _, end := arguments(d, i); end > 0 {
				i = end
			}
		}
	}
	return false
}

// attribute reports whether a word takes parentheses and says something of a declaration.
func attribute(word string) bool {
	switch word {
	case "__attribute__", "__align__", "__builtin_align__", "alignas", "__launch_bounds__", "__declspec", "__maxnreg__", "__cluster_dims__", "__block_size__":
		return true
	}
	return false
}

// initialises reports whether a declaration has an initialiser: an = that is not the default of a template's or function's parameter.
func initialises(d []token) bool {
	angles := 0
	for _, t := range d {
		switch t.text {
		case "operator": // what follows is the name of a function, such as operator+=
			return false
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

// withoutAttributes drops __attribute__((...)), __align__(...), alignas(...), __launch_bounds__(...) and [[...]].
func withoutAttributes(d []token) []token {
	var out []token
	for i := 0; i < len(d); i++ {
		switch {
		case attribute(d[i].text):
			if i+1 < len(d) && d[i+1].text == "(" {
				if _, end := arguments(d, i+1); end > 0 {
					i = end
				}
			}
			continue
		case d[i].text == "[":
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

// templateParam is a parameter of a template: a type, or a value.
type templateParam struct {
	name     string
	kind     string // "typename", or the type of a value
	standard []token
	pack     bool
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

// textOf writes tokens as one would.
func textOf(d []token) string {
	var b strings.Builder
	for i, t := range d {
		if i > 0 && !slices.Contains([]string{"(", "<", "::", "*", "&", "["}, d[i-1].text) &&
			!slices.Contains([]string{",", ")", ">", "::", "<", "[", "]", "("}, t.text) {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// completes reports whether a word can end a type, such as int in "unsigned int".
func completes(word string) bool {
	switch word {
	case "int", "long", "short", "char", "unsigned", "signed", "float", "double", "bool", "typename", "class", "auto":
		return true
	}
	return false
}

// substitute puts arguments in the place of a template's parameters.
func substitute(d []token, means map[string][]token) []token {
	if means == nil {
		return d
	}
	var out []token
	for _, t := range d {
		if by, ok := means[t.text]; ok {
			out = append(out, by...)
			continue
		}
		out = append(out, t)
	}
	return out
}
