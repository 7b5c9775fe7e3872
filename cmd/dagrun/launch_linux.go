// Ranks that launch has started, where it is ended by force: they end too.

package main

import (
	"os/exec"
	"syscall"
)

// endWithLauncher makes the kernel interrupt a process when the thread ends that starts it.
func endWithLauncher(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
