// What a file declares and where: the outline of a document, hovers, and the way from a use to its declaration.

package editor

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/internal/lsp"
)

// spot is a place in a file.
type spot struct {
	path  []string // keys, and item for items of lists
	above []*node  // the collections around it, the outermost first
	key   bool     // it is a key of the innermost one
}

// declaration is a param, module, buffer or node of a file.
type declaration struct {
	what, name string
	detail     string
	selection  [2]int // the name
	all        [2]int
}

// collectives are the actions of nodes in which all ranks take part, and actions all of them.
var (
	collectives = []string{"allreduce", "reduce", "broadcast", "allgather", "reducescatter", "alltoall"}
	actions     = append([]string{"memcpy", "memset", "kernel", "map", "call", "host", "exchange", "send", "recv", "repeat", "if", "use"}, collectives...)
)

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
				found = append(found, declaration{"buffer", e.key, strings.TrimSpace(text(e.value.get("place")) + " " + text(e.value.get("dtype"))), [2]int{e.from, e.to},
					[2]int{e.from, endOfEntry(e)}})
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
				for _, action := range actions {
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

// declarationOf returns the declaration that a word at a place means, or nil.
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
