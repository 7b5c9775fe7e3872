// Completion: what can be written at a place of a file, and what stands at one.

package editor

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/lsp"
	"github.com/dagrun/dagrun/kernels"
	"github.com/dagrun/dagrun/kernels/calls"
	"github.com/dagrun/dagrun/kernels/library"
)

// cursor stands in a text for the word that is completed.
const cursor = "\x00"

// word returns the name or number around an offset. Two dots belong to a slice and not to a name.
func word(source []byte, at int) (from, to int) {
	part := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '$' || r == '.' || r == ':'
	}
	from, to = at, at
	for from > 0 {
		r, size := utf8.DecodeLastRune(source[:from])
		if !part(r) || r == '.' && from > 1 && source[from-2] == '.' || r == ':' && (from == at || source[from] != ':' && (from < 2 || source[from-2] != ':')) {
			break
		}
		from -= size
	}
	for to < len(source) {
		r, size := utf8.DecodeRune(source[to:])
		if !part(r) || r == ':' || r == '.' && (to+1 == len(source) || source[to+1] == '.') {
			break
		}
		to += size
	}
	if from < to && source[from] == '.' {
		from++
	}
	return from, max(from, to)
}

// find returns the place of the first key or scalar for which is holds.
func (n *node) find(s spot, is func(from, to int, text string) bool) (spot, bool) {
	if n == nil {
		return spot{}, false
	}
	if n.kind == scalar {
		return s, is(n.from, n.to, n.text)
	}
	s.above = append(slices.Clip(s.above), n)
	for _, e := range n.entries {
		if n.kind == mapping && is(e.from, e.to, e.key) {
			s.key = true
			return s, true
		}
		step := item
		if n.kind == mapping {
			step = e.key
		}
		below := spot{path: append(slices.Clip(s.path), step), above: s.above}
		if found, ok := e.value.find(below, is); ok {
			return found, true
		}
	}
	return spot{}, false
}

func (d *document) complete(p lsp.Position) (lsp.CompletionList, error) {
	list := lsp.CompletionList{Items: []lsp.CompletionItem{}}
	source := d.text.Source
	from, to := word(source, d.text.Offset(p))
	marked := slices.Concat(source[:from], []byte(cursor), source[to:])
	root := outline(marked)
	place, ok := root.find(spot{}, func(_, _ int, text string) bool { return strings.Contains(text, cursor) })
	if !ok {
		return list, nil
	}
	c := &completion{d: d, root: root, at: place, edit: d.text.Range(from, to), colon: bytes.HasPrefix(source[to:], []byte(":"))}
	if place.key {
		c.keys(place.above[len(place.above)-1])
	} else {
		c.values()
	}
	for k := range c.items {
		c.items[k].SortText = fmt.Sprintf("%04d", k)
	}
	list.Items = append(list.Items, c.items...)
	return list, nil
}

// completion collects what can be written at one place.
type completion struct {
	d     *document
	root  *node
	at    spot
	edit  lsp.Range
	colon bool // there is one behind the word
	items []lsp.CompletionItem
}

func (c *completion) add(i lsp.CompletionItem, text string) {
	i.TextEdit = &lsp.TextEdit{Range: c.edit, NewText: text}
	c.items = append(c.items, i)
}

// keys offers the keys that a mapping does not have yet. in is nil where there is no mapping yet.
func (c *completion) keys(in *node) {
	offer := func(key, about string) {
		if c.has(key) || in != nil && slices.ContainsFunc(in.entries, func(e entry) bool { return e.colon && e.key == key }) {
			return
		}
		text := key + ": "
		if c.colon {
			text = key
		}
		c.add(lsp.CompletionItem{Label: key, Kind: lsp.ItemProperty, Detail: about}, text)
	}
	if n := len(c.at.path); n > 0 && c.at.path[n-1] == "args" && len(c.at.above) > 1 {
		node := c.at.above[len(c.at.above)-2]
		for _, name := range append(parameterNames(c.d, node.get("kernel")), callParameters(node.get("call"))...) {
			offer(name, "parameter")
		}
	}
	for _, s := range schemasAt(c.at.path) {
		for _, p := range s.Properties {
			offer(p.key, describe(p.value.alternatives(nil)))
		}
	}
}

func (c *completion) has(label string) bool {
	return slices.ContainsFunc(c.items, func(i lsp.CompletionItem) bool { return i.Label == label })
}

// parameterNames are those of the kernel that a node names.
func parameterNames(d *document, kernel *node) []string {
	if kernel == nil {
		return nil
	}
	var from dag.Library = kernels.Library()
	name := kernel.text
	if module, rest, ok := strings.Cut(name, "."); ok && d.checked != nil && d.checked.modules[module] != nil {
		from, name = d.checked.modules[module], rest
	}
	named, ok := from.(dag.ParameterNames)
	if !ok {
		return nil
	}
	names, err := named.ParameterNames(name)
	if err != nil {
		return nil // a kernel that is still being typed
	}
	return names
}

