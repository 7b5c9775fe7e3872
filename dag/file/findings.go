// The mistakes and warnings of a file while they are found, and the error that consists of its mistakes.

package file

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dagrun/dagrun/dag"
)

// How many mistakes of a file are kept, and how many warnings; the rest is counted. Warnings of one kind come in large numbers, and who
// shows them can group them.
const (
	MaxDiagnostics = 20
	MaxWarnings    = 1000
)

// ParseError is what Parse and Format return for a file with mistakes: all of them, in file order.
type ParseError struct{ dag.Diagnostics }

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

// findings collects diagnostics as they are found, in any order, one for each place. Of very many only the first in the file are
// kept, and the others cost next to nothing.
type findings struct {
	list  []dag.Diagnostic
	more  int
	taken map[dag.Pos]struct{}
	most  int  // how many are kept
	full  bool // the first most of list are sorted; anything that sorts after them is dropped
}

// wants reports whether a diagnostic at a place would be kept, so that its message need not be built in vain: in a repetition the
// same mistake is met again and again. Where there are too many, it is counted.
func (f *findings) wants(pos dag.Pos) bool {
	if pos == (dag.Pos{}) {
		return true
	}
	if _, taken := f.taken[pos]; taken {
		return false
	}
	if f.full && before(f.list[f.most-1].Pos, pos) {
		f.taken[pos] = struct{}{}
		f.more++
		return false
	}
	return true
}

// before reports whether a place comes before another in the file.
func before(p, q dag.Pos) bool {
	return p.Line < q.Line || p.Line == q.Line && p.Column < q.Column
}

func (f *findings) add(d dag.Diagnostic) {
	if f.taken == nil {
		f.taken = map[dag.Pos]struct{}{}
	}
	f.taken[d.Pos] = struct{}{}
	f.list = append(f.list, d)
	if len(f.list) >= 4*f.most {
		f.trim()
	}
}

func (f *findings) trim() {
	slices.SortStableFunc(f.list, func(a, b dag.Diagnostic) int {
		switch {
		case before(a.Pos, b.Pos):
			return -1
		case before(b.Pos, a.Pos):
			return 1
		}
		return 0
	})
	if extra := len(f.list) - f.most; extra > 0 {
		clear(f.list[f.most:])
		f.list, f.more, f.full = f.list[:f.most], f.more+extra, true
	}
}
