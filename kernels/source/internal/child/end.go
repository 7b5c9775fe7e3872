// Running a process to its end.

package child

import (
	"errors"
	"os/exec"
)

// runToEnd starts a command and waits for it. A parent gets a process beside it that ends all of its group when this process ends.
func runToEnd(command *exec.Cmd, parent bool) error {
	if err := command.Start(); err != nil {
		return err
	}
	limit(command.Process.Pid)
	if parent {
		end, err := watch(command)
		if err != nil {
			return errors.Join(err, command.Process.Kill(), command.Wait())
		}
		defer end.Close()
	}
	return command.Wait()
}
