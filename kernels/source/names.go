// Which kernel a name stands for: plain names, names with namespaces, templates with their arguments, chosen overloads, and the
// symbols of compiled code.

package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// written is a kernel's name as a pipeline gives it, taken apart: ns::scan<256, float>(int, float*).
type written struct {
	base   string
	args   []string // of the template; nil: none given
	params []string // types that choose an overload; nil: none given
}

func readName(name string) (written, error) {
	in := tokens(name, 0)
	in = in[:len(in)-1]
	var w written
	at := 0
	for at < len(in) && in[at].text != "<" && in[at].text != "(" {
		w.base += in[at].text
		at++
	}
	w.base = strings.TrimPrefix(w.base, "::")
	list := func(parts [][]token) []string {
		all := []string{}
		for _, part := range parts {
			if len(part) > 0 {
				all = append(all, textOf(part))
			}
		}
		return all
	}
	if at < len(in) && in[at].text == "<" {
		parts, end := angled(in, at)
		if end < 0 {
			return w, fmt.Errorf("%q has a < without its >", name)
		}
		w.args, at = list(parts), end+1
	}
	if at < len(in) && in[at].text == "(" {
		parts, end := arguments(in, at)
		if end < 0 {
			return w, fmt.Errorf("%q has a ( without its )", name)
		}
		w.params, at = list(parts), end+1
	}
	if at < len(in) || w.base == "" {
		return w, fmt.Errorf("%q is no name of a kernel", name)
	}
	return w, nil
}

// named reports whether a kernel's name is the one that was written, with or without its namespaces.
func named(name, base string) bool {
	return name == base || strings.HasSuffix(name, "::"+base)
}

// declaredKernels are the kernels of a file, to be found by name.
type declaredKernels struct {
	path    string // of the file, for messages
	found   []sourceKernel
	types   map[string][]token // what typedefs and the like stand for
	structs structures
}

// match returns the kernel that a name stands for. A symbol says all; otherwise what was written has the arguments of a template too.
func (d *declaredKernels) match(name string) (*sourceKernel, written, error) {
	for i := range d.found {
		if k := &d.found[i]; k.symbol == name && k.template == nil {
			return k, written{}, nil
		}
	}
	w, err := readName(name)
	if err != nil {
		return nil, w, fmt.Errorf("%s: %w", d.path, err)
	}
	if symbol, ok := demangle(name); ok {
		w = written{symbol.name, symbol.args, symbol.params}
	}
	var fit []*sourceKernel
	for _, exact := range []bool{true, false} {
		for i := range d.found {
			k := &d.found[i]
			if (k.name == w.base || !exact && named(k.name, w.base)) && d.suits(k, &w) {
				fit = append(fit, k)
			}
		}
		if len(fit) > 0 {
			break
		}
	}
	switch {
	case len(fit) == 0:
		return nil, w, d.unknown(name, &w)
	case len(fit) > 1:
		var all []string
		for _, k := range fit {
			all = append(all, k.listed())
		}
		return nil, w, fmt.Errorf("%s: %q is ambiguous: it may be %s; add the types in parentheses, as in %q", d.path, name, strings.Join(all, " or "),
			shortSignature(fit[0]))
	}
	return fit[0], w, nil
}

// suits reports whether a kernel of the right name has the arguments and types that were written.
func (d *declaredKernels) suits(k *sourceKernel, w *written) bool {
	if k.compiled != nil { // of compiled code: one instance
		if w.args != nil && !slices.EqualFunc(w.args, k.compiled.args, sameArgument) {
			return false
		}
		return w.params == nil || slices.EqualFunc(w.params, k.compiled.params, sameArgument)
	}
	if w.args != nil && k.template == nil {
		return false
	}
	if w.params == nil {
		return true
	}
	if len(w.params) != len(k.raw) {
		return false
	}
	inner, err := k.bind(w.args)
	if err != nil {
		return k.template != nil
	}
	for i, given := range w.params {
		have := takeApart(substitute(k.raw[i], inner), d.types)
		want := takeApart(append(tokensOf(given), token{text: "x"}), d.types)
		if canonical(textOf(have.words)) != canonical(textOf(want.words)) || have.stars != want.stars || have.stars > 0 && have.constant != want.constant {
			return false
		}
	}
	return true
}

