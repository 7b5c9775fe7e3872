// Which process started this process's session.

package world

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// starter names the process that started this process's session. MPICH's starter of processes begins a session for each rank, and tells
// them nothing else that is the same on all ranks of a job and different in other jobs. It is "" where that cannot be known.
func starter() string {
	session, err := unix.Getsid(0)
	if err != nil {
		return ""
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", session))
	if err != nil {
		return ""
	}
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // behind its name: its state, its parent, ...
	if len(fields) < 2 {
		return ""
	}
	return fields[1]
}
