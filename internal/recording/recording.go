// Package recording reads and writes what a program did on its GPUs: calls, threads, code, places, accesses. It knows the file and nothing of
// CUDA's rules. cudart/recorder/library/format.h describes the file that a process writes while it runs (a part); a recording is a container
// of the parts of all processes.
package recording

import (
	"errors"
	"fmt"
	"sync"
)

// Kind is what a record is. The numbers are those of format.h.
type Kind uint16

const (
	Thread Kind = 1 + iota
	Note
	Place
	Image
	Code
	Module
	Function
	Graph
	Access
	Tensor
	TensorTrace
	ProcessInfo
	Contents
	Buffer // this and the next ones: of a planned graph
	Node
	Pointer
	Use
)

// Calls of the driver.
const (
	Launch Kind = 32 + iota
	Copy
	Set
	EventRecord
	StreamWait
	EventSync
	EventQuery
	StreamSync
	StreamQuery
	ContextSync
	EventCreate
	EventDestroy
	StreamCreate
	StreamDestroy
	Alloc
	Free
	HostFunction
	MemoryWait
	MemoryWrite
	CaptureBegin
	CaptureEnd
	Instantiate
	Update
	GraphLaunch
	GraphDestroy
	ExecDestroy
	Context
	Pool
	TensorMap
	Prefetch
	Unload
	Peer
	Uncovered
	NodeAccess
	Green
	HostAccess // no call: what a thread touched by itself
)

// Record is one record as it is in the file. Words and Tail alias the file's bytes in memory and must not be changed.
//
// In a packed recording, Offset counts the unpacked records of the process.
type Record struct {
	Kind   Kind
	Thread uint32 // index of the thread that wrote it
	Words  []uint64
	Tail   []byte
	Offset int64 // in the file, for errors
}

// Call is a record of a call of the driver.
type Call struct {
	Record
	Begin, End uint64 // numbers that grow over all threads of a process: a call that ends with 7 was over before one that begins with 8 began
	Time       int64  // nanoseconds
	API        uint32 // callback number
	Result     int32  // CUresult
	Context    uint64
	Place      uint64   // of Process.Places; 0 is unknown
	Args       []uint64 // the words that format.h lists for this kind
}

// Process is what one process did. Calls are sorted by Begin.
type Process struct {
	ID, Parent uint32
	Measured   bool
	Host       bool   // what the host touches of pinned and managed memory was recorded
	Cut        bool   // the process ended before everything was written, or the disk was full
	Lost       uint64 // records that were not written
	Unknown    uint64 // records of kinds that this version does not know, which were skipped
	StartUnix  int64
	StartClock int64 // Call.Time at the moment of StartUnix
	Command    []string
	Facts      map[string]string // driver, devices, torch, python

	Calls     []Call
	Threads   []ThreadInfo
	Places    map[uint64][]Frame
	Functions map[uint64][]FunctionInfo // by handle; several if a handle was used again, each valid from its sequence
	Graphs    []GraphInfo               // in order of Sequence
	Accesses  map[uint64]*AccessInfo    // by launch number
	Tensors   []TensorEvent             // in order of Sequence
	Modules   []ModuleInfo
	Notes     []NoteInfo
	Contents  []ContentsInfo
	Traces    []TraceInfo // in the order of the file
	Planned   Planned

	// Confined makes Where use the recording alone. Otherwise it looks for functions and lines in the programs and libraries that ran, if they are still there.
	Confined bool

	fail    func(at int64, text string) error
	held    *mapping
	finding sync.Mutex       // guards what Where has found
	where   map[uint64]Frame // by place
	files   images
	kernels map[string]bool
}

// Close gives back the file's memory, which Words, Tail and all that is read from them alias. It need not be called before the program ends.
func (p *Process) Close() error { return p.held.close() }

// Wrong is the error that what is at an offset of the process cannot be.
func (p *Process) Wrong(at int64, format string, arguments ...any) error {
	return p.fail(at, fmt.Sprintf(format, arguments...))
}

// ThreadInfo is a thread of the program.
type ThreadInfo struct {
	Index, System uint32
	Name          string
}

// Frame is one level of a call stack.
type Frame struct {
	Python   bool
	File     string // of Python, or the path of the image
	Function string // of Python; of machine code once it is resolved
	Line     int    // 0 if unknown
	Offset   uint64 // in the image, of machine code: the address that the call returns to
	BuildID  string
	Package  bool // the file belongs to an installed package or to the system, not to the user's program
}

// FunctionInfo is a kernel.
type FunctionInfo struct {
	Handle, Module uint64
	Library        uint64 // 0 if there is none, or it is not known
	Sequence       uint64 // of the moment from which the handle meant this
	Name           string // mangled
	Opaque         bool
	Unpatched      bool
	Registers      uint32 // of a thread
	Shared         uint32 // bytes of a block that the code itself asks for
	Parameters     []Parameter
	Offset         int64
}

// Parameter is where a parameter lies in the bytes of a launch.
type Parameter struct{ Offset, Bytes uint32 }

// GraphInfo is a graph as it was at one moment.
type GraphInfo struct {
	Sequence         uint64
	Graph, Execution uint64
	Nodes            []GraphNode
	Edges            []GraphEdge
	Offset           int64
}

