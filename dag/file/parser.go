// The parser of a pipeline file: what it knows while it reads, and how it reports mistakes at their places. The parse_ files read the parts.

package file

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// parser is one reading of one file.
type parser struct {
	options  Options
	text     *text
	pipeline *dag.Draft
	mistakes findings
	warnings findings

	uses    *uses
	within  *within // the use that this file is read for; nil: it is the outermost file
	path    string  // of a used file, from the folder of the outermost one
	outside bool    // the file is outside of the folder of the outermost one

	params  map[string]*binding
	names   []string  // of params, as declared
	loops   []binding // the innermost last
	buffers map[string]dag.BufferID
	modules map[string]int32
	nodes   map[string]dag.NodeID
	saves   map[string]savePlace // by file

	useNames    map[string]dag.Pos
	brokenUses  []string // prefixes of names
	leftOutUses []string

	launched []launched          // kernels of modules
	leftOut  map[string]struct{} // nodes whose when: is false
	pending  []pendingAfter
	patterns afterPatterns
	levels   levels
	ended    <-chan struct{} // closed when nobody waits for the result any more
	budget   int64           // repetitions that are still allowed
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

// stopped reports whether nobody waits for the result any more. What is then read is thrown away.
func (p *parser) stopped() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// broken is the id of a buffer, node or module with a mistake. Nothing but its name is known.
const broken = -1

func newParser(options Options) *parser {
	shared := &uses{files: map[string]*usedFile{}, libraries: map[string]dag.Library{}, names: map[string]bool{}}
	return &parser{options: options, uses: shared, saves: map[string]savePlace{}, cache: map[string]*parsedText{},
		mistakes: findings{most: MaxDiagnostics}, warnings: findings{most: MaxWarnings}}
}

// tree reads the text of a file, or reports why it has no tree and returns nil. The hint is for an empty file.
func (p *parser) tree(source []byte, hint string) *yaml.Node {
	t, bad := newText(source)
	p.text = t
	var root *yaml.Node
	if bad == nil {
		root, bad = t.document()
	}
	switch {
	case bad != nil:
		p.problem(bad)
		return nil
	case root == nil || isNull(root):
		p.mistake(dag.Pos{Line: 1, Column: 1}, hint, "file is empty")
		return nil
	}
	return root
}

// pipelineTree reads the text of a file that declares a pipeline, or part of one.
func (p *parser) pipelineTree(source []byte) *yaml.Node {
	if root := p.tree(source, `a pipeline begins with "version: 1"`); root != nil && p.admissible(root, 1) {
		return root
	}
	return nil
}

// mistake reports an error at a place, unless one is known there.
func (p *parser) mistake(pos dag.Pos, hint, format string, args ...any) {
	if !p.counting && p.mistakes.wants(pos) {
		p.mistakes.add(p.diagnostic(pos, dag.SeverityError, hint, format, args...))
	}
}

func (p *parser) warning(pos dag.Pos, hint, format string, args ...any) {
	if p.warnings.wants(pos) {
		p.warnings.add(p.diagnostic(pos, dag.SeverityWarning, hint, format, args...))
	}
}

func (p *parser) problem(bad *problem) { p.mistake(bad.pos, bad.hint, "%s", bad.message) }

func (p *parser) diagnostic(pos dag.Pos, severity dag.Severity, hint, format string, args ...any) dag.Diagnostic {
	if p.outside {
		return dag.Diagnostic{File: p.options.Name, Pos: pos, Severity: severity, Message: outsideText + p.usedBy(),
			Hint: "dagrun check " + p.options.Name + " shows it", UsedAt: p.outermostUse()}
	}
	return dag.Diagnostic{File: p.options.Name, Pos: pos, Severity: severity, Message: fmt.Sprintf(format, args...) + p.usedBy(), Hint: hint,
		UsedAt: p.outermostUse()}
}

// outsideText takes the place of what is wrong in a file outside of the pipeline's folder, because that might quote what was never meant to be shown.
const outsideText = "there is a mistake here, in a file outside of the pipeline's folder"

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
	p.mistake(position(n), fmt.Sprintf("write [%s]", words.Shorten(n.Value)), "%s must be %s, not %s", what, wanted, kindText(n))
}

