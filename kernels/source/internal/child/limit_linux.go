// Setting the limits of a compiler on Linux.

package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// limit sets the limits of a process that has just been started. What it starts inherits them.
func limit(pid int) {
	seconds := uint64(mostTime.Seconds())
	for resource, most := range map[int]uint64{unix.RLIMIT_AS: uint64(mostMemory), unix.RLIMIT_CPU: seconds, unix.RLIMIT_CORE: 0} {
		_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil) // it may have ended already
	}
}

// usedUp reports whether a process was ended because of its processor time.
func usedUp(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGXCPU || status.Signal() == syscall.SIGKILL && state.UserTime()+state.SystemTime() >= mostTime)
}
