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
	// The wait comes before everything else that a kernel does. Before it, the kernel lets the launch after it begin, which waits likewise.
	earlyCode = "griddepcontrol.launch_dependents; griddepcontrol.wait; "
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
			list = append(list, insertion{at: offset(f.Begin), text: earlyCode})
		}
	}
	slices.SortFunc(list, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
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
