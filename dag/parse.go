// Reading a pipeline file: options, the order of its parts, and the keys of mappings. Each part has a file of its own.

package dag

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// Parse reads a pipeline file and derives its graph. The error is a *ParseError with every mistake of the file, in file order; the
// graph is then nil. What is legal but probably not meant is in Graph.Warnings.
func Parse(source []byte, options Options) (*Graph, error) {
	return newParser(options).read(source)
}

func newParser(options Options) *parser {
	shared := &uses{files: map[string]*usedFile{}, libraries: map[string]Library{}, names: map[string]bool{}}
	return &parser{options: options, uses: shared, saves: map[string]savePlace{}, cache: map[string]*parsedText{}, mistakes: findings{most: MaxDiagnostics}, warnings: findings{most: MaxWarnings}}
}

func (p *parser) read(source []byte) (*Graph, error) {
	graph := p.parse(source)
	if err := p.err(); err != nil {
		return nil, err
	}
	graph.warnings = p.merged(&p.warnings, func(f *usedFile) *findings { return &f.warnings })
	return graph, nil
}

// err returns the mistakes found so far as an error, or nil.
func (p *parser) err() error {
	if !p.failed() {
		return nil
	}
	return &ParseError{p.merged(&p.mistakes, func(f *usedFile) *findings { return &f.mistakes })}
}

// parser is one reading of one file.
type parser struct {
	options  Options
	text     *text
	pipeline *Pipeline
	mistakes findings
	warnings findings

	uses   *uses
	within *within // the use that this file is read for; nil: it is the outermost file
	path   string  // of a used file, from the folder of the outermost one

	params  map[string]*binding
	names   []string  // of params, as declared
	loops   []binding // the innermost last
	buffers map[string]BufferID
	modules map[string]int32
	nodes   map[string]NodeID
	saves   map[string]savePlace // by file

	useNames    map[string]Pos
	brokenUses  []string // prefixes of names
	leftOutUses []string

	launched []launched          // kernels of modules
	leftOut  map[string]struct{} // nodes whose when: is false
	pending  []pendingAfter
	patterns afterPatterns
	levels   levels
	budget   int64 // repetitions that are still allowed
	cache    map[string]*parsedText
	// usesUnknown is set when an expression uses a value that is unknown because of a mistake that has been reported. What follows
	// from that value is not reported again.
	usesUnknown bool
	// unknownKeys is set if the mapping that was read last has unknown keys. Missing keys may then be misspelt ones.
	unknownKeys bool
	suggested   int             // number of calls of near
	inParams    bool            // the number being read is a param
	aliases     map[string]bool // those already reported
	counting    bool            // repetitions are only being counted; mistakes are reported when they are read again
	idle        bool            // in a foreach that repeats nothing: see idleBody
	idled       map[*yaml.Node]struct{}
	shared      bool          // the tree is read for other ranks too
	memory      *parserMemory // of the rank that was read before; nil: there is none
	passed      bool          // values were skipped because what they belong to does not exist with these params
}

// broken is the id of a buffer, node or module with a mistake. Nothing but its name is known.
const broken = -1

var fileKeys = keySet{"a pipeline file", []string{"version", "name", "params", "modules", "buffers", "nodes", "sync", "devices"}}

func (p *parser) parse(source []byte) *Graph {
	root := p.root(source)
	if root == nil || !p.declare(root) {
		return nil
	}
	return p.derive()
}

// declare reads the parts of a file into the pipeline, and reports whether there is no mistake.
func (p *parser) declare(root *yaml.Node) bool {
	p.uses.outermost = outermostPath(&p.options)
	p.pipeline = &Pipeline{Dir: p.options.Dir, Rank: int32(p.options.Rank), Ranks: int32(p.options.Ranks), MaxEdges: p.options.MaxEdges, accessStart: []int32{0}}
	if p.memory != nil {
		p.memory.lend(p.pipeline)
	}
	p.budget = MaxNodes
	if !p.version(root) {
		return false
	}
	var f [8]field
	if !p.fields(root, &fileKeys, f[:]) {
		return false
	}
	unknownKeys := p.unknownKeys
	p.name(f[1])
	p.readParams(f[2])
	p.devices(f[7])
	p.readModules(f[3])
	p.readBuffers(f[4])
	p.sync(f[6])
	if f[5].value == nil && !unknownKeys {
		p.mistake(position(root), "", "nodes are missing")
	} else if f[5].value != nil {
		p.readNodes(f[5])
	}
	p.bindFiles()
	p.readAfter()
	p.checkStreams()
	p.finishBodies()
	p.confirm()
	if p.failed() {
		return false
	}
	p.pipeline.chain()
	return true
}