func kindText(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 && (n.Tag == "!!int" || n.Tag == "!!float") {
		return "the number " + words.Shorten(n.Value)
	}
	return fmt.Sprintf("%q", words.Shorten(n.Value))
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

// uses is what all files of one pipeline share.
type uses struct {
	files     map[string]*usedFile // by path
	list      []*usedFile          // in the order of their first use
	count     int
	bytes     int64
	outermost string                 // the outermost file, "" if it has no path
	libraries map[string]dag.Library // of modules that were opened, by what was opened
	names     map[string]bool        // of modules
}

// usedFile is a file that was read. Its mistakes are collected over all its uses.
type usedFile struct {
	source   []byte
	outside  bool // of the pipeline's folder
	text     *text
	root     *yaml.Node // nil: it has mistakes that leave nothing to read
	cache    map[string]*parsedText
	mistakes findings
	warnings findings
}

// within is one use of a file: by whom, and what its names stand for.
type within struct {
	user        *parser
	at          *yaml.Node // the use
	name        string     // of the use
	prefix      string     // of names in the pipeline
	folder      string     // of the file, from the folder of the outermost one
	with        []boundName
	mistakes    int // that the user had before
	firstNode   int
	firstBuffer int
}

// boundName is an entry of with:, evaluated in the file that uses the other.
type boundName struct {
	name       string
	key, value *yaml.Node
	arg        dag.ArgumentSpec
	used       bool
}

// launched is a launch of a module's kernel, and where its parts are written.
type launched struct {
	launch *dag.Launch
	spec   *dag.LaunchSpec
	nodes  []*yaml.Node // of spec.Args
	kernel *yaml.Node
	where  string // the repetition
}

// parsedText is a text that was parsed before, as what it was parsed.
type parsedText struct {
	expr     *expr.Expr
	exprErr  error
	template *expr.Template
	slice    *expr.Slice
	sliceErr error
}

// binding is a param or a loop variable with its value.
type binding struct {
	name   string
	value  expr.Value
	broken bool
	pos    dag.Pos
}

// levels are the bodies that are being read or have been, with the state of the parser that belongs to a list of nodes.
type levels struct {
	open     []*level // around the list that is being read, the outermost first
	finished []*level
	names    map[string]struct{} // of the nodes of finished bodies
	nodes    int                 // in finished bodies
}

// level is the state of the parser that belongs to one list of nodes.
type level struct {
	pipeline dag.Draft // its nodes and accesses only
	nodes    map[string]dag.NodeID
	leftOut  map[string]struct{}
	pending  []pendingAfter
	patterns afterPatterns
}

// pendingAfter is an after: list that waits for all names to be known.
type pendingAfter struct {
	node  dag.NodeID
	list  *yaml.Node
	names []string
}

// savePlace is where a buffer's save is declared.
type savePlace struct {
	buffer string
	pos    dag.Pos
}

// afterPatterns finds the nodes that patterns stand for.
type afterPatterns struct {
	sorted []dag.NodeID            // nodes by name
	found  map[string][]dag.NodeID // by pattern: its nodes in declaration order
	edges  int64
}

// parserMemory is what one reading of a file leaves to the next by the same goroutine: parsed texts, which are the same on all ranks, and the
// memory of nodes that nobody looks at any more.
type parserMemory struct {
	cache map[string]*parsedText
	names map[string]dag.NodeID
	old   *dag.Draft // nil: there is none yet
}

// merged adds the findings of used files to those of the outermost one.
func (p *parser) merged(own *findings, ofFile func(*usedFile) *findings) dag.Diagnostics {
	all := own.diagnostics(p.text)
	for _, file := range p.uses.list {
		found := ofFile(file)
		if found.count() == 0 {
			continue
		}
		text := file.text
		if file.outside {
			text = nil
		}
		d := found.diagnostics(text)
		all.List, all.More = append(all.List, d.List...), all.More+d.More
	}
	if extra := len(all.List) - own.most; extra > 0 {
		all.List, all.More = all.List[:own.most], all.More+extra
	}
	return all
}

// failed reports whether any file has mistakes.
func (p *parser) failed() bool {
	return p.mistakes.count() > 0 || slices.ContainsFunc(p.uses.list, func(f *usedFile) bool { return f.mistakes.count() > 0 })
}

// usedBy says who uses the file that a message is about: " (used by net.yaml:12:5 as layer.0)".
func (p *parser) usedBy() string {
	if p.within == nil {
		return ""
	}
	var places []string
	for q := p; q.within != nil; q = q.within.user {
		at := position(q.within.at)
		places = append(places, fmt.Sprintf("by %s:%d:%d as %s", q.within.user.options.Name, at.Line, at.Column, words.Shorten(q.within.name)))
	}
	return " (used " + strings.Join(places, ", ") + ")"
}

// outermostUse is the place in the outermost file that a message in a used file leads back to.
func (p *parser) outermostUse() dag.Pos {
	pos := dag.Pos{}
	for q := p; q.within != nil; q = q.within.user {
		pos = position(q.within.at)
	}
	return pos
}

// outermostPath is the path of the outermost file, "" if its name is none: <stdin>.
func outermostPath(o *Options) string {
	if o.Name == "" || strings.HasPrefix(o.Name, "<") {
		return ""
	}
	return files.Full(o.Dir, filepath.Base(o.Name))
}

func (f *findings) count() int { return len(f.list) + f.more }

func newParserMemory() *parserMemory {
	return &parserMemory{cache: map[string]*parsedText{}, names: map[string]dag.NodeID{}}
}
