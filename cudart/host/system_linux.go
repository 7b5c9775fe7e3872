// How much memory this machine has, on Linux.

package host

import "golang.org/x/sys/unix"

func physicalMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return assumedMemory
	}
	return int64(info.Totalram) * int64(info.Unit)
}
