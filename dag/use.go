// Files that a pipeline file uses: their nodes and buffers join the pipeline under a prefix. The caller reads the files, see Options.ReadFile.

package dag

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// How deep files may use files, and how often a pipeline may use any: a few lines could ask for billions.
const (
	maxUseDepth = 16
	maxUses     = 1 << 14
)

// uses is what all files of one pipeline share.
type uses struct {
	files     map[string]*usedFile // by path
	list      []*usedFile          // in the order of their first use
	count     int
	bytes     int64
	outermost string             // the outermost file, "" if it has no path
	libraries map[string]Library // of modules that were opened, by what was opened
	names     map[string]bool    // of modules
}

// usedFile is a file that was read. Its mistakes are collected over all its uses.
type usedFile struct {
	source   []byte
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
	arg        argSpec
	used       bool
}

// use reads an item of nodes that uses another file.
func (p *parser) use(item *yaml.Node, f *[nodeKeyCount]field) {
	if len(p.levels.open) > 0 {
		p.mistake(position(f[nodeUse].key), "write the nodes out", "a body cannot use another file")
		return
	}
	ok := true
	for k := range f {
		if f[k].value != nil && !slices.Contains([]int{nodeName, nodeUse, nodeWith, nodeWhen, nodeForeach}, k) {
			p.mistake(position(f[k].key), "write it on the nodes of that file", "a use takes no %s", f[k].key.Value)
			ok = false
		}
	}
	if f[nodeName].value == nil {
		p.mistake(position(item), "the names of its nodes and buffers begin with it", "use has no name")
		return
	}
	if p.idle {
		return
	}
	name, named := p.nodeName(item, f)
	if !named {
		return
	}
	if f[nodeWhen].value != nil {
		wanted, fine := p.condition(f[nodeWhen].value)
		if fine && !wanted {
			p.passed = true
			p.leftOutUses = append(p.leftOutUses, name+".")
			return
		}
		ok = ok && fine
	}
	ok = p.freshUse(f[nodeName].value, name) && ok
	file, path := p.usedFile(f[nodeUse].value)
	with, fine := p.boundNames(f[nodeWith].value)
	if !ok || file == nil || !fine || !p.readUse(item, f[nodeUse].value, name, path, file, with) {
		p.brokenUses = append(p.brokenUses, name+".")
	}
}

// freshUse takes the name of a use.
func (p *parser) freshUse(at *yaml.Node, name string) bool {
	first, taken := p.useNames[name]
	switch {
	case taken && first == position(at):
		p.mistake(first, "put a variable of the foreach in it, as in "+shorten(name)+".$i", "each repetition is named %q", shorten(name))
	case taken:
		p.mistake(position(at), "", "the name %q is given to two uses%s; the first is on line %d", shorten(name), p.repetition(), first.Line)
	default:
		if p.useNames == nil {
			p.useNames = map[string]Pos{}
		}
		p.useNames[name] = position(at)
	}
	return !taken
}

// usedFile returns the file that a use names, and its path from the folder of the outermost file. It is nil after a mistake.
func (p *parser) usedFile(n *yaml.Node) (*usedFile, string) {
	named, ok := p.expanded(n, "use")
	if !ok {
		return nil, ""
	}
	refuse := func(hint, format string, args ...any) (*usedFile, string) {
		p.mistake(position(n), hint, format, args...)
		return nil, ""
	}
	if named == "" {
		return refuse("", "the name of the file is empty")
	}
	path := filepath.Clean(p.fromRoot(named))
	if chain := p.useChain(path); chain != "" {
		return refuse("", "a file cannot use itself: %s", chain)
	}
	depth := 1
	for q := p; q.within != nil; q = q.within.user {
		depth++
	}
	if p.uses.count++; p.uses.count > maxUses {
		return refuse("", "files are used more than %d times, the limit of a pipeline", maxUses)
	}
	if depth > maxUseDepth {
		return refuse("", "files use files more than %d deep", maxUseDepth)
	}
	if file, ok := p.uses.files[path]; ok {
		if file == nil {
			return nil, "" // reported already
		}
		return file, path
	}
	p.uses.files[path] = nil
	if p.options.ReadFile == nil {
		return refuse("", "%q cannot be used: other files cannot be read here", shorten(named))
	}
	source, err := p.options.ReadFile(p.shownPath(path))
	if err != nil {
		return refuse("", "use: %s", err)
	}
	if p.uses.bytes += int64(len(source)); p.uses.bytes > MaxFile {
		return refuse("", "the files that are used have more than %s, the limit of a pipeline", words.Bytes(MaxFile))
	}
	file := &usedFile{source: source, cache: map[string]*parsedText{}, mistakes: findings{most: MaxDiagnostics}, warnings: findings{most: MaxWarnings}}
	p.uses.files[path] = file
	p.uses.list = append(p.uses.list, file)
	return file, path
}

