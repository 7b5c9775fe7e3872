// A C preprocessor, as far as signatures need one: comments, conditionals, macros with arguments, included files. It ignores what it
// cannot follow, such as missing headers. It fails only on sources that would keep any compiler busy for ever.

package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/kernels/launch"
)

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
	p := &preprocessor{macros: map[string]*macro{}, undefined: map[string]*macro{}, search: search, files: []string{path}, once: map[string]bool{},
		texts: map[string][]byte{}, room: mostTokens, steps: mostSteps, words: mostWords}
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

// split makes tokens of a file.
func (p *preprocessor) split(source string, file int16) []token {
	out := firstTokens(source, file, p.words)
	if p.words -= len(out); p.words < 0 {
		p.fail(out[len(out)-1], "a file of kernels and its headers have at most %d words", mostWords)
		return nil
	}
	return out
}

// include reads the file of an #include, #import or #include_next in its place.
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
	case p.once[path], at.text == "include_next" && slices.ContainsFunc(p.open, func(file int16) bool { return p.files[file] == path }):
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
	f := &fileInParts{p: p, taken: true}
	for i := 0; i < len(in) && p.err == nil; i++ {
		t := in[i]
		switch {
		case t.text == "\n":
		case t.text != "#" || !p.directiveAt(in, i):
			if f.taken {
				f.plain = append(f.plain, t)
			}
		default:
			end := i + 1
			for end < len(in) && in[end].text != "\n" {
				end++
			}
			if end > i+1 {
				f.directive(t, in[i+1], in[i+2:end])
			}
			i = end
		}
	}
	f.flush()
}

// fileInParts is a file while it is read: the parts between directives, of which conditions take some.
type fileInParts struct {
	p     *preprocessor
	plain []token  // that are taken, since the last directive
	open  []branch // of each #if
	taken bool     // what comes now
}

// branch tells of an open #if whether any of its branches was taken, and whether what is around it is.
type branch struct{ any, outer bool }

// flush expands what was read since the last directive, with the macros as they are.
func (f *fileInParts) flush() {
	f.p.write(f.p.expand(f.plain, nil))
	f.plain = f.plain[:0]
}

func (f *fileInParts) directive(hash, name token, rest []token) {
	switch name.text {
	case "if", "ifdef", "ifndef":
		f.begin(hash, name.text, rest)
	case "elif", "else":
		f.otherwise(name.text, rest)
	case "endif":
		f.end()
	case "define", "undef", "pragma", "include", "include_next", "import":
		if f.taken && len(rest) > 0 {
			f.plainDirective(name, rest)
		}
	}
}

// plainDirective does what a directive that is no condition says.
func (f *fileInParts) plainDirective(name token, rest []token) {
	p := f.p
	if name.text == "pragma" {
		if rest[0].text == "once" {
			p.once[p.files[p.open[len(p.open)-1]]] = true
		}
		return
	}
	f.flush()
	switch name.text {
	case "define":
		p.define(rest)
	case "undef":
		p.undefine(rest[0].text)
	default:
		p.include(name, rest)
	}
}

func (f *fileInParts) begin(hash token, kind string, rest []token) {
	yes := false
	if f.taken {
		f.flush()
		if kind == "if" {
			yes = f.p.condition(rest)
		} else if len(rest) > 0 {
			yes = (f.p.macros[rest[0].text] != nil) == (kind == "ifdef")
		}
	}
	if f.open = append(f.open, branch{yes, f.taken}); len(f.open) > mostConditions {
		f.p.fail(hash, "conditions are nested more than %d deep here", mostConditions)
	}
	f.taken = yes
}

func (f *fileInParts) otherwise(kind string, rest []token) {
	if len(f.open) == 0 {
		return
	}
	f.flush()
	b := &f.open[len(f.open)-1]
	f.taken = b.outer && !b.any && (kind == "else" || f.p.condition(rest))
	b.any = b.any || f.taken
}

func (f *fileInParts) end() {
	if last := len(f.open) - 1; last >= 0 {
		f.flush()
		f.taken, f.open = f.open[last].outer, f.open[:last]
	}
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
