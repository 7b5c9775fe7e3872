// Starting a compiler on Linux: it dies with this process, and may be confined.

package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// start runs a command to its end. The kernel ends it when the thread ends that has started it, and what confines it holds for that thread too,
// which therefore does nothing else; a confined one is not used again.
func start(c *Command, command *exec.Cmd) error {
	grouped(command)
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if c.Confined == nil {
			defer runtime.UnlockOSThread()
		} else if err := confine(c); err != nil {
			done <- err
			return
		}
		done <- runToEnd(command, c.Parent)
	}()
	return <-done
}
