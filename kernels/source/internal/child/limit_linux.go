// Setting the limits of a compiler on Linux.

package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// limit sets the limits of a process that has just been started. What it starts inherits them.
func limit(pid int) {
	seconds, memory := uint64(mostTime.Seconds()), uint64(mostMemory)
	for resource, limits := range map[int]unix.Rlimit{
		unix.RLIMIT_AS:   {Cur: memory, Max: memory},
		unix.RLIMIT_CPU:  {Cur: seconds, Max: seconds + 1}, // SIGXCPU, and a second later SIGKILL for those that catch it
		unix.RLIMIT_CORE: {},
	} {
		_ = unix.Prlimit(pid, resource, &limits, nil) // it may have ended already
	}
}

// usedUp reports whether a process was ended because of its processor time.
func usedUp(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGXCPU || status.Signal() == syscall.SIGKILL && state.UserTime()+state.SystemTime() >= mostTime)
}
