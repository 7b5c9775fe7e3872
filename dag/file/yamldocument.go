// From the text of a pipeline file to its one YAML document, or to the place and the reason of its first mistake.

package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/dagrun/dagrun/dag"
)

// diagnostics returns the findings in file order, with the lines of the file.
func (f *findings) diagnostics(t *text) dag.Diagnostics {
	f.trim()
	for k := range f.list {
		if t != nil {
			f.list[k].Source = t.line(f.list[k].Pos.Line)
		}
	}
	return dag.Diagnostics{List: f.list, More: f.more}
}

// decode reads a document. yaml.v3 panics on some inputs that its own fuzzing has not found.
func decode(from *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: line 1: cannot be read (%v)", r)
		}
	}()
	return from.Decode(into)
}

// document reads the one YAML document of the text; nil without a problem where there is nothing in it.
func (t *text) document() (root *yaml.Node, bad *problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(t.source))
	var first yaml.Node
	if err := decode(decoder, &first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, t.diagnose(err)
	}
	var second yaml.Node
	err := decode(decoder, &second)
	switch {
	case err == nil:
		return nil, &problem{pos: t.secondDocument(&second), message: "a second YAML document begins here", hint: "a pipeline file holds one"}
	case !errors.Is(err, io.EOF):
		return nil, t.diagnose(err)
	}
	if first.Kind != yaml.DocumentNode || len(first.Content) == 0 {
		return nil, nil
	}
	return first.Content[0], nil
}

// secondDocument finds the --- in front of a node, which yaml.v3 does not keep.
func (t *text) secondDocument(n *yaml.Node) dag.Pos {
	for line := int32(n.Line); line > 0; line-- {
		if strings.HasPrefix(t.line(line), "---") {
			return dag.Pos{Line: line, Column: 1}
		}
	}
	return dag.Pos{Line: int32(n.Line), Column: int32(n.Column)}
}

// lineOfYAML is where yaml.v3 says that an error is.
var lineOfYAML = regexp.MustCompile(`^line (\d+): `)

// diagnose turns an error of yaml.v3 into one with the right place, as far as that can be found.
func (t *text) diagnose(err error) *problem {
	if found := t.findBroken(); found != nil {
		return found
	}
	message, line := strings.TrimPrefix(err.Error(), "yaml: "), int64(1)
	if m := lineOfYAML.FindStringSubmatch(message); m != nil {
		message = message[len(m[0]):]
		line, _ = strconv.ParseInt(m[1], 10, 32)
		// yaml.v3's parser counts lines from 0 and, unlike its scanner, does not add 1 in messages.
		for _, m := range []string{"node content", "key", "'-' indicator", "',' or", "<"} {
			if strings.HasPrefix(message, "did not find expected "+m) {
				line++
			}
		}
	}
	line = min(line, int64(len(t.starts)))
	start := t.line(int32(line))
	column := 1 + utf8.RuneCountInString(start) - utf8.RuneCountInString(strings.TrimLeft(start, " \t"))
	if anchor, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		return t.unknownAlias(strings.TrimSuffix(anchor, "' referenced"))
	}
	return &problem{pos: dag.Pos{Line: int32(line), Column: int32(column)}, message: "YAML: " + message}
}

// unknownAlias finds an alias that has no anchor. Neither is allowed.
func (t *text) unknownAlias(name string) *problem {
	at := max(bytes.Index(t.source, []byte("*"+name)), 0)
	return &problem{pos: t.position(at), message: fmt.Sprintf("aliases (*%s) are not allowed", name), hint: "write the value out, or use params and foreach"}
}
