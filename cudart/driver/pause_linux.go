// Pausing a thread, as exactly as Linux can.

package driver

import (
	"syscall"
	"time"
)

// pause sleeps for about that long, or shorter if a signal arrives. time.Sleep takes a millisecond at least where nothing else runs, which replays that
// are waited for would seem to take.
func pause(length time.Duration) {
	t := syscall.NsecToTimespec(length.Nanoseconds())
	_ = syscall.Nanosleep(&t, nil)
}
