//go:build unix

// A compiler's processes are a group, which is ended as a whole.

package child

import (
	"io"
	"os/exec"
	"syscall"
)

// grouped puts a command into a group of its own, which ends with the context.
func grouped(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}

// watch starts a shell in a command's group. It waits for its input to end, which happens when this process does, and then ends the group.
func watch(command *exec.Cmd) (io.Closer, error) {
	shell := exec.Command("/bin/sh", "-c", "read nothing; kill -KILL 0")
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: command.Process.Pid}
	input, err := shell.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := shell.Start(); err != nil {
		return nil, err
	}
	return &watcher{shell, input}, nil
}

// watcher is a shell that watches. Closing it ends what the compiler has left behind.
type watcher struct {
	shell *exec.Cmd
	input io.Closer
}

func (w *watcher) Close() error {
	err := w.input.Close()
	_ = w.shell.Wait() // it kills itself
	return err
}