// derive derives the dependencies of a pipeline without mistakes.
func (p *parser) derive() *Graph {
	graph, err := newGraph(p.pipeline)
	if err != nil {
		var cycle *CycleError
		pos := Pos{}
		if errors.As(err, &cycle) {
			pos = cycle.Pos
		}
		hint := ""
		var limit *EdgeLimitError
		if errors.As(err, &limit) {
			pos, hint = limit.Pos, limit.hint
			err = errors.New(limit.problem)
		}
		p.mistake(pos, hint, "%s", err)
		return nil
	}
	p.warn(graph)
	return graph
}

// version reads what a file says of its format. What a newer one means cannot be known: then nothing else of it is judged.
func (p *parser) version(root *yaml.Node) bool {
	written := lookup(root, "version")
	if root.Kind != yaml.MappingNode {
		return true
	}
	if written == nil && misspeltVersion(root) {
		return true
	}
	if written == nil {
		p.mistake(position(root), `write "version: 1" as the first line`, "version is missing")
		return true
	}
	n, ok := p.integer(written, "version")
	switch {
	case !ok:
		return true
	case n > FormatVersion:
		p.mistake(position(written), "", "version %d is newer than this dagrun, which reads version %d", n, FormatVersion)
		return false
	case n < FormatVersion:
		p.mistake(position(written), "write 1", "there is no version %d", n)
	}
	return true
}

// misspeltVersion reports whether a key is a misspelt version, which is then reported as an unknown key.
func misspeltVersion(root *yaml.Node) bool {
	for k := 0; k < len(root.Content); k += 2 {
		if words.Suggest(root.Content[k].Value, fileKeys.keys) == "version" {
			return true
		}
	}
	return false
}

func (p *parser) name(f field) {
	if f.value == nil {
		base := filepath.Base(p.options.Name)
		p.pipeline.Name = strings.TrimSuffix(base, filepath.Ext(base))
		if p.pipeline.Name == "" || p.pipeline.Name == "." || strings.ContainsAny(base[:1], "-<") {
			p.pipeline.Name = "pipeline"
		}
		return
	}
	name, ok := p.string(f.value, "name")
	if !ok {
		return
	}
	if err := checkName(name); err != nil {
		p.mistake(position(f.value), "", "%s", err)
		return
	}
	p.pipeline.Name = name
}

func (p *parser) sync(f field) {
	if f.value == nil {
		return
	}
	switch word := p.word(f.value, "sync", "auto", "explicit"); word {
	case "explicit":
		p.pipeline.Sync = SyncExplicit
	}
}

// mistake reports an error at a place, unless one is known there.
func (p *parser) mistake(pos Pos, hint, format string, args ...any) {
	if !p.counting && p.mistakes.wants(pos) {
		p.mistakes.add(p.diagnostic(pos, SeverityError, hint, format, args...))
	}
}

func (p *parser) warning(pos Pos, hint, format string, args ...any) {
	if p.warnings.wants(pos) {
		p.warnings.add(p.diagnostic(pos, SeverityWarning, hint, format, args...))
	}
}

func (p *parser) problem(bad *problem) { p.mistake(bad.pos, bad.hint, "%s", bad.message) }

func (p *parser) diagnostic(pos Pos, severity Severity, hint, format string, args ...any) Diagnostic {
	return Diagnostic{File: p.options.Name, Pos: pos, Severity: severity, Message: fmt.Sprintf(format, args...) + p.usedBy(), Hint: hint, UsedAt: p.outermostUse()}
}

