// A test of how launch tells ranks that are stopped.

package running

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStoppedProcessesAreTold(t *testing.T) {
	child := exec.Command("sleep", "1000")
	require.NoError(t, child.Start())
	defer func() { _ = child.Wait() }()
	defer func() { _ = child.Process.Kill() }()
	require.False(t, isStopped(child.Process.Pid))
	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	for !isStopped(child.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
}
