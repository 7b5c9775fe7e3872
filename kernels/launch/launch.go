// Package launch holds the types that every kind of kernel shares: code that a device loads, a launch's arguments, and the plain
// Go version of a kernel that the CPU device runs.
package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unsafe"
)

// Kind is the form of a module's code.
type Kind uint8

// The forms of code.
const (
	PTX Kind = iota
	Cubin
	Fatbin
	Source // CUDA C, compiled for the device when it is loaded
	Calls  // functions of the vendor's library that the module is named after; there is no Code
)

// Module is code that a device can load.
type Module struct {
	Name       string // for messages: "library", or the file as the user named it
	Path       string // where Source was read from; includes are relative to it
	Folder     string // of the pipeline: messages quote no file outside of it; "": they may quote all
	Kind       Kind
	Code       []byte
	Body       string               // of PTX that a driver compiles soon: Code without its header and functions. Modules that have one can be joined
	References map[string]Reference // Go versions by entry; the CPU device runs these
	Build      Build                // how Source is compiled
	Headers    string               // of Source: a hash of the files that it includes, as far as they were found
	Waiting    bool                 // GPUs load the kernels so that each first waits for the launches before it, which lets launches overlap
	MayWait    bool                 // of PTX: the kernels may wait so even where launches do not overlap, so that there is one form to compile; it takes no time
	Parameters map[string][]string  // of Calls: the names of the parameters by entry
	// Machine returns the same kernels as machine code for GPUs of a compute capability, which load it instead of PTX; an error says why there is none.
	// nil: there is only Code.
	Machine func(capability [2]int, waiting bool) (*Machine, error)
}

// Machine is code that GPUs run as it is.
type Machine struct {
	Architecture string // that it was made for, such as "sm_90"
	Kernels      []MachineKernel
}

// MachineKernel is the machine code of one kernel.
type MachineKernel struct {
	Entry string
	Cubin []byte
	Waits bool // for the launches before it; every kernel does if that is asked for
}

// Identity is a hash of the code and of how it is compiled. Kernels of one entry in modules of one identity do the same. nil is an empty module.
func (m *Module) Identity() string {
	if m == nil {
		m = &Module{}
	}
	h := sha256.New()
	fmt.Fprintf(h, "module 1 %d %q %q %q %q\n", m.Kind, m.Build.Compiler, m.Build.Define, m.Build.Options, m.Headers)
	h.Write(m.Code)
	return hex.EncodeToString(h.Sum(nil))
}

// Build says how CUDA C is compiled.
type Build struct {
	Compiler string // "nvrtc", "nvcc" or "clang"; "" or "auto": the first of them that works
	Include  []string
	Define   []Definition
	Options  []string
	// Names are the kernels that are wanted, each as a C++ expression such as "ns::scan<256, float>". Compiled code has them under
	// other names.
	Names []string
}

// Definition is a macro that is defined before the first line.
type Definition struct{ Name, Value string }

// Reference is a kernel in plain Go. It has no state: Run may be called for disjoint spans concurrently and in any order.
type Reference struct {
	// Spans is how many independent parts the work splits into; 1 if it does not split.
	Spans func(c *Call) int64
	// Run computes parts lo to hi-1.
	Run func(c *Call, lo, hi int64)
	// ReadsAll says that it reads every byte that the launch is declared to read, whatever the bytes hold.
	ReadsAll bool
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
