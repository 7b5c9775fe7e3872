// Structures that CUDA C declares, templates included: their layout, for those that kernels take by value.

package source

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// structures are the structures of a source by their name without namespaces.
type structures map[string]*layout

// layout is a structure, or why its layout is not known.
type layout struct {
	structure *dag.Structure
	unclear   string
	template  *pattern // it is a template: each use has a layout of its own
}

// mostBytes is how large a structure may be: more than a kernel takes.
const mostBytes = 1 << 16

// addressBytes is the size of a pointer.
const addressBytes = 8

// Limits of templates, whose members may be many times as many as the words that declare them.
const (
	mostArguments   = 1 << 10 // words of a type with its arguments
	mostProduct     = 4 << 20 // words of a template times those of its arguments
	mostSubstituted = 1 << 20 // words of templates with arguments in the place of parameters
)

// mostStructures is how deep templates of structures may be nested in one another.
const mostStructures = 64

// note reads the declaration of a structure, if text is one. names are the types that it may use.
func (all structures) note(text []token, variables *declaredVariables, aliases map[string][]token) {
	if len(text) > 0 && text[0].text == "template" {
		all.noteTemplate(text, variables, aliases)
		return
	}
	all.noteIn(all, text, variables, aliases, 0)
}

// noteIn reads the declaration of a structure that may use those of known, at a depth of templates in templates.
func (all structures) noteIn(known structures, text []token, variables *declaredVariables, aliases map[string][]token, depth int) {
	typedef := len(text) > 0 && text[0].text == "typedef"
	if typedef {
		text = text[1:]
	}
	if len(text) == 0 || !slices.Contains([]string{"struct", "class", "union"}, text[0].text) {
		return
	}
	open := slices.IndexFunc(text, func(t token) bool { return t.text == "{" })
	if open < 0 || returnsType(text[:open]) {
		return
	}
	end := closing(text, open)
	if end < 0 {
		return
	}
	name, align, unclear := structureHead(text[:open], variables)
	if text[0].text == "union" {
		unclear = "is a union"
	}
	names := []string{name}
	if typedef {
		for k := end + 1; k < len(text); k++ {
			if text[k].word() && (k == end+1 || text[k-1].text == ",") {
				names = append(names, text[k].text)
			}
		}
	}
	b := &structureBuilder{all: known, variables: variables, aliases: aliases, unclear: unclear, templates: depth}
	b.structure.Name, b.structure.Align = names[len(names)-1], max(1, align)
	if b.unclear == "" {
		b.body(text[open+1 : end])
	}
	made := &layout{unclear: b.unclear}
	if made.unclear == "" {
		b.structure.Size = max(1, roundUp(b.structure.Size, b.structure.Align))
		made.structure = &b.structure
	}
	for _, name := range names {
		if name != "" {
			all[name] = made
		}
	}
}

// closing returns where the bracket at open is closed, or -1.
func closing(in []token, open int) int {
	pairs := map[string]string{"{": "}", "(": ")", "[": "]"}
	depth := 0
	for k := open; k < len(in); k++ {
		switch in[k].text {
		case in[open].text:
			depth++
		case pairs[in[open].text]:
			if depth--; depth == 0 {
				return k
			}
		}
	}
	return -1
}

// structureHead reads what comes before the members: the name, an alignment, and what makes the layout unclear.
func structureHead(head []token, variables *declaredVariables) (name string, align int32, unclear string) {
	for k := 1; k < len(head); k++ {
		switch t := head[k]; {
		case slices.Contains([]string{"__align__", "alignas", "aligned"}, t.text) && k+1 < len(head) && head[k+1].text == "(":
			end := closing(head, k+1)
			if end < 0 {
				return name, align, "cannot be understood"
			}
			v, ok := variables.constant(head[k+2 : end])
			if !ok || v < 1 || v > 1<<12 || v&(v-1) != 0 {
				return name, align, "has an alignment that is not known"
			}
			align, k = max(align, int32(v)), end
		case t.text == "packed" || t.text == "__packed__":
			return name, align, "is packed"
		case t.text == ":":
			return name, align, "has a base class"
		case t.text == "<":
			return name, align, "is a specialisation of a template"
		case t.word() && t.text != "__attribute__" && t.text != "final":
			name = t.text
		}
	}
	return name, align, ""
}

