// Checking documents with the parser that runs them, in the background: an editor's questions are answered meanwhile.

package editor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/internal/files"
	"github.com/dagrun/dagrun/internal/lsp"
	"github.com/dagrun/dagrun/kernels"
)

// Session is a session with one editor.
type Session struct {
	client   *lsp.Client
	version  string // of dagrun
	confined bool

	ctx       context.Context // ends all checks
	mu        sync.Mutex
	documents map[string]*document
	checks    map[string]*check // that run, by document

	modules modules
}

// document is an open document. Changes replace text; a check keeps the one that it began with.
type document struct {
	uri     string
	version int
	text    *lsp.Text
	checked *checked // of the last version that was checked; nil: none yet
}

// checked is what is known of a version of a document.
type checked struct {
	buffers []dag.Buffer           // of the graph; none where the document has mistakes
	modules map[string]dag.Library // those that could be opened, by name
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// check is the check of a document that runs now.
type check struct {
	stop  context.CancelFunc
	again bool // the document has changed since
}

// wants has a document checked, beside those of other documents. A check of an older version is stopped. The caller holds mu.
func (s *Session) wants(uri string) {
	if c := s.checks[uri]; c != nil {
		c.again = true
		c.stop()
		return
	}
	s.begin(uri)
}

// begin starts a check of the document as it is now. The caller holds mu.
func (s *Session) begin(uri string) {
	if s.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithTimeout(s.ctx, mostTime)
	c, d := &check{stop: stop}, s.documents[uri]
	s.checks[uri] = c
	go func() {
		defer stop()
		publish := lsp.PublishParams{URI: uri, Diagnostics: []lsp.Diagnostic{}}
		var found *checked
		if d != nil {
			publish.Version = &d.version
			publish.Diagnostics, found = s.examine(ctx, d)
		}
		s.finish(uri, c, d, found, publish)
	}()
}

// finish publishes what was found, unless the document has changed since; then it is checked again.
func (s *Session) finish(uri string, c *check, d *document, found *checked, publish lsp.PublishParams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.checks, uri)
	if c.again {
		s.begin(uri)
		return
	}
	if d != nil {
		kept := *d
		kept.checked = found
		s.documents[uri] = &kept
	}
	_ = s.client.Notify("textDocument/publishDiagnostics", publish) // where it cannot be sent, the next answer cannot either
}

// Limits of a check, so that a few lines that ask for millions of nodes do not take gigabytes while they are typed.
const (
	mostRepeated = 1 << 17
	mostTime     = 20 * time.Second
)

// examine parses a document. What it takes of modules is what their files declare: nothing is compiled.
func (s *Session) examine(ctx context.Context, d *document) (list []lsp.Diagnostic, found *checked) {
	found = &checked{modules: map[string]dag.Library{}}
	defer func() {
		if v := recover(); v != nil {
			list = []lsp.Diagnostic{{Severity: lsp.SeverityError, Source: "dagrun", Message: fmt.Sprintf("internal error, please report it: %v", v)}}
			_ = s.client.Log("internal error, please report it: %v\n%s", v, debug.Stack())
		}
	}()
	name, dir := place(d.uri)
	var folder *files.Folder
	if s.confined && dir != "" {
		var err error
		if folder, err = files.OpenFolder(dir); err != nil {
			return []lsp.Diagnostic{{Severity: lsp.SeverityError, Source: "dagrun", Message: files.CannotRead(dir, err).Error()}}, found
		}
		defer folder.Close()
	}
	open := func(m dag.Module) (dag.Library, error) {
		if dir == "" {
			return nil, errors.New("save this file first: modules are found from the folder that it is in")
		}
		return s.modules.open(ctx, folder, dir, m)
	}
	graph, err := file.ParseContext(ctx, d.text.Source,
		file.Options{Name: name, Dir: dir, MaxRepeated: mostRepeated, Library: kernels.Library(), OpenModule: func(m dag.Module) (dag.Library, error) {
			opened, err := open(m)
			if err == nil {
				found.modules[m.Name] = opened
			}
			return opened, err
		}, ReadFile: func(name string) ([]byte, error) {
			if dir == "" {
				return nil, errors.New("save this file first: the files that it uses are found from the folder that it is in")
			}
			return folder.Regular(ctx, name, file.MaxBytes)
		}, Outside: func(name string) bool { return files.Foreign(dir, name) }})
	wrong := (*file.ParseError)(nil)
	switch {
	case errors.As(err, &wrong):
		return diagnostics(d.text, &wrong.Diagnostics, "mistakes"), found
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return []lsp.Diagnostic{{Severity: lsp.SeverityWarning, Source: "dagrun",
			Message: fmt.Sprintf("checking this takes longer than %s; dagrun check has no limit", mostTime)}}, found
	case err != nil:
		return []lsp.Diagnostic{{Severity: lsp.SeverityError, Source: "dagrun", Message: err.Error()}}, found
	}
	found.buffers = graph.Buffers
	return diagnostics(d.text, graph.Warnings(), "warnings"), found
}

