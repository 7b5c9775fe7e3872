// What is asked of a check, and its report: what it found, grouped by places, and how much of the recording it rests on.

package order

import "github.com/dagrun/dagrun/internal/recording"

// Options change what counts.
type Options struct {
	StrictThreads bool // calls of two threads are in order only where something intercepted orders them, not because one was over before the other
	HostAccesses  bool // copies access pageable memory of the host too, for the thread that makes them
	Strict        bool // also look for what is not needed, and for bytes that are read before they are written
}

// Report is what Check found.
type Report struct {
	Races    []Race // certain: both accesses were measured, or are known from the call
	Possible []Race // one of the accesses is assumed, or a programmatic launch may wait by itself
	Assumed  []Race // ordered only because calls of two threads, or a wait for a value and a write, did not overlap in time

	OrderDependent int // pairs of atomic accesses without an order: no race, but the result may depend on it

	Measured   int // launches of kernels, nodes of graphs included, whose accesses were all measured
	Arguments  int // launches whose accesses are assumed from the arguments, because none were measured
	Opaque     int // launches that were measured, but whose code has accesses that cannot be
	Unmeasured int // launches that were to be measured, and were not
	Lost       int // launches whose measurement is missing in the recording

	Uncovered map[string]int // calls whose effect is not known, by name
	Cut       bool           // the recording lacks something: the process ended early, or records were lost

	Strict *Strict // nil without Options.Strict
}

// Strict is what is no race, but worth a look.
type Strict struct {
	// Calls and edges without which every conflict would still be ordered, all of them left out at once. Of the calls at a place, all are of this kind.
	Waits            []Needless
	Synchronizations []Needless // nor did they wait for writes to memory of the host
	Edges            []NeedlessEdge

	Copies    []Needless  // copies of pinned memory that the host waits for
	Unwritten []Unwritten // bytes of the device that were read before anything wrote them
}

// Needless is the calls at one place.
type Needless struct {
	Call  *recording.Call // the first
	What  string
	Count int
}

// NeedlessEdge is an edge of a graph, as Process.Graphs has it.
type NeedlessEdge struct {
	Graph int // index
	Edge  int // index
	From  uint32
	To    uint32
}

// Unwritten is reads at one place.
type Unwritten struct {
	Reader Side
	Memory Memory
	Low    uint64 // the first stretch of bytes
	High   uint64
	Bytes  uint64 // of all
	Count  int    // stretches
}

// Proved says whether every conflict of the recorded accesses is ordered, with nothing assumed and nothing left out.
func (r *Report) Proved() bool {
	return len(r.Races) == 0 && len(r.Possible) == 0 && len(r.Assumed) == 0 && r.Arguments == 0 && r.Opaque == 0 && r.Unmeasured == 0 &&
		r.Lost == 0 && len(r.Uncovered) == 0 && !r.Cut
}

// Race is a group of pairs of accesses without an order, all at the same two places.
type Race struct {
	Count   int    // pairs of calls
	Bytes   uint64 // of all pairs
	Kinds   string // of RAW, WAR and WAW, those that occur, with commas: what the second does after what the first does
	Low     uint64 // the first stretch of bytes
	High    uint64
	Memory  Memory // where they lie
	First   Side   // of the first pair
	Second  Side
	Fix     Fix
	Because string // of a possible race: "arguments" or "programmatic"; of an assumed order: "assumed"
}

// Memory is a tensor or an allocation.
type Memory struct {
	What    string // "tensor", "allocation", "pinned memory", "managed memory", or "" if it is not known
	Address uint64
	Bytes   uint64
	Place   uint64 // where it was made
}

// Side is one of the two accesses of a race.
type Side struct {
	Call   *recording.Call        // nil for an event of the framework's allocator
	Tensor *recording.TensorEvent // nil for a call
	Name   string                 // mangled name of the kernel, or what else it is: "copy", "memset", "free", "tensor freed"
	Stream string                 // "the default stream", "stream 2", "the host"; streams are numbered in the order of their creation
	Node   int                    // index of the launched graph's node; -1 if it is none
	Child  int                    // index of the node within the child graph that Node is; -1 if it is none
	Mode   string                 // "reads", "writes", "reads and writes", "updates atomically"; "" for allocations and frees
	Place  uint64                 // of Process.Places
	Thread uint32
}

// Fix is what would order a race.
type Fix struct {
	Kind    FixKind
	Waiting string // the stream that must wait
	For     string // the stream whose work it must wait for
	Before  uint64 // place of the call before which it must wait
	Text    string // all of it in words, without the place
}

// FixKind is a way of ordering two accesses.
type FixKind uint8

// The ways of ordering two accesses.
const (
	StreamWaits    FixKind = 1 + iota // the stream of the second must wait for that of the first
	BeforeFree                        // the stream that a tensor was allocated on must wait for its user before it is freed, or the tensor must be recorded on the user's stream
	EdgeOfGraph                       // an edge between two nodes of a graph
	ThreadsInOrder                    // two threads submit to one stream at the same time
	KernelWaits                       // a programmatic launch must wait within the kernel
	HostWaits                         // the thread must wait for the stream
)
