// Diagnostics: errors and warnings with their places, and how they are printed.

package dag

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/dagrun/dagrun/internal/words"
)

// Severity tells errors from warnings.
type Severity uint8

const (
	SeverityError   Severity = iota // there is no graph
	SeverityWarning                 // legal, but probably a mistake
)

var severityNames = []string{"error", "warning"}

func (s Severity) String() string { return words.Name(s, "Severity", severityNames) }

// Diagnostic is one mistake or warning with its place.
type Diagnostic struct {
	File     string // as it was named to the reader
	Pos      Pos    // the zero Pos where it is about no place in the file, such as a wrong -p
	Severity Severity
	Message  string // what is wrong
	Hint     string // a way out, or ""
	Source   string // the line of the file, or ""
	// UsedAt is where the outermost file uses File; the zero Pos if File is the outermost one.
	UsedAt Pos
}

// Error is the diagnostic in one line: file:line:col: what is wrong; a way out.
func (d *Diagnostic) Error() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Pos.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", d.Pos.Line, d.Pos.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if d.Severity == SeverityWarning {
		b.WriteString("warning: ")
	}
	b.WriteString(d.Message)
	if d.Hint != "" {
		b.WriteString("; " + d.Hint)
	}
	return b.String()
}

// Excerpt is the line of the file with a caret below the place, each ended by a line feed; "" where there is no place. Long lines
// are cut around the place.
func (d *Diagnostic) Excerpt() string {
	if d.Pos.Line <= 0 || strings.TrimSpace(d.Source) == "" {
		return ""
	}
	const before, shown = 80, 120
	line := []rune(d.Source)
	column := min(max(int(d.Pos.Column)-1, 0), len(line))
	prefix, suffix := "", ""
	if column > before {
		line, column, prefix = line[column-before:], before, "..."
	}
	if len(line) > shown {
		line, suffix = line[:shown], "..."
	}
	var text, caret strings.Builder
	text.WriteString("  " + prefix)
	caret.WriteString("  " + strings.Repeat(" ", len(prefix)))
	for k, r := range line {
		blank := strings.Repeat(" ", words.RuneWidth(r))
		if r == '\t' {
			// A tab in both lines keeps the caret below its character, whatever the terminal's tab stops are.
			blank = "\t"
		} else if words.Steers(r) || r == utf8.RuneError {
			r, blank = '\uFFFD', " "
		}
		text.WriteRune(r)
		if k < column {
			caret.WriteString(blank)
		}
	}
	return text.String() + suffix + "\n" + caret.String() + "^\n"
}

// Diagnostics is a list of mistakes or of warnings, in file order.
type Diagnostics struct {
	List []Diagnostic // the first ones
	More int          // how many were found beyond those
}

// Print writes each diagnostic with the line of the file and a caret, and how many more there are.
func (d *Diagnostics) Print(w io.Writer) error {
	if d == nil || w == nil {
		return errors.New("diagnostics and a writer are needed to print")
	}
	for k := range d.List {
		if _, err := fmt.Fprintf(w, "%s\n%s", d.List[k].Error(), d.List[k].Excerpt()); err != nil {
			return err
		}
	}
	if d.More > 0 {
		_, err := fmt.Fprintf(w, "and %d more\n", d.More)
		return err
	}
	return nil
}
