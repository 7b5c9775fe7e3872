// Launches that overlap: makes the kernels of PTX wait for the launches before them, and tells which kernels do.

package ptx

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	earlyMajor, earlyMinor = 7, 8 // the first ISA with griddepcontrol
	earlyTarget            = 90
	waitForLast            = "griddepcontrol.wait; "
	beginNext              = "griddepcontrol.launch_dependents; "
)

// Waiting returns the text with every kernel made to wait, before it does anything else, until the launches before it have ended and what they
// wrote is visible. So a device may begin to launch these kernels early. Lines keep their numbers.
func Waiting(text string) (string, error) {
	m, err := Parse(text)
	if err != nil {
		return "", err
	}
	if m.AddressSize == 32 {
		return "", fmt.Errorf("the PTX has addresses of 32 bits")
	}
	number := 0
	if n, err := fmt.Sscanf(m.Target, "sm_%d", &number); n != 1 || err != nil {
		return "", fmt.Errorf("the PTX is for %q, which is not a target such as sm_90", m.Target)
	}
	type insertion struct {
		at      int
		replace int // bytes that are left out
		text    string
	}
	var list []insertion
	lines := lineStarts(text)
	offset := func(p Position) int { return lines[p.Line-1] + int(p.Column) - 1 }
	if m.Major < earlyMajor || m.Major == earlyMajor && m.Minor < earlyMinor {
		at, word := headWord(text, ".version")
		list = append(list, insertion{at, len(word), fmt.Sprintf("%d.%d", earlyMajor, earlyMinor)})
	}
	if number < earlyTarget {
		at, word := headWord(text, ".target")
		list = append(list, insertion{at, len(word), fmt.Sprintf("sm_%d", earlyTarget)})
	}
	for _, id := range m.Entries() {
		if f := &m.Functions[id]; len(f.Code) > 0 && !m.WaitsFirst(id) {
			list = append(list, insertion{at: offset(f.Begin), text: waitForLast})
			for _, p := range f.beginPlaces() {
				list = append(list, insertion{at: offset(p), text: beginNext})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	done := 0
	for _, i := range list {
		b.WriteString(text[done:i.at])
		b.WriteString(i.text)
		done = i.at + i.replace
	}
	b.WriteString(text[done:])
	return b.String(), nil
}

// beginPlaces returns where a kernel lets the launch after it begin, which has no effect on what is computed: that one waits until this one has
// ended. Blocks that begin and wait take time from those that still access memory, so that a kernel which does lets them begin at its ends,
// while its last writes are on their way. Other kernels do so just after their own wait. Before it, the device would begin several launches
// at once, and a graph of kernels that access memory is then slower than without any of this.
func (f *Function) beginPlaces() []Position {
	access := slices.ContainsFunc(f.Code, func(in Instruction) bool {
		return in.Form.Op == OpCall || in.Form.Op.Class() == Memory && in.Form.Space() != Param
	})
	if !access {
		return []Position{f.Begin}
	}
	var ends []Position
	for i := range f.Code {
		if in := &f.Code[i]; (in.Form.Op == OpRet || in.Form.Op == OpExit) && in.Guard == NoRegister {
			ends = append(ends, in.Position)
		}
	}
	return ends
}

// headWord returns the place and the text of the word after one of the directives that a module begins with. The text has been parsed.
func headWord(text, directive string) (int, string) {
	p := newParser(text)
	for p.next(); p.token.kind != endToken && p.text[p.token.start:p.token.end] != directive; p.next() {
	}
	p.next()
	return int(p.token.start), p.text[p.token.start:p.token.end]
}

func lineStarts(text string) []int {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// WaitsFirst reports whether all threads of a kernel wait for the launches before it (griddepcontrol.wait) before they access memory other
// than the parameters of the launch, call, or branch.
func (m *Module) WaitsFirst(id FunctionID) bool {
	f := &m.Functions[id]
	if !f.Entry {
		return false
	}
	for i := range f.Code {
		in := &f.Code[i]
		if in.Guard != NoRegister {
			return false
		}
		switch in.Form.Op {
		case OpGriddepcontrol:
			if in.Form.Text == "griddepcontrol.wait" {
				return true
			}
		case OpMov, OpCvta:
		case OpLd:
			if in.Form.Space() != Param {
				return false
			}
		default:
			return false
		}
	}
	return false
}
