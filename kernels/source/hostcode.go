// Host code beside kernels: what NVRTC and clang need not see of a file that was written for nvcc. It is blanked out, so that lines
// and columns stay, and messages point into the user's file.

package source

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// deviceMarks make a declaration one that devices see.
var deviceMarks = []string{"__global__", "__device__", "__constant__", "__managed__", "__shared__"}

// span is one declaration of a file.
type span struct {
	from, to       int32 // bytes
	first, last    int32 // lines
	device, hidden bool
}

// userFile is one of the user's files: what a compiler gets of it.
type userFile struct {
	path    string
	text    []byte
	spans   []span
	members []span // functions of types that devices see
	changed bool
}

// blank replaces bytes by spaces, except for line breaks and directives other than includes: conditions must stay balanced, and
// device code may use what is defined here.
func (f *userFile) blank(from, to int32) {
	f.changed = true
	for lineStart := from; lineStart < to; {
		end := lineStart
		for end < to && f.text[end] != '\n' {
			end++
		}
		line := strings.TrimSpace(string(f.text[lineStart:end]))
		directive := strings.HasPrefix(line, "#") && startsLine(f.text, lineStart)
		word := strings.TrimSpace(strings.TrimPrefix(line, "#"))
		for directive && strings.HasSuffix(line, "\\") && end+1 < to && !strings.HasPrefix(word, "include") {
			lineStart, end = end+1, end+1 // a directive goes on
			for end < to && f.text[end] != '\n' {
				end++
			}
			line = strings.TrimSpace(string(f.text[lineStart:end]))
		}
		if !directive || strings.HasPrefix(word, "include") || strings.HasPrefix(word, "pragma") {
			for i := lineStart; i < end; i++ {
				if f.text[i] != '\r' {
					f.text[i] = ' '
				}
			}
		}
		lineStart = end + 1
	}
}

// startsLine reports whether only white space is before a place in its line.
func startsLine(text []byte, at int32) bool {
	for at > 0 && (text[at-1] == ' ' || text[at-1] == '\t') {
		at--
	}
	return at == 0 || text[at-1] == '\n'
}

// hide leaves a declaration out.
func (f *userFile) hide(s *span) {
	if !s.hidden {
		s.hidden = true
		f.blank(s.from, s.to)
	}
}

// hideAt leaves out the declarations of host code at a line, or else functions for the host in types; false where there is none.
func (f *userFile) hideAt(line int32) bool {
	for _, spans := range [][]span{f.spans, f.members} {
		found := false
		for i := range spans {
			if s := &spans[i]; s.first <= line && line <= s.last && !s.hidden && !s.device {
				f.hide(s)
				found = true
			}
		}
		if found {
			return true
		}
	}
	return false
}

// withoutHostCode reads a file into declarations and leaves out what is certainly host code. Macros are those of the whole
// translation unit: marks hide behind them.
func withoutHostCode(path string, text []byte, p *preprocessor) *userFile {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	f := &userFile{path: path, text: slices.Clone(text)}
	macros := maps.Clone(p.undefined)
	maps.Copy(macros, p.macros)
	s := &splitter{in: tokens(string(text), 0), file: f, search: &p.search, macros: macros, marks: markers(macros)}
	s.scope(0)
	f.withoutGiven(s.in, p.macros)
	for i := range f.spans {
		if f.spans[i].hidden {
			f.spans[i].hidden = false
			f.hide(&f.spans[i])
		}
	}
	return f
}

// withoutGiven blanks the definitions of macros that who builds the source gives.
func (f *userFile) withoutGiven(in []token, macros map[string]*macro) {
	for i := 0; i+3 < len(in); i++ {
		if in[i].text != "#" || in[i+1].text != "define" && in[i+1].text != "undef" {
			continue
		}
		m := macros[in[i+2].text]
		if m == nil || !m.given || in[i+3].text == "(" && !in[i+3].space {
			continue
		}
		end := i + 3
		for end < len(in)-1 && in[end].text != "\n" {
			end++
		}
		for at := in[i].at; at < in[end].at; at++ {
			if c := f.text[at]; c != '\n' && c != '\r' {
				f.text[at] = ' '
			}
		}
		f.changed = true
	}
}

// markers are the macros that stand for device marks.
func markers(macros map[string]*macro) map[string]bool {
	marks := map[string]bool{}
	for _, m := range deviceMarks {
		marks[m] = true
	}
	for changed := true; changed; {
		changed = false
		for name, m := range macros {
			if !marks[name] && slices.ContainsFunc(m.body, func(t token) bool { return marks[t.text] }) {
				marks[name], changed = true, true
			}
		}
	}
	return marks
}