// structureBuilder lays the members of one structure out.
type structureBuilder struct {
	all       structures
	variables *declaredVariables
	aliases   map[string][]token
	structure dag.Structure
	unclear   string
	templates int // that it is in
}

// body reads the members.
func (b *structureBuilder) body(in []token) {
	for k := 0; k < len(in) && b.unclear == ""; {
		if k+1 < len(in) && in[k+1].text == ":" && slices.Contains([]string{"public", "private", "protected"}, in[k].text) {
			k += 2
			continue
		}
		start, function := k, false
		for ; k < len(in) && in[k].text != ";"; k++ {
			switch in[k].text {
			case "(", "[":
				function = function || in[k].text == "("
				end := closing(in, k)
				if end < 0 {
					b.unclear = "cannot be understood"
					return
				}
				k = end
			case "{":
				end := closing(in, k)
				if end < 0 {
					b.unclear = "cannot be understood"
					return
				}
				k = end
				if function { // a body, after which no semicolon is needed
					goto done
				}
			}
		}
	done:
		b.member(in[start:min(k, len(in))], function)
		k++
	}
}

// member reads one declaration.
func (b *structureBuilder) member(d []token, function bool) {
	d = withoutAlignment(d, b)
	switch {
	case len(d) == 0 || b.unclear != "":
		return
	case hasToken(d, "virtual"):
		b.unclear = "has virtual functions"
		return
	case slices.Contains([]string{"static", "using", "typedef", "friend", "enum", "template", "static_assert"}, d[0].text):
		return
	case function:
		return
	case hasToken(d, "{") && slices.Contains([]string{"struct", "class", "union"}, d[0].text):
		b.unclear = "has a type declared in it"
		return
	case hasToken(d, ":"):
		b.unclear = "has bit fields"
		return
	}
	var words []token // of the type, for further members
	for k := 0; k < len(d) && b.unclear == ""; {
		end := k
		for end < len(d) && d[end].text != "," {
			if close := closing(d, end); close > 0 && slices.Contains([]string{"(", "[", "{"}, d[end].text) {
				end = close
			} else if d[end].text == "<" {
				if _, close := angled(d, end); close > 0 {
					end = close
				}
			}
			end++
		}
		part := append(slices.Clone(words), d[k:end]...)
		b.declarator(part)
		if words == nil {
			words = typeWords(part)
		}
		k = end + 1
	}
}

// typeWords are the words of a declaration before its first pointer or name.
func typeWords(d []token) []token {
	for k := range d {
		if t := d[k].text; t == "*" || t == "[" || t == "=" || t == "{" {
			d = d[:k]
			break
		}
	}
	if p := takeApart(d, nil); p.name != "" && len(d) > 0 && d[len(d)-1].text == p.name {
		return d[:len(d)-1]
	}
	return d
}

// withoutAlignment takes an alignment of a member into account.
func withoutAlignment(d []token, b *structureBuilder) []token {
	for len(d) > 1 && (d[0].text == "alignas" || d[0].text == "__align__") && d[1].text == "(" {
		b.unclear = "has members that are aligned in their own way"
		return d
	}
	return d
}

// declarator adds one member.
func (b *structureBuilder) declarator(d []token) {
	count := int64(0)
	plain := d
	for k := 0; k < len(d); k++ {
		if d[k].text == "=" || d[k].text == "{" {
			plain = plain[:min(len(plain), k)]
			break
		}
		if d[k].text == "[" {
			plain = plain[:min(len(plain), k)]
			end := closing(d, k)
			v, ok := b.variables.constant(d[k+1 : max(end, k+1)])
			if !ok || v < 1 || v > mostBytes {
				b.unclear = "has an array whose length is not known"
				return
			}
			if count = max(1, count) * v; count > mostBytes {
				b.unclear = "is too large"
				return
			}
			k = end
		}
	}
	p := takeApart(plain, b.aliases)
	if p.problem != "" || p.name == "" {
		b.unclear = fmt.Sprintf("has a member %q that cannot be understood", textOf(d))
		return
	}
	m := dag.Member{Name: p.name, Count: int32(count)}
	var size, align int64
	if p.stars > 0 {
		m.DType, m.Mode = p.pointsTo()
		size, align = addressBytes, addressBytes
	} else if t, ok := p.dtype(); ok && t != dag.InvalidDType {
		m.DType, size, align = t, t.Size(), t.Align()
	} else if inner := b.all.find(p.words, b.templates); inner != nil && inner.structure != nil {
		m.Struct, size, align = inner.structure, int64(inner.structure.Size), int64(inner.structure.Align)
	} else {
		b.unclear = fmt.Sprintf("has a member %s of type %s, whose layout is not known", p.name, textOf(p.words))
		return
	}
	s := &b.structure
	s.Align = max(s.Align, int32(align))
	m.Offset = roundUp(s.Size, int32(align))
	if total := int64(m.Offset) + size*max(1, count); total > mostBytes {
		b.unclear = "is too large"
		return
	} else {
		s.Size = int32(total)
	}
	s.Members = append(s.Members, m)
}

