// The interfaces of platforms, streams, events, kernels, lists and graphs.

// Package cudart defines what programs run on: the interface [Platform]. cudart/driver implements it with NVIDIA's driver API and
// cudart/host with the CPU. To write a platform of your own, implement the interfaces here and run the tests of cudart/conformance on it.
//
// The methods of a platform, and of what it makes, may be called from any goroutine. They return an error for bad arguments and for things
// that are closed.
package cudart

import (
	"context"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels/conditions"
	"github.com/dagrun/dagrun/kernels/launch"
)

// Platform is all devices of one kind that this process can use.
type Platform interface {
	// Name is "cuda" or "cpu".
	Name() string
	// Devices describes the devices; an index into the result is a device number. It creates no context.
	Devices() []Info
	// MemoryInfo returns how many bytes of a device's memory are free, and how many there are.
	MemoryInfo(device int32) (free, total int64, err error)

	// Alloc allocates device memory, aligned to 256 bytes. Its contents are unspecified. Zero bytes are allowed.
	Alloc(device int32, bytes int64) (Ptr, error)
	// AllocHost allocates host memory. Unless it is pageable, it is pinned for all devices.
	AllocHost(bytes int64, pageable bool) (Ptr, error)
	// RegisterHost pins memory that the caller owns, so that copies from and to it are asynchronous, until UnregisterHost.
	RegisterHost(memory []byte) (Ptr, error)
	UnregisterHost(Ptr) error
	// Free frees memory of Alloc or AllocHost. Work that uses the memory must have finished.
	Free(Ptr) error
	// HostBytes returns the memory behind a host pointer, or nil if the range is not inside one block of this platform's host memory.
	HostBytes(p Ptr, bytes int64) []byte
	// EnablePeer lets kernels of one device access another device's memory. It succeeds if access is already enabled.
	EnablePeer(device, peer int32) error

	// NewStream makes a stream, which does not wait for the default stream.
	NewStream(device int32, priority dag.Priority) (Stream, error)
	// AdoptStream wraps a stream that the caller owns, given by its CUstream handle. Close does not destroy that stream.
	AdoptStream(handle uintptr) (Stream, error)
	// NewEvent makes an event. Only timed events have Since.
	NewEvent(device int32, timed bool) (Event, error)

	// Load loads a module's kernels on a device immediately, not at their first launch.
	Load(ctx context.Context, device int32, module *launch.Module) (Module, error)

	// Encode prepares commands once, as a list that can be submitted many times. The memory that the commands use, and their streams,
	// events and modules, must stay open as long as the list is submitted.
	Encode(commands []Command, options ListOptions) (List, error)
	// BuildGraph makes an executable graph, with a node for each command. deps[i] are the indices of the commands that commands[i] waits
	// for. Streams, records and waits order nothing in a graph; a record of a timed event becomes a node that takes the time.
	BuildGraph(commands []Command, deps [][]int32, options GraphOptions) (Graph, error)
	// TakesDeciders reports whether loops and branches in graphs need the kernel of a [conditions.Decider]. If not, the platform tests conditions
	// itself, or can have no such graphs.
	TakesDeciders() bool

	// Synchronize waits for everything on a device, or for the context to end.
	Synchronize(ctx context.Context, device int32) error
	// Live counts resources that were made and are not closed yet. Tests use it to find leaks.
	Live() Live
	Close() error
}

// Ptr is an address, of host or device memory.
type Ptr uint64

// Info describes a device. A number that the platform does not know is 0.
type Info struct {
	Name               string
	UUID               string
	Memory             int64
	Multiprocessors    int
	Capability         [2]int // {9, 0}
	ClockKHz           int
	MemoryClockKHz     int
	MemoryBusBits      int
	L2Bytes            int
	CopyEngines        int
	MaxThreadsPerBlock int
	MaxBlock, MaxGrid  [3]int
	ThreadsPerSM       int
	BlocksPerSM        int
	SharedPerBlock     int // without opt-in
	SharedPerBlockMax  int // with opt-in
	SharedPerSM        int
	Driver             string // "13.0"
	Peers              []bool // by device number: whether peer access is possible
}

// Live counts resources that are open.
type Live struct{ Memory, Streams, Events, Modules, Lists, Graphs int }

// Stream is an in-order queue.
type Stream interface {
	Device() int32
	// Handle is the CUstream. On the CPU device, it is a number for AdoptStream of the same platform.
	Handle() uintptr
	// Synchronize waits until the stream is empty and returns the first error of its work. If the context ends first, it returns the context's error.
	Synchronize(ctx context.Context) error
	// Query reports whether the stream is empty.
	Query() (bool, error)
	Close() error
}

