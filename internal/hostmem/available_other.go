// Systems that do not say how much memory a process can still take.

//go:build !linux

package hostmem

// Available returns how many bytes this process can still take; false where that cannot be known.
func Available() (int64, bool) { return 0, false }
