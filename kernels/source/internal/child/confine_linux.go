// Confining a thread, and what it starts, on Linux: Landlock bounds the files, and seccomp denies sockets and other processes' memory.

package child

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	oldestLandlock = 3      // the first version that bounds truncation
	landlockFiles  = 0x7fff // all kinds of access that version 3 bounds
	readFiles      = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	oneFile        = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// confine confines this thread for ever.
func confine(c *Command) error {
	machine, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	version, _, problem := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if !known || problem != 0 || version < oldestLandlock {
		return errCannotConfine
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("%w: %w", errCannotConfine, err)
	}
	if err := boundFiles(c, int(version)); err != nil {
		return fmt.Errorf("%w: Landlock: %w", errCannotConfine, err)
	}
	if err := denyNetwork(machine); err != nil {
		return fmt.Errorf("%w: seccomp: %w", errCannotConfine, err)
	}
	return nil
}

// boundFiles leaves the thread the files that the command may use.
func boundFiles(c *Command, version int) error {
	rules := unix.LandlockRulesetAttr{Handled_access_fs: landlockFiles}
	if version >= 4 {
		rules.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	fd, _, problem := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if problem != 0 {
		return problem
	}
	defer unix.Close(int(fd))
	allow := func(path string, access uint64) error {
		return allowBelow(int(fd), path, access)
	}
	for _, path := range append(append(append([]string{}, systemFolders...), ownFolders(c.Path)...), c.Confined...) {
		if err := allow(path, readFiles); err != nil {
			return err
		}
	}
	for path, access := range map[string]uint64{"/dev/null": oneFile, "/dev/zero": unix.LANDLOCK_ACCESS_FS_READ_FILE,
		"/dev/urandom": unix.LANDLOCK_ACCESS_FS_READ_FILE} {
		if err := allow(path, access); err != nil {
			return err
		}
	}
	if c.Folder != "" {
		if err := allow(c.Folder, landlockFiles); err != nil {
			return err
		}
	}
	if _, _, problem := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); problem != 0 {
		return problem
	}
	return nil
}

// allowBelow allows access to a file, or to all that is below a folder. A path that does not exist allows nothing.
func allowBelow(rules int, path string, access uint64) error {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var info unix.Stat_t
	if err := unix.Fstat(at, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= oneFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(at)}
	if _, _, problem := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0,
		0, 0); problem != 0 {
		return problem
	}
	return nil
}

// deniedCalls make connections, or reach other processes.
var deniedCalls = []uint32{unix.SYS_SOCKET, unix.SYS_IO_URING_SETUP, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV}

// denyNetwork makes these calls fail. Calls by the numbers of another machine (32 bits on one of 64) all fail.
func denyNetwork(machine uint32) error {
	const (
		number, architecture = 0, 4 // offsets in what a filter sees
		load                 = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal                = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast              = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		end                  = unix.BPF_RET | unix.BPF_K
		firstX32             = 0x40000000 // amd64 has a second set of numbers from here on
	)
	checks := len(deniedCalls)
	filter := []unix.SockFilter{
		{Code: load, K: architecture},
		{Code: equal, K: machine, Jt: 0, Jf: uint8(checks + 3)},
		{Code: load, K: number},
		{Code: atLeast, K: firstX32, Jt: uint8(checks + 1), Jf: 0},
	}
	for k, call := range deniedCalls {
		filter = append(filter, unix.SockFilter{Code: equal, K: call, Jt: uint8(checks - k), Jf: 0})
	}
	filter = append(filter, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW}, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, problem := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if problem != 0 {
		return problem
	}
	return nil
}
