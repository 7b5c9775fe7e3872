// Macros of a source: their definitions, what they become where they are used, and all that is known of a source while it is preprocessed.

package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type macro struct {
	function bool
	params   []string
	variadic bool
	given    bool // by who builds the source, whatever the source defines
	body     []token
}

// preprocessor holds the macros of one translation unit.
type preprocessor struct {
	macros    map[string]*macro
	undefined map[string]*macro // that were macros before an #undef
	search    search
	files     []string // the paths that were read; the source itself is the first
	texts     map[string][]byte
	found     []foundHeader
	once      map[string]bool
	open      []int16 // the files that are being read, inside of one another
	out       []token
	room      int // how many tokens macros may still add
	words     int // how many tokens the files may still have
	depth     int // of the brackets that are open
	steps     int // how many words may still be looked at in the bodies and arguments of macros
	missing   []missingHeader
	err       error

	libraries bool // headers of NVIDIA's libraries are included
	thrust    bool // headers of Thrust for the host are
}

// foundHeader is an include that was found.
type foundHeader struct {
	name string // as written
	path string
}

// missingHeader is an include that was not found.
type missingHeader struct {
	name   string
	quoted bool
	file   string // that includes it
	line   int32
}

// fail stops the work: a source that needs so much is a mistake or an attack.
func (p *preprocessor) fail(t token, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%s:%d: %s", p.files[t.file], t.line, fmt.Sprintf(format, args...))
	}
	p.room = 0
}

func (p *preprocessor) define(d []token) {
	m := &macro{}
	body := d[1:]
	if len(body) > 0 && body[0].text == "(" && !body[0].space {
		m.function = true
		i := 1
		for ; i < len(body) && body[i].text != ")"; i++ {
			switch t := body[i].text; {
			case t == "." && !m.variadic:
				m.variadic = true
				if !body[i-1].word() { // else it has a name: args...
					m.params = append(m.params, "__VA_ARGS__")
				}
			case t != "." && t != ",":
				m.params = append(m.params, t)
			}
		}
		body = body[min(i+1, len(body)):]
	}
	m.body = append([]token(nil), body...)
	if known := p.macros[d[0].text]; known != nil && known.given && !m.function {
		return
	}
	p.macros[d[0].text] = m
}

func (p *preprocessor) undefine(name string) {
	if m := p.macros[name]; m != nil && !m.given {
		p.undefined[name] = m
		delete(p.macros, name)
	}
}

// expand replaces macros in a list of tokens, except for the hidden ones, which are being expanded already.
func (p *preprocessor) expand(in []token, hidden []string) []token {
	if len(in) == 0 {
		return nil
	}
	if len(hidden) > 0 {
		p.steps -= len(in)
	}
	switch {
	case p.steps < 0:
		p.fail(in[0], "macros take more than %d steps to expand here", mostSteps)
		return nil
	case len(hidden) > mostNested:
		p.fail(in[0], "macros are nested more than %d deep here", mostNested)
		return nil
	}
	var out []token
	for i := 0; i < len(in); i++ {
		t := in[i]
		m := p.macros[t.text]
		if m == nil || !t.word() || contains(hidden, t.text) || p.err != nil {
			out = append(out, t)
			continue
		}
		if p.room--; len(out)-len(in) > p.room {
			p.fail(t, "macros expand to more than %d words here", mostTokens)
			return nil
		}
		made, end := p.expanded(m, in, i, hidden)
		out, i = append(out, made...), end
	}
	p.room -= max(0, len(out)-len(in))
	return out
}

