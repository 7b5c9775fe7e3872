// The C++ program as a process that replays on request, so that its replays alternate with those of dagrun.

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// contender is a running program that answers each "go" with the microseconds of one replay.
type contender struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	errors  bytes.Buffer
}

func startContender(program string, args ...string) (*contender, error) {
	c := &contender{command: exec.Command(program, args...)}
	c.command.Stderr = &c.errors
	var err error
	if c.in, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	if _, err := c.answer("ready"); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// answer reads a line. If want is not "", the line must equal it.
func (c *contender) answer(want string) (string, error) {
	line, err := c.out.ReadString('\n')
	line = strings.TrimSpace(line)
	if err == nil && want != "" && line != want {
		err = fmt.Errorf("answered %q, want %q", line, want)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(c.command.Args, " "), err)
	}
	return line, err
}

func (c *contender) ask(command, want string) (string, error) {
	if _, err := io.WriteString(c.in, command+"\n"); err != nil {
		return "", err
	}
	return c.answer(want)
}

// replay returns the microseconds of one replay.
func (c *contender) replay() (float64, error) {
	line, err := c.ask("go", "")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(line, 64)
}

// close ends the program. Its error includes what the program wrote to stderr.
func (c *contender) close() error {
	err := errors.Join(c.in.Close(), ignoreClosed(c.command.Wait()))
	if err != nil && c.errors.Len() > 0 {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(c.errors.String()))
	}
	return err
}

// ignoreClosed ignores the error of a pipe that Wait has already closed.
func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
