// Command dagrun plans and runs pipelines of GPU work. See `dagrun --help`.
package main

import (
	"context"
	"os"
)

func main() { os.Exit(run()) }

// run is main with a result, so that tests can call the command as a function.
func run() int {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	ctx, stop := a.Interrupted(context.Background())
	defer stop()
	return a.execute(ctx, os.Args[1:])
}