// splitter splits a file into declarations without expanding macros. All branches of conditions are read; braces are counted in the
// first branch only, because others repeat them.
type splitter struct {
	in     []token
	at     int
	file   *userFile
	search *search
	macros map[string]*macro
	marks  map[string]bool
	depth  int   // of braces
	open   []int // depth at each #if
}

// skipDirective moves past a directive at the cursor; includes of host headers are blanked.
func (s *splitter) skipDirective() bool {
	t := s.in[s.at]
	if t.text == "\n" {
		s.at++
		return true
	}
	if !s.atDirective() {
		return false
	}
	end := s.at
	for end < len(s.in) && s.in[end].text != "\n" {
		end++
	}
	d := s.in[s.at+1 : end]
	s.at = end
	if len(d) == 0 {
		return true
	}
	switch d[0].text {
	case "if", "ifdef", "ifndef":
		s.open = append(s.open, s.depth)
		if len(d) == 2 && d[0].text == "if" && d[1].text == "0" {
			s.skipBranch()
		}
	case "else", "elif":
		if n := len(s.open); n > 0 {
			s.depth = s.open[n-1]
		}
	case "endif":
		if n := len(s.open); n > 0 {
			s.open = s.open[:n-1]
		}
	case "include":
		name := ""
		for _, t := range d[1:] {
			name += t.text
		}
		if name == "" {
			break
		}
		if plain := strings.Trim(name, `"<>`); alwaysLeftOut(plain) || s.search.leftOut(plain, name[:1] != "<") &&
			!s.search.has(plain, name[:1] != "<", s.file.path) {
			s.file.blank(t.at, s.in[min(end, len(s.in)-1)].at)
		}
	}
	return true
}

// atDirective reports whether a directive begins at the cursor.
func (s *splitter) atDirective() bool {
	return s.in[s.at].text == "#" && (s.at == 0 || s.in[s.at-1].text == "\n" || s.in[s.at-1].line != s.in[s.at].line)
}

// skipBranch moves to the end of a branch that no compiler reads: its braces may be without their like.
func (s *splitter) skipBranch() {
	for inner := 0; s.at+1 < len(s.in); s.at++ {
		if !s.atDirective() {
			continue
		}
		switch s.in[s.at+1].text {
		case "if", "ifdef", "ifndef":
			inner++
		case "else", "elif":
			if inner == 0 {
				return
			}
		case "endif":
			if inner--; inner < 0 {
				return
			}
		}
	}
}

// scope reads declarations until the depth falls below the scope's.
func (s *splitter) scope(depth int) {
	for s.at < len(s.in) {
		switch t := s.in[s.at]; {
		case s.skipDirective():
		case t.text == "}":
			s.at++
			if s.depth--; s.depth < depth {
				s.depth = max(s.depth, 0)
				return
			}
		case t.text == ";":
			s.at++
		case s.opens():
		default:
			s.declaration()
		}
	}
}

// opens goes into a namespace or extern "C" { }: what is inside are declarations of their own.
func (s *splitter) opens() bool {
	at := s.at
	switch {
	case s.in[at].text == "extern" && at+2 < len(s.in) && s.in[at+1].text == `"C"` && s.in[at+2].text == "{":
		at += 2
	case s.in[at].text == "namespace" || s.in[at].text == "inline" && at+1 < len(s.in) && s.in[at+1].text == "namespace":
		for at < len(s.in) && s.in[at].text != "{" {
			if s.in[at].text == ";" || s.in[at].text == "=" {
				return false
			}
			at++
		}
	default:
		return false
	}
	if at >= len(s.in) {
		return false
	}
	s.at = at + 1
	s.depth++
	s.scope(s.depth)
	return true
}

