// The language server as an editor meets it: the built command, over pipes.

package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dagrun/dagrun/internal/lsp"
)

// editorClient is an editor's end of a session.
type editorClient struct {
	t        *testing.T
	process  *exec.Cmd
	stdin    io.WriteCloser
	out      *lsp.Writer
	messages chan received
	asked    int
	versions map[string]int
}

// received is a message of the server's.
type received struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *lsp.Error
}

// startEditor starts the command, and initializes it.
func startEditor(t *testing.T) *editorClient {
	t.Helper()
	c := launchEditor(t)
	var answer struct {
		ServerInfo   struct{ Name string }
		Capabilities map[string]any
	}
	c.ask("initialize", map[string]any{"processId": os.Getpid(), "capabilities": map[string]any{}}, &answer)
	require.Equal(t, "dagrun", answer.ServerInfo.Name)
	require.Equal(t, "utf-16", answer.Capabilities["positionEncoding"])
	c.notify("initialized", map[string]any{})
	return c
}

func launchEditor(t *testing.T) *editorClient {
	t.Helper()
	process := exec.Command(selfAsCommand(t), "lsp")
	process.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	process.Stderr = os.Stderr
	stdin, err := process.StdinPipe()
	require.NoError(t, err)
	stdout, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	c := &editorClient{t: t, process: process, stdin: stdin, out: lsp.NewWriter(stdin), messages: make(chan received, 100), versions: map[string]int{}}
	go func() {
		defer close(c.messages)
		for reader := lsp.NewReader(stdout); ; {
			body, err := reader.Read()
			if err != nil {
				return
			}
			var m received
			if json.Unmarshal(body, &m) != nil {
				return
			}
			c.messages <- m
		}
	}()
	t.Cleanup(func() {
		_ = stdin.Close() // the command ends with its input
		_ = process.Wait()
	})
	return c
}

func (c *editorClient) next() received {
	c.t.Helper()
	select {
	case m, more := <-c.messages:
		require.True(c.t, more, "the server ended")
		return m
	case <-time.After(5 * time.Minute):
		require.FailNow(c.t, "no answer for a minute")
		return received{}
	}
}

func (c *editorClient) write(message any) {
	c.t.Helper()
	body, err := json.Marshal(message)
	require.NoError(c.t, err)
	require.NoError(c.t, c.out.Write(body))
}

func (c *editorClient) notify(method string, params any) {
	c.t.Helper()
	c.write(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// request asks and returns the answer. Notifications that come before it are passed over.
func (c *editorClient) request(method string, params any) received {
	c.t.Helper()
	c.asked++
	c.write(map[string]any{"jsonrpc": "2.0", "id": c.asked, "method": method, "params": params})
	for {
		if m := c.next(); m.Method == "" {
			require.JSONEq(c.t, string(must(json.Marshal(c.asked))), string(m.ID))
			return m
		}
	}
}

func must[A any](value A, err error) A {
	if err != nil {
		panic(err)
	}
	return value
}

func (c *editorClient) ask(method string, params, result any) {
	c.t.Helper()
	m := c.request(method, params)
	require.Nil(c.t, m.Error)
	require.NoError(c.t, json.Unmarshal(m.Result, result))
}

// refused asks for what cannot be done.
func (c *editorClient) refused(method string, params any) lsp.Error {
	c.t.Helper()
	m := c.request(method, params)
	require.NotNil(c.t, m.Error, "%s was answered: %s", method, m.Result)
	return *m.Error
}

func (c *editorClient) open(uri, text string) []lsp.Diagnostic {
	c.t.Helper()
	c.versions[uri] = 1
	c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uri, "languageId": "yaml", "version": 1, "text": text}})
	return c.diagnostics(uri)
}

func (c *editorClient) change(uri string, changes ...lsp.Change) []lsp.Diagnostic {
	c.t.Helper()
	c.versions[uri]++
	c.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": uri, "version": c.versions[uri]}, "contentChanges": changes})
	return c.diagnostics(uri)
}