// admissible refuses what YAML has and the format does not: anchors, aliases, tags and deep nesting. An alias is a mistake by
// itself; the rest of the file is still read.
func (p *parser) admissible(n *yaml.Node, depth int) bool {
	if depth > maxNesting {
		p.mistake(position(n), "", "lists and mappings are nested deeper than %d levels", maxNesting)
		return false
	}
	switch {
	case n.Kind == yaml.AliasNode && p.aliases[n.Value]:
	case n.Kind == yaml.AliasNode:
		if p.aliases == nil {
			p.aliases = map[string]bool{}
		}
		p.aliases[n.Value] = true // report each only once
		p.mistake(position(n), "write the value out, or use params and foreach", "aliases (*%s) are not allowed", n.Value)
	case n.Anchor != "":
		p.mistake(position(n), "write the value out, or use params and foreach", "anchors (&%s) are not allowed", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		p.mistake(position(n), "write the plain value", "tags (%s) are not allowed", n.Tag)
	}
	if n.Kind == yaml.ScalarNode {
		return true
	}
	for _, c := range n.Content {
		if !p.admissible(c, depth+1) {
			return false
		}
	}
	return true
}

// keySet is the keys that a mapping may have.
type keySet struct {
	what string // the mapping, for messages: "a buffer"
	keys []string
}

// field is one key of a mapping as found; value is nil where it is left out.
type field struct{ key, value *yaml.Node }

// fields sorts the entries of a mapping by their keys into out, one place for each key of the set. It reports unknown and
// duplicate keys and goes on; it returns false where n is no mapping.
func (p *parser) fields(n *yaml.Node, set *keySet, out []field) bool {
	if n.Kind != yaml.MappingNode {
		p.wrongKind(n, set.what, "a mapping")
		return false
	}
	p.unknownKeys = false
	misspelt := false
	for k := 0; k+1 < len(n.Content); k += 2 {
		key, value := n.Content[k], n.Content[k+1]
		if !p.isKey(key) {
			p.unknownKeys = true
			continue
		}
		at := set.find(key.Value)
		if name, rest, ok := gluedKey(key, value); ok && at < 0 {
			if at = set.find(name); at >= 0 {
				p.reportGlued(key, name, rest.Value)
				value = rest
			}
		}
		switch {
		case at < 0:
			misspelt = true
			p.unknownKey(key, set)
		case out[at].key != nil:
			p.duplicateKey(key, out[at].key)
		default:
			out[at] = field{key, value}
		}
	}
	if misspelt {
		p.takeMisspelt(n, set, out)
	}
	return true
}

func (s *keySet) find(key string) int {
	for i := range s.keys {
		if s.keys[i] == key {
			return i
		}
	}
	return -1
}

// takeMisspelt reads a misspelt key as the one that was probably meant, so that what follows from it is no mistake of its own.
func (p *parser) takeMisspelt(n *yaml.Node, set *keySet, out []field) {
	const most = 32 // guess at no more keys than that
	tried := 0
	for k := 0; k+1 < len(n.Content); k += 2 {
		key := n.Content[k]
		if key.Kind != yaml.ScalarNode || set.find(key.Value) >= 0 {
			continue
		}
		if name, _, ok := gluedKey(key, n.Content[k+1]); ok && set.find(name) >= 0 {
			continue
		}
		if tried++; tried > most {
			p.unknownKeys = true
			return
		}
		if _, _, ok := gluedMapping(key.Value, set); ok {
			p.unknownKeys = true
			continue
		}
		meant := foreignKeys[key.Value]
		if set.find(meant) < 0 && !(set == &nodeKeys && hostCall[key.Value]) {
			meant = words.Suggest(key.Value, set.keys)
		}
		if at := set.find(meant); at >= 0 && out[at].key == nil {
			out[at] = field{key, n.Content[k+1]}
		} else {
			p.unknownKeys = true
		}
	}
}

// hasStrangeKey reports whether a node has a key that was reported as unknown and not read as another one.
func (p *parser) hasStrangeKey(item *yaml.Node) bool {
	for k := 0; k+1 < len(item.Content); k += 2 {
		key := item.Content[k].Value
		if _, _, glued := gluedMapping(key, &nodeKeys); glued {
			return true
		}
		if nodeKeys.find(key) < 0 && (hostCall[key] || nodeKeys.find(foreignKeys[key]) < 0 && words.Suggest(key, nodeKeys.keys) == "") {
			return true
		}
	}
	return false
}

// gluedKey splits a key that holds its value too, because a colon or the space behind it is missing: "place host" or "place:host".
func gluedKey(key, value *yaml.Node) (name string, rest *yaml.Node, ok bool) {
	if !isNull(value) || key.Kind != yaml.ScalarNode || key.Style != 0 {
		return "", nil, false
	}
	end := strings.IndexAny(key.Value, ": ")
	if end < 1 || !plainKey.MatchString(key.Value[:end]) {
		return "", nil, false
	}
	text := strings.TrimLeft(key.Value[end+1:], " ")
	column := key.Column + utf8.RuneCountInString(key.Value) - utf8.RuneCountInString(text)
	return key.Value[:end], &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: key.Line, Column: column}, text != ""
}

// reportGlued reports a key that gluedKey has split.
func (p *parser) reportGlued(key *yaml.Node, name, rest string) {
	what := "a colon is missing after %q"
	if key.Value[len(name)] == ':' {
		what = "a space is missing after the colon of %q"
	}
	p.mistake(position(key), fmt.Sprintf("write %s: %s", name, shorten(rest)), what, name)
}

// isEntry reports keys that cannot be one, and those that hold their value too, of a mapping whose keys are names of the user's.
func (p *parser) isEntry(key, value *yaml.Node) bool {
	if name, rest, ok := gluedKey(key, value); ok {
		p.reportGlued(key, name, rest.Value)
		return false
	}
	return p.isKey(key)
}

