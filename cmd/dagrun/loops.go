// Loops and branches on the command line: what they did, and the nodes in them.

package main

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/runtime"
)

// printLoops prints what loops and branches did in the last replay.
func (a *app) printLoops(loops []runtime.Loop) {
	width := 0
	for _, l := range loops {
		width = max(width, words.Width(words.Line(l.Node)))
	}
	for _, l := range loops {
		switch name := words.Pad(words.Line(l.Node), width); {
		case !l.OK:
			_ = a.Stdout.Printf("  %s  %s  %s\n", a.Paint(a.Stdout, cli.Red, "FAIL"), name, l.Text())
		case !a.Flags.Quiet:
			_ = a.Stdout.Printf("  %s    %s  %s\n", a.Paint(a.Stdout, cli.Green, "ok"), name, l.Text())
		}
	}
}
