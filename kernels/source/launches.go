// How a file's own host code launches its kernels: with which template arguments, grid and block.

package source

import (
	"fmt"
	"slices"
	"strings"
)

// Launched is a launch of a kernel in the file, as its author wrote it after macros.
type Launched struct {
	Template []string // arguments that are given, if each says what it is without its surroundings
	Text     string   // such as "scale<256><<<blocks, 256>>>"
	Block    int64    // threads of a block that is one number; 0: not known
	Place    string
}

// surroundings are what a source declares that arguments of templates may name.
type surroundings struct {
	variables *declaredVariables
	types     map[string][]token
	structs   structures
}

// mostLaunched is how many launches of a kernel are told: people write few that differ.
const mostLaunched = 4

// mostConfigured is how many words a launch has before or after its <<<, and mostAngles how deep its templates are nested.
const (
	mostConfigured = 1 << 10
	mostAngles     = 30
)

// launchesOf finds the launches in a source by the kernel's name without namespaces.
func launchesOf(in []token, files []string, known *surroundings) map[string][]Launched {
	found := map[string][]Launched{}
	for i := 1; i+3 < len(in); i++ {
		if in[i].text != "<" || in[i+1].text != "<" || in[i+2].text != "<" {
			continue
		}
		parts, end := configuration(in, i+3)
		if end < 0 || len(parts) < 2 {
			continue
		}
		name, args := i-1, [][]token(nil)
		if in[name].text == ">" {
			open := opening(in, name)
			if open < 1 {
				continue
			}
			args, _ = angled(in, open)
			name = open - 1
		}
		if !in[name].word() {
			continue
		}
		l := Launched{Place: fmt.Sprintf("%s:%d", files[in[name].file], in[name].line), Text: asWritten(in[name:i]) + "<<<" + asWritten(parts[0])}
		for _, part := range parts[1:] {
			l.Text += ", " + asWritten(part)
		}
		l.Text += ">>>"
		for _, a := range args {
			if !known.selfContained(a) {
				l.Template = nil
				break
			}
			l.Template = append(l.Template, asWritten(a))
		}
		if v, ok := known.variables.constant(parts[1]); ok && v > 0 && v <= 1024 {
			l.Block = v
		}
		all := found[in[name].text]
		if len(all) < mostLaunched && !slices.ContainsFunc(all, func(o Launched) bool { return o.Text == l.Text }) {
			found[in[name].text] = append(all, l)
		}
		i = end
	}
	return found
}

// asWritten is a text with one space where there is white space.
func asWritten(in []token) string {
	var b strings.Builder
	for i, t := range in {
		if i > 0 && t.space {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// configuration reads what is between <<< and >>>, and returns the index of the last >, or -1.
func configuration(in []token, at int) ([][]token, int) {
	parts, depth := [][]token{nil}, 0
	for last := min(len(in), at+mostConfigured) - 2; at < last; at++ {
		switch t := in[at].text; {
		case t == ";" || t == "<" && in[at+1].text == "<" && in[at+2].text == "<":
			return nil, -1
		case t == "(" || t == "[" || t == "{":
			depth++
		case t == ")" || t == "]" || t == "}":
			depth--
		case t == ">" && depth == 0 && in[at+1].text == ">" && in[at+2].text == ">":
			return parts, at + 2
		case t == "," && depth == 0:
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], in[at])
	}
	return nil, -1
}

// opening is where the angle bracket that ends at a place is opened, or -1.
func opening(in []token, end int) int {
	depth := 0
	for at := end; at >= max(0, end-mostConfigured); at-- {
		switch in[at].text {
		case ">":
			if depth++; depth > mostAngles {
				return -1
			}
		case "<":
			if depth--; depth == 0 {
				return at
			}
		case ";", "{", "}":
			return -1
		}
	}
	return -1
}

// selfContained reports whether a template's argument means the same everywhere: its words are types and constants of the source.
func (s *surroundings) selfContained(arg []token) bool {
	for _, t := range arg {
		if !t.word() || slices.Contains([]string{"const", "true", "false", "unsigned", "signed"}, t.text) {
			continue
		}
		_, constant := s.variables.constants[t.text]
		_, alias := s.types[t.text]
		_, builtin := cudaTypes[t.text]
		if !constant && !alias && !builtin && s.structs[t.text] == nil {
			return false
		}
	}
	return len(arg) > 0
}
