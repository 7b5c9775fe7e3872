// Running a compiler: started with its limits, and ended with everything that it has started.

// Package child runs compilers in processes of their own. They get a temporary folder and limits of time and memory, and they end when this
// process does, however it ends. On request they cannot read or write files elsewhere, or use a network.
package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"time"

	"github.com/dagrun/dagrun/internal/words"
)

var (
	// outOfMemory is what compilers say when they get no more memory.
	outOfMemory = regexp.MustCompile(`(?i)out of memory|bad_alloc|cannot allocate memory|memory exhausted`)
	// placed is an error in the source. Compilers quote the line, which may be what a program says when it gets no memory itself.
	placed = regexp.MustCompile(`(?m)^\S.*(?:\(\d+\)|:\d+:\d+): (?:catastrophic |fatal )?error: `)
)

// Run runs the command until it ends or the context does. The error is an *exec.ExitError where the compiler itself has failed.
func (c *Command) Run(ctx context.Context) (*Output, error) {
	limited, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	var out, log bytes.Buffer
	command := exec.CommandContext(limited, c.Path, c.Args...)
	command.Env, command.Stdin, command.Stdout, command.Stderr = c.environment(), bytes.NewReader(c.Stdin), &out, &log
	command.WaitDelay = 10 * time.Second // for processes that have left its group
	err := start(c, command)
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil || errors.As(err, &ended) && usedUp(ended.ProcessState):
		return nil, fmt.Errorf("it was ended after %s, the limit of a compiler; compile the source to PTX beforehand", mostTime)
	case errors.As(err, &ended) && outOfMemory.Match(log.Bytes()) && !placed.Match(log.Bytes()):
		return nil, fmt.Errorf("it needs more than %s, the limit of a compiler; compile the source to PTX beforehand", words.Bytes(mostMemory))
	}
	return &Output{out.Bytes(), log.Bytes()}, err
}

// Ask runs a compiler that says something about itself.
func Ask(path string, args ...string) ([]byte, error) {
	said, err := (&Command{Path: path, Args: args, Env: os.Environ()}).Run(context.Background())
	if err != nil {
		return nil, err
	}
	return said.Out, nil
}