// expanded returns what a macro becomes, and where its call ends. A function without arguments stays as it is.
func (p *preprocessor) expanded(m *macro, in []token, at int, hidden []string) ([]token, int) {
	name := in[at]
	if !m.function {
		return p.expand(p.paste(m, nil, name), append(hidden, name.text)), at
	}
	args, end := callArguments(in, at)
	if end < 0 {
		return in[at : at+1], at
	}
	made := p.expand(p.paste(m, args, name), append(hidden, name.text))
	// A body may end with the name of a macro whose arguments follow the call: M(name)(arguments).
	last := len(made) - 1
	if last < 0 || made[last].text == name.text || contains(hidden, made[last].text) {
		return made, end
	}
	if f := p.macros[made[last].text]; f == nil || !f.function {
		return made, end
	}
	_, next := callArguments(in, end)
	if next < 0 {
		return made, end
	}
	return append(made[:last], p.expand(append([]token{made[last]}, in[end+1:next+1]...), hidden)...), next
}

// callArguments reads the arguments that follow a word, and returns the index of their end, or -1.
func callArguments(in []token, at int) ([][]token, int) {
	if at+1 >= len(in) || in[at+1].text != "(" {
		return nil, -1
	}
	return arguments(in, at+1)
}

// arguments reads "(a, b, c)" and returns the index of its end, or -1.
func arguments(in []token, open int) ([][]token, int) {
	args, depth := [][]token{nil}, 0
	for i := open; i < len(in); i++ {
		switch t := in[i].text; t {
		case "(":
			if depth++; depth == 1 {
				continue
			}
		case ")":
			if depth--; depth == 0 {
				return args, i
			}
		case ",":
			if depth == 1 {
				args = append(args, nil)
				continue
			}
		}
		args[len(args)-1] = append(args[len(args)-1], in[i])
	}
	return nil, -1
}

// paste puts arguments into a body: unchanged next to ##, as a string after #, expanded otherwise.
func (p *preprocessor) paste(m *macro, args [][]token, at token) []token {
	var out []token
	for i := 0; i < len(m.body); i++ {
		t := m.body[i]
		if t.text == "##" {
			continue
		}
		if t.text == "#" && m.function && i+1 < len(m.body) {
			if a, ok := m.argument(m.body[i+1].text, args); ok {
				out = append(out, quoted(a).from(at))
				i++
				continue
			}
		}
		beforePaste := i+1 < len(m.body) && m.body[i+1].text == "##"
		afterPaste := i > 0 && m.body[i-1].text == "##"
		piece := []token{t}
		if a, ok := m.argument(t.text, args); ok {
			if piece = a; !beforePaste && !afterPaste {
				p.steps -= len(a)
				piece = p.expand(a, nil)
			}
		}
		if afterPaste && m.rest(t.text) && len(out) > 0 && out[len(out)-1].text == "," {
			afterPaste = false // , ##args: the comma goes if there are none
			if len(piece) == 0 {
				out = out[:len(out)-1]
			}
		}
		for k, x := range piece {
			if k == 0 && afterPaste && len(out) > 0 {
				out[len(out)-1].text += x.text
				continue
			}
			out = append(out, x.from(at))
		}
	}
	return out
}

// rest reports whether a parameter takes all arguments from its own on.
func (m *macro) rest(param string) bool {
	return m.variadic && param == m.params[len(m.params)-1]
}

// argument returns what a call gives a parameter; false for a word that is none.
func (m *macro) argument(word string, args [][]token) ([]token, bool) {
	k := slices.Index(m.params, word)
	switch {
	case k < 0:
		return nil, false
	case k >= len(args):
		return nil, true
	case !m.rest(word):
		return args[k], true
	}
	all := slices.Clone(args[k])
	for _, a := range args[k+1:] {
		all = append(append(all, token{text: ","}), a...)
	}
	return all, true
}

// quoted is what # makes of an argument.
func quoted(argument []token) token {
	var texts []string
	for _, t := range argument {
		texts = append(texts, t.text)
	}
	return token{text: strconv.Quote(strings.Join(texts, " ")), space: true}
}

// from is a token in the place of another.
func (t token) from(at token) token {
	t.line, t.file = at.line, at.file
	return t
}
