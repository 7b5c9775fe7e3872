// Keys of mappings in a pipeline file: which there are, and what to say about unknown, misspelt and duplicate ones.

package file

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

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
		p.wrongKind(n, set.what, "a mapping"+examples[set.what])
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
	p.mistake(position(key), fmt.Sprintf("write %s: %s", name, words.Shorten(rest)), what, name)
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
var foreignKeys = map[string]string{"copy": "memcpy", "memory_copy": "memcpy", "fill": "memset", "launch": "kernel", "arguments": "args",
	"params": "args", "inputs": "args",
	"type": "dtype", "data_type": "dtype", "size": "shape", "dims": "shape", "dimensions": "shape", "location": "place", "where": "place", "src": "from",
	"source": "from", "dst": "to", "dest": "to",
	"destination": "to", "deps": "after", "depends": "after", "depends_on": "after", "needs": "after", "requires": "after", "condition": "when",
	"for": "foreach", "loop": "foreach",
	"threads": "block", "blocks": "grid", "smem": "shared", "initial": "init", "start": "from", "end": "to", "stop": "to", "until": "to", "parameters": "params",
	"vars": "params", "variables": "params", "tasks": "nodes", "steps": "nodes", "jobs": "nodes", "arrays": "buffers", "memory": "buffers",
	"id": "name", "label": "name",
	"wait": "after", "waits": "after", "wait_for": "after", "waits_for": "after", "h2d": "memcpy", "d2h": "memcpy", "d2d": "memcpy", "cpy": "memcpy",
	"then": "nodes", "body": "nodes",
	"count": "times", "passes": "times", "max": "most", "max_iterations": "most", "iterations": "times", "otherwise": "else"}

// examples show what a mapping looks like, for those who write a name or a list in place of it.
var examples = map[string]string{"memcpy": " such as {from: x, to: d_x}", "memset": " such as {to: d_x, value: 0}",
	"allreduce": " such as {inout: x, op: sum}", "reduce": " such as {from: x, to: y, op: sum}",
	"broadcast": " such as {inout: x, root: 0}", "allgather": " such as {from: x, to: y}", "reducescatter": " such as {from: x, to: y, op: sum}",
	"alltoall": " such as {from: x, to: y}"}

// repeatExamples show where the keys of a loop stand, for those who write them on the node.
var repeatExamples = map[string]string{"times": "times: 20", "until": "until: d_error < 1e-6, most: 500", "while": "while: d_error > 1e-6, most: 500",
	"most":  "until: d_error < 1e-6, most: 500",
	"every": "until: d_error < 1e-6, most: 500, every: 10", "or_stop": "until: d_error < 1e-6, most: 500, or_stop: true"}

// hostCall are the words of other tools for host.
var hostCall = map[string]bool{"hostfn": true, "host_func": true, "hostfunc": true, "host_function": true, "callback": true, "function": true}

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
		hint = "host: NAME runs a function that a Go program registers under that name"
	} else if example := repeatExamples[key.Value]; set == &nodeKeys && example != "" {
		hint = fmt.Sprintf("it is a key of repeat, as in repeat: {%s}", example)
	} else if near := words.Suggest(key.Value, set.keys); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	if line := p.text.line(int32(key.Line)); strings.HasPrefix(hint, "it may") && len(strings.TrimLeft(line, " -")) == len(line)-key.Column+1 {
		hint += "; or is it indented wrongly?"
	}
	p.mistake(position(key), hint, "unknown key %q in %s", words.Shorten(key.Value), set.what)
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

// named returns the keys of a mapping, each of which may stand there once, and their values. names is never nil.
func (p *parser) named(n *yaml.Node) (names []string, values []*yaml.Node, ok bool) {
	names, ok = []string{}, true
	first := map[string]*yaml.Node{}
	for k := 0; k+1 < len(n.Content); k += 2 {
		key, value := n.Content[k], n.Content[k+1]
		if !p.isEntry(key, value) {
			ok = false
			continue
		}
		if earlier := first[key.Value]; earlier != nil {
			p.duplicateKey(key, earlier)
			ok = false
			continue
		}
		first[key.Value] = key
		names, values = append(names, key.Value), append(values, value)
	}
	return names, values, ok
}

func (p *parser) duplicateKey(key, first *yaml.Node) {
	p.mistake(position(key), "", "key %q is given twice; the first is on line %d", words.Shorten(key.Value), first.Line)
}

// The places of fileKeys.
const (
	fileVersion = iota
	fileName
	fileParams
	fileModules
	fileBuffers
	fileNodes
	fileSync
	fileDevices
	fileKeyCount
)

var fileKeys = keySet{"a pipeline file", []string{"version", "name", "params", "modules", "buffers", "nodes", "sync", "devices"}}

// The keys of these are those of bufferRows and nodeRows.
var bufferKeys, nodeKeys = keySet{what: "a buffer"}, keySet{what: "a node"}
