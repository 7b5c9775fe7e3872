// Structures that are templates: the layout for given arguments.

package source

import "slices"

// mostStructures is how deep templates of structures may be nested in one another.
const mostStructures = 64

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
	made := structures{}
	made.noteIn(all, substitute(known.template.text, means), known.template.variables, known.template.aliases, depth+1)
	return made[words[open-1].text]
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
