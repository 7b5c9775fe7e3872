// The canonical form of a pipeline file. It keeps comments, expressions and repetitions; only order, spacing and quotes change.

package file

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/dagrun/dagrun/dag"
)

// longestLine is how wide a node, a buffer or a foreach on one line may be; wider ones get a line for each key.
const longestLine = 120

// layout is the order of keys in a mapping, and the layouts of their values. A mapping without one keeps its order.
type layout struct {
	keys []string
	sub  map[string]*layout
}

var (
	collectiveLayout = &layout{keys: collectiveKeys[dag.Reduce].keys} // those of all collectives
	transferLayout   = &layout{keys: transferKeys.keys}
	rangeLayout      = &layout{keys: rangeKeys.keys}
	copyLayout       = &layout{keys: copyKeys.keys}
	setLayout        = &layout{keys: setKeys.keys}
	initLayout       = &layout{keys: initKeys.keys}
	expectLayout     = &layout{keys: []string{"file", "value", "sum", "expr", "norm", "rtol", "atol", "differing"}}
	bufferLayout     = &layout{
		keys: canonical(bufferRows[:]),
		sub:  map[string]*layout{"init": initLayout, "expect": expectLayout},
	}
	repeatLayout = &layout{keys: repeatKeys.keys}
	nodeLayout   = &layout{
		keys: canonical(nodeRows[:]),
		sub: map[string]*layout{"memcpy": copyLayout, "memset": setLayout, "repeat": repeatLayout, "allreduce": collectiveLayout,
			"reduce": collectiveLayout, "broadcast": collectiveLayout,
			"allgather": collectiveLayout, "reducescatter": collectiveLayout, "alltoall": collectiveLayout, "exchange": transferLayout},
	}
	fileOrder = []string{"version", "name", "sync", "devices", "params", "modules", "buffers", "nodes"}
)

