// Ranks that launch has started, where it is ended by force: they end too. And which of them are stopped, and cannot end by themselves.

package running

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// endWithLauncher makes the kernel interrupt a process when the thread ends that starts it.
func endWithLauncher(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}

// isStopped reports whether a process is stopped, by SIGSTOP or by a debugger.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	state := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:]) // behind its name
	return len(state) > 0 && (state[0] == 'T' || state[0] == 't')
}
