// On systems where no driver can be opened, nothing waits for one.

//go:build !linux

package driver

import "time"

// pause sleeps for about that long.
func pause(length time.Duration) { time.Sleep(length) }
