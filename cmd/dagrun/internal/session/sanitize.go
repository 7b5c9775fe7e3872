// --sanitize: what users' kernels are checked for while the CPU device runs them.

package session

import (
	"errors"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
)

// mostChecked is the most threads of a replay that is checked by default, because checks make it about four times slower.
const mostChecked = 1_000_000

// SanitizeFor chooses the checks for a pipeline. Commands without the flag check nothing.
func (u *Session) SanitizeFor(g *dag.Graph) Sanitize {
	s := Sanitize{Chosen: u.Flags.Sanitize != flags.SanitizeAuto}
	threads := uint64(0)
	for _, n := range allNodes(g) {
		l := n.Launch
		if l == nil || l.Module < 0 {
			continue
		}
		s.Any = true
		blocks := uint64(l.Grid[0]) * uint64(max(l.Grid[1], 1)) * uint64(max(l.Grid[2], 1))
		threads += blocks * uint64(max(l.Block[0], 1)) * uint64(max(l.Block[1], 1)) * uint64(max(l.Block[2], 1))
	}
	if !s.Any {
		return s
	}
	switch u.Flags.Sanitize {
	case flags.SanitizeFull:
		s.level = simt.CheckFull
	case flags.SanitizeFast:
		s.level = simt.CheckFast
	case flags.SanitizeAuto:
		if threads <= mostChecked {
			s.level = simt.CheckUsual
		}
	}
	return s
}

// SanitizeOn refuses checks that were asked for on a device that cannot make them, and makes none there.
func (u *Session) SanitizeOn(platform *Opened) error {
	if platform.Name() == "cpu" {
		return nil
	}
	if u.Flags.Sanitize == flags.SanitizeFull || u.Flags.Sanitize == flags.SanitizeFast {
		return errSanitizeGPU
	}
	u.Sanitize = Sanitize{}
	return nil
}

// Name returns the level as the flag spells it; "" if there is nothing to check.
func (s Sanitize) Name() string {
	if !s.Any {
		return ""
	}
	return [...]string{simt.CheckNothing: flags.SanitizeOff, simt.CheckFast: flags.SanitizeFast, simt.CheckFull: flags.SanitizeFull,
		simt.CheckUsual: flags.SanitizeAuto}[s.level]
}

// Says returns the words about the checks in the line about a run.
func (s Sanitize) Says() string {
	switch {
	case !s.Any:
		return ""
	case s.level != simt.CheckNothing:
		return ", kernels checked (" + s.Name() + ")"
	case s.Chosen:
		return ", kernels not checked"
	}
	return ", kernels not checked (over a million threads; see --sanitize)"
}

// errSanitizeGPU is the error for asking for checks on a GPU, which cannot make them.
var errSanitizeGPU = errors.New("--sanitize checks kernels on the CPU device; add --backend cpu")
