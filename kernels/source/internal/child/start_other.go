//go:build !linux

// Starting a compiler on other systems than Linux.

package child

import "os/exec"

func start(c *Command, command *exec.Cmd) error {
	if c.Confined != nil {
		return errCannotConfine
	}
	grouped(command)
	return runToEnd(command, true)
}
