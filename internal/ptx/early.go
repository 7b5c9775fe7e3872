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
	// After its wait a kernel lets the launch after it begin, which waits likewise. Before the wait, the device would begin several launches at
	// once, whose blocks stand in each other's way.
	earlyCode = "griddepcontrol.wait; griddepcontrol.launch_dependents; "
)

// Waiting returns the text with every kernel made to wait, before it does anything that others notice, until the launches before it have ended and
// what they wrote is visible. So a device may begin to launch these kernels early. Lines keep their numbers.
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
			list = append(list, insertion{at: offset(f.waitPlace()), text: earlyCode})
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

// waitPlace returns where a kernel waits. Most kernels first compute addresses from their parameters: the wait comes after that, which is so done
// while the launch before still runs. All threads pass the place, once.
func (f *Function) waitPlace() Position {
	end := len(f.Code) // of the instructions that no branch repeats
	for i := range f.Code {
		for _, to := range f.Jumps(&f.Code[i]) {
			end = min(end, int(to))
		}
	}
	k := 0
	for k+1 < end && f.computes(&f.Code[k]) {
		k++
	}
	if k > 0 && f.Code[k].Guard != NoRegister {
		k-- // an instruction's position is that after its guard
	}
	if k == 0 {
		return f.Begin
	}
	return f.Code[k].Position
}

// computes reports whether an instruction only computes a value from parameters of the launch, the thread's registers, and the thread's place in
// the grid. It reads no clock, so that what a kernel measures begins after its wait.
func (f *Function) computes(in *Instruction) bool {
	if in.Guard != NoRegister {
		return false
	}
	switch in.Form.Op {
	case OpLd:
		return in.Form.Space() == Param
	case OpMov, OpCvta, OpCvt, OpAdd, OpAddc, OpSub, OpSubc, OpMul, OpMul24, OpMad, OpMadc, OpMad24, OpFma, OpDiv, OpRem, OpAbs, OpNeg, OpMin, OpMax, OpSad,
		OpAnd, OpOr, OpXor, OpNot, OpCnot, OpLop3, OpShl, OpShr, OpShf, OpBfe, OpBfi, OpBfind, OpBmsk, OpBrev, OpClz, OpPopc, OpPrmt, OpSzext,
		OpSetp, OpSet, OpSelp, OpSlct, OpTestp, OpCopysign, OpRcp, OpSqrt, OpRsqrt, OpSin, OpCos, OpLg2, OpEx2, OpTanh, OpIsspacep:
		return !slices.ContainsFunc(in.Operands, f.changes)
	}
	return false
}

// changes reports whether an operand may have another value later in the same thread, though nothing is written to it.
func (f *Function) changes(o Operand) bool {
	return o.Kind == SpecialKind && Special(o.Index).changes() || slices.ContainsFunc(f.Elements(o), f.changes)
}

// changes reports whether a special register may have another value later in the same thread.
func (s Special) changes() bool {
	switch s {
	case Clock, ClockHi, Clock64, Globaltimer, GlobaltimerLo, GlobaltimerHi, Pm, Pm64:
		return true
	}
	return false
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

// WaitsFirst reports whether all threads of a kernel wait for the launches before it (griddepcontrol.wait) before they do anything but compute on
// the parameters of the launch: access memory, synchronise, call, or branch.
func (m *Module) WaitsFirst(id FunctionID) bool {
	f := &m.Functions[id]
	if !f.Entry {
		return false
	}
	for i := range f.Code {
		in := &f.Code[i]
		switch {
		case f.computes(in):
		case in.Form.Op != OpGriddepcontrol || in.Guard != NoRegister:
			return false
		case in.Form.Text == "griddepcontrol.wait":
			return true
		}
	}
	return false
}