// diagnostics waits for those of the latest version of a document.
func (c *editorClient) diagnostics(uri string) []lsp.Diagnostic {
	c.t.Helper()
	for {
		m := c.next()
		if m.Method != "textDocument/publishDiagnostics" {
			require.NotEqual(c.t, "window/logMessage", m.Method, "%s", m.Params)
			continue
		}
		var p lsp.PublishParams
		require.NoError(c.t, json.Unmarshal(m.Params, &p))
		if p.URI == uri && p.Version != nil && *p.Version == c.versions[uri] {
			return p.Diagnostics
		}
	}
}

// leave says goodbye and returns the exit status.
func (c *editorClient) leave() int {
	c.t.Helper()
	c.ask("shutdown", nil, new(any))
	c.notify("exit", nil)
	_ = c.process.Wait()
	return c.process.ProcessState.ExitCode()
}

func at(line, from, to int) lsp.Range {
	return lsp.Range{Start: lsp.Position{Line: line, Character: from}, End: lsp.Position{Line: line, Character: to}}
}

func document(uri string, more ...map[string]any) map[string]any {
	params := map[string]any{"textDocument": map[string]any{"uri": uri}}
	for _, m := range more {
		for key, value := range m {
			params[key] = value
		}
	}
	return params
}

const editedPipeline = `version: 1
name: "größe 𝛼"
params:
  n: 1024
buffers:
  x: {place: host, dtype: f32, shape: [n], init: {ramp: [0, 1]}}
  d: {place: device, dtype: f32, shape: [n]}
  y: {place: host, dtype: f32, shape: [n], expect: {expr: 2*i}}
nodes:
  - {name: "𝛼", memcpy: {from: x, to: d}}
  - {name: double, kernel: scale, args: [n, 2, d]}
  - {name: down, memcpy: {from: d, to: y}}
`

func TestAnEditorFindsAMistakeAndMendsIt(t *testing.T) {
	c := startEditor(t)
	const uri = "file:///pipelines/one.yaml"
	require.Empty(t, c.open(uri, editedPipeline))

	// The mistake is behind a character of two UTF-16 units.
	found := c.change(uri, lsp.Change{Range: ptr(at(9, 17, 23)), Text: "memcopy"})
	require.Equal(t, []lsp.Diagnostic{{Range: at(9, 17, 24), Severity: lsp.SeverityError, Source: "dagrun", Message: `unknown key "memcopy" in a node; did you mean "memcpy"?`}}, found)
	require.Empty(t, c.change(uri, lsp.Change{Range: ptr(at(9, 21, 22)), Text: ""}))

	// Two changes at once, the second in terms of what the first made; then the whole text.
	found = c.change(uri, lsp.Change{Range: ptr(at(0, 0, 10)), Text: "# a file\nversion: 1"}, lsp.Change{Range: ptr(at(11, 27, 32)), Text: "skale"})
	require.Equal(t, []lsp.Diagnostic{{Range: at(11, 27, 32), Severity: lsp.SeverityError, Source: "dagrun", Message: `unknown kernel "skale"; did you mean "scale"?`}}, found)
	require.Empty(t, c.change(uri, lsp.Change{Text: editedPipeline}))

	warned := c.change(uri, lsp.Change{Range: ptr(at(5, 41, 63)), Text: ""})
	require.Len(t, warned, 1)
	require.Equal(t, lsp.SeverityWarning, warned[0].Severity)

	c.notify("textDocument/didClose", document(uri))
	m := c.next()
	require.JSONEq(t, `{"uri": "file:///pipelines/one.yaml", "diagnostics": []}`, string(m.Params), "closing takes the diagnostics away")
	require.Equal(t, 0, c.leave())
}

func ptr[A any](value A) *A { return &value }

