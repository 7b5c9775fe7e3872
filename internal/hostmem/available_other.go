// Available on systems that do not report how much memory a process can still allocate.

//go:build !linux

package hostmem

// Available returns how many bytes this process can still allocate; false if that is unknown.
func Available() (int64, bool) { return 0, false }
