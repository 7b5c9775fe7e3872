//go:build unix

// The signal that ended a command.

package recorder

import (
	"os/exec"
	"syscall"
)

func signalOf(exit *exec.ExitError) int {
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return int(w.Signal())
	}
	return 0
}
