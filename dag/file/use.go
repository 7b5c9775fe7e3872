// Files that a pipeline file uses: reading them, and adding what they declare to the pipeline. The caller reads the files, see Options.ReadFile.

package file

import (
	"path/filepath"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// How deep files may use files, and how often a pipeline may use any: a few lines could ask for billions.
const (
	maxUseDepth = 16
	maxUses     = 1 << 14
)

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
		return refuse("", "%q cannot be used: other files cannot be read here", words.Shorten(named))
	}
	source, err := p.options.ReadFile(p.shownPath(path))
	if err != nil {
		return refuse("", "use: %s", err)
	}
	if p.uses.bytes += int64(len(source)); p.uses.bytes > MaxBytes {
		return refuse("", "the files that are used have more than %s, the limit of a pipeline", words.Bytes(MaxBytes))
	}
	file := &usedFile{source: source, outside: p.options.Outside != nil && p.options.Outside(p.shownPath(path)), cache: map[string]*parsedText{},
		mistakes: findings{most: MaxDiagnostics}, warnings: findings{most: MaxWarnings}}
	p.uses.files[path] = file
	p.uses.list = append(p.uses.list, file)
	return file, path
}

// useChain says how a file would come to use itself, or "".
func (p *parser) useChain(path string) string {
	wanted := files.Full(p.options.Dir, path)
	chain := p.shownPath(path)
	for q := p; ; q = q.within.user {
		chain = q.options.Name + " -> " + chain
		if q.within == nil {
			if own := p.uses.outermost; own != "" && own == wanted {
				return chain
			}
			return ""
		}
		if files.Full(p.options.Dir, q.path) == wanted {
			return chain
		}
	}
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
			var arg dag.ArgumentSpec
			arg, fine = p.arg(value)
			bound = append(bound, boundName{name: name, key: key, value: value, arg: arg})
		}
		ok = ok && fine
	}
	return bound, ok
}

// usedRoot reads the text of a file.
func (p *parser) usedRoot(file *usedFile) *yaml.Node {
	root := p.pipelineTree(file.source)
	file.source, file.text = nil, p.text
	return root
}

// adopt makes the nodes and buffers of a used file known to the file that uses it.
func (p *parser) adopt(q *parser, at *yaml.Node) {
	pl, own := p.pipeline, p.prefixed("")
	for i := q.within.firstNode; i < len(pl.Nodes); i++ {
		name := strings.TrimPrefix(pl.Nodes[i].Name, own)
		if _, taken := p.nodes[name]; taken {
			p.mistake(position(at), "", "node %q is declared twice%s", words.Shorten(name), p.repetition())
		}
		p.nodes[name] = dag.NodeID(i)
	}
	for i := q.within.firstBuffer; i < len(pl.Buffers); i++ {
		if pl.Buffers[i].Scratch {
			continue
		}
		name := strings.TrimPrefix(pl.Buffers[i].Name, own)
		if _, taken := p.buffers[name]; taken {
			p.mistake(position(at), "", "buffer %q is declared twice%s", words.Shorten(name), p.repetition())
		}
		p.buffers[name] = dag.BufferID(i)
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