// place returns a document's file name and the folder that it is in, "" for a document that is no file.
func place(uri string) (name, dir string) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return path.Base(uri), ""
	}
	file := u.Path
	if len(file) > 2 && file[0] == '/' && file[2] == ':' { // a drive of Windows: file:///C:/x
		file = file[1:]
	} else if u.Host != "" && u.Host != "localhost" {
		file = "//" + u.Host + file
	}
	file = filepath.FromSlash(file)
	return filepath.Base(file), filepath.Dir(file)
}

// messageOf is what a diagnostic says, without its place.
func messageOf(d *dag.Diagnostic) string {
	if d.Hint == "" {
		return d.Message
	}
	return d.Message + "; " + d.Hint
}

// diagnostics gives what the parser found the places that an editor shows.
func diagnostics(t *lsp.Text, found *dag.Diagnostics, what string) []lsp.Diagnostic {
	list := make([]lsp.Diagnostic, 0, len(found.List)+1)
	for k := range found.List {
		d := &found.List[k]
		item := lsp.Diagnostic{Severity: lsp.SeverityError, Source: "dagrun", Message: messageOf(d)}
		if d.Severity == dag.SeverityWarning {
			item.Severity = lsp.SeverityWarning
		}
		pos := d.Pos
		if d.UsedAt.Line > 0 { // in another file: shown where this one uses it
			item.Message = fmt.Sprintf("%s:%d:%d: %s", filepath.Base(d.File), pos.Line, pos.Column, item.Message)
			pos = d.UsedAt
		}
		if pos.Line > 0 {
			from := offset(t, pos)
			item.Range = t.Range(from, endOf(t, from))
		}
		list = append(list, item)
	}
	if found.More > 0 {
		last := list[len(list)-1]
		list = append(list, lsp.Diagnostic{Range: last.Range, Severity: last.Severity, Source: "dagrun", Message: fmt.Sprintf("and %d more %s", found.More, what)})
	}
	return list
}

// byteOrderMark may stand in front of a text. The parser does not count it.
const byteOrderMark = "\xef\xbb\xbf"

// offset returns the byte at a position of the parser's, which counts lines and characters from 1.
func offset(t *lsp.Text, p dag.Pos) int {
	line := min(max(int(p.Line)-1, 0), t.Lines()-1)
	at, end := t.Line(line)
	if line == 0 && bytes.HasPrefix(t.Source, []byte(byteOrderMark)) {
		at += len(byteOrderMark)
	}
	for column := p.Column; column > 1 && at < end; column-- {
		_, size := utf8.DecodeRune(t.Source[at:end])
		at += size
	}
	return at
}

// endOf returns where the thing at an offset ends: a quoted text, what is in brackets, a name or number, or else one character. It
// ends with its line.
func endOf(t *lsp.Text, from int) int {
	_, end := t.Line(t.Position(from).Line)
	line := t.Source[from:end]
	if len(line) == 0 {
		return from
	}
	switch c := line[0]; c {
	case '"', '\'':
		if close := bytes.IndexByte(line[1:], c); close >= 0 {
			return from + close + 2
		}
		return end
	case '{', '[', '(':
		depth := 0
		for k, c := range line {
			switch c {
			case '{', '[', '(':
				depth++
			case '}', ']', ')':
				if depth--; depth == 0 {
					return from + k + 1
				}
			}
		}
		return end
	}
	at := 0
	for at < len(line) {
		r, size := utf8.DecodeRune(line[at:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.$", r) {
			break
		}
		at += size
	}
	if at == 0 {
		_, at = utf8.DecodeRune(line)
	}
	return from + at
}