// Format returns a pipeline file in canonical form: one form for all files that mean the same, in which comments keep their
// place. Format of a file in canonical form is that file. Only what makes the file unreadable as YAML, or as a mapping, is a
// mistake here, and the error is a *ParseError; Parse tells whether it is a valid pipeline.
func Format(source []byte, name string) ([]byte, error) {
	p := newParser(Options{Name: name})
	root := p.tree(source, "")
	switch {
	case root == nil: // reported
	case root.Kind != yaml.MappingNode:
		p.wrongKind(root, "a pipeline file", "a mapping")
	default:
		p.admissible(root, 1)
		p.scalarKeys(root)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	f := &formatter{text: p.text, lines: p.text.trivia(root)}
	out := f.file(root)
	if line := f.lost(out, root); line > 0 {
		p.mistake(dag.Pos{Line: line, Column: 1}, "report this file", "formatting would lose something near this line")
		return nil, p.err()
	}
	return out, nil
}

// scalarKeys refuses keys that are lists or mappings, or longer than any name is. (YAML's own limit of 1024 characters holds for
// the key as written, so quotes could make one too long.)
func (p *parser) scalarKeys(n *yaml.Node) {
	for k, c := range n.Content {
		switch {
		case n.Kind != yaml.MappingNode || k%2 == 1:
			p.scalarKeys(c)
		case c.Kind != yaml.ScalarNode:
			p.isKey(c)
		case len(c.Value) > dag.MaxName:
			p.mistake(position(c), "", "the name has %d bytes; at most %d are allowed", len(c.Value), dag.MaxName)
		}
	}
}

// formatter is one formatting of one file.
type formatter struct {
	*text
	lines []trivia // by line, from 0
	at    int      // the first line not looked at yet
	out   bytes.Buffer
}

// item is something that gets a line of its own, or several.
type item struct {
	key    string // with its colon; "": an item of a list
	node   *yaml.Node
	layout *layout
	head   []string // comments above, "" for an empty line
	eol    string
	items  []*item // in the order they are written; only of a block
	list   bool    // the items are those of a list
	block  bool
	foot   []string
	start  int32
}

func (f *formatter) file(root *yaml.Node) []byte {
	var items []*item
	starts := f.starts(root, len(f.lines)+1)
	for k := 0; k+1 < len(root.Content); k += 2 {
		items = append(items, f.section(root.Content[k], root.Content[k+1], starts[k/2]))
	}
	foot := f.take(len(f.lines), 0)
	var header []string
	if len(items) > 0 {
		header, items[0].head = items[0].head, nil
		if n := len(header); n > 0 && header[n-1] == "" {
			header, items[0].head = header[:n-1], []string{""}
		}
	}
	slices.SortStableFunc(items, func(a, b *item) int { return fileRank(a) - fileRank(b) })
	f.comments(header, "")
	for k, it := range items {
		apart := it.block && (it.key == "modules:" || it.key == "buffers:" || it.key == "nodes:")
		if apart && k > 0 && (len(it.head) == 0 || it.head[0] != "") {
			it.head = append([]string{""}, it.head...)
		}
		if k == 0 && len(header) == 0 {
			it.head = trimBlank(it.head)
		}
		f.write(it, "", "")
	}
	f.comments(foot, "")
	if len(items) == 0 {
		f.out.WriteString("{}\n")
	}
	return f.out.Bytes()
}

func fileRank(it *item) int {
	if k := slices.Index(fileOrder, strings.TrimSuffix(it.key, ":")); k >= 0 {
		return k
	}
	return len(fileOrder)
}

// starts returns, for each entry of a collection, the line of the next entry; of the last, limit.
func (f *formatter) starts(n *yaml.Node, limit int) []int {
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	var next []int
	for k := 0; k < len(n.Content); k += step {
		if k+step < len(n.Content) {
			next = append(next, n.Content[k+step].Line)
		} else {
			next = append(next, limit)
		}
	}
	return next
}

// section makes an entry of the file.
func (f *formatter) section(key, value *yaml.Node, limit int) *item {
	var sub *layout
	isList := false
	switch key.Value {
	case "params", "modules":
	case "buffers":
		sub = bufferLayout
	case "nodes":
		sub, isList = nodeLayout, true
	default:
		return f.leaf(key, value, nil, limit)
	}
	wanted := yaml.MappingNode
	if isList {
		wanted = yaml.SequenceNode
	}
	if value.Kind != wanted || len(value.Content) == 0 {
		return f.leaf(key, value, sub, limit)
	}
	return f.group(key, value, sub, limit)
}

// leaf makes an item without items of its own.
func (f *formatter) leaf(key, value *yaml.Node, l *layout, limit int) *item {
	it := &item{node: value, layout: l, start: int32(value.Line)}
	if key != nil {
		it.key, it.start = keyText(key)+":", int32(key.Line)
	}
	it.head = f.take(int(it.start)-1, 0)
	end := f.end(int(it.start), limit)
	var inside []string
	eols, last := 0, ""
	for ; f.at < end; f.at++ {
		if c := f.lines[f.at]; c.comment != "" {
			inside = append(inside, c.comment)
			if c.content {
				eols, last = eols+1, c.comment
			}
		}
	}
	if eols == 1 && len(inside) == 1 {
		it.eol = last
	} else {
		it.head = append(it.head, inside...)
	}
	return it
}

// end returns the last line of what starts on a line, where the next thing starts on line limit.
func (f *formatter) end(start, limit int) int {
	end := min(max(limit-1, start), len(f.lines))
	for end > start && !f.lines[end-1].content {
		end--
	}
	return end
}

// group makes a mapping or list in block form, whose entries are items.
func (f *formatter) group(key, value *yaml.Node, l *layout, limit int) *item {
	it := &item{key: keyText(key) + ":", block: true, list: value.Kind == yaml.SequenceNode, start: int32(key.Line)}
	it.head = f.take(key.Line-1, 0)
	first := value.Content[0].Line
	if f.at < key.Line && first > key.Line {
		it.eol = f.lines[key.Line-1].comment
		f.at = key.Line
	}
	next := f.starts(value, limit)
	if it.list {
		for k, c := range value.Content {
			it.items = append(it.items, f.entry(nil, c, l, next[k]))
		}
	} else {
		for k := 0; k+1 < len(value.Content); k += 2 {
			it.items = append(it.items, f.entry(value.Content[k], value.Content[k+1], l, next[k/2]))
		}
	}
	it.items[0].head = trimBlank(it.items[0].head)
	it.foot = f.take(limit-1, int32(key.Column))
	return it
}

// entry makes a buffer, a node, a param or a module; or a repetition with items of its own.
func (f *formatter) entry(key, value *yaml.Node, l *layout, limit int) *item {
	inner := "nodes"
	if l == bufferLayout {
		inner = "buffers"
	}
	group := lookup(value, inner)
	if l == nil || group == nil || len(group.Content) == 0 || (group.Kind == yaml.SequenceNode) != (inner == "nodes") || group.Kind == yaml.ScalarNode ||
		repeatsKey(value, inner) {
		return f.leaf(key, value, l, limit)
	}
	it := &item{block: true, start: int32(value.Line)}
	if key != nil {
		it.key, it.start = keyText(key)+":", int32(key.Line)
	}
	it.head = f.take(int(it.start)-1, 0)
	if key != nil && f.at < key.Line && value.Content[0].Line > key.Line {
		it.eol = f.lines[key.Line-1].comment
		f.at = key.Line
	}
	next := f.starts(value, limit)
	for k := 0; k+1 < len(value.Content); k += 2 {
		if name, list := value.Content[k].Value, value.Content[k+1]; name == inner || name == "else" && isBody(value, list, l) {
			it.items = append(it.items, f.group(value.Content[k], list, l, next[k/2]))
		} else {
			it.items = append(it.items, f.leaf(value.Content[k], value.Content[k+1], l.of(value.Content[k].Value, value.Content[k+1]), next[k/2]))
		}
	}
	slices.SortStableFunc(it.items, func(a, b *item) int {
		return l.rank(strings.TrimSuffix(a.key, ":")) - l.rank(strings.TrimSuffix(b.key, ":"))
	})
	// Comments and empty lines above the first key go above the whole item, because the dash has no line of its own.
	it.head = append(it.head, it.items[0].head...)
	it.items[0].head = nil
	for _, c := range it.items {
		c.head = slices.DeleteFunc(c.head, func(s string) bool { return s == "" })
	}
	return it
}

// isBody reports whether the else of a branch is a list to write as a group.
func isBody(owner, list *yaml.Node, l *layout) bool {
	return l == nodeLayout && list.Kind == yaml.SequenceNode && len(list.Content) > 0 && !repeatsKey(owner, "else")
}

func repeatsKey(n *yaml.Node, key string) bool {
	found := 0
	for k := 0; k+1 < len(n.Content); k += 2 {
		if n.Content[k].Value == key {
			found++
		}
	}
	return found > 1
}

func (l *layout) rank(key string) int {
	if l == nil {
		return 0
	}
	if k := slices.Index(l.keys, key); k >= 0 {
		return k
	}
	return len(l.keys)
}

// take collects the comments of the lines up to a line that was not looked at, with at most one empty line between any two. With
// a column it takes only those to the right of it, and stops at the first that is not.
func (f *formatter) take(line int, column int32) []string {
	var found []string
	pending, taken := false, f.at
	for at := f.at; at < min(line, len(f.lines)); at++ {
		c := f.lines[at]
		switch {
		case c.comment != "":
			if column > 0 && !c.content && c.column <= column {
				f.at = taken
				return found
			}
			if pending {
				found = append(found, "")
			}
			found, pending = append(found, c.comment), false
			taken = at + 1
		case !c.content:
			pending = true
		default:
			taken = at + 1
		}
	}
	if column > 0 {
		f.at = taken
		return found
	}
	f.at = max(f.at, line)
	if pending && line < len(f.lines) {
		found = append(found, "")
	}
	return found
}

func trimBlank(lines []string) []string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	return lines
}

