// Command dagrun plans and runs pipelines of GPU work. See `dagrun --help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run()) }

// run is main with a result, so that tests can call the command as a function.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	root := app.command()
	root.SetArgs(os.Args[1:])
	err := root.ExecuteContext(ctx)
	status := statusOf(err)
	var quiet *reported
	if err != nil && !errors.As(err, &quiet) {
		fmt.Fprintln(app.stderr, app.paintError(err))
	}
	return status
}
