// Declarations of variables that launches share: their names, types and sizes.

package source

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// declaration is one of variables while it is read. It may make several, behind commas.
type declaration struct {
	all   *declaredVariables
	in    []token
	at    int
	types map[string][]token

	words    []token // of the type
	external bool    // it only says that there are such variables
	made     dag.Symbol

	// Of the variable that is being read:
	name     token
	named    bool
	pointers int
	count    int64 // of its elements
	known    bool  // the count is
}

// declare records the variables that a declaration makes. text has the initialiser in braces too.
func (all *declaredVariables) declare(d, text []token, space string, files []string, types map[string][]token) {
	r := &declaration{all: all, in: withoutAttributes(d), types: types, count: 1, known: true}
	r.made.Constant = hasToken(d, "__constant__")
	r.made.Initialised = hasToken(d, "=") || hasToken(text, "{") && !isType(withoutSpace(d))
	for ; r.at < len(r.in); r.at++ {
		if r.in[r.at].text == "," {
			r.record(text, space, files)
			r.named, r.pointers, r.count, r.known = false, 0, 1, true
		} else if !r.read() {
			return
		}
	}
	r.record(text, space, files)
}

// read goes on with the declaration. It returns false for that of a function.
func (r *declaration) read() bool {
	switch t := r.in[r.at]; t.text {
	case "__constant__", "__device__", "__managed__", "static", "inline", "volatile":
	case "constexpr":
		r.words = append(r.words, token{text: "const"})
	case "extern":
		r.external = true
		if r.at+1 < len(r.in) && r.in[r.at+1].text == `"C"` {
			r.at, r.external = r.at+1, false
		}
	case "(", "operator", "template":
		return false
	case "<":
		_, end := angled(r.in, r.at)
		if end < 0 {
			return false
		}
		r.words, r.at = append(r.words, r.in[r.at:end+1]...), end
	case "=":
		r.at = endOfInitialiser(r.in, r.at) - 1
	case "[":
		r.dimension()
	case "*":
		r.pointers++
	default:
		if !r.isName() {
			r.words = append(r.words, t)
			break
		}
		if len(r.words) == 0 {
			return false
		}
		r.name, r.named = t, true
	}
	return true
}

// isName reports whether the word here is the variable's name, and not of its type.
func (r *declaration) isName() bool {
	return r.in[r.at].word() && (r.at+1 == len(r.in) || slices.Contains([]string{"=", "[", ","}, r.in[r.at+1].text))
}

// endOfInitialiser is the index of the comma behind "= value", or of the end.
func endOfInitialiser(in []token, at int) int {
	depth := 0
	for at++; at < len(in) && (depth > 0 || in[at].text != ","); at++ {
		switch in[at].text {
		case "(", "[", "<":
			depth++
		case ")", "]", ">":
			depth--
		}
	}
	return at
}

// dimension reads "[n]".
func (r *declaration) dimension() {
	begin := r.at + 1
	depth := 1
	for r.at = begin; r.at < len(r.in); r.at++ {
		if r.in[r.at].text == "[" {
			depth++
		} else if r.in[r.at].text == "]" {
			depth--
		}
		if depth == 0 {
			break
		}
	}
	v, ok := r.all.constant(r.in[min(begin, len(r.in)):min(r.at, len(r.in))])
	if r.known = r.known && ok && v > 0 && v < 1<<40 && r.count < 1<<40; r.known {
		r.count *= v
	}
}

// record adds the variable that has been read. What only says that there is one changes nothing where it is known.
func (r *declaration) record(text []token, space string, files []string) {
	if !r.named || r.name.text == "" {
		return
	}
	s := r.made
	s.Name, s.Place = space+r.name.text, fmt.Sprintf("%s:%d", files[r.name.file], r.name.line)
	element := takeApart(append(slices.Clone(r.words), token{text: "x"}), r.types)
	pointer := element.stars+r.pointers > 0
	s.Constant = s.Constant || element.constant && !pointer
	r.all.units.add(r.name.text, text)
	size := int64(8)
	if !pointer {
		if t, ok := element.dtype(); ok {
			s.DType = t
		}
		size = s.DType.Size()
	}
	if r.known && !r.external {
		s.Bytes = size * r.count
	}
	if i, known := r.all.places[s.Name]; !known {
		r.all.places[s.Name] = len(r.all.symbols)
		r.all.symbols = append(r.all.symbols, s)
	} else if !r.external {
		r.all.symbols[i] = s
	}
}