func tokensOf(text string) []token {
	in := tokens(text, 0)
	return in[:len(in)-1]
}

// unknown explains why a name stands for no kernel.
func (d *declaredKernels) unknown(name string, w *written) error {
	var near []string
	for i := range d.found {
		if k := &d.found[i]; named(k.name, w.base) {
			near = append(near, k.listed())
		}
	}
	if len(near) > 0 {
		return fmt.Errorf("%s: no kernel fits %q; there is %s", d.path, name, strings.Join(near, " and "))
	}
	return fmt.Errorf("%w %q", dag.ErrUnknownKernel, name)
}

// listed is a kernel in a list: its signature and its place.
func (k *sourceKernel) listed() string {
	switch {
	case k.compiled != nil:
		return k.compiled.signature()
	case k.file == "":
		return k.name
	}
	return fmt.Sprintf("%s (%s:%d)", k.signature(), k.file, k.line)
}

// shortSignature shows how an overload is chosen.
func shortSignature(k *sourceKernel) string {
	if k.compiled != nil {
		return k.symbol
	}
	s := k.signature()
	if k.template != nil {
		s = strings.Replace(s, k.templateText(), "<...>", 1)
	}
	return s
}

// bind says what the parameters of a template stand for.
func (k *sourceKernel) bind(args []string) (map[string][]token, error) {
	if k.template == nil {
		return nil, nil
	}
	means := map[string][]token{}
	for i, p := range k.template {
		switch {
		case p.pack:
			return means, nil
		case i < len(args):
			means[p.name] = tokensOf(args[i])
		case p.standard != nil:
			means[p.name] = substitute(p.standard, means)
		default:
			var names []string
			for _, p := range k.template[len(args):] {
				if p.standard == nil && !p.pack {
					names = append(names, p.kind+" "+p.name)
				}
			}
			return nil, fmt.Errorf("%s is a template and needs %s; write template: [...]", k.listed(), strings.Join(names, ", "))
		}
	}
	if len(args) > len(k.template) {
		return nil, fmt.Errorf("%s has %s, got %d", k.listed(), words.Count(int64(len(k.template)), "template parameter", "template parameters"), len(args))
	}
	return means, nil
}

// parameters are those of a kernel, for what its template's parameters stand for.
func (k *sourceKernel) parameters(means map[string][]token, aliases map[string][]token, structs structures) ([]dag.KernelParam, error) {
	var params []dag.KernelParam
	var problems []error
	for i, raw := range k.raw {
		p := takeApart(substitute(raw, means), aliases)
		if own := takeApart(raw, nil); own.name != "" {
			p.name = own.name
		}
		param, err := p.describe(i, structs)
		if err != nil {
			problems = append(problems, fmt.Errorf("kernel %q: %w", k.name, err))
		}
		params = append(params, param)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems[:1]...)
	}
	return params, nil
}

// expression is how C++ names a kernel: its name, and a cast where it is overloaded.
func (d *declaredKernels) expression(k *sourceKernel, args []string) string {
	name := k.name
	if k.template != nil {
		name += "<" + strings.Join(args, ", ") + ">"
	}
	overloads := 0
	for i := range d.found {
		if d.found[i].name == k.name {
			overloads++
		}
	}
	if overloads < 2 {
		return name
	}
	means, err := k.bind(args)
	if err != nil {
		return name
	}
	var types []string
	for _, raw := range k.raw {
		types = append(types, castType(substitute(raw, means)))
	}
	return "(void (*)(" + strings.Join(types, ", ") + "))" + name
}

// castType is a parameter's type without its name.
func castType(d []token) string {
	p := takeApart(d, nil)
	text := textOf(p.words)
	if p.constant {
		text = "const " + text
	}
	return text + strings.Repeat("*", p.stars)
}
