// Whether this system can confine compilers, which some scripts need.

package main

import "golang.org/x/sys/unix"

func init() {
	confines = func() bool {
		version, _, problem := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
		return problem == 0 && version >= 3
	}
}