// useChain says how a file would come to use itself, or "".
func (p *parser) useChain(path string) string {
	wanted := savedFile(p.options.Dir, path)
	chain := p.shownPath(path)
	for q := p; ; q = q.within.user {
		chain = q.options.Name + " -> " + chain
		if q.within == nil {
			if own := p.uses.outermost; own != "" && own == wanted {
				return chain
			}
			return ""
		}
		if savedFile(p.options.Dir, q.path) == wanted {
			return chain
		}
	}
}

// outermostPath is the path of the outermost file, "" if its name is none: <stdin>.
func outermostPath(o *Options) string {
	if o.Name == "" || strings.HasPrefix(o.Name, "<") {
		return ""
	}
	return savedFile(o.Dir, filepath.Base(o.Name))
}

// shownPath is a path for messages.
func (p *parser) shownPath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.options.Dir, path)
}

// fromRoot turns a path that this file names into one from the folder of the outermost file.
func (p *parser) fromRoot(path string) string {
	if p.within == nil || path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.within.folder, path)
}

// boundNames evaluates with:.
func (p *parser) boundNames(n *yaml.Node) ([]boundName, bool) {
	if n == nil || isNull(n) {
		return nil, true
	}
	if n.Kind != yaml.MappingNode {
		p.wrongKind(n, "with", "a mapping of the file's params and buffers")
		return nil, false
	}
	var bound []boundName
	ok := true
	first := map[string]*yaml.Node{}
	for k := 0; k+1 < len(n.Content); k += 2 {
		key, value := n.Content[k], n.Content[k+1]
		if !p.isEntry(key, value) {
			ok = false
			continue
		}
		name, fine := p.expanded(key, "a name")
		if earlier := first[name]; fine && earlier != nil {
			p.duplicateKey(key, earlier)
			fine = false
		}
		first[name] = key
		if value.Kind == yaml.MappingNode {
			p.wrongKind(value, "a bound name", "a number or a buffer")
			fine = false
		}
		if fine {
			var arg argSpec
			arg, fine = p.arg(value)
			bound = append(bound, boundName{name: name, key: key, value: value, arg: arg})
		}
		ok = ok && fine
	}
	return bound, ok
}

// readUse reads a file for one use. It reports whether the file has no mistake.
func (p *parser) readUse(item, at *yaml.Node, name, path string, file *usedFile, with []boundName) bool {
	pl := p.pipeline
	firstModule := len(pl.Modules)
	options := p.options
	options.Name, options.Params, options.Load, options.Save = p.shownPath(path), nil, nil, nil
	q := newParser(options)
	q.pipeline, q.uses, q.path, q.saves = pl, p.uses, path, p.saves
	q.within = &within{user: p, at: item, name: name, prefix: p.prefixed(name) + ".", folder: filepath.Dir(path), with: with, mistakes: p.mistakes.count(), firstNode: len(pl.Nodes), firstBuffer: len(pl.Buffers)}
	q.mistakes, q.warnings, q.cache, q.text = file.mistakes, file.warnings, file.cache, file.text
	q.budget, q.suggested = p.budget, p.suggested
	q.readUsed(file)
	file.mistakes, file.warnings = q.mistakes, q.warnings
	p.budget, p.suggested, p.passed = q.budget, q.suggested, p.passed || q.passed
	if int64(len(pl.Buffers)) > MaxNodes {
		p.mistake(position(at), "", "the pipeline has more than %d buffers, the limit", int64(MaxNodes))
	}
	// From here on, they are what the use has made.
	for i := q.within.firstNode; i < len(pl.Nodes); i++ {
		pl.Nodes[i].Pos = position(item)
	}
	for i := q.within.firstBuffer; i < len(pl.Buffers); i++ {
		pl.Buffers[i].Pos = position(item)
	}
	for i := firstModule; i < len(pl.Modules); i++ {
		pl.Modules[i].Pos = position(item)
	}
	p.adopt(q, at)
	return q.mistakes.count() == 0 && p.mistakes.count() == q.within.mistakes
}

