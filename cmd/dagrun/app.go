// The command tree: what is shared by all commands, and how they hang together.

package main

import (
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// app is what every command has: where it reads and writes, and the shared flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	flags          flags
}

// command builds the tree.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "dagrun FILE",
		Short: "Plan and run pipelines of GPU work",
		Long: `dagrun takes a pipeline of copies and kernels, decides which CUDA stream each node
runs on and where streams must wait for each other, proves that decision right, and
replays it. Without a GPU it runs on the CPU.`,
		Example: `  dagrun pipelines/saxpy.yaml                    run it
  dagrun plan pipelines/saxpy.yaml               see the schedule
  dagrun saxpy.yaml -p n=4096 --graph            other parameters, as one CUDA graph
  dagrun check mine.yaml                         find mistakes and races without running`,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetVersionTemplate("dagrun {{.Version}}\n")
	a.runCommand(root)
	run := &cobra.Command{Use: "run FILE", Short: "Run a pipeline and check its results"}
	a.runCommand(run)
	root.AddCommand(run, a.planCommand(), a.dotCommand(), a.checkCommand(), a.initCommand())
	return root
}

// version is the module's version as the Go tool recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// colored reports whether w takes colours: a terminal, unless the flag or NO_COLOR says otherwise.
func (a *app) colored(w io.Writer) bool {
	switch a.flags.color {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// paint wraps text in an SGR colour where w takes colours.
func (a *app) paint(w io.Writer, sgr, text string) string {
	if !a.colored(w) {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

func (a *app) paintError(err error) string {
	return a.paint(a.stderr, "31", "dagrun:") + " " + err.Error()
}
