// Errors of devices: which call failed, why according to the driver, and for which command.

package cudart

import (
	"errors"
	"fmt"
	"strings"
)

// Errors for callers to test with errors.Is. An *Error matches the one that belongs to its code.
var (
	ErrNoDriver    = errors.New("no NVIDIA driver")
	ErrNoDevice    = errors.New("no device")
	ErrOutOfMemory = errors.New("out of memory")
	// ErrPoisoned: an earlier fault made the context unusable. Only a new process gets a working one.
	ErrPoisoned    = errors.New("the device context is unusable after an earlier fault; a new process is needed")
	ErrUnsupported = errors.New("not supported")
	// ErrLeak: a platform was closed while something that it had made was still open.
	ErrLeak = errors.New("not closed")
)

// Error is a failed device call.
type Error struct {
	Call   string // "cuLaunchKernel"
	Name   string // "CUDA_ERROR_ILLEGAL_ADDRESS"
	Code   int
	Text   string // the driver's description
	Device int32
	Label  string // the command's label, "" if the call belongs to none
	Node   int32  // the command's node, -1 if it belongs to none
	Index  int    // the command's index in its list, -1 if it belongs to none
	Detail string // more lines, such as a compiler's log
	Err    error  // a sentinel, or nil
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Label != "" {
		fmt.Fprintf(&b, "node %q: ", e.Label)
	}
	fmt.Fprintf(&b, "%s: %s (%d)", e.Call, e.Name, e.Code)
	if e.Text != "" {
		b.WriteString(": " + e.Text)
	}
	if e.Detail != "" {
		b.WriteString("\n" + e.Detail)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// RaceError is a missing wait: two commands access the same bytes, at least one of them writes, and nothing orders them.
type RaceError struct {
	First, Second RaceAccess
	Buffer        string // its name, or a description of the memory
	From, To      int64  // the bytes of the buffer that both access
}

// RaceAccess is one side of a RaceError.
type RaceAccess struct {
	Label        string // of the command, like Node and Index
	Node         int32
	Index        int
	Stream       Stream // nil in a graph
	StreamNumber int32  // the number of the stream, in the order in which the platform made them; -1 in a graph
	Write        bool
}

func (e *RaceError) Error() string {
	return fmt.Sprintf("%s %s %s[%d:%d], which %s %s, and nothing orders the two: a wait is missing",
		e.Second.who(), e.Second.does(), e.Buffer, e.From, e.To, e.First.who(), e.First.does())
}

func (a RaceAccess) who() string {
	if a.StreamNumber < 0 {
		return fmt.Sprintf("node %q (graph)", a.Label)
	}
	return fmt.Sprintf("node %q (stream %d)", a.Label, a.StreamNumber)
}

func (a RaceAccess) does() string {
	if a.Write {
		return "writes"
	}
	return "reads"
}