// declaration reads one, and decides whether it is host code.
func (s *splitter) declaration() {
	start, first := s.at, s.in[s.at]
	end := first
	var head []token // without bodies
	base, parens := s.depth, 0
	bodies, inside := 0, false // inside: marks in bodies, but for those of lambdas, which host code hands to templates
	launches := false
	take := func() {
		t := s.in[s.at]
		end = t
		if s.depth == base {
			head = append(head, t)
		}
		inside = inside || s.marks[t.text] && s.depth > base && !s.ofLambda()
		launches = launches || t.text == "<" && s.at+2 < len(s.in) && s.in[s.at+1].text == "<" && s.in[s.at+2].text == "<"
		s.at++
	}
loop:
	for s.at < len(s.in) {
		if s.skipDirective() {
			continue
		}
		switch s.in[s.at].text {
		case "(", "[":
			if s.depth == base {
				parens++
			}
			take()
		case ")", "]":
			if s.depth == base {
				parens--
			}
			take()
		case ";":
			take()
			if s.depth == base && parens <= 0 {
				break loop
			}
		case "{":
			s.depth++
			take()
		case "}":
			if s.depth <= base { // of the scope around
				break loop
			}
			s.depth--
			end = s.in[s.at]
			s.at++
			if bodies++; s.depth == base && parens <= 0 && !isType(head) && !initialises(head) && hasToken(head, "(") {
				break loop // a function's body ends it
			}
		default:
			take()
		}
	}
	if len(head) == 0 {
		return
	}
	f := s.file
	device := inside || slices.ContainsFunc(head, func(t token) bool { return s.marks[t.text] })
	f.spans = append(f.spans, span{from: first.at, to: end.at + int32(len(end.text)), first: first.line, last: end.line,
		device: device, hidden: !device && s.host(head, bodies > 0, launches)})
	if isType(head) {
		s.members(s.in[start:s.at], 0)
	}
}

// ofLambda reports whether the mark at the cursor follows the captures of a lambda.
func (s *splitter) ofLambda() bool {
	at := s.at - 1
	for at > 0 && (s.in[at].text == "__host__" || s.marks[s.in[at].text]) {
		at--
	}
	return at >= 0 && s.in[at].text == "]"
}

// mostTypes is how deep types may be in types for their functions to be noted.
const mostTypes = 20

// members notes the functions of a type, which is in depth others.
func (s *splitter) members(in []token, depth int) {
	if depth > mostTypes {
		return
	}
	at := 0
	for at < len(in) && in[at].text != "{" {
		at++
	}
	start, parens, inner := at+1, 0, false // inner: a type is declared
	note := func(end int) {
		if d := in[start:end]; len(d) > 0 && hasToken(d, "(") {
			last := d[len(d)-1]
			s.file.members = append(s.file.members, span{from: d[0].at, to: last.at + int32(len(last.text)), first: d[0].line, last: last.line,
				device: slices.ContainsFunc(d, func(t token) bool { return s.marks[t.text] })})
		}
	}
	for at++; at < len(in); at++ {
		switch in[at].text {
		case "#":
			for at < len(in) && in[at].text != "\n" {
				at++
			}
			start = at + 1
		case "(", "[":
			parens++
		case ")", "]":
			parens--
		case ":":
			if d := in[start:at]; len(d) == 1 && slices.Contains([]string{"public", "private", "protected"}, d[0].text) {
				start = at + 1
			}
		case ";":
			if parens <= 0 {
				if !inner && !initialises(in[start:at]) {
					note(at + 1)
				}
				start, inner = at+1, false
			}
		case "{":
			end := closing(in, at)
			if end < 0 {
				return
			}
			d := in[start:at]
			switch {
			case parens > 0 || initialises(d):
			case isType(d):
				s.members(in[start:end+1], depth+1)
				inner = true
			case hasToken(d, "(") && (!hasToken(d, ":") || !in[at-1].word()): // not one of the members that a constructor begins with
				note(end + 1)
				start = end + 1
			}
			at = end
		case "}":
			return
		}
	}
}

// host reports whether a declaration without device marks is certainly host code.
func (s *splitter) host(head []token, body, launches bool) bool {
	if len(head) > 1 && head[0].text == "template" {
		if head[1].text != "<" {
			return false // an explicit instantiation, perhaps of a kernel
		}
		_, head = templateHeader(head)
	}
	if len(head) == 0 {
		return false
	}
	switch first := head[0].text; {
	case launches:
		return true
	case slices.Contains([]string{"using", "typedef", "static_assert", "struct", "class", "union", "enum", "namespace", "texture", "surface",
		"asm", "friend"}, first):
		return false
	case hasToken(head, "constexpr") || hasToken(head, "consteval"):
		return false
	}
	open := slices.IndexFunc(head, func(t token) bool { return t.text == "(" })
	if open == 1 && s.macros[head[0].text] != nil { // a macro that declares something
		return false
	}
	if open > 0 && !initialises(head) { // a function, or a variable with arguments for its constructor
		return true
	}
	if hasToken(head, "const") {
		return false
	}
	return len(head) > 1
}