func roundUp(n, align int32) int32 { return (n + align - 1) / align * align }

// of is the structure or vector that a parameter takes by value, or why it is not known.
func (all structures) of(p *parameter) (*dag.Structure, error) {
	if t, ok := p.dtype(); ok && t.Components() > 1 {
		s := *dag.VectorStructure(t)
		s.Name = textOf(p.words)
		return &s, nil
	}
	known := all.find(p.words, 0)
	switch {
	case known == nil:
		return nil, nil
	case known.unclear != "":
		return nil, fmt.Errorf("%s %s", textOf(p.words), known.unclear)
	}
	return known.structure, nil
}

// pattern is a template of a structure.
type pattern struct {
	params    []templateParam
	text      []token // the declaration behind template <...>
	variables *declaredVariables
	aliases   map[string][]token
}

// noteTemplate reads the declaration of a template, if it is one of a structure.
func (all structures) noteTemplate(text []token, variables *declaredVariables, aliases map[string][]token) {
	params, rest := templateHeader(text)
	if params == nil {
		all.note(rest, variables, aliases)
		return
	}
	open := slices.IndexFunc(rest, func(t token) bool { return t.text == "{" })
	if open < 0 || !slices.Contains([]string{"struct", "class", "union"}, rest[0].text) {
		return
	}
	name, _, unclear := structureHead(rest[:open], variables)
	if name == "" {
		return
	}
	if unclear != "" {
		all[name] = &layout{unclear: unclear}
		return
	}
	all[name] = &layout{template: &pattern{params, rest, variables, aliases}}
}

// find is the layout of a type, or nil if it is no structure that is known. depth is how many templates it is in.
func (all structures) find(words []token, depth int) *layout {
	if len(words) == 0 {
		return nil
	}
	open := slices.IndexFunc(words, func(t token) bool { return t.text == "<" })
	if open < 1 {
		known := all[words[len(words)-1].text]
		if known != nil && known.template != nil {
			return &layout{unclear: "is a template, whose arguments are missing"}
		}
		return known
	}
	if len(words) > mostArguments {
		return &layout{unclear: "has too many template arguments"}
	}
	key := textOf(words)
	if made := all[key]; made != nil {
		return made
	}
	parts, end := angled(words, open)
	known := all[words[open-1].text]
	switch {
	case end != len(words)-1 || known == nil:
		return nil
	case known.template == nil:
		return known
	case depth >= mostStructures:
		return &layout{unclear: "is nested too deep"}
	}
	means, ok := known.template.bind(parts)
	if !ok {
		return &layout{unclear: "has arguments that do not fit its template"}
	}
	t := known.template
	if len(t.text)*len(words) > mostProduct {
		return &layout{unclear: "has too many template arguments for its size"}
	}
	text := substitute(t.text, means)
	if t.variables.substituted += len(text); t.variables.substituted > mostSubstituted {
		return &layout{unclear: "is one of too many templates"}
	}
	made := structures{}
	made.noteIn(all, text, t.variables, t.aliases, depth+1)
	instance := made[words[open-1].text]
	if instance != nil && instance.structure != nil {
		all[key] = instance
	}
	return instance
}

// bind says what the parameters stand for; false if there are too few or too many arguments.
func (p *pattern) bind(args [][]token) (means map[string][]token, ok bool) {
	means = map[string][]token{}
	if len(args) == 1 && len(args[0]) == 0 {
		args = nil
	}
	for i, param := range p.params {
		switch {
		case param.pack:
			return nil, false
		case i < len(args):
			means[param.name] = args[i]
		case param.standard != nil:
			means[param.name] = substitute(param.standard, means)
		default:
			return nil, false
		}
	}
	return means, len(args) <= len(p.params)
}
