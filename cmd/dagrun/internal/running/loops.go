// Loops and branches on the command line: what they did, and the nodes in them.

package running

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/internal/words"
	"github.com/dagrun/dagrun/runtime"
)

// printLoops prints what loops and branches did in the last replay.
func (u *Commands) printLoops(loops []runtime.Loop) {
	width := 0
	for _, l := range loops {
		width = max(width, words.Width(words.Line(l.Node)))
	}
	for _, l := range loops {
		switch name := words.Pad(words.Line(l.Node), width); {
		case !l.OK:
			_ = u.Stdout.Printf("  %s  %s  %s\n", u.Paint(u.Stdout, cli.Red, "FAIL"), name, l.Text())
		case !u.Flags.Quiet:
			_ = u.Stdout.Printf("  %s    %s  %s\n", u.Paint(u.Stdout, cli.Green, "ok"), name, l.Text())
		}
	}
}