func (f *formatter) comments(lines []string, indent string) {
	for _, c := range lines {
		if c != "" {
			f.out.WriteString(indent + c)
		}
		f.out.WriteByte('\n')
	}
}

// write emits an item. Dash is "- " in front of the first line of an item of a list.
func (f *formatter) write(it *item, indent, dash string) {
	f.comments(it.head, indent)
	begin := f.out.Len()
	f.out.WriteString(indent + dash + it.key)
	inner := indent + strings.Repeat(" ", len(dash))
	switch {
	case !it.block:
		f.writeLeaf(it, begin, inner)
		return
	case it.key != "":
		f.endLine(it.eol)
		dash = ""
		inner += "  "
	}
	for k, c := range it.items {
		switch {
		case k == 0 && dash != "":
			// The first key of a repetition goes on the line of the dash.
			f.out.Truncate(begin)
			f.comments(c.head, indent)
			c.head = nil
			f.writeBehind(c, indent, dash)
		case it.list:
			f.write(c, inner, "- ")
		default:
			f.write(c, inner, "")
		}
	}
	f.comments(it.foot, inner)
}

// writeBehind emits the first entry of a mapping that is an item of a list.
func (f *formatter) writeBehind(c *item, indent, dash string) {
	if !c.block {
		begin := f.out.Len()
		f.out.WriteString(indent + dash + c.key)
		f.writeLeaf(c, begin, indent+strings.Repeat(" ", len(dash)))
		return
	}
	f.out.WriteString(indent + dash + c.key)
	f.endLine(c.eol)
	inner := indent + strings.Repeat(" ", len(dash)) + "  "
	for _, inside := range c.items {
		if c.list {
			f.write(inside, inner, "- ")
		} else {
			f.write(inside, inner, "")
		}
	}
	f.comments(c.foot, inner)
}

