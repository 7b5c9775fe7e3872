// Diagnostics: errors and warnings with their places, and how they are printed.

package dag

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dagrun/dagrun/internal/words"
)

// How many mistakes of a file are kept, and how many warnings; the rest is counted. Warnings of one kind come in large numbers, and who
// shows them can group them.
const (
	MaxDiagnostics = 20
	MaxWarnings    = 1000
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
	File     string // as in Options.Name
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
	List []Diagnostic // at most MaxDiagnostics mistakes or MaxWarnings warnings
	More int          // how many were found beyond those
}

// ParseError is what Parse and Format return for a file with mistakes: all of them, in file order.
type ParseError struct{ Diagnostics }

// Error is all mistakes, one a line.
func (d *ParseError) Error() string {
	var b strings.Builder
	for k := range d.List {
		if k > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(d.List[k].Error())
	}
	if d.More > 0 {
		fmt.Fprintf(&b, "\nand %d more", d.More)
	}
	return b.String()
}

// Unwrap lets errors.As find each *Diagnostic.
func (d *ParseError) Unwrap() []error {
	errs := make([]error, len(d.List))
	for k := range d.List {
		errs[k] = &d.List[k]
	}
	return errs
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

// findings collects diagnostics as they are found, in any order, one for each place. Of very many only the first in the file are
// kept, and the others cost next to nothing.
type findings struct {
	list  []Diagnostic
	more  int
	taken map[Pos]struct{}
	most  int  // how many are kept
	full  bool // the first most of list are sorted; anything that sorts after them is dropped
}

// wants reports whether a diagnostic at a place would be kept, so that its message need not be built in vain: in a repetition the
// same mistake is met again and again. Where there are too many, it is counted.
func (f *findings) wants(pos Pos) bool {
	if pos == (Pos{}) {
		return true
	}
	if _, taken := f.taken[pos]; taken {
		return false
	}
	if f.full && f.list[f.most-1].Pos.before(pos) {
		f.taken[pos] = struct{}{}
		f.more++
		return false
	}
	return true
}

// before reports whether a place comes before another in the file.
func (p Pos) before(q Pos) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Column < q.Column
}

func (f *findings) add(d Diagnostic) {
	if f.taken == nil {
		f.taken = map[Pos]struct{}{}
	}
	f.taken[d.Pos] = struct{}{}
	f.list = append(f.list, d)
	if len(f.list) >= 4*f.most {
		f.trim()
	}
}

func (f *findings) trim() {
	slices.SortStableFunc(f.list, func(a, b Diagnostic) int {
		switch {
		case a.Pos.before(b.Pos):
			return -1
		case b.Pos.before(a.Pos):
			return 1
		}
		return 0
	})
	if extra := len(f.list) - f.most; extra > 0 {
		clear(f.list[f.most:])
		f.list, f.more, f.full = f.list[:f.most], f.more+extra, true
	}
}

// Pos is a place in a pipeline file; the zero Pos is "not from a file". Columns count from 1, in characters.
type Pos struct{ Line, Column int32 }

// onLine names a place of the same file, where there is one.
func onLine(pos Pos) string {
	if pos.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d)", pos.Line)
}
