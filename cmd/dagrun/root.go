// The command tree: how the commands are put together, run, and ended with an exit status.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dagrun/dagrun/cmd/dagrun/internal/flags"
	"github.com/dagrun/dagrun/kernels"
)

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	a := &app{stdin: stdin, stdout: newSink(stdout), stderr: newSink(stderr), Sets: flags.New(), self: os.Executable, compilers: &kernels.Compilers{}}
	a.patience.Store(int64(grace))
	a.progress = newProgress(a.stderr)
	a.log = slog.New(&logHandler{app: a})
	return a
}

// execute runs the command line and returns its exit status.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.command()
	root.SetArgs(flags.JoinGraph(args))
	ran, err := guarded(ctx, root)
	if ran != nil && a.Flags != a.ValuesOf(ran) { // a wrong flag ends a command before it begins
		a.Flags = a.ValuesOf(ran)
	}
	a.progress.end()
	err = a.explain(ran, err)
	if times := a.progress.times(); len(times) > 0 {
		a.log.Info("took", times...)
	}
	if cut := a.stdout.failure(); cut != nil {
		err = cut
	}
	status := statusOf(err)
	var quiet *reported
	if err != nil && !errors.As(err, &quiet) {
		a.printError(err)
	}
	if err != nil && a.Flags.Output == "json" && !a.answered {
		a.answerError(err, status)
	}
	return status
}

// guarded runs a command. A mistake in dagrun itself becomes an error like any other, with its place.
func guarded(ctx context.Context, root *cobra.Command) (ran *cobra.Command, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = withStatus(statusInternal, fmt.Errorf("internal error, please report it: %v\n%s", v, debug.Stack()))
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

Results go to stdout, the rest to stderr. Exit status:` + statusText(),
		Example: `  dagrun init first && dagrun first.yaml         a pipeline to start with
  dagrun pipelines/saxpy.yaml                    run one
  dagrun plan pipelines/saxpy.yaml               see the schedule
  dagrun pipelines/saxpy.yaml -p n=4096 --graph  other parameters, as one CUDA graph
  dagrun check pipelines/race.yaml               find mistakes and races without running`,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flags.FlagError)
	root.PersistentPreRun = func(c *cobra.Command, _ []string) { a.Flags = a.ValuesOf(c) }
	root.CompletionOptions.HiddenDefaultCmd = false
	a.runCommand(root)
	a.versionFlag(root)
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
	a.runCommand(run)
	root.AddCommand(run, a.planCommand(), a.dotCommand(), a.checkCommand(), a.exportCommand(), a.recordCommand(), a.benchCommand(), a.traceCommand(), a.formatCommand(),
		a.kernelsCommand(), a.devicesCommand(), a.schemaCommand(), a.initCommand(), a.languageServerCommand(), a.tuneCommand(), a.cacheCommand(), a.launchCommand(), a.versionCommand())
	root.SetHelpCommand(a.helpCommand(root))
	a.explainCompletion(root)
	a.completes(root)
	return root
}
