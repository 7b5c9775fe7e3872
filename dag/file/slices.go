// References to buffers in a pipeline file: from a name and a slice to a byte range.

package file

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
	"gopkg.in/yaml.v3"
)

// reference evaluates a buffer or a slice of one.
func (p *parser) reference(n *yaml.Node, what string) (dag.Range, bool) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		p.wrongKind(n, what, "a buffer or a slice such as x(0..4)")
		return dag.Range{}, false
	}
	if id, ok := p.buffers[n.Value]; ok {
		return p.whole(id)
	}
	s, err := p.parsedSlice(n.Value)
	if err != nil {
		p.exprMistake(n, err)
		return dag.Range{}, false
	}
	return p.sliced(n, s)
}

// renamed is a name without the parentheses that would read as a slice.
func renamed(name string) string {
	name = strings.NewReplacer("(", ".", ")", "", " ", "").Replace(name)
	return strings.Trim(name, ".")
}

func (p *parser) whole(id dag.BufferID) (dag.Range, bool) {
	if id == broken {
		return dag.Range{}, false
	}
	return dag.Range{Buffer: id, Lo: 0, Hi: p.pipeline.Buffers[id].Bytes}, true
}

func (p *parser) sliced(n *yaml.Node, s *expr.Slice) (dag.Range, bool) {
	p.usesUnknown = false
	name, err := s.Name.Expand(p)
	if p.usesUnknown {
		return dag.Range{}, false
	}
	if err != nil {
		p.exprMistake(n, err)
		return dag.Range{}, false
	}
	id, ok := p.buffers[name]
	if !ok {
		p.unknownBuffer(n, name)
		return dag.Range{}, false
	}
	if id == broken || s.Kind == expr.Whole {
		return p.whole(id)
	}
	b := &p.pipeline.Buffers[id]
	rows, columns, err := s.Extent(p, name, b.Shape)
	if p.usesUnknown {
		return dag.Range{}, false
	}
	if err != nil {
		var e *expr.Error
		if errors.As(err, &e) && e.Hint == "" {
			e.Hint = p.declared(id)
		}
		p.exprMistakeAt(n, err, p.repetition())
		return dag.Range{}, false
	}
	r, err := p.pipeline.Extent(id, rows, columns)
	if err != nil {
		p.exprMistakeAt(n, err, p.repetition())
		return dag.Range{}, false
	}
	return r, true
}

func (p *parser) unknownBuffer(n *yaml.Node, name string) {
	pos := position(n)
	if p.counting || !p.mistakes.wants(pos) || p.inBrokenUse(name) {
		return
	}
	message, hint := fmt.Sprintf("unknown buffer %q", words.Shorten(name)), ""
	if p.cutAtComma(n, name) {
		return
	}
	_, isParam := p.Variable(name)
	if _, isNumber := smallInteger(name); isParam || isNumber {
		message = fmt.Sprintf("expected a buffer here, but %s is a number", name)
	} else if near := p.near(name, p.bufferNames); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if strings.ContainsAny(name, "+*/ ") && len(name) < 60 {
		message = fmt.Sprintf("expected a buffer or a slice such as x(0..4) here, not %q", name)
	}
	p.mistake(pos, hint, "%s%s", message, p.repetition())
}