// writeLeaf emits a value behind its key or dash: on one line, or, where that is too wide, with a line for each key.
func (f *formatter) writeLeaf(it *item, begin int, inner string) {
	n := it.node
	if it.key != "" && !(isNull(n) && n.Value == "") {
		f.out.WriteByte(' ')
	}
	start := f.out.Len()
	if !(isNull(n) && n.Value == "" && it.key != "") {
		f.flow(n, it.layout)
	}
	width := utf8.RuneCount(f.out.Bytes()[begin:])
	breaks := it.layout == nodeLayout || it.layout == bufferLayout || it.layout == foreachLayout
	if width <= longestLine || n.Kind != yaml.MappingNode || len(n.Content) == 0 || !breaks {
		f.endLine(it.eol)
		return
	}
	if it.key != "" {
		start-- // drop the space too
	}
	f.out.Truncate(start)
	if it.key != "" {
		f.endLine(it.eol)
		inner += "  "
	}
	for k, at := range it.layout.order(n) {
		if k > 0 || it.key != "" {
			f.out.WriteString(inner)
		}
		key := n.Content[at]
		f.out.WriteString(keyText(key) + ": ")
		f.flow(n.Content[at+1], it.layout.of(key.Value, n.Content[at+1]))
		if k == 0 && it.key == "" {
			f.endLine(it.eol)
		} else {
			f.endLine("")
		}
	}
}

func (f *formatter) endLine(comment string) {
	if comment != "" {
		f.out.WriteString("  " + comment)
	}
	f.out.WriteByte('\n')
}

// order returns the places of a mapping's keys in the order they are written.
func (l *layout) order(n *yaml.Node) []int {
	at := make([]int, 0, len(n.Content)/2)
	for k := 0; k+1 < len(n.Content); k += 2 {
		at = append(at, k)
	}
	if l != nil {
		slices.SortStableFunc(at, func(a, b int) int { return l.rank(n.Content[a].Value) - l.rank(n.Content[b].Value) })
	}
	return at
}

// flow emits a value on one line.
func (f *formatter) flow(n *yaml.Node, l *layout) {
	switch n.Kind {
	case yaml.MappingNode:
		f.out.WriteByte('{')
		for k, at := range l.order(n) {
			if k > 0 {
				f.out.WriteString(", ")
			}
			key, value := n.Content[at], n.Content[at+1]
			f.out.WriteString(keyText(key) + ": ")
			f.flow(value, l.of(key.Value, value))
		}
		f.out.WriteByte('}')
	case yaml.SequenceNode:
		f.out.WriteByte('[')
		for k, c := range n.Content {
			if k > 0 {
				f.out.WriteString(", ")
			}
			f.flow(c, l)
		}
		f.out.WriteByte(']')
	default:
		f.out.WriteString(scalarText(n))
	}
}

// of returns the layout of the value of a key.
func (l *layout) of(key string, value *yaml.Node) *layout {
	switch {
	case l == nil:
		return nil
	case key == "foreach" && (l == nodeLayout || l == bufferLayout):
		return foreachLayout
	case l == foreachLayout:
		return rangeLayout
	case key == "nodes" || key == "buffers" || key == "else" && l == nodeLayout:
		return l
	}
	return l.sub[key]
}

// foreachLayout keeps the order of the variables; each has a range.
var foreachLayout = &layout{}

// lost checks the result against the source: the same values, and all comments. It returns a line if not.
func (f *formatter) lost(out []byte, root *yaml.Node) int32 {
	t, bad := newText(out)
	if bad != nil {
		return 1
	}
	again, bad := t.document()
	if bad != nil || again == nil {
		return 1
	}
	if n := differs(root, again); n != nil {
		return int32(n.Line)
	}
	count := map[string]int{}
	for _, c := range t.trivia(again) {
		count[c.comment]++
	}
	for k, c := range f.lines {
		if count[c.comment]--; c.comment != "" && count[c.comment] < 0 {
			return int32(k + 1)
		}
	}
	return 0
}

// differs returns the first node of a that has no counterpart in b, whatever the order of keys.
func differs(a, b *yaml.Node) *yaml.Node {
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) || a.Kind == yaml.ScalarNode && (a.Value != b.Value || isNull(a) != isNull(b)) &&
		!(isNull(a) && isNull(b)) {
		return a
	}
	if a.Kind != yaml.MappingNode {
		for k := range a.Content {
			if n := differs(a.Content[k], b.Content[k]); n != nil {
				return n
			}
		}
		return nil
	}
	sorted := func(n *yaml.Node) []int {
		name := func(key *yaml.Node) string {
			if isNull(key) {
				return "" // however the null is written
			}
			return key.Value
		}
		at := (*layout)(nil).order(n)
		slices.SortStableFunc(at, func(x, y int) int { return strings.Compare(name(n.Content[x]), name(n.Content[y])) })
		return at
	}
	left, right := sorted(a), sorted(b)
	for k := range left {
		for offset := range 2 {
			if n := differs(a.Content[left[k]+offset], b.Content[right[k]+offset]); n != nil {
				return n
			}
		}
	}
	return nil
}
