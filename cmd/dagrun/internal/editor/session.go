// A session with an editor: the documents that are open, and which request is answered where.

// Package editor answers an editor's questions about pipeline files: what is wrong with them, what can be written at a place, and what
// something means. It keeps no state but that of the open documents, and writes no files.
package editor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/internal/lsp"
	"github.com/dagrun/dagrun/kernels/calls"
	"github.com/dagrun/dagrun/kernels/library"
)

// NewSession begins a session. Documents are checked until ctx ends. Of confined ones, no file is read outside of their folders.
func NewSession(ctx context.Context, client *lsp.Client, version string, confined bool) *Session {
	return &Session{client: client, version: version, confined: confined, ctx: ctx, documents: map[string]*document{}, checks: map[string]*check{}}
}

// Request answers a request.
func (s *Session) Request(_ context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "initialize":
		return s.initialize(), nil
	case "textDocument/formatting":
		return on(s, params, (*document).format)
	case "textDocument/documentSymbol":
		return on(s, params, (*document).symbols)
	case "textDocument/completion":
		return onPlace(s, params, (*document).complete)
	case "textDocument/hover":
		return onPlace(s, params, (*document).hover)
	case "textDocument/definition":
		return onPlace(s, params, (*document).definition)
	}
	return nil, lsp.ErrNoMethod
}

// Notify takes a notification.
func (s *Session) Notify(method string, params json.RawMessage) error {
	switch method {
	case "textDocument/didOpen":
		return s.open(params)
	case "textDocument/didChange":
		return s.change(params)
	case "textDocument/didSave":
		return s.saved()
	case "textDocument/didClose":
		return s.close(params)
	}
	return nil
}

type object map[string]any

func (s *Session) initialize() any {
	const incremental = 2
	return object{
		"serverInfo": object{"name": "dagrun", "version": s.version},
		"capabilities": object{
			"positionEncoding":           "utf-16",
			"textDocumentSync":           object{"openClose": true, "change": incremental, "save": true},
			"documentFormattingProvider": true,
			"documentSymbolProvider":     true,
			"hoverProvider":              true,
			"definitionProvider":         true,
			"completionProvider":         object{"triggerCharacters": []string{" ", "{", "[", ".", ",", "("}},
		},
	}
}

// on answers a request about a document.
func on[A any](s *Session, raw json.RawMessage, answer func(*document) (A, error)) (any, error) {
	params, err := lsp.Params[lsp.DocumentParams](raw)
	if err != nil {
		return nil, err
	}
	d, err := s.document(params.Document.URI)
	if err != nil {
		return nil, err
	}
	return answer(d)
}

// onPlace answers a request about a place in a document.
func onPlace[A any](s *Session, raw json.RawMessage, answer func(*document, lsp.Position) (A, error)) (any, error) {
	params, err := lsp.Params[lsp.PositionParams](raw)
	if err != nil {
		return nil, err
	}
	d, err := s.document(params.Document.URI)
	if err != nil {
		return nil, err
	}
	return answer(d, params.Position)
}

// document returns a document as it is now.
func (s *Session) document(uri string) (*document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.documents[uri]
	if d == nil {
		return nil, &lsp.Error{Code: lsp.CodeInvalidParams, Message: fmt.Sprintf("document %q is not open", uri)}
	}
	now := *d
	return &now, nil
}

func (s *Session) open(raw json.RawMessage) error {
	params, err := lsp.Params[lsp.OpenParams](raw)
	if err != nil {
		return err
	}
	opened := params.Document
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[opened.URI] = &document{uri: opened.URI, version: opened.Version, text: lsp.NewText([]byte(opened.Text))}
	s.wants(opened.URI)
	return nil
}

func (s *Session) change(raw json.RawMessage) error {
	params, err := lsp.Params[lsp.ChangeParams](raw)
	if err != nil {
		return err
	}
	d, err := s.document(params.Document.URI)
	if err != nil {
		return err
	}
	text, err := d.text.Apply(params.Changes)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents[d.uri] = &document{uri: d.uri, version: params.Document.Version, text: text, checked: d.checked}
	s.wants(d.uri)
	return nil
}

// saved checks every document again: the file may have been one of a module, which another document uses.
func (s *Session) saved() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, uri := range sortedKeys(s.documents) {
		s.wants(uri)
	}
	return nil
}

func (s *Session) close(raw json.RawMessage) error {
	params, err := lsp.Params[lsp.DocumentParams](raw)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.documents, params.Document.URI)
	s.wants(params.Document.URI) // takes its diagnostics away
	s.mu.Unlock()
	return nil
}