func TestAnEditorFormats(t *testing.T) {
	c := startEditor(t)
	const uri = "file:///pipelines/one.yaml"
	messy := "version: 1\nname: a\nbuffers:\n  x: {dtype: f32,   place: device, shape: [4]}\n\nnodes:\n  - {name: fill, memset: {to: x, value: 0}}\n"
	c.open(uri, messy)
	var edits []lsp.TextEdit
	c.ask("textDocument/formatting", document(uri, map[string]any{"options": map[string]any{"tabSize": 2}}), &edits)
	edited, err := lsp.NewText([]byte(messy)).Apply([]lsp.Change{{Range: &edits[0].Range, Text: edits[0].NewText}})
	require.NoError(t, err)
	require.Len(t, edits, 1)
	file := filepath.Join(t.TempDir(), "one.yaml")
	require.NoError(t, os.WriteFile(file, []byte(messy), 0o600))
	formatted, err := exec.Command(selfAsCommand(t), "fmt", file).Output()
	require.NoError(t, err)
	require.NotEqual(t, messy, string(formatted))
	require.Equal(t, string(formatted), string(edited.Source), "as fmt formats it")
	require.Positive(t, edits[0].Range.Start.Line, "lines that are right stay")

	c.change(uri, lsp.Change{Text: string(formatted)})
	c.ask("textDocument/formatting", document(uri), &edits)
	require.Empty(t, edits)
	c.change(uri, lsp.Change{Text: "version: 1\nnodes: [\n"})
	require.Equal(t, lsp.Error{Code: -32803, Message: `cannot format: line 2: "[" is never closed; "]" is missing`}, c.refused("textDocument/formatting", document(uri)))
	require.Equal(t, lsp.Error{Code: lsp.CodeInvalidParams, Message: `document "file:///pipelines/other.yaml" is not open`}, c.refused("textDocument/formatting", document("file:///pipelines/other.yaml")))
	require.Equal(t, 0, c.leave())
}

// Modules are read from beside the document, and read again when they change.
func TestAnEditorChecksModules(t *testing.T) {
	c := startEditor(t)
	dir := t.TempDir()
	kernel := filepath.Join(dir, "k.cu")
	require.NoError(t, os.WriteFile(kernel, []byte("extern \"C\" __global__ void fill(float *out, int n) { out[0] = n; }\n"), 0o600))
	uri := "file://" + filepath.ToSlash(filepath.Join(dir, "with space.yaml"))
	text := `version: 1
modules:
  k: {source: k.cu}
buffers:
  x: {place: device, dtype: f32, shape: [4]}
nodes:
  - {name: fill, kernel: k.fill, args: [{out: x}, 4], grid: 1, block: 1}
`
	unread := c.open("untitled:Untitled-1", text)
	require.Len(t, unread, 1)
	require.Equal(t, `module "k": save this file first: modules are found from the folder that it is in`, unread[0].Message)
	for _, d := range c.open(uri, text) {
		require.Equal(t, lsp.SeverityWarning, d.Severity, d.Message)
	}
	require.NoError(t, os.WriteFile(kernel, []byte("extern \"C\" __global__ void full(float *out, int n) { out[0] = n + 1; }\n"), 0o600))
	c.notify("textDocument/didSave", document(uri))
	found := c.diagnostics(uri)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Message, "full")
	require.Equal(t, 6, found[0].Range.Start.Line)
	require.Equal(t, 0, c.leave())
}

func TestAnEditorCompletesAndExplains(t *testing.T) {
	c := startEditor(t)
	const uri = "file:///pipelines/one.yaml"
	c.open(uri, editedPipeline)
	c.change(uri, lsp.Change{Range: ptr(at(10, 27, 32)), Text: "sc"})
	var list lsp.CompletionList
	c.ask("textDocument/completion", document(uri, map[string]any{"position": lsp.Position{Line: 10, Character: 29}}), &list)
	var signature string
	for _, i := range list.Items {
		if i.Label == "scale" {
			signature = i.Detail
			require.Equal(t, at(10, 27, 29), i.TextEdit.Range)
		}
	}
	require.Contains(t, signature, "scale(n")
	var where lsp.Location
	c.ask("textDocument/definition", document(uri, map[string]any{"position": lsp.Position{Line: 11, Character: 32}}), &where)
	require.Equal(t, lsp.Location{URI: uri, Range: at(6, 2, 3)}, where)
	var symbols []lsp.Symbol
	c.ask("textDocument/documentSymbol", document(uri), &symbols)
	require.Len(t, symbols, 7)
	require.Equal(t, 0, c.leave())
}
