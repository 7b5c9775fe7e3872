// How much memory this machine has, on macOS.

package host

import "golang.org/x/sys/unix"

func physicalMemory() int64 {
	bytes, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return assumedMemory
	}
	return int64(bytes)
}
