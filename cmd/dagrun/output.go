// The JSON documents of --output json.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/cudart"
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/file"
	"github.com/dagrun/dagrun/runtime"
)

// jsonVersion is the version of every JSON document but those that have pages of their own (plans, machines, profiles).
const jsonVersion = 1

// answer writes a command's JSON document.
func (a *app) answer(document any) error {
	a.progress.clear()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return withStatus(statusInternal, fmt.Errorf("the result cannot be encoded as JSON: %w", err))
	}
	a.answered = true
	_, err := a.stdout.Write(text.Bytes()) // escapes of words.Safe do not change the meaning of JSON strings
	return err
}

// errorDocument is the JSON document of a command that failed.
type errorDocument struct {
	Version int      `json:"version"`
	Error   *failure `json:"error"`
}

type failure struct {
	Status      int                  `json:"status"`
	Message     string               `json:"message"`
	Node        string               `json:"node,omitempty"`
	Diagnostics []diagnosticDocument `json:"diagnostics,omitempty"`
	More        int                  `json:"more_diagnostics,omitempty"`
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
	// The error itself has been printed already, so a failure to write this copy is ignored.
	_ = a.answer(errorDocument{jsonVersion, a.failure(err, status)})
}

func (a *app) failure(err error, status int) *failure {
	f := &failure{Status: status, Message: a.brief(err)}
	var found *file.ParseError
	if errors.As(err, &found) {
		f.Message = fmt.Sprintf("%s in the pipeline file", counted(len(found.List)+found.More, "mistake"))
		f.Diagnostics, f.More = diagnosticDocuments(&found.Diagnostics), found.More
	}
	var device *cudart.Error
	if errors.As(err, &device) {
		f.Node = device.Label
	}
	var alone *runtime.NodeError
	if errors.As(err, &alone) {
		f.Node = alone.Node
	}
	if f.Node == "" && (status == statusTimeout || status == statusInterrupted) {
		if f.Node = a.progress.node(); f.Node == "" && a.hung != nil {
			_, f.Node = a.hung()
		}
	}
	return f
}

// answerFiles ends a check of several files: with their JSON if it was asked for, and with the worst of their exit statuses.
func answerFiles[F any](a *app, files []F, worst int) error {
	if a.Flags.Output == "json" {
		err := a.answer(struct {
			Version int    `json:"version"`
			Command string `json:"command"`
			Files   []F    `json:"files"`
		}{jsonVersion, "check", files})
		if err != nil {
			return err
		}
	}
	if worst != statusOK {
		return &reported{status: worst}
	}
	return nil
}
