// The JSON documents of --output json.

package cli

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

type DiagnosticDocument struct {
	File     string `json:"file"`
	Line     int32  `json:"line,omitempty"`
	Column   int32  `json:"column,omitempty"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

// JSONVersion is the version of every JSON document but those that have pages of their own (plans, machines, profiles).
const JSONVersion = 1

// Answer writes a command's JSON document.
func (t *Console) Answer(document any) error {
	t.Progress.Clear()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return WithStatus(StatusInternal, fmt.Errorf("the result cannot be encoded as JSON: %w", err))
	}
	t.Answered = true
	_, err := t.Stdout.Write(text.Bytes()) // escapes of words.Safe do not change the meaning of JSON strings
	return err
}

// ErrorDocument is the JSON document of a command that failed.
type ErrorDocument struct {
	Version int      `json:"version"`
	Error   *Failure `json:"error"`
}

type Failure struct {
	Status      int                  `json:"status"`
	Message     string               `json:"message"`
	Node        string               `json:"node,omitempty"`
	Diagnostics []DiagnosticDocument `json:"diagnostics,omitempty"`
	More        int                  `json:"more_diagnostics,omitempty"`
}

func DiagnosticDocuments(d *dag.Diagnostics) []DiagnosticDocument {
	list := make([]DiagnosticDocument, 0, len(d.List))
	for k := range d.List {
		item := &d.List[k]
		list = append(list, DiagnosticDocument{item.File, item.Pos.Line, item.Pos.Column, item.Severity.String(), item.Message, item.Hint})
	}
	return list
}

// AnswerError writes an error as a JSON document.
func (t *Console) AnswerError(err error, status int) {
	// The error itself has been printed already, so a failure to write this copy is ignored.
	_ = t.Answer(ErrorDocument{JSONVersion, t.FailureOf(err, status)})
}

func (t *Console) FailureOf(err error, status int) *Failure {
	f := &Failure{Status: status, Message: t.brief(err)}
	var found *file.ParseError
	if errors.As(err, &found) {
		f.Message = fmt.Sprintf("%s in the pipeline file", Counted(len(found.List)+found.More, "mistake"))
		f.Diagnostics, f.More = DiagnosticDocuments(&found.Diagnostics), found.More
	}
	var device *cudart.Error
	if errors.As(err, &device) {
		f.Node = device.Label
	}
	var alone *runtime.NodeError
	if errors.As(err, &alone) {
		f.Node = alone.Node
	}
	if f.Node == "" && (status == StatusTimeout || status == StatusInterrupted) {
		if f.Node = t.Progress.node(); f.Node == "" && t.Hung != nil {
			_, f.Node = t.Hung()
		}
	}
	return f
}

// AnswerFiles ends a check of several files: with their JSON if it was asked for, and with the worst of their exit statuses.
func AnswerFiles[F any](a *Console, files []F, worst int) error {
	if a.Flags.Output == "json" {
		err := a.Answer(struct {
			Version int    `json:"version"`
			Command string `json:"command"`
			Files   []F    `json:"files"`
		}{JSONVersion, "check", files})
		if err != nil {
			return err
		}
	}
	if worst != StatusOK {
		return &Reported{Status: worst}
	}
	return nil
}