// isKey reports keys that cannot be one.
func (p *parser) isKey(key *yaml.Node) bool {
	switch {
	case key.Kind == yaml.AliasNode:
	case key.Kind != yaml.ScalarNode:
		p.mistake(position(key), "", "a key must be a name, not %s", kindText(key))
	case key.Tag == "!!merge":
		p.mistake(position(key), "write the keys out", "merge keys (<<) are not allowed")
	case isNull(key):
		p.mistake(position(key), "", "a key must be a name, not empty")
	default:
		return true
	}
	return false
}

// foreignKeys are the words of other tools for keys of pipeline files. A misspelt key is not among them.
var foreignKeys = map[string]string{"copy": "memcpy", "memory_copy": "memcpy", "fill": "memset", "launch": "kernel", "arguments": "args", "params": "args", "inputs": "args",
	"type": "dtype", "data_type": "dtype", "size": "shape", "dims": "shape", "dimensions": "shape", "location": "place", "where": "place", "src": "from", "source": "from", "dst": "to", "dest": "to",
	"destination": "to", "deps": "after", "depends": "after", "depends_on": "after", "needs": "after", "requires": "after", "condition": "when", "for": "foreach", "loop": "foreach",
	"threads": "block", "blocks": "grid", "smem": "shared", "initial": "init", "start": "from", "end": "to", "stop": "to", "until": "to", "parameters": "params",
	"vars": "params", "variables": "params", "tasks": "nodes", "steps": "nodes", "jobs": "nodes", "arrays": "buffers", "memory": "buffers", "id": "name", "label": "name"}

// hostCall are the words for calls of host functions, which pipelines do not have.
var hostCall = map[string]bool{"host": true, "hostfn": true, "host_func": true, "hostfunc": true, "callback": true, "function": true, "call": true}

func (p *parser) unknownKey(key *yaml.Node, set *keySet) {
	if !p.mistakes.wants(position(key)) {
		return
	}
	if name, begin, ok := gluedMapping(key.Value, set); ok {
		p.reportGlued(key, name, begin+": ...")
		return
	}
	hint := "it may have " + strings.Join(set.keys, ", ")
	if foreign := foreignKeys[key.Value]; set.find(foreign) >= 0 {
		hint = fmt.Sprintf("did you mean %q?", foreign)
	} else if set == &nodeKeys && hostCall[key.Value] {
		hint = "a node copies, fills, launches a kernel or computes a map; the host has no part in a pipeline"
	} else if near := words.Suggest(key.Value, set.keys); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	if line := p.text.line(int32(key.Line)); strings.HasPrefix(hint, "it may") && len(strings.TrimLeft(line, " -")) == len(line)-key.Column+1 {
		hint += "; or is it indented wrongly?"
	}
	p.mistake(position(key), hint, "unknown key %q in %s", shorten(key.Value), set.what)
}

// gluedMapping splits a key that holds the begin of its value too, because a colon or the space behind it is missing: foreach:{i: 4}.
func gluedMapping(key string, set *keySet) (name, begin string, ok bool) {
	at := strings.IndexAny(key, ":{[ ")
	if at < 1 || set.find(key[:at]) < 0 {
		return "", "", false
	}
	begin = strings.TrimLeft(strings.TrimPrefix(key[at:], ":"), " ")
	return key[:at], begin, begin != "" && (begin[0] == '{' || begin[0] == '[')
}

func (p *parser) duplicateKey(key, first *yaml.Node) {
	p.mistake(position(key), "", "key %q is given twice; the first is on line %d", shorten(key.Value), first.Line)
}

// wrongKind reports a value of another shape than wanted.
func (p *parser) wrongKind(n *yaml.Node, what, wanted string) {
	if n.Kind == yaml.AliasNode {
		return // reported already
	}
	if isNull(n) {
		p.mistake(position(n), "", "%s is empty; it must be %s", what, wanted)
		return
	}
	p.mistake(position(n), "", "%s must be %s, not %s", what, wanted, kindText(n))
}

// wrongList reports a value that stands where a list of such values is wanted.
func (p *parser) wrongList(n *yaml.Node, what, wanted string) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		p.wrongKind(n, what, wanted)
		return
	}
	p.mistake(position(n), fmt.Sprintf("write [%s]", shorten(n.Value)), "%s must be %s, not %s", what, wanted, kindText(n))
}

func kindText(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 && (n.Tag == "!!int" || n.Tag == "!!float") {
		return "the number " + shorten(n.Value)
	}
	return fmt.Sprintf("%q", shorten(n.Value))
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
