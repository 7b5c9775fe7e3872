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
	return a.execute(a.Interrupted(context.Background()), os.Args[1:])
}
