// A C preprocessor, as far as signatures need one: comments, conditionals, macros with arguments, included files. It ignores what it
// cannot follow, such as missing headers. It fails only on sources that would keep any compiler busy for ever.

package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dagrun/dagrun/kernels/launch"
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

// headers is a hash of the files that were included, by the names that include them; "" where there are none.
func (p *preprocessor) headers() string {
	if len(p.found) == 0 {
		return ""
	}
	h := sha256.New()
	for _, f := range p.found {
		fmt.Fprintf(h, "%q %d\n", f.name, len(p.texts[f.path]))
		h.Write(p.texts[f.path])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// versions are macros that tell which CUDA there is: that of the device headers for clang, since what is installed is not known here.
var versions = map[string]string{"__CUDACC_VER_MAJOR__": "12", "__CUDACC_VER_MINOR__": "0", "CUDART_VERSION": "12000", "CUDA_VERSION": "12000"}

// preprocess expands a source.
func preprocess(path, source string, define []launch.Definition, search search) *preprocessor {
	p := &preprocessor{macros: map[string]*macro{}, undefined: map[string]*macro{}, search: search, files: []string{path}, once: map[string]bool{}, texts: map[string][]byte{}, room: mostTokens, steps: mostSteps, words: mostWords}
	p.macros["__cplusplus"] = &macro{body: []token{{text: "201703L"}}}
	for _, name := range []string{"__CUDACC__", "__CUDACC_RTC__", "__NVCC__"} {
		p.macros[name] = &macro{body: []token{{text: "1"}}}
	}
	for name, value := range versions {
		p.macros[name] = &macro{body: []token{{text: value}}}
	}
	for _, d := range define {
		body := tokens(d.Value, 0)
		p.macros[d.Name] = &macro{body: body[:len(body)-1], given: true}
	}
	p.open = []int16{0}
	in := p.split(strings.TrimPrefix(source, byteOrderMark), 0)
	p.out = make([]token, 0, len(in)) // most sources become no longer
	p.file(in)
	return p
}

// fail stops the work: a source that needs so much is a mistake or an attack.
func (p *preprocessor) fail(t token, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%s:%d: %s", p.files[t.file], t.line, fmt.Sprintf(format, args...))
	}
	p.room = 0
}

// split makes tokens of a file.
func (p *preprocessor) split(source string, file int16) []token {
	out := firstTokens(source, file, p.words)
	if p.words -= len(out); p.words < 0 {
		p.fail(out[len(out)-1], "a file of kernels and its headers have at most %d words", mostWords)
		return nil
	}
	return out
}

// include reads the file of an #include in its place.
func (p *preprocessor) include(at token, d []token) {
	var name string
	if d[0].word() {
		if d = p.expand(d, nil); len(d) == 0 {
			return
		}
	}
	quoted := strings.HasPrefix(d[0].text, `"`)
	switch {
	case d[0].text == "__FILE__":
		name, quoted = filepath.Base(p.files[p.open[len(p.open)-1]]), true
	case quoted:
		name = strings.Trim(d[0].text, `"`)
	case d[0].text == "<":
		for _, t := range d[1:] {
			if t.text == ">" {
				break
			}
			name += t.text
		}
	default:
		return
	}
	if alwaysLeftOut(name) {
		p.libraries = p.libraries || libraryHeaders[name]
		p.thrust = p.thrust || strings.HasPrefix(name, "thrust/")
		return
	}
	from := p.open[len(p.open)-1]
	path, text, err := p.search.find(name, quoted, p.files[from])
	switch {
	case err != nil:
		p.fail(at, "%s %v", path, err)
		return
	case path == "":
		if telling(name) && !p.search.has(name, quoted, p.files[from]) {
			p.missing = append(p.missing, missingHeader{name, quoted, p.files[from], at.line})
		}
		return
	case p.once[path]:
		return
	case len(p.open) > mostIncludes:
		p.fail(at, "%q is included %d deep; is an include guard missing?", name, len(p.open))
		return
	case len(p.files) > mostFiles:
		p.fail(at, "more than %d files are included", mostFiles)
		return
	}
	p.found = append(p.found, foundHeader{name, path})
	p.texts[path] = text
	id := int16(len(p.files))
	p.files = append(p.files, path)
	p.open = append(p.open, id)
	p.file(p.split(string(text), id))
	p.open = p.open[:len(p.open)-1]
}

// file expands the tokens of one file.
func (p *preprocessor) file(in []token) {
	// For each open #if: whether its current branch is taken, and whether any was.
	type branch struct{ taken, any, outer bool }
	var open []branch
	taken := true
	var plain []token
	flush := func() {
		p.write(p.expand(plain, nil))
		plain = plain[:0]
	}
	for i := 0; i < len(in) && p.err == nil; i++ {
		t := in[i]
		if t.text == "\n" {
			continue
		}
		if t.text != "#" || !p.directiveAt(in, i) {
			if taken {
				plain = append(plain, t)
			}
			continue
		}
		end := i + 1
		for end < len(in) && in[end].text != "\n" {
			end++
		}
		d := in[i+1 : end]
		i = end
		if len(d) == 0 {
			continue
		}
		rest := d[1:]
		switch d[0].text {
		case "if", "ifdef", "ifndef":
			yes := false
			if taken {
				flush()
				switch {
				case d[0].text == "if":
					yes = p.condition(rest)
				case len(rest) > 0:
					yes = (p.macros[rest[0].text] != nil) == (d[0].text == "ifdef")
				}
			}
			if open = append(open, branch{yes, yes, taken}); len(open) > mostConditions {
				p.fail(t, "conditions are nested more than %d deep here", mostConditions)
			}
			taken = taken && yes
		case "elif", "else":
			if len(open) == 0 {
				continue
			}
			flush()
			b := &open[len(open)-1]
			b.taken = !b.any && (d[0].text == "else" || p.condition(rest))
			b.any = b.any || b.taken
			taken = b.outer && b.taken
		case "endif":
			if len(open) > 0 {
				flush()
				taken = open[len(open)-1].outer
				open = open[:len(open)-1]
			}
		case "define":
			if taken && len(rest) > 0 {
				flush()
				p.define(rest)
			}
		case "undef":
			if taken && len(rest) > 0 {
				flush()
				p.undefine(rest[0].text)
			}
		case "pragma":
			if taken && len(rest) > 0 && rest[0].text == "once" {
				p.once[p.files[p.open[len(p.open)-1]]] = true
			}
		case "include":
			if taken && len(rest) > 0 {
				flush()
				p.include(d[0], rest)
			}
		}
	}
	flush()
}

// write adds tokens to the result. Brackets that are nested too deep keep compilers busy.
func (p *preprocessor) write(made []token) {
	for _, t := range made {
		switch t.text {
		case "(", "[", "{":
			if p.depth++; p.depth > mostBrackets {
				p.fail(t, "brackets are nested more than %d deep here", mostBrackets)
				return
			}
		case ")", "]", "}":
			p.depth = max(0, p.depth-1)
		}
	}
	p.out = append(p.out, made...)
}

// directiveAt reports whether a # begins a line, and so a directive.
func (p *preprocessor) directiveAt(in []token, i int) bool {
	return i == 0 || in[i-1].text == "\n" || in[i-1].line != in[i].line
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
	var out []token
	if len(hidden) > 0 {
		p.steps -= len(in)
	}
	if p.steps < 0 && len(in) > 0 {
		p.fail(in[0], "macros take more than %d steps to expand here", mostSteps)
		return nil
	}
	if len(hidden) > mostNested && len(in) > 0 {
		p.fail(in[0], "macros are nested more than %d deep here", mostNested)
		return nil
	}
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
		if !m.function {
			body := p.paste(m, nil, t)
			out = append(out, p.expand(body, append(hidden, t.text))...)
			continue
		}
		if i+1 >= len(in) || in[i+1].text != "(" {
			out = append(out, t)
			continue
		}
		args, next := arguments(in, i+1)
		if next < 0 {
			out = append(out, t)
			continue
		}
		body := p.paste(m, args, t)
		i = next
		made := p.expand(body, append(hidden, t.text))
		// A body may end with the name of a macro whose arguments follow the call: M(name)(arguments).
		if last := len(made) - 1; last >= 0 && i+1 < len(in) && in[i+1].text == "(" {
			if f := p.macros[made[last].text]; f != nil && f.function && !contains(hidden, made[last].text) && made[last].text != t.text {
				if _, end := arguments(in, i+1); end > 0 {
					made = append(made[:last], p.expand(append([]token{made[last]}, in[i+1:end+1]...), hidden)...)
					i = end
				}
			}
		}
		out = append(out, made...)
	}
	p.room -= max(0, len(out)-len(in))
	return out
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
	argument := func(name string) ([]token, bool) {
		for k, param := range m.params {
			if param != name {
				continue
			}
			if m.variadic && k == len(m.params)-1 {
				var all []token
				for j := k; j < len(args); j++ {
					if j > k {
						all = append(all, token{text: ",", line: at.line, file: at.file})
					}
					all = append(all, args[j]...)
				}
				return all, true
			}
			if k < len(args) {
				return args[k], true
			}
			return nil, true
		}
		return nil, false
	}
	var out []token
	for i := 0; i < len(m.body); i++ {
		t := m.body[i]
		t.line, t.file = at.line, at.file
		if t.text == "##" {
			continue
		}
		if t.text == "#" && m.function && i+1 < len(m.body) {
			if a, ok := argument(m.body[i+1].text); ok {
				var text []string
				for _, x := range a {
					text = append(text, x.text)
				}
				out = append(out, token{text: strconv.Quote(strings.Join(text, " ")), line: at.line, file: at.file, space: true})
				i++
				continue
			}
		}
		beforePaste := i+1 < len(m.body) && m.body[i+1].text == "##"
		afterPaste := i > 0 && m.body[i-1].text == "##"
		piece := []token{t}
		if a, ok := argument(t.text); ok {
			if piece = a; !beforePaste && !afterPaste {
				p.steps -= len(a)
				piece = p.expand(a, nil)
			}
		}
		if rest := m.variadic && t.text == m.params[len(m.params)-1]; rest && afterPaste && len(out) > 0 && out[len(out)-1].text == "," {
			afterPaste = false // , ##args: the comma goes if there are none
			if len(piece) == 0 {
				out = out[:len(out)-1]
			}
		}
		for k, x := range piece {
			x.line, x.file = at.line, at.file
			if k == 0 && afterPaste && len(out) > 0 {
				out[len(out)-1].text += x.text
				continue
			}
			out = append(out, x)
		}
	}
	return out
}

// condition evaluates the expression of an #if; an expression that it cannot read is false.
func (p *preprocessor) condition(in []token) bool {
	var plain []token
	for i := 0; i < len(in); i++ {
		if in[i].text != "defined" {
			plain = append(plain, in[i])
			continue
		}
		name := i + 1
		if name < len(in) && in[name].text == "(" {
			name++
		}
		if name >= len(in) {
			return false
		}
		value := "0"
		if p.macros[in[name].text] != nil {
			value = "1"
		}
		plain = append(plain, token{text: value})
		if i = name; in[i-1].text == "(" {
			i++
		}
	}
	c := &conditionParser{in: p.expand(plain, nil)}
	return c.binary(0) != 0 && !c.bad
}
