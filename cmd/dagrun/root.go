// The command tree: how the commands are put together, run, and ended with an exit status.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/catalog"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/cli"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/editing"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/exported"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/measuring"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/pictures"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/planning"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/recordings"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/running"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/runs"
	"github.com/dagrun/dagrun/cmd/dagrun/internal/session"
	"github.com/dagrun/dagrun/kernels"
)

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	shared := &session.Session{Console: cli.New(stdin, stdout, stderr), Compilers: &kernels.Compilers{}}
	prepared := &runs.Runs{Ranks: &session.Ranks{Session: shared}}
	drawn := &pictures.Pictures{Runs: prepared}
	graphs, recorded := &exported.Exported{Pictures: drawn}, &recordings.Recordings{Session: shared}
	return &app{
		Session:   shared,
		running:   &running.Commands{Runs: prepared, Exported: graphs},
		planning:  &planning.Commands{Pictures: drawn, Exported: graphs, Recordings: recorded},
		measuring: &measuring.Commands{Pictures: drawn, Recordings: recorded},
		exported:  graphs,
		catalog:   &catalog.Commands{Runs: prepared, Recordings: recorded},
		editing:   &editing.Commands{Session: shared},
	}
}

// execute runs the command line and returns its exit status.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.command()
	root.SetArgs(flags.JoinGraph(args))
	ran, err := guarded(ctx, root)
	if ran != nil && a.Flags != a.ValuesOf(ran) { // a wrong flag ends a command before it begins
		a.Flags = a.ValuesOf(ran)
	}
	a.Progress.End()
	err = a.WordError(ran, err)
	if times := a.Progress.Times(); len(times) > 0 {
		a.Log.Info("took", times...)
	}
	if cut := a.Stdout.Failure(); cut != nil {
		err = cut
	}
	status := cli.StatusOf(err)
	var quiet *cli.Reported
	if err != nil && !errors.As(err, &quiet) {
		a.PrintError(err)
	}
	if err != nil && a.Flags.Output == "json" && !a.Answered {
		a.AnswerError(err, status)
	}
	return status
}

// guarded runs a command. A mistake in dagrun itself becomes an error like any other, with its place.
func guarded(ctx context.Context, root *cobra.Command) (ran *cobra.Command, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = cli.WithStatus(cli.StatusInternal, fmt.Errorf("internal error, please report it: %v\n%s", v, debug.Stack()))
		}
	}()
	return root.ExecuteContextC(ctx)
}

// command builds the tree.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "dagrun FILE",
		Short: "Plan and run pipelines of GPU work",
		Long: `dagrun takes a pipeline of copies and kernels, decides which CUDA stream each node
runs on and where streams must wait for each other, proves that decision right, and
replays it. Without a GPU it runs on the CPU.

Results go to stdout, the rest to stderr. Exit status:` + cli.StatusText(),
		Example: `  dagrun init first && dagrun first.yaml         a pipeline to start with
  dagrun pipelines/saxpy.yaml                    run one
  dagrun plan pipelines/saxpy.yaml               see the schedule
  dagrun pipelines/saxpy.yaml -p n=4096 --graph  other parameters, as one CUDA graph
  dagrun check pipelines/race.yaml               find mistakes and races without running`,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(flags.FlagError)
	root.PersistentPreRun = func(c *cobra.Command, _ []string) { a.Flags = a.ValuesOf(c) }
	root.CompletionOptions.HiddenDefaultCmd = false
	a.running.RunCommand(root)
	a.catalog.VersionFlag(root)
	run := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a pipeline and check its results",
		Long: `Run a pipeline and check its results: every expect of the file is compared, every save is
written. dagrun FILE does the same; FILE may be - for standard input.

The result is the state after exactly --iterations replays. Warm-up replays come first,
and initial contents are restored after them.`,
		Example: `  dagrun run pipelines/saxpy.yaml
  dagrun run pipelines/saxpy.yaml -p n=4096 -p alpha=3
  dagrun run pipelines/chunks.yaml --graph --iterations 1000 --warmup 10
  dagrun run pipelines/chunks.yaml --inflight 3 --iterations 1000
  dagrun run pipelines/saxpy.yaml --verify               compare with a serial run on the CPU
  dagrun run pipelines/two-devices.yaml --backend cpu:2  two CPU devices
  dagrun run pipelines/saxpy.yaml --output json`,
	}
	a.running.RunCommand(run)
	root.AddCommand(run, a.planning.PlanCommand(), a.planning.DotCommand(), a.planning.CheckCommand(), a.exported.ExportCommand(), a.running.RecordCommand(),
		a.measuring.BenchCommand(), a.measuring.TraceCommand(), a.editing.FormatCommand(),
		a.catalog.KernelsCommand(), a.catalog.DevicesCommand(), a.editing.SchemaCommand(), a.editing.InitCommand(), a.editing.LanguageServerCommand(),
		a.measuring.TuneCommand(), a.catalog.CacheCommand(), a.running.LaunchCommand(), a.catalog.VersionCommand())
	root.SetHelpCommand(a.helpCommand(root))
	a.explainCompletion(root)
	a.completes(root)
	return root
}