// readUsed reads the parts of a file that is used by another one.
func (p *parser) readUsed(file *usedFile) {
	if file.text == nil {
		file.root = p.usedRoot(file)
	}
	root := file.root
	if root == nil || !p.version(root) {
		return
	}
	f := make([]field, len(fileKeys.keys))
	if !p.fields(root, &fileKeys, f) {
		return
	}
	unknownKeys := p.unknownKeys
	p.readParams(f[2])
	p.readModules(f[3])
	p.readBuffers(f[4])
	p.agreeOnSync(root, f[6])
	p.usedDevices(f[7])
	if f[5].value == nil && !unknownKeys {
		p.mistake(position(root), "", "nodes are missing")
	} else if f[5].value != nil {
		p.readNodes(f[5])
	}
	p.readAfter()
	p.confirm()
	if p.mistakes.count() == 0 && p.within.user.mistakes.count() == p.within.mistakes {
		p.allBound()
	}
}

// usedRoot reads the text of a file.
func (p *parser) usedRoot(file *usedFile) *yaml.Node {
	t, bad := newText(file.source)
	file.source, file.text, p.text = nil, t, t
	var root *yaml.Node
	if bad == nil {
		root, bad = t.document()
	}
	switch {
	case bad != nil:
		p.problem(bad)
	case root == nil || isNull(root):
		p.mistake(Pos{1, 1}, `a pipeline begins with "version: 1"`, "file is empty")
	case p.admissible(root, 1):
		return root
	}
	return nil
}

// agreeOnSync refuses a file whose sync is not that of the file that uses it.
func (p *parser) agreeOnSync(root *yaml.Node, f field) {
	sync, at := SyncAuto, root
	if f.value != nil {
		at = f.value
		switch p.word(at, "sync", "auto", "explicit") {
		case "explicit":
			sync = SyncExplicit
		case "":
			return
		}
	}
	if sync != p.pipeline.Sync {
		p.mistake(position(at), "both files need the same", "sync is %s here, but %s in the file that uses this one", sync, p.pipeline.Sync)
	}
}

// allBound refuses names of with: that the file does not have.
func (p *parser) allBound() {
	w := p.within
	for k := range w.with {
		b := &w.with[k]
		if b.used {
			continue
		}
		hint := ""
		if near := p.near(b.name, func() []string { return p.names }, p.bufferNames); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		w.user.mistake(position(b.key), hint, "%s has no param and no buffer %q", p.options.Name, shorten(b.name))
	}
}

// adopt makes the nodes and buffers of a used file known to the file that uses it.
func (p *parser) adopt(q *parser, at *yaml.Node) {
	pl, own := p.pipeline, p.prefixed("")
	for i := q.within.firstNode; i < len(pl.Nodes); i++ {
		name := strings.TrimPrefix(pl.Nodes[i].Name, own)
		if _, taken := p.nodes[name]; taken {
			p.mistake(position(at), "", "node %q is declared twice%s", shorten(name), p.repetition())
		}
		p.nodes[name] = NodeID(i)
	}
	for i := q.within.firstBuffer; i < len(pl.Buffers); i++ {
		if pl.Buffers[i].Scratch {
			continue
		}
		name := strings.TrimPrefix(pl.Buffers[i].Name, own)
		if _, taken := p.buffers[name]; taken {
			p.mistake(position(at), "", "buffer %q is declared twice%s", shorten(name), p.repetition())
		}
		p.buffers[name] = BufferID(i)
	}
	prefix := q.within.name + "."
	for name, id := range q.nodes {
		if id == broken {
			p.nodes[prefix+name] = broken
		}
	}
	for name, id := range q.buffers {
		if id == broken {
			p.buffers[prefix+name] = broken
		}
	}
	for name := range q.leftOut {
		p.leftOut[prefix+name] = struct{}{}
	}
	for _, inner := range q.leftOutUses {
		p.leftOutUses = append(p.leftOutUses, prefix+inner)
	}
}

// prefixed is a name of this file as the pipeline has it.
func (p *parser) prefixed(name string) string {
	if p.within == nil {
		return name
	}
	return p.within.prefix + name
}

// fullName is prefixed for a name that a node or buffer of the pipeline gets.
func (p *parser) fullName(at *yaml.Node, name string) (string, bool) {
	full := p.prefixed(name)
	if len(full) > MaxName {
		p.mistake(position(at), "", "the name has %d bytes with the names of its uses; at most %d are allowed", len(full), MaxName)
		return "", false
	}
	return full, true
}

// moduleName is the name of a module in the pipeline: one that expressions can hold, for it stands before the dot of a kernel's name.
func (p *parser) moduleName(name string) string {
	if p.within != nil {
		name = strings.Map(func(r rune) rune {
			if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return '_'
		}, p.prefixed(name))
		if !expr.ValidName(name) {
			name = "_" + name
		}
	}
	unique := name
	for k := 2; p.uses.names[unique]; k++ {
		unique = fmt.Sprintf("%s_%d", name, k)
	}
	p.uses.names[unique] = true
	return unique
}

