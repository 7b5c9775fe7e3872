// Diagnostics of a pipeline file as text: each with its line and a caret, warnings of one kind grouped.

package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// shownOfAKind is how many warnings of one kind are shown before the others are only counted.
const shownOfAKind = 2

// details matches what differs between messages of one kind: names in quotes, slices, numbers.
var details = regexp.MustCompile(`"[^"]*"|\S*\([^()]*\.\.[^()]*\)|[0-9]+`)

// kindOf returns a diagnostic's message without the details of one place.
func kindOf(d *dag.Diagnostic) string { return details.ReplaceAllString(d.Message, "_") }

// PrintDiagnostics writes what was found in a file. It shows two warnings of each kind, or all with -v.
func (t *Console) PrintDiagnostics(d *dag.Diagnostics) error {
	t.Progress.Clear()
	count, shown := map[string]int{}, map[string]int{}
	for k := range d.List {
		count[kindOf(&d.List[k])]++
	}
	for k := range d.List {
		item := &d.List[k]
		kind := kindOf(item)
		shown[kind]++
		grouped := item.Severity == dag.SeverityWarning && !t.Flags.Verbose && count[kind] > shownOfAKind+1 // a single further one is shown instead of counted
		if grouped && shown[kind] > shownOfAKind {
			continue
		}
		if err := t.printDiagnostic(item); err != nil {
			return err
		}
		if grouped && shown[kind] == shownOfAKind {
			if err := t.Stderr.Printf("  and %d more like these; -v shows all\n", count[kind]-shownOfAKind); err != nil {
				return err
			}
		}
	}
	if d.More > 0 {
		_, err := fmt.Fprintf(t.Stderr, "and %d more\n", d.More)
		return err
	}
	return nil
}

func (t *Console) printDiagnostic(item *dag.Diagnostic) error {
	sgr := Red
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
		text, caret = "\n"+text, "\n"+t.Paint(t.Stderr, sgr, strings.TrimSuffix(pointer, "\n"))
	}
	return t.Stderr.Printf("%s%s%s%s\n", t.Paint(t.Stderr, Bold, place), t.Paint(t.Stderr, sgr, what), text, caret)
}
