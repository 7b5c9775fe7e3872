// Package cudart is what a program runs on: one interface, [Platform], with two implementations. cudart/driver is the NVIDIA
// driver API, cudart/host the CPU device. It decides nothing about schedules.
package cudart

import (
	"context"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/kernels"
)

// Platform is every device of one kind that this process can use.
type Platform interface {
	// Name is "cuda" or "cpu".
	Name() string
	// Devices describes each device; its index is the device number. It does not create contexts.
	Devices() []Info
	// MemoryInfo tells how much of a device's memory is free.
	MemoryInfo(device int32) (free, total int64, err error)

	// Alloc returns device memory aligned to 256 bytes. Its contents are unspecified. Zero bytes is legal.
	Alloc(device int32, bytes int64) (Ptr, error)
	// AllocHost returns host memory; pinned (and portable) unless pageable.
	AllocHost(bytes int64, pageable bool) (Ptr, error)
	// RegisterHost pins memory that the caller owns, for use as a copy's source or destination until Unregister.
	RegisterHost(memory []byte) (Ptr, error)
	UnregisterHost(Ptr) error
	// Free returns memory of Alloc or AllocHost. Work that uses it must have finished.
	Free(Ptr) error
	// HostBytes is the memory behind a host pointer, nil where the range is not inside one block of this platform's host memory.
	HostBytes(p Ptr, bytes int64) []byte
	// EnablePeer lets kernels of one device touch another's memory. Already enabled is success.
	EnablePeer(device, peer int32) error

	// NewStream makes a non-blocking stream.
	NewStream(device int32, priority dag.Priority) (Stream, error)
	// AdoptStream wraps a stream that the caller owns (a CUstream handle); Close leaves it alive.
	AdoptStream(handle uintptr) (Stream, error)
	// NewEvent makes an event; timed ones can be given to Elapsed.
	NewEvent(device int32, timed bool) (Event, error)

	// Load makes a module's kernels ready on a device, the lazily loaded ones too.
	Load(ctx context.Context, device int32, module *kernels.Module) (Module, error)

	// Encode lowers commands once to a list that is submitted many times. The list keeps what it refers to alive, except memory.
	Encode(commands []Command, options ListOptions) (List, error)
	// BuildGraph makes an executable graph node by node. deps[i] are the indices of what commands[i] waits for; Record and
	// Wait commands and the commands' streams are not used, except that a timed Record becomes an event-record node.
	BuildGraph(commands []Command, deps [][]int32, options GraphOptions) (Graph, error)

	// Synchronize waits for everything on a device, or for the context to end.
	Synchronize(ctx context.Context, device int32) error
	// Live counts what has been made and not yet closed, for leak checks.
	Live() Live
	Close() error
}

// Ptr is an address, of host or device memory.
type Ptr uint64

// Info describes a device.
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
	SharedPerBlock     int // without opting in
	SharedPerBlockMax  int // with
	SharedPerSM        int
	Driver             string // "13.0"
	Peers              []bool // by device number: whether peer access is possible
}

// Live counts resources.
type Live struct{ Memory, Streams, Events, Modules, Lists, Graphs int }

// Stream is an in-order queue.
type Stream interface {
	Device() int32
	// Handle is the CUstream; on the CPU device a number that AdoptStream of the same platform takes.
	Handle() uintptr
	// Synchronize waits until the stream is empty and returns the first error of its work, or the context's where that ends first.
	Synchronize(ctx context.Context) error
	// Query reports whether the stream is empty.
	Query() (bool, error)
	Close() error
}

// Event marks a place in a stream.
type Event interface {
	// Query reports whether the last record has happened.
	Query() (bool, error)
	// Synchronize waits for the last record, or for the context to end.
	Synchronize(ctx context.Context) error
	// Since returns the microseconds from an earlier event to this one; both timed and done.
	Since(earlier Event) (float64, error)
	Close() error
}

// Module is loaded code.
type Module interface {
	Kernel(entry string) (Kernel, error)
	// Warnings are things a user should know, such as writable globals.
	Warnings() []string
	Close() error
}

// Kernel is a loaded kernel.
type Kernel interface {
	Attributes() KernelAttributes
	// Occupancy returns the block size (one dimension) that keeps most threads resident, and how many such blocks fit a multiprocessor.
	Occupancy(shared uint32) (block uint32, blocksPerSM int, err error)
	// SetMaxShared opts in to that much dynamic shared memory.
	SetMaxShared(bytes uint32) error
}

// KernelAttributes are facts the driver knows of a loaded kernel.
type KernelAttributes struct {
	MaxThreads    int
	Registers     int
	SharedStatic  int
	Local         int
	PTXVersion    int
	BinaryVersion int
	// ParamSizes are the bytes of each parameter where known.
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
	Empty     // nothing; a node of a graph that only orders
	RangePush // NVTX range named Label; host side, no work
	RangePop
)

// Command is one entry of a list.
type Command struct {
	Kind   CommandKind
	Stream Stream
	Label  string // the node's name, for errors, traces and ranges
	Node   int32  // the node's id, -1 where it belongs to none

	Event Event // RecordEvent, WaitEvent

	Kernel      Kernel // LaunchKernel
	Grid, Block [3]uint32
	Shared      uint32
	Args        []Value
	Priority    dag.Priority // of a graph's node

	Dst, Src                 Ptr   // CopyMemory; SetMemory: Dst
	DstDevice, SrcDevice     int32 // -1: host
	SrcPageable, DstPageable bool
	Bytes                    int64
	Pattern                  uint32 // SetMemory
	Width                    uint8  // SetMemory: 1, 2 or 4 bytes of Pattern

	// Accesses are the ranges the command is declared to touch. The CPU device checks their order; the driver ignores them.
	Accesses []Access
}

// Value is one kernel argument.
type Value struct {
	Pointer bool
	Ptr     Ptr
	Bytes   int64 // memory from Ptr that belongs to the argument
	Bits    uint64
	Size    uint8 // bytes of a scalar: 1, 2, 4, 8
}

// Access is a use of memory.
type Access struct {
	Ptr    Ptr
	Bytes  int64
	Write  bool
	Name   string // of the buffer, for messages
	Offset int64  // of Ptr in that buffer, for messages
}

// ListOptions says how a list is submitted.
type ListOptions struct {
	// Origin is the stream that a replay forks from and joins back into.
	Origin Stream
	// Threads submits from that many threads, each driving some of the streams; 0 and 1: the calling thread alone.
	Threads int
}

// List is an encoded sequence of commands.
type List interface {
	// Submit hands all commands to their streams, in order. It allocates nothing and waits for nothing but the queues' room.
	// An error is an *Error that names the command.
	Submit() error
	// Capture records the list as a graph: begin, commands and end are one crossing, in thread-local mode.
	Capture(options GraphOptions) (Graph, error)
	// SetArgs changes a launch's arguments and grid for later submissions. index counts commands.
	SetArgs(index int, grid [3]uint32, args []Value) error
	// SetCopy changes the addresses of a copy or a set.
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

// Graph is an executable graph. It never overlaps itself.
type Graph interface {
	Launch(Stream) error
	Upload(Stream) error
	// SetArgs and SetCopy change one command of a graph made by BuildGraph.
	SetArgs(index int, grid [3]uint32, args []Value) error
	SetCopy(index int, dst, src Ptr) error
	// Update replaces the whole by a list's capture with the same shape.
	Update(List) error
	Nodes() int
	Close() error
}