// openModule opens a module once, however often its file is used.
func (p *parser) openModule(m Module) (Library, error) {
	key := fmt.Sprintf("%q %q %q %q %q", m.Path, m.Include, m.Define, m.Options, m.Compiler)
	if library, ok := p.uses.libraries[key]; ok {
		return library, nil
	}
	library, err := p.options.OpenModule(m)
	if table, ok := library.(Symbols); err == nil && (!ok || len(table.Symbols()) == 0) { // otherwise each use has variables of its own
		p.uses.libraries[key] = library
	}
	return library, err
}

// bound finds what with: gives for a name.
func (p *parser) bound(name string) *boundName {
	if p.within == nil {
		return nil
	}
	for k := range p.within.with {
		if b := &p.within.with[k]; b.name == name {
			b.used = true
			return b
		}
	}
	return nil
}

// boundParam is a param's value as the file that uses this one gives it, or its default.
func (p *parser) boundParam(name string, pos Pos, standard expr.Value) (expr.Value, bool) {
	b := p.bound(name)
	if b == nil {
		return standard, true
	}
	user := p.within.user
	if b.arg.IsBuffer {
		user.mistake(position(b.value), "", "%q is a param of %s (line %d); it needs a number, not a buffer", shorten(name), p.options.Name, pos.Line)
		return expr.Value{}, false
	}
	v, problem, hint := fit(name, standard, b.arg.Value)
	if problem != "" {
		user.mistake(position(b.value), hint, "%s in %s (line %d)%s", problem, p.options.Name, pos.Line, user.repetition())
		return expr.Value{}, false
	}
	return v, true
}

// bindBuffer puts a buffer of the file that uses this one in the place of one that is declared here.
func (p *parser) bindBuffer(name string, declared *Buffer, hasDevice bool, b *boundName) {
	user := p.within.user
	place := fmt.Sprintf("%s of %s (line %d)", shorten(name), p.options.Name, declared.Pos.Line)
	if !b.arg.IsBuffer {
		user.mistake(position(b.value), "", "%s is a buffer, not a number", place)
		return
	}
	given := &p.pipeline.Buffers[b.arg.Range.Buffer]
	switch {
	case declared.Symbol != "":
		user.mistake(position(b.value), "", "%s is a variable of a module, which no other buffer can stand for", place)
		return
	case b.arg.Range.Lo != 0 || b.arg.Range.Hi != given.Bytes:
		user.mistake(position(b.value), "copy the slice to a buffer of its own first", "%s is bound to a part of %q; only whole buffers are possible", place, shorten(given.Name))
		return
	case given.Place != declared.Place || given.DType != declared.DType || !slices.Equal(given.Shape, declared.Shape) || hasDevice && given.Device != declared.Device:
		user.mistake(position(b.value), "", "%s is %s, but %q (line %d) is %s%s", place, bufferText(declared), shorten(given.Name), given.Pos.Line, bufferText(given), user.repetition())
		return
	}
	p.buffers[name] = b.arg.Range.Buffer
}

// bufferText says what kind of memory a buffer is: "device f32 [4, 8]".
func bufferText(b *Buffer) string {
	where := b.Place.String()
	if b.Device > 0 {
		where = fmt.Sprintf("%s %d", where, b.Device)
	}
	return fmt.Sprintf("%s %s %s", where, b.DType, shapeList(b.Shape))
}

// usedBy says who uses the file that a message is about: " (used by net.yaml:12:5 as layer.0)".
func (p *parser) usedBy() string {
	if p.within == nil {
		return ""
	}
	var places []string
	for q := p; q.within != nil; q = q.within.user {
		at := position(q.within.at)
		places = append(places, fmt.Sprintf("by %s:%d:%d as %s", q.within.user.options.Name, at.Line, at.Column, shorten(q.within.name)))
	}
	return " (used " + strings.Join(places, ", ") + ")"
}

// outermostUse is the place in the outermost file that a message in a used file leads back to.
func (p *parser) outermostUse() Pos {
	pos := Pos{}
	for q := p; q.within != nil; q = q.within.user {
		pos = position(q.within.at)
	}
	return pos
}

// inBrokenUse reports whether a name is one of a use that could not be read.
func (p *parser) inBrokenUse(name string) bool { return hasPrefixOf(name, p.brokenUses) }

func hasPrefixOf(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// merged adds the findings of used files to those of the outermost one.
func (p *parser) merged(own *findings, ofFile func(*usedFile) *findings) Diagnostics {
	all := own.diagnostics(p.text)
	for _, file := range p.uses.list {
		found := ofFile(file)
		if found.count() == 0 {
			continue
		}
		d := found.diagnostics(file.text)
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

func (f *findings) count() int { return len(f.list) + f.more }