// Event marks a place in a stream.
type Event interface {
	// Query reports whether the last record has happened.
	Query() (bool, error)
	// Synchronize waits until the last record has happened, or until the context ends.
	Synchronize(ctx context.Context) error
	// Since returns the microseconds from an earlier event to this one. Both must be timed, and have happened.
	Since(earlier Event) (float64, error)
	Close() error
}

// Module is loaded code.
type Module interface {
	Kernel(entry string) (Kernel, error)
	// Global returns where a variable of the module lies, and its bytes. Its name is that of the code, or "&" and how C++ names it if
	// the module's Build asked for it in this form. The memory belongs to the module.
	Global(name string) (Ptr, int64, error)
	// Warnings returns what a user should know about the module, for example that it has writable globals.
	Warnings() []string
	Close() error
}

// Kernel is a loaded kernel.
type Kernel interface {
	Attributes() KernelAttributes
	// Occupancy returns the one-dimensional block size that keeps most threads resident, given the shared memory of a block, and how many
	// such blocks fit on a multiprocessor.
	Occupancy(shared uint32) (block uint32, blocksPerSM int, err error)
	// SetMaxShared allows launches with up to this many bytes of dynamic shared memory.
	SetMaxShared(bytes uint32) error
}

// KernelAttributes holds what the driver knows about a loaded kernel.
type KernelAttributes struct {
	MaxThreads    int
	Registers     int
	SharedStatic  int
	Local         int
	PTXVersion    int
	BinaryVersion int
	// WaitsFirst says that the loaded code waits for the launches before it (griddepcontrol.wait) before it does anything else.
	WaitsFirst bool
	// ParamSizes are the sizes of the parameters in bytes, nil if they are not known.
	ParamSizes []int
}

// CommandKind says what a Command does.
type CommandKind uint8

const (
	LaunchKernel CommandKind = iota
	CopyMemory
	SetMemory
	RecordEvent
	WaitEvent
	Empty     // does nothing; in a graph, a node that only orders other nodes
	RangePush // begins a range for profilers (NVTX), named Label; no work on the device
	RangePop
	Communicate // does something together with other ranks
	RunBodies   // a loop or branch, in graphs only
	RunHost     // runs a Go function on a thread of the host
)

// Command is one entry of a list.
type Command struct {
	Kind   CommandKind
	Stream Stream
	Label  string // the node's name, for errors, traces and ranges
	Node   int32  // the node's id, -1 if the command belongs to none

	Event Event // RecordEvent, WaitEvent

	Kernel      Kernel // LaunchKernel
	Grid, Block [3]uint32
	Shared      uint32
	Cooperative bool      // all blocks run at once
	Cluster     [3]uint32 // blocks of a thread block cluster; all zero: as the code of the kernel says
	// Early says that the launch may begin before the launch before it has ended: in a list the one just before it on its stream, in a graph
	// the one that it depends on, if that is all. Its kernel must wait for it (KernelAttributes.WaitsFirst).
	Early    bool
	Args     []Value
	Priority dag.Priority // of the graph node

	Dst, Src                 Ptr   // CopyMemory; SetMemory: Dst
	DstDevice, SrcDevice     int32 // -1: host
	SrcPageable, DstPageable bool
	Bytes                    int64  // of all rows
	Rows                     int64  // rows of equal length; 0 and 1: all bytes follow each other
	DstPitch, SrcPitch       int64  // bytes from one row to the next, if there are several
	Pattern                  uint32 // SetMemory
	Width                    uint8  // SetMemory: 1, 2 or 4 bytes of Pattern

	Communication *Communication // Communicate
	Conditional   *Conditional   // RunBodies
	// Host is what RunHost runs once the command's turn has come; what comes after the command waits for it. It must not panic, call the
	// platform, or wait for the Host of another command. The list or graph must not be closed before the work that it submitted has ended.
	Host func()

	// Accesses are the byte ranges that the command is declared to access. The CPU device checks their order; the driver ignores them.
	Accesses []Access
}

// Value is one kernel argument.
type Value struct {
	Pointer bool
	Ptr     Ptr
	Bytes   int64 // size of the memory at Ptr that belongs to the argument; of a tile: from its first byte to its last
	Row     int64 // of a tile: the bytes of a row that belong to the argument; 0: all do
	Pitch   int64 // of a tile: the bytes from one row to the next
	Start   int64 // the kernel is passed the address so many bytes after Ptr
	Bits    uint64
	Size    uint8  // bytes of a scalar: 1, 2, 4, 8
	Struct  []byte // a structure that is passed by value; the rest is 0
	// Within says that the value is a member of a structure by value, at Offset bytes in it: 1 + the index of the structure among the values.
	// Such values come after all others.
	Within int32
	Offset int32
	// Unused says that no thread of a launch may read or write the memory of a pointer.
	Unused bool
	// Texture says that the kernel reads the memory of a pointer through a texture object. The kernel is passed the object's handle.
	Texture *Texture
}

