// What commands print that has a form: the JSON documents of --output json, and diagnostics with their lines.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/runtime"
)

// jsonVersion is the version of every JSON document but those that have pages of their own (plans, machines, profiles).
const jsonVersion = 1

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
		text, pointer, _ := strings.Cut(item.Excerpt(), "\n")
		var caret painted
		if text != "" {
			text, caret = "\n"+text, "\n"+a.paint(a.stderr, sgr, strings.TrimSuffix(pointer, "\n"))
		}
		if err := a.stderr.printf("%s%s%s%s\n", a.paint(a.stderr, bold, place), a.paint(a.stderr, sgr, what), text, caret); err != nil {
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
	a.progress.clear()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return withStatus(statusInternal, fmt.Errorf("the answer has no form in JSON: %w", err))
	}
	a.answered = true
	_, err := a.stdout.Write(text.Bytes()) // what words.Safe spells out in a string of JSON means the same
	return err
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
	if document.Error.Node == "" && (status == statusTimeout || status == statusInterrupted) {
		document.Error.Node = a.progress.node()
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