// values offers what a value can be.
func (c *completion) values() {
	path := c.at.path
	if len(path) == 0 {
		return
	}
	last := path[len(path)-1]
	owner := last // the key that the value belongs to, through lists
	for k := len(path) - 1; k >= 0 && owner == item; k-- {
		owner = path[k]
	}
	schemas := schemasAt(path)
	for _, s := range schemas {
		if owner == "kernel" || owner == "call" {
			break // the schema has their names too; kernels and calls offer them with more
		}
		for _, value := range append(s.Enum, s.Const) {
			if text := fmt.Sprint(value); value != nil && !c.has(text) {
				c.add(lsp.CompletionItem{Label: text, Kind: lsp.ItemEnumMember, Detail: describe(schemas)}, text)
			}
		}
		if s.Type == "boolean" && !c.has("true") {
			c.add(lsp.CompletionItem{Label: "true", Kind: lsp.ItemEnumMember}, "true")
			c.add(lsp.CompletionItem{Label: "false", Kind: lsp.ItemEnumMember}, "false")
		}
	}
	switch {
	case owner == "kernel":
		c.kernels()
	case owner == "call":
		c.calls()
	case owner == "after":
		c.declared("node", lsp.ItemEvent)
	case slices.Contains(path, "args"), slices.Contains(path, "with"), slices.Contains(path, "memset") && last == "to":
		c.declared("buffer", lsp.ItemVariable)
		c.numbers()
	case slices.Contains(path, "memcpy"):
		c.declared("buffer", lsp.ItemVariable)
	case namesBuffer(path):
		c.declared("buffer", lsp.ItemVariable)
		c.numbers()
	case slices.ContainsFunc(schemas, func(s *schema) bool { return s.Enum != nil }),
		slices.Contains([]string{"name", "file", "save", "source", "include", "options", "version", "kernel"}, owner):
	case last == item && (owner == "nodes" || owner == "buffers"):
	default:
		c.numbers()
	}
	if len(c.items) == 0 || last == item {
		c.keys(nil)
	}
}

// namesBuffer reports whether a value is a buffer of a node that communicates, or a condition, which may name elements of buffers.
func namesBuffer(path []string) bool {
	last := path[len(path)-1]
	if len(path) > 1 && slices.Contains(collectives, path[len(path)-2]) {
		return slices.Contains([]string{"inout", "from", "to"}, last)
	}
	return slices.Contains([]string{"send", "recv", "until", "while", "if"}, last)
}

// callParameters are those of the call that a node names.
func callParameters(call *node) []string {
	var names []string
	for _, d := range calls.Docs() {
		if call != nil && d.Name == call.text {
			for _, p := range d.Params {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

func (c *completion) calls() {
	for _, d := range calls.Docs() {
		c.add(lsp.CompletionItem{Label: d.Name, Kind: lsp.ItemFunction, Detail: d.Signature(),
			Documentation: &lsp.Markup{Kind: "markdown", Value: callText(d)}}, d.Name)
	}
}

func (c *completion) kernels() {
	for _, k := range library.Docs() {
		for _, name := range []string{k.Name, k.Alias} {
			if name != "" {
				c.add(lsp.CompletionItem{Label: name, Kind: lsp.ItemFunction, Detail: k.Signature(),
					Documentation: &lsp.Markup{Kind: "markdown", Value: kernelText(k)}}, name)
			}
		}
	}
	if c.d.checked == nil {
		return
	}
	for _, module := range sortedKeys(c.d.checked.modules) {
		for _, name := range c.d.checked.modules[module].Names() {
			full := module + "." + name
			c.add(lsp.CompletionItem{Label: full, Kind: lsp.ItemFunction, Detail: full + "(" + strings.Join(parameterNames(c.d, &node{text: full}), ", ") + ")"}, full)
		}
	}
}

// declared offers the names of one kind.
func (c *completion) declared(what string, kind int) {
	for _, s := range declarations(c.root) {
		if s.what == what && !c.has(s.name) && !strings.Contains(s.name, cursor) {
			c.add(lsp.CompletionItem{Label: s.name, Kind: kind, Detail: s.detail}, s.name)
		}
	}
}

// numbers offers params, and the variables of the loops around the place.
func (c *completion) numbers() {
	for _, n := range c.at.above {
		if loop := n.get("foreach"); loop != nil && loop.kind == mapping {
			for _, e := range loop.entries {
				if e.colon && !c.has(e.key) {
					c.add(lsp.CompletionItem{Label: e.key, Kind: lsp.ItemVariable, Detail: "variable of foreach"}, e.key)
				}
			}
		}
	}
	c.declared("param", lsp.ItemConstant)
}

// kernelText explains a kernel of the library.
func kernelText(k library.Doc) string {
	var b strings.Builder
	fmt.Fprintf(&b, "```\n%s\n```\n\n%s\n", k.Signature(), k.Text)
	if types := k.Types(); len(types) > 0 {
		fmt.Fprintf(&b, "\nElement types: %s\n", strings.Join(types, ", "))
	}
	return b.String()
}

// callText explains a function of NVIDIA's libraries.
func callText(d calls.Doc) string {
	return fmt.Sprintf("```\n%s\n```\n\n%s. %s\n\nElement types: %s\n", d.Signature(), d.Text, d.Notes, strings.Join(d.Types, ", "))
}
