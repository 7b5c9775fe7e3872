// The modules of a pipeline: where users' kernels come from, and how they are compiled.

package file

import (
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

var moduleKeys = keySet{"a module", []string{"source", "include", "define", "options", "compiler"}}

// readModules opens the user's own kernels.
func (p *parser) readModules(f field) {
	p.modules = map[string]int32{}
	if f.value == nil || isNull(f.value) {
		return
	}
	if f.value.Kind != yaml.MappingNode {
		p.wrongKind(f.value, "modules", "a mapping of names to {source: FILE}")
		return
	}
	first := map[string]*yaml.Node{}
	content := f.value.Content
	for k := 0; k+1 < len(content); k += 2 {
		key, value := content[k], content[k+1]
		if !p.isKey(key) || !p.usableName(key, key.Value, "module") {
			continue
		}
		if earlier, ok := first[key.Value]; ok {
			p.duplicateKey(key, earlier)
			continue
		}
		first[key.Value] = key
		p.modules[key.Value] = broken
		if m, ok := p.module(key, value); ok {
			p.modules[key.Value] = int32(len(p.pipeline.Modules))
			p.pipeline.Modules = append(p.pipeline.Modules, m)
		}
	}
}

func (p *parser) module(key, value *yaml.Node) (dag.Module, bool) {
	if value.Kind == yaml.ScalarNode && !isNull(value) {
		p.mistake(position(value), fmt.Sprintf("write %s: {source: %s}", words.Shorten(key.Value), words.Shorten(value.Value)),
			"a module must be a mapping, not %s", kindText(value))
		return dag.Module{}, false
	}
	var f [5]field
	if !p.fields(value, &moduleKeys, f[:]) {
		return dag.Module{}, false
	}
	if f[0].value == nil && p.unknownKeys {
		return dag.Module{}, false
	}
	if f[0].value == nil {
		p.mistake(position(value), "write {source: FILE}", "module %q has no source", key.Value)
		return dag.Module{}, false
	}
	path, ok := p.expanded(f[0].value, "source")
	if !ok {
		return dag.Module{}, false
	}
	m := dag.Module{Name: p.moduleName(key.Value), Path: p.fromRoot(path), Pos: position(key)}
	if !hasSuffix(path, ".cu", ".cuh", ".h", ".hpp", ".cpp", ".ptx", ".cubin", ".fatbin") {
		p.mistake(position(f[0].value), "", "source must be a .cu, .cuh, .h, .hpp, .cpp, .ptx, .cubin or .fatbin file, not %q", words.Shorten(path))
		return dag.Module{}, false
	}
	if !p.build(&m, f[1:]) {
		return dag.Module{}, false
	}
	if p.options.OpenModule == nil {
		p.mistake(position(f[0].value), "", "module %q cannot be opened: modules are not available here", key.Value)
		return dag.Module{}, false
	}
	library, err := p.openModule(m)
	if err != nil {
		p.mistake(position(f[0].value), "", "module %q: %s", key.Value, err)
		return dag.Module{}, false
	}
	if library == nil {
		p.mistake(position(f[0].value), "", "module %q: opening it gave no kernels", key.Value)
		return dag.Module{}, false
	}
	m.Library = library
	return m, true
}

// build reads how a module is compiled: include, define, options and compiler.
func (p *parser) build(m *dag.Module, f []field) bool {
	ok := true
	m.Include = p.texts(f[0].value, "include", &ok)
	for k := range m.Include {
		m.Include[k] = p.fromRoot(m.Include[k])
	}
	if n := f[1].value; n != nil && !isNull(n) {
		if n.Kind != yaml.MappingNode {
			p.wrongKind(n, "define", "a mapping of names to values")
			return false
		}
		for k := 0; k+1 < len(n.Content); k += 2 {
			key, value := n.Content[k], n.Content[k+1]
			if !p.isKey(key) {
				ok = false
				continue
			}
			text, fine := "", true
			if !isNull(value) {
				text, fine = p.verbatim(value, "a definition")
			}
			m.Define, ok = append(m.Define, dag.Definition{Name: key.Value, Value: text}), ok && fine
		}
	}
	m.Options = p.texts(f[2].value, "options", &ok)
	if n := f[3].value; n != nil {
		m.Compiler = p.word(n, "compiler", "auto", "nvrtc", "nvcc", "clang")
		ok = ok && m.Compiler != ""
	}
	return ok
}

// texts reads a list of texts, with variables replaced.
func (p *parser) texts(n *yaml.Node, what string, ok *bool) []string {
	if n == nil || isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.wrongList(n, what, "a list")
		*ok = false
		return nil
	}
	var list []string
	for _, item := range n.Content {
		text, fine := p.expanded(item, what)
		list, *ok = append(list, text), *ok && fine
	}
	return list
}

// verbatim reads a piece of C++: the value of a param or variable of that name, or else the text with its variables replaced.
func (p *parser) verbatim(n *yaml.Node, what string) (string, bool) {
	text, ok := p.expanded(n, what)
	if !ok {
		return "", false
	}
	p.usesUnknown = false
	if v, known := p.Variable(text); known {
		return v.Plain(), !p.usesUnknown
	}
	return text, true
}

func hasSuffix(path string, suffixes ...string) bool {
	for _, s := range suffixes {
		if len(path) > len(s) && strings.EqualFold(path[len(path)-len(s):], s) {
			return true
		}
	}
	return false
}