// GraphNode is a node. Body holds the bytes that format.h describes for its type.
type GraphNode struct {
	Node uint64
	Type uint32
	Body []byte
}

// GraphEdge leads from one node to another, by index.
type GraphEdge struct {
	From, To     uint32
	Programmatic bool
	Ports        uint32
}

// LaunchEvent returns the event that a launch records by an attribute, and when (Event*); 0 if there is none.
func (c *Call) LaunchEvent() (event, when uint64) {
	const at = 13
	if c.Kind != Launch || len(c.Args) < at+2 { // a recorder before version 2
		return 0, 0
	}
	return c.Args[at], c.Args[at+1]
}

// When a launch records its event.
const (
	EventBlocks = 1 << iota // when all blocks allow it: a programmatic event
	EventStart              // and each does so by beginning
	EventBegun              // when all blocks have begun
)

// AccessInfo is what a launch was seen to touch.
type AccessInfo struct {
	Lost, Opaque, Unmeasured bool
	Together                 bool  // measured together with other launches of its node of a graph: Runs is what they all touched
	Again                    bool  // and it is not the first of them
	Runs                     []Run // sorted by address, without overlaps
}

// Run is a stretch of bytes that were all accessed in the same ways.
type Run struct {
	Address uint64
	Bytes   uint32
	Modes   uint32 // Read | Write | Atomic
}

// Modes of a run.
const (
	Read   = 1
	Write  = 2
	Atomic = 4
)

// TensorEvent is an event of a framework's allocator.
type TensorEvent struct {
	Sequence, Address, Bytes, Stream, Pool uint64
	Action                                 TensorAction
	Place                                  uint64
	Thread                                 uint32
}

// TensorAction is what an allocator did.
type TensorAction uint8

const (
	TensorAlloc TensorAction = 1 + iota
	TensorFreeRequested
	TensorFreeCompleted
)

// ModuleInfo is code that was loaded.
type ModuleInfo struct {
	Handle, Library uint64 // one of them; the other is 0
	Hash, Bytes     uint64
	Sequence        uint64 // of the moment from which the handle meant this
	Code            []byte // as it was given to the loader; nil if it was not kept, or must be unpacked by Load
	Offset          int64

	unpack func() ([]byte, error)
}

// Load returns the code as it was given to the loader, unpacked, or nil if it was not kept.
func (m *ModuleInfo) Load() ([]byte, error) { return loaded(m.Code, m.unpack) }

// NoteInfo is something that the recorder said.
type NoteInfo struct {
	Code  uint64
	Value uint64
	Text  string
}

// NoBuffer is the buffer of contents that are not said to be those of one.
const NoBuffer = 1<<64 - 1

// ContentsInfo is what bytes of memory were at one moment: before the launch of a graph that began with this sequence.
type ContentsInfo struct {
	Sequence, Address, Bytes, Hash uint64
	Buffer                         uint64 // of a planned graph; otherwise NoBuffer
	Data                           []byte // nil if it was not kept, or must be unpacked by Load
	Offset                         int64

	unpack func() ([]byte, error)
}

// Load returns the bytes, unpacked, or nil if they were not kept.
func (c *ContentsInfo) Load() ([]byte, error) { return loaded(c.Data, c.unpack) }

func loaded(there []byte, unpack func() ([]byte, error)) ([]byte, error) {
	if there != nil || unpack == nil {
		return there, nil
	}
	return unpack()
}

// Planned is what a file of a planned graph says of its one graph, in the order of the file. Numbers of nodes and buffers are as they are there.
type Planned struct {
	Buffers  []BufferInfo
	Nodes    []NodeInfo
	Pointers []PointerInfo
	Uses     []UseInfo
}

// BufferInfo is a named piece of memory.
type BufferInfo struct {
	Address, Bytes, Flags uint64 // Flags: Buffer*
	Shape                 []uint64
	Name, DType           string
	Offset                int64 // in the file, for errors
}

// Flags of a buffer.
const (
	BufferHost   = 1 << iota // on the host; otherwise on the device
	BufferGiven              // a replay reads what it held before
	BufferResult             // a replay leaves something in it that is not only for itself
)

// NodeInfo names a node.
type NodeInfo struct {
	Node     uint64
	Priority int64 // -1 low, 0, 1 high
	Name     string
	Offset   int64
}

// PointerInfo says that eight bytes of what describes a node are an address in a buffer.
type PointerInfo struct {
	Node, Byte, Buffer, At, Bytes uint64
	Offset                        int64
}

// UseInfo is what a node accesses.
type UseInfo struct {
	Node, Buffer, At, Width, Rows, Pitch, Modes uint64
	Offset                                      int64
}

// TraceInfo is what a framework's allocator noted of one device.
type TraceInfo struct {
	Device uint64
	Text   []byte // lines "action address bytes stream"
	Offset int64  // in the file, for errors
}

// Recording is a program's run: its processes, in the order in which they started.
type Recording struct {
	Processes []*Process
	Started   int64 // nanoseconds since 1970
	Command   []string
	Status    int  // exit status of the program; -1 if it is not known
	Cut       bool // the file is incomplete, or the recorder ended before it had packed the parts of the processes

	held *mapping
}

// Close gives back the file's memory. See Process.Close.
func (r *Recording) Close() error {
	err := r.held.close()
	for _, p := range r.Processes {
		err = errors.Join(err, p.Close())
	}
	return err
}
