// --sanitize: what users' kernels are checked for while the CPU device runs them.

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cudart/host/simt"
	"github.com/dagrun/dagrun/dag"
)

// mostChecked is the most threads of a replay that is checked by default, because checks make it about four times slower.
const mostChecked = 1_000_000

func (a *app) sanitizeFlag(c *cobra.Command) {
	c.Flags().StringVar(&a.values(c).sanitize, "sanitize", sanitizeAuto, "check your own kernels on the CPU device: `how` is full, fast, off, or auto (see docs/kernel-bugs.md)")
}

// sanitizeFor chooses the checks for a pipeline. Commands without the flag check nothing, but for trace, which checks as runs do.
func (a *app) sanitizeFor(g *dag.Graph) sanitize {
	s := sanitize{chosen: a.flags.sanitize != sanitizeAuto}
	threads := uint64(0)
	for _, n := range allNodes(g) {
		l := n.Launch
		if l == nil || l.Module < 0 {
			continue
		}
		s.any = true
		blocks := uint64(l.Grid[0]) * uint64(max(l.Grid[1], 1)) * uint64(max(l.Grid[2], 1))
		threads += blocks * uint64(max(l.Block[0], 1)) * uint64(max(l.Block[1], 1)) * uint64(max(l.Block[2], 1))
	}
	if !s.any {
		return s
	}
	switch a.flags.sanitize {
	case sanitizeFull:
		s.level = simt.CheckFull
	case sanitizeFast:
		s.level = simt.CheckFast
	case sanitizeAuto:
		if threads <= mostChecked {
			s.level = simt.CheckUsual
		}
	}
	return s
}

// sanitizeOn refuses checks that were asked for on a device that cannot make them, and makes none there.
func (a *app) sanitizeOn(platform *opened) error {
	if platform.Name() == "cpu" {
		return nil
	}
	if a.flags.sanitize == sanitizeFull || a.flags.sanitize == sanitizeFast {
		return errSanitizeGPU
	}
	a.sanitize = sanitize{}
	return nil
}

// name returns the level as the flag spells it; "" if there is nothing to check.
func (s sanitize) name() string {
	if !s.any {
		return ""
	}
	return [...]string{simt.CheckNothing: sanitizeOff, simt.CheckFast: sanitizeFast, simt.CheckFull: sanitizeFull, simt.CheckUsual: sanitizeAuto}[s.level]
}

// says returns the words about the checks in the line about a run.
func (s sanitize) says() string {
	switch {
	case !s.any:
		return ""
	case s.level != simt.CheckNothing:
		return ", kernels checked (" + s.name() + ")"
	case s.chosen:
		return ", kernels not checked"
	}
	return ", kernels not checked (over a million threads; see --sanitize)"
}

// errSanitizeGPU is the error for asking for checks on a GPU, which cannot make them.
var errSanitizeGPU = errors.New("--sanitize checks kernels on the CPU device; add --backend cpu")
