// How much memory this process can still allocate on Linux: limited by the machine, its container and its resource limits.

package hostmem

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// margin is kept for Go's own memory if address space is limited, because its heap grows by 64 MiB at a time.
const margin = 192 << 20

// Available returns how many bytes this process can still allocate; false if that is unknown.
func Available() (int64, bool) {
	least, known := int64(0), false
	limit := func(free int64, ok bool) {
		if ok && (!known || free < least) {
			least, known = max(0, free), true
		}
	}
	info := fields("/proc/meminfo")
	free, ok := info["MemAvailable"]
	limit(free+info["SwapFree"], ok)
	own := fields("/proc/self/status")
	limit(left(unix.RLIMIT_AS, own["VmSize"]))
	limit(left(unix.RLIMIT_DATA, own["VmData"]))
	for _, group := range groups() {
		most, ok := number(path.Join(group, "memory.max"))
		used, usedOK := number(path.Join(group, "memory.current"))
		limit(most-used+inactive(group), ok && usedOK)
	}
	return least, known
}

// left returns how much memory a resource limit of the process leaves.
func left(resource int, used int64) (int64, bool) {
	var l unix.Rlimit
	if err := unix.Getrlimit(resource, &l); err != nil || l.Cur >= 1<<62 {
		return 0, false
	}
	return int64(l.Cur) - used - margin, true
}

// fields reads lines such as "MemAvailable:  123 kB" as bytes.
func fields(name string) map[string]int64 {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	found := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		key, rest, _ := strings.Cut(lines.Text(), ":")
		value, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && unit == "kB" {
			found[key] = n << 10
		}
	}
	return found
}

// groups are the folders of this process's control group (version 2) and of those above it.
func groups() []string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var list []string
	for _, line := range strings.Split(string(text), "\n") {
		if name, ok := strings.CutPrefix(line, "0::"); ok {
			for name = path.Clean("/" + name); ; name = path.Dir(name) {
				list = append(list, path.Join("/sys/fs/cgroup", name))
				if name == "/" {
					break
				}
			}
		}
	}
	return list
}

// number reads a file with one number; "max" is none.
func number(name string) (int64, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// inactive returns the bytes of a group's cached files that are not in use, which the kernel frees on demand.
func inactive(group string) int64 {
	text, err := os.ReadFile(path.Join(group, "memory.stat"))
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(text), "\n") {
		if value, ok := strings.CutPrefix(line, "inactive_file "); ok {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				return n
			}
		}
	}
	return 0
}
