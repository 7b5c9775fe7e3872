// When the bodies of loops and branches run, and what a kernel that decides about them is launched with.

// Package conditions writes the kernel that decides on the device whether the body of a loop or branch runs (again). In a CUDA graph, a
// loop or branch is a conditional node. A launch of the kernel in front of it makes the first decision; for a loop, a launch at the end of
// the body decides after each pass. One kernel decides about all loops and branches of a program, because a driver compiles it in less time than one for each.
package conditions

import "github.com/dagrun/dagrun/dag"

// Test says when the body of a loop or branch runs.
type Test struct {
	Branch    bool
	Condition *dag.Condition // nil: a loop of exactly Times passes
	While     bool           // test before each pass, and stop once the condition does not hold; otherwise after each, and stop once it holds
	Times     int64          // the most passes
	Every     int64          // test only every so many passes, and after the last
}

// Launch is what the kernel is launched with, as one thread.
type Launch struct {
	Test
	// Number is that of the condition ([Decider.Number]).
	Number int
	// Pass: at the end of a body, not in front of the loop or branch. At the end of a branch's bodies, the kernel only stamps.
	Pass bool
	// Handle is that of the conditional. If the body that runs if a branch's condition does not hold is a conditional of its own, Other is that one's.
	Handle, Other uint64
	// Counts is the address of the counts.
	Counts uint64
	// Clear is how many sets of counts, from its own on, become zero in front of the loop or branch: those of a whole nest if it is the outermost, otherwise none.
	Clear int
	// Stamps is the address of the stamps. It needs to be valid only if stamps are asked for.
	Stamps   uint64
	Stamping Stamping
	Operands []uint64 // their addresses
}

// The kernel's parameters, all of eight bytes. Behind them come the addresses of the condition's operands.
const (
	ParameterNumber = iota
	ParameterRole
	ParameterHandle
	ParameterOther
	ParameterCounts
	ParameterClear // words
	ParameterTimes
	ParameterEvery
	ParameterStamps
	ParameterRoom
	ParameterEach
	Parameters // how many there are
)

// Bits of ParameterRole.
const (
	rolePass = 1 << iota
	roleBranch
	roleWhile
)

// Arguments are those of the kernel's parameters. It may have more, for the operands of other conditions, which are not read.
func (l *Launch) Arguments() []uint64 {
	role := uint64(0)
	if l.Pass {
		role |= rolePass
	}
	if l.Branch {
		role |= roleBranch
	}
	if l.While {
		role |= roleWhile
	}
	return append([]uint64{ParameterNumber: uint64(l.Number), ParameterRole: role, ParameterHandle: l.Handle, ParameterOther: l.Other, ParameterCounts: l.Counts,
		ParameterClear: uint64(CountWords * l.Clear), ParameterTimes: uint64(l.Times), ParameterEvery: uint64(l.Every),
		ParameterStamps: l.Stamps, ParameterRoom: uint64(l.Stamping.Room), ParameterEach: uint64(l.Stamping.Each)}, l.Operands...)
}
