// Loops and branches on the command line: what they did, and the nodes in them.

package main

import (
	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
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

// noteStreams tells someone who asked for a graph that the program runs as streams, and why.
func (a *app) noteStreams(program *runtime.Program, mode runtime.Mode) {
	if why := program.NoGraph(); why != "" && (mode == runtime.Captured || mode == runtime.Built) {
		a.noteNoGraph(why)
	}
}

func (a *app) noteNoGraph(why string) {
	a.Note("it runs as streams, not as a graph: %s; the host tests the conditions of loops and branches", why)
}

// preferGraph makes a pipeline with loops or branches run as a graph on a GPU, unless the user or an earlier run chose otherwise: in streams, the host waits
// for the device before each test, which takes longer than a conditional node.
func (a *app) preferGraph(p *prepared, o *runtime.Options) {
	if p.graph.HasControl() && p.platform.Name() == "cuda" && a.Flags.Replay == flags.GraphAuto && !a.Flags.Chosen && o.Mode == runtime.Streams && !p.learning.chose() {
		o.Mode = runtime.Captured
	}
}