// Access is a declared access of memory.
type Access struct {
	Ptr    Ptr
	Bytes  int64 // of all rows
	Rows   int64 // rows of equal length; 0 and 1: all bytes follow each other
	Pitch  int64 // bytes from one row to the next, if there are several
	Write  bool
	Whole  bool   // of a write: the command is declared to write every byte, and to read none before
	Name   string // of the buffer, for messages
	Offset int64  // of Ptr in that buffer, for messages
}

// ListOptions says how a list is submitted.
type ListOptions struct {
	// Origin is the stream that a replay forks from and joins back into.
	Origin Stream
	// Threads is how many threads submit the list; each submits some of the streams. With 0 or 1, the calling thread submits everything.
	Threads int
}

// List is an encoded sequence of commands.
type List interface {
	// Submit submits all commands to their streams, in order. It allocates no memory, and waits only if the queues are full.
	// An error is an *Error that names the command.
	Submit() error
	// Capture records the list as a graph, in thread-local mode.
	Capture(options GraphOptions) (Graph, error)
	// SetArgs changes the grid and the arguments of a launch for later submissions. index is the command's index in the list.
	SetArgs(index int, grid [3]uint32, args []Value) error
	// SetCopy changes the addresses of a copy or a set for later submissions.
	SetCopy(index int, dst, src Ptr) error
	// Len returns the number of commands.
	Len() int
	Close() error
}

// GraphOptions says how a graph is instantiated.
type GraphOptions struct {
	Origin     Stream
	Priorities bool // use each command's priority
}

// Graph is an executable graph. Two launches of one graph never overlap.
type Graph interface {
	Launch(Stream) error
	// Upload sends the graph to the device without launching it, so that the first launch takes no longer than others.
	Upload(Stream) error
	// SetArgs and SetCopy change one command of a graph made by BuildGraph.
	SetArgs(index int, grid [3]uint32, args []Value) error
	SetCopy(index int, dst, src Ptr) error
	// Update replaces the graph by a capture of a list. Both must have the same shape.
	Update(List) error
	Nodes() int
	Close() error
}

// Communication is what a command does together with other ranks. All ranks of the group have the same one but for addresses, and the
// sends and receives of an exchange.
type Communication struct {
	Verb      dag.Verb
	Reduction dag.Reduction
	DType     dag.DType
	Root      int32     // a rank
	Rank      int32     // this one
	Group     dag.Among // never the zero value
	Src, Dst  Ptr       // not for an exchange
	SrcBytes  int64
	DstBytes  int64
	More      []Pair     // of an all-reduce: what else is combined, each for itself
	Transfers []Transfer // of an exchange; all have another side
}

// Pair is an all-reduce of a bucket besides its first.
type Pair struct {
	Src, Dst Ptr
	Bytes    int64
}

// Transfer is a send or a receive of an exchange.
type Transfer struct {
	Receive bool
	Rank    int32
	Ptr     Ptr
	Bytes   int64
	Device  int32
}

// Call is the name of what does the communication, for errors.
func (c *Communication) Call() string {
	if c == nil {
		return ""
	}
	return c.Verb.String()
}

// Body is commands and what each of them waits for, as for BuildGraph.
type Body struct {
	Commands []Command
	Deps     [][]int32
}

// Conditional is a loop or branch inside of a graph. A platform that cannot put it into a graph refuses the graph with an error that
// is [ErrUnsupported] and says why.
type Conditional struct {
	conditions.Test
	// Decider is the kernel of a [conditions.Decider] on the device of the conditional, if the platform takes one, and Number is that of the condition
	// in it.
	Decider  Kernel
	Number   int
	Operands []Ptr // of the condition: device memory that holds one element each
	// Counts is device memory for conditions.CountWords words of eight bytes. The conditional keeps count there of what it does.
	Counts Ptr
	// Stamps is device memory for the stamps that Stamping asks for, if it does.
	Stamps   Ptr
	Stamping conditions.Stamping
	// Clear is how many sets of counts, from Counts on, become zero when it starts: its own and those of the conditionals in it, or 0 if
	// it is in the body of another one.
	Clear int
	// Bodies are what runs: one for a loop; one for a branch, or a second that runs if the condition does not hold. All their work is on
	// the device of the conditional.
	Bodies []Body
}