// format answers textDocument/formatting with an edit of the lines that change, so that an editor keeps its place in the others.
func (d *document) format() ([]lsp.TextEdit, error) {
	const requestFailed = -32803
	formatted, err := file.Format(d.text.Source, "")
	if wrong := (*file.ParseError)(nil); errors.As(err, &wrong) {
		first := wrong.List[0]
		return nil, &lsp.Error{Code: requestFailed, Message: fmt.Sprintf("cannot format: line %d: %s", max(first.Pos.Line, 1), messageOf(&first))}
	}
	if err != nil {
		return nil, err
	}
	return difference(d.text, lsp.NewText(formatted)), nil
}

// difference returns one edit from old to new, or none where they are equal.
func difference(old, new *lsp.Text) []lsp.TextEdit {
	line := func(t *lsp.Text, k int) string { // with its line break
		from, _ := t.Line(k)
		to := len(t.Source)
		if k+1 < t.Lines() {
			to, _ = t.Line(k + 1)
		}
		return string(t.Source[from:to])
	}
	most := min(old.Lines(), new.Lines())
	head := 0
	for head < most && line(old, head) == line(new, head) {
		head++
	}
	if head == old.Lines() && head == new.Lines() {
		return []lsp.TextEdit{}
	}
	tail := 0
	for tail < most-head && line(old, old.Lines()-1-tail) == line(new, new.Lines()-1-tail) {
		tail++
	}
	span := func(t *lsp.Text) (from, to int) {
		from, to = len(t.Source), len(t.Source)
		if head < t.Lines() {
			from, _ = t.Line(head)
		}
		if tail > 0 {
			to, _ = t.Line(t.Lines() - tail)
		}
		return from, to
	}
	from, to := span(old)
	newFrom, newTo := span(new)
	return []lsp.TextEdit{{Range: old.Range(from, to), NewText: string(new.Source[newFrom:newTo])}}
}

// definition answers textDocument/definition; null where there is none.
func (d *document) definition(p lsp.Position) (*lsp.Location, error) {
	root, place, from, to, ok := d.standing(p)
	if !ok || place.key {
		return nil, nil
	}
	s := declarationOf(root, place, string(d.text.Source[from:to]))
	if s == nil {
		return nil, nil
	}
	return &lsp.Location{URI: d.uri, Range: d.text.Range(s.selection[0], s.selection[1])}, nil
}

// hover answers textDocument/hover; null where there is nothing to say.
func (d *document) hover(p lsp.Position) (*lsp.Hover, error) {
	root, place, from, to, ok := d.standing(p)
	if !ok {
		return nil, nil
	}
	name := string(d.text.Source[from:to])
	value := ""
	if place.key {
		if about := describe(schemasAt(append(slices.Clip(place.path), name))); about != "" {
			value = fmt.Sprintf("`%s`: %s", name, about)
		}
	} else if n := len(place.path); n > 0 && place.path[n-1] == "kernel" {
		for _, k := range library.Docs() {
			if k.Name == name || k.Alias == name {
				value = kernelText(k)
			}
		}
	} else if n > 0 && place.path[n-1] == "call" {
		for _, call := range calls.Docs() {
			if call.Name == name {
				value = callText(call)
			}
		}
	}
	if s := declarationOf(root, place, name); value == "" && !place.key && s != nil {
		value = fmt.Sprintf("%s `%s`: %s", s.what, s.name, s.detail)
		if d.checked != nil {
			for k := range d.checked.buffers {
				if b := &d.checked.buffers[k]; s.what == "buffer" && b.Name == s.name {
					value += fmt.Sprintf(", shape %v, %d bytes", b.Shape, b.Bytes)
				}
			}
		}
	}
	if value == "" {
		return nil, nil
	}
	return &lsp.Hover{Contents: lsp.Markup{Kind: "markdown", Value: value}, Range: d.text.Range(from, to)}, nil
}

// standing returns the word at a position and where it stands.
func (d *document) standing(p lsp.Position) (root *node, place spot, from, to int, ok bool) {
	at := d.text.Offset(p)
	from, to = word(d.text.Source, at)
	root = outline(d.text.Source)
	if from == to {
		return root, place, from, to, false
	}
	place, ok = root.find(spot{}, func(start, end int, _ string) bool { return start <= from && to <= end })
	return root, place, from, to, ok
}
