// What a file declares and where: the outline of a document, hovers, and the way from a use to its declaration.

package editor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/lsp"
	"github.com/dagrun/dagrun/kernels"
)

// declaration is a param, module, buffer or node of a file.
type declaration struct {
	what, name string
	detail     string
	selection  [2]int // the name
	all        [2]int
}

// declarations lists those of a file in its order, those in repetitions once, as they are written.
func declarations(root *node) []declaration {
	var found []declaration
	named := func(what string, n *node, detail func(*node) string) {
		if n == nil || n.kind != mapping {
			return
		}
		for _, e := range n.entries {
			if e.colon && e.key != "foreach" {
				found = append(found, declaration{what, e.key, detail(e.value), [2]int{e.from, e.to}, [2]int{e.from, endOfEntry(e)}})
			}
		}
	}
	text := func(n *node) string {
		if n == nil {
			return ""
		}
		return n.text
	}
	named("param", root.get("params"), text)
	named("module", root.get("modules"), func(n *node) string { return text(n.get("source")) })
	var buffers func(n *node)
	buffers = func(n *node) {
		if n == nil || n.kind != mapping {
			return
		}
		for _, e := range n.entries {
			if inner := e.value.get("buffers"); inner != nil {
				buffers(inner)
			} else if e.colon {
				found = append(found, declaration{"buffer", e.key, strings.TrimSpace(text(e.value.get("place")) + " " + text(e.value.get("dtype"))), [2]int{e.from, e.to}, [2]int{e.from, endOfEntry(e)}})
			}
		}
	}
	buffers(root.get("buffers"))
	var nodes func(n *node)
	nodes = func(n *node) {
		if n == nil || n.kind != list {
			return
		}
		for _, e := range n.entries {
			name := e.value.get("name")
			if name != nil && name.kind == scalar {
				detail := ""
				for _, action := range []string{"memcpy", "memset", "kernel", "map", "allreduce", "reduce", "broadcast", "allgather", "reducescatter", "alltoall", "exchange", "send", "recv", "repeat", "if"} {
					if value := e.value.get(action); value != nil {
						detail = strings.TrimSpace(action + " " + value.text)
					}
				}
				found = append(found, declaration{"node", name.text, detail, [2]int{name.from, name.to}, [2]int{min(e.value.from, name.from), max(e.value.to, name.to)}})
			}
			nodes(e.value.get("nodes"))
			nodes(e.value.get("else"))
		}
	}
	nodes(root.get("nodes"))
	return found
}

func endOfEntry(e entry) int {
	if e.value == nil {
		return e.to
	}
	return max(e.to, e.value.to)
}

var symbolKinds = map[string]int{"param": lsp.SymbolConstant, "module": lsp.SymbolModule, "buffer": lsp.SymbolVariable, "node": lsp.SymbolFunction}

// symbols answers textDocument/documentSymbol.
func (d *document) symbols() ([]lsp.Symbol, error) {
	list := []lsp.Symbol{}
	for _, s := range declarations(outline(d.text.Source)) {
		if s.name == "" { // the protocol forbids symbols without a name
			continue
		}
		list = append(list, lsp.Symbol{Name: s.name, Detail: s.detail, Kind: symbolKinds[s.what],
			Range: d.text.Range(s.all[0], s.all[1]), Selection: d.text.Range(s.selection[0], s.selection[1])})
	}
	return list, nil
}

// variables matches what a foreach fills in.
var variables = regexp.MustCompile(`\$\([^)]*\)|\$[\pL_][\pL\pN_]*`)

// find returns the declaration that a word at a place means, or nil.
func declarationOf(root *node, place spot, name string) *declaration {
	kinds := []string{"buffer", "param"}
	if slices.Contains(place.path, "after") || len(place.path) > 0 && place.path[len(place.path)-1] == "name" {
		kinds = []string{"node"}
	} else if n := len(place.path); n > 0 && place.path[n-1] == "kernel" {
		kinds = []string{"module"}
		name, _, _ = strings.Cut(name, ".")
	}
	pattern := variables.ReplaceAllString(name, "*")
	all := declarations(root)
	for _, what := range kinds {
		for k := range all {
			if s := &all[k]; s.what == what && (s.name == name || variables.ReplaceAllString(s.name, "*") == pattern) {
				return s
			}
		}
	}
	return nil
}

// standing returns the word at a position and where it stands.
func (d *document) standing(p lsp.Position) (root *node, place spot, from, to int, ok bool) {
	at := d.text.Offset(p)
	from, to = word(d.text.Source, at)
	root = outline(d.text.Source)
	if from == to {
		return root, place, from, to, false
	}
	place, ok = root.find(spot{}, func(start, end int, _ string) bool { return start <= from && to <= end })
	return root, place, from, to, ok
}

// definition answers textDocument/definition; null where there is none.
func (d *document) definition(p lsp.Position) (*lsp.Location, error) {
	root, place, from, to, ok := d.standing(p)
	if !ok || place.key {
		return nil, nil
	}
	s := declarationOf(root, place, string(d.text.Source[from:to]))
	if s == nil {
		return nil, nil
	}
	return &lsp.Location{URI: d.uri, Range: d.text.Range(s.selection[0], s.selection[1])}, nil
}

// hover answers textDocument/hover; null where there is nothing to say.
func (d *document) hover(p lsp.Position) (*lsp.Hover, error) {
	root, place, from, to, ok := d.standing(p)
	if !ok {
		return nil, nil
	}
	name := string(d.text.Source[from:to])
	value := ""
	if place.key {
		if about := describe(schemasAt(append(slices.Clip(place.path), name))); about != "" {
			value = fmt.Sprintf("`%s`: %s", name, about)
		}
	} else if n := len(place.path); n > 0 && place.path[n-1] == "kernel" {
		for _, k := range kernels.Docs() {
			if k.Name == name || k.Alias == name {
				value = kernelText(k)
			}
		}
	}
	if s := declarationOf(root, place, name); value == "" && !place.key && s != nil {
		value = fmt.Sprintf("%s `%s`: %s", s.what, s.name, s.detail)
		if d.checked != nil {
			for k := range d.checked.buffers {
				if b := &d.checked.buffers[k]; s.what == "buffer" && b.Name == s.name {
					value += fmt.Sprintf(", shape %v, %d bytes", b.Shape, b.Bytes)
				}
			}
		}
	}
	if value == "" {
		return nil, nil
	}
	return &lsp.Hover{Contents: lsp.Markup{Kind: "markdown", Value: value}, Range: d.text.Range(from, to)}, nil
}
