// What makes a wait needed besides conflicts, for Options.Strict: host functions, and writes that the host can read.

package order

import (
	"slices"

	"github.com/dagrun/dagrun/internal/happens"
)

// kept notes a call that is needed besides conflicts.
func (m *machine) kept(call int32) {
	if m.strict != nil {
		m.strict.needed[call] = true
	}
}

// showsHost notes work that writes memory that the host can read.
func (m *machine) showsHost(on happens.Lane, accesses []happens.Access) {
	if m.strict == nil {
		return
	}
	for _, access := range accesses {
		is := m.allocations.at(access.Low)
		if access.Mode.All()&(happens.Write|happens.Atomic) != 0 && is != nil && (is.kind == allocPinned || is.kind == allocManaged || is.kind == allocRegistered) {
			m.strict.shown = append(m.strict.shown, m.checker.Now(on))
			return
		}
	}
}

// ranFunction notes a host function. What it does is not known, so it needs all that comes before it.
func (m *machine) ranFunction(on happens.Lane) {
	if m.strict != nil {
		m.checker.NeedAll(on)
		m.strict.functions = append(m.strict.functions, m.checker.Now(on))
	}
}

// waitedForFunction notes a call that made something come after a host function.
func (m *machine) waitedForFunction(at moment, before, after happens.Clock) {
	if m.strict != nil && slices.ContainsFunc(m.strict.functions, func(f happens.Clock) bool { return !before.Includes(f) && after.Includes(f) }) {
		m.strict.needed[at.index] = true
	}
}

// synchronized notes whether a thread that waited came to know of writes that the host can read.
func (m *machine) synchronized(at moment, before happens.Clock) {
	if m.strict == nil {
		return
	}
	after := m.checker.Now(at.thread.lane)
	m.waitedForFunction(at, before, after)
	m.strict.shown = slices.DeleteFunc(m.strict.shown, func(write happens.Clock) bool {
		if before.Includes(write) || !after.Includes(write) {
			return before.Includes(write)
		}
		m.strict.needed[at.index] = true
		return true
	})
}
