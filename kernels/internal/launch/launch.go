// Package launch holds the types that every kind of kernel shares: code that a device loads, a launch's arguments, and the plain
// Go version of a kernel that the CPU device runs.
package launch

import "unsafe"

// Kind is the form of a module's code.
type Kind uint8

// The forms of code.
const (
	PTX Kind = iota
	Cubin
	Fatbin
	Source // CUDA C, compiled for the device when it is loaded
)

// Module is code that a device can load.
type Module struct {
	Name       string // for messages: "library", or the file as the user named it
	Path       string // where Source was read from; includes are relative to it
	Kind       Kind
	Code       []byte
	References map[string]Reference // Go versions by entry; the CPU device runs these
}

// Reference is a kernel in plain Go. It has no state: Run may be called for disjoint spans at once, in any order.
type Reference struct {
	// Spans is how many independent parts the work splits into; 1 if it does not split.
	Spans func(c *Call) int64
	// Run computes parts lo to hi-1.
	Run func(c *Call, lo, hi int64)
}

// Call is one launch as a reference sees it.
type Call struct {
	Grid, Block [3]uint32
	Shared      uint32
	Args        []Arg
}

// Arg is a buffer's memory or a scalar's bits.
type Arg struct {
	Memory unsafe.Pointer // nil for a scalar, or for a slice of no bytes
	Bytes  int64
	Bits   uint64
}
