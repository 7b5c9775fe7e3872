// Output: colours, JSON documents and what becomes of a full disk. Knows nothing of pipelines.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime"
)

// jsonVersion is the version of every JSON document but those that have pages of their own (plans, machines, profiles).
const jsonVersion = 1

// Colours, as SGR parameters.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
	dim    = "2"
)

// sink remembers the first error of writing, so that output cut short is not taken for success.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

func (s *sink) failure() error {
	if s.err == nil {
		return nil
	}
	return withStatus(statusInternal, fmt.Errorf("cannot write the output: %w", s.err))
}

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	if s, ok := w.(*sink); ok {
		w = s.w
	}
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// colored reports whether w takes colours: a terminal, unless the flag or NO_COLOR says otherwise.
func (a *app) colored(w io.Writer) bool {
	switch a.flags.color {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// paint wraps text in an SGR colour where w takes colours.
func (a *app) paint(w io.Writer, sgr, text string) string {
	if text == "" || !a.colored(w) {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

func (a *app) paintError(err error) string {
	return a.paint(a.stderr, red, "dagrun:") + " " + a.brief(err)
}

// brief is an error without the stack of a kernel of the CPU device that panicked, unless -v asks for all.
func (a *app) brief(err error) string {
	text := err.Error()
	var device *cudart.Error
	if !a.flags.verbose && errors.As(err, &device) && strings.HasPrefix(device.Detail, "goroutine ") {
		text = strings.Replace(text, "\n"+device.Detail, "", 1)
	}
	return strings.TrimRight(text, "\n")
}

// warn says something on stderr that does not stop the command.
func (a *app) warn(format string, args ...any) {
	if a.flags.quiet {
		return
	}
	a.progress.clear()
	fmt.Fprintln(a.stderr, a.paint(a.stderr, yellow, "warning:"), fmt.Sprintf(format, args...))
}

// printDiagnostics writes what was found in a file, each with its line and a caret.
func (a *app) printDiagnostics(d *dag.Diagnostics) error {
	a.progress.clear()
	if !a.colored(a.stderr) {
		return d.Print(a.stderr)
	}
	for k := range d.List {
		item := &d.List[k]
		sgr := red
		if item.Severity == dag.SeverityWarning {
			sgr = yellow
		}
		place, what := "", item.Error()
		if item.Pos.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d: ", item.File, item.Pos.Line, item.Pos.Column)
			what = strings.TrimPrefix(what, place)
		}
		text, caret, _ := strings.Cut(item.Excerpt(), "\n")
		if text != "" {
			text, caret = "\n"+text, "\n"+a.paint(a.stderr, sgr, strings.TrimSuffix(caret, "\n"))
		}
		if _, err := fmt.Fprintf(a.stderr, "%s%s%s%s\n", a.paint(a.stderr, bold, place), a.paint(a.stderr, sgr, what), text, caret); err != nil {
			return err
		}
	}
	if d.More > 0 {
		_, err := fmt.Fprintf(a.stderr, "and %d more\n", d.More)
		return err
	}
	return nil
}

// answer writes a command's JSON document.
func (a *app) answer(document any) error {
	a.answered = true
	a.progress.clear()
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document)
}

// errorDocument is what --output json writes where a command could not answer.
type errorDocument struct {
	Version int `json:"version"`
	Error   struct {
		Status      int                  `json:"status"`
		Message     string               `json:"message"`
		Node        string               `json:"node,omitempty"`
		Diagnostics []diagnosticDocument `json:"diagnostics,omitempty"`
		More        int                  `json:"more_diagnostics,omitempty"`
	} `json:"error"`
}

type diagnosticDocument struct {
	File     string `json:"file"`
	Line     int32  `json:"line,omitempty"`
	Column   int32  `json:"column,omitempty"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

func diagnosticDocuments(d *dag.Diagnostics) []diagnosticDocument {
	list := make([]diagnosticDocument, 0, len(d.List))
	for k := range d.List {
		item := &d.List[k]
		list = append(list, diagnosticDocument{item.File, item.Pos.Line, item.Pos.Column, item.Severity.String(), item.Message, item.Hint})
	}
	return list
}

// answerError writes an error as a JSON document.
func (a *app) answerError(err error, status int) {
	document := errorDocument{Version: jsonVersion}
	document.Error.Status = status
	document.Error.Message = a.brief(err)
	var found *dag.ParseError
	if errors.As(err, &found) {
		document.Error.Message = fmt.Sprintf("%s in the pipeline file", counted(len(found.List)+found.More, "mistake"))
		document.Error.Diagnostics, document.Error.More = diagnosticDocuments(&found.Diagnostics), found.More
	}
	var device *cudart.Error
	if errors.As(err, &device) {
		document.Error.Node = device.Label
	}
	var alone *runtime.NodeError
	if errors.As(err, &alone) {
		document.Error.Node = alone.Node
	}
	// The error itself has been printed; that its copy could not be written is no news.
	_ = a.answer(document)
}

// counted is a number with its noun: "1 node", "2 nodes".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
