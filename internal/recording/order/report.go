// What is asked of a check, and its report: what it found, grouped by places, and how much of the recording it rests on.

package order

import "github.com/dagrun/dagrun/internal/recording"

// Options change what counts.
type Options struct {
	StrictThreads bool // calls of two threads are in order only where something intercepted orders them, not because one was over before the other
	HostAccesses  bool // copies access pageable memory of the host too, for the thread that makes them; always so where accesses of the host were recorded
	Strict        bool // also look for what is not needed, and for bytes that are read before they are written

	// Since is a number of the recording's moments: only what began there or later is reported and counted. What came before still orders.
	Since uint64
}

// Report is what Check found.
type Report struct {
	Races    []Race `json:"races"`         // certain: both accesses were measured, or are known from the call
	Possible []Race `json:"possible"`      // one of the accesses is assumed, or a programmatic launch may wait by itself
	Assumed  []Race `json:"assumed_order"` // ordered only because calls of two threads, or a wait for a value and a write, did not overlap in time

	OrderDependent int `json:"order_dependent"` // pairs of atomic accesses without an order: no race, but the result may depend on it

	Measured   int `json:"measured"`       // launches of kernels, nodes of graphs included, whose accesses were all measured
	Arguments  int `json:"from_arguments"` // launches whose accesses are assumed from the arguments, because none were measured
	Opaque     int `json:"opaque"`         // launches that were measured, but whose code has accesses that cannot be
	Unmeasured int `json:"unmeasured"`     // launches that were to be measured, and were not
	Lost       int `json:"lost"`           // launches whose measurement is missing in the recording
	// launches of a graph's node that were measured together with others of the node: what all touched counts for each, for all but the first as possible
	Together int `json:"together"`

	Uncovered map[string]int `json:"uncovered"` // calls whose effect is not known, by name
	Cut       bool           `json:"cut"`       // the recording lacks something: the process ended early, or records were lost

	Strict *Strict `json:"strict,omitempty"` // nil without Options.Strict
}

// Strict is what is no race, but worth a look.
type Strict struct {
	// Calls and edges without which every conflict would still be ordered, all of them left out at once. Of the calls at a place, all are of this kind.
	Waits            []Needless     `json:"waits"`
	Synchronizations []Needless     `json:"synchronizations"` // nor did they wait for writes to memory of the host
	Edges            []NeedlessEdge `json:"edges"`

	Copies    []Needless  `json:"copies"`    // copies of pinned memory that the host waits for
	Waited    Cost        `json:"waited"`    // all synchronizations, needed or not
	Unwritten []Unwritten `json:"unwritten"` // bytes of the device that were read before anything wrote them
}

// Cost is how many calls there were, and how long their threads were in them at most: until they made their next calls. It is 0 where that is not
// known, as where accesses were measured, which takes time in between.
type Cost struct {
	Count       int   `json:"count"`
	Nanoseconds int64 `json:"nanoseconds,omitempty"`
}

// Needless is the calls at one place.
type Needless struct {
	Calls []*recording.Call `json:"-"`
	What  string            `json:"what"`
	Where string            `json:"where,omitempty"`
	Cost
}

// NeedlessEdge is an edge of a graph, as Process.Graphs has it.
type NeedlessEdge struct {
	Graph int    `json:"graph"` // index
	Edge  int    `json:"edge"`  // index
	From  uint32 `json:"from"`
	To    uint32 `json:"to"`
}

// Unwritten is reads at one place.
type Unwritten struct {
	Reader Side   `json:"reader"`
	Memory Memory `json:"memory"`
	Low    uint64 `json:"low"` // the first stretch of bytes
	High   uint64 `json:"high"`
	Bytes  uint64 `json:"bytes"` // of all
	Count  int    `json:"count"` // stretches
}

// Proved says whether every conflict of the recorded accesses is ordered, with nothing assumed and nothing left out.
func (r *Report) Proved() bool {
	return len(r.Races) == 0 && len(r.Possible) == 0 && len(r.Assumed) == 0 && r.Arguments == 0 && r.Opaque == 0 && r.Unmeasured == 0 &&
		r.Lost == 0 && len(r.Uncovered) == 0 && !r.Cut
}

// Race is a group of pairs of accesses without an order, all at the same two places.
type Race struct {
	Count   int    `json:"count"` // pairs of calls
	Bytes   uint64 `json:"bytes"` // of all pairs
	Kinds   string `json:"kinds"` // of RAW, WAR and WAW, those that occur, with commas: what the second does after what the first does
	Low     uint64 `json:"low"`   // the first stretch of bytes
	High    uint64 `json:"high"`
	Memory  Memory `json:"memory"` // where they lie
	First   Side   `json:"first"`  // of the first pair
	Second  Side   `json:"second"`
	Fix     Fix    `json:"fix"`
	Because string `json:"because,omitempty"` // of a possible race: "arguments", "wait" or "programmatic"; of an assumed order: "assumed"
}

// Memory is a tensor or an allocation.
type Memory struct {
	What    string `json:"what"` // "tensor", "allocation", "pinned memory", "managed memory", or "" if it is not known
	Address uint64 `json:"address"`
	Bytes   uint64 `json:"bytes"`
	Place   uint64 `json:"-"`               // where it was made
	Where   string `json:"where,omitempty"` // the same in words
}

// Side is one of the two accesses of a race.
type Side struct {
	Call   *recording.Call        `json:"-"`               // nil for an event of the framework's allocator
	Tensor *recording.TensorEvent `json:"-"`               // nil for a call
	Name   string                 `json:"name"`            // mangled name of the kernel, or what else it is: "copy", "memset", "free", "tensor freed"
	Stream string                 `json:"stream"`          // "the default stream", "stream 2", "the host"; streams are numbered in the order of their creation
	Node   int                    `json:"node"`            // index of the graph's node; -1 if it is none
	Child  int                    `json:"child"`           // index of the node within the child graph that Node is; -1 if it is none
	Mode   string                 `json:"access"`          // "reads", "writes", "reads and writes", "updates atomically"; "" for allocations and frees
	Place  uint64                 `json:"-"`               // of Process.Places
	Where  string                 `json:"where,omitempty"` // the same in words
	Thread uint32                 `json:"thread"`
}

// Fix is what would order a race.
type Fix struct {
	Kind    FixKind `json:"-"`
	Waiting string  `json:"waiting"`          // the stream that must wait
	For     string  `json:"for"`              // the stream whose work it must wait for
	Before  uint64  `json:"-"`                // place of the call before which it must wait
	Where   string  `json:"before,omitempty"` // the same in words
	Text    string  `json:"text"`             // all of it in words, without the place
	Code    string  `json:"code,omitempty"`   // the call to add, in the words of the program's language
}

// FixKind is a way of ordering two accesses.
type FixKind uint8

// The ways of ordering two accesses.
const (
	StreamWaits FixKind = 1 + iota // the stream of the second must wait for that of the first
	// the stream that a tensor was allocated on must wait for its user before it is freed, or the tensor must be recorded on the user's stream
	BeforeFree
	EdgeOfGraph    // an edge between two nodes of a graph
	ThreadsInOrder // two threads submit to one stream at the same time
	KernelWaits    // a programmatic launch must wait within the kernel
	HostWaits      // the thread must wait for the stream
)
