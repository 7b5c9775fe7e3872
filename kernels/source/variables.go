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

// withoutSpace drops the words before a type that say where a variable lives.
func withoutSpace(d []token) []token {
	for len(d) > 0 && slices.Contains([]string{"__device__", "__constant__", "__managed__", "static", "extern"}, d[0].text) {
		d = d[1:]
	}
	return d
}
