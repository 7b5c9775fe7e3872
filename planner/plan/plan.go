// The types of a plan.

// Package plan holds plans: streams of ops, a submission order and a memory layout, and their forms as JSON, text and DOT.
package plan

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/dag/outline"
	"github.com/dagrun/dagrun/internal/words"
)

// OpKind says what an Op does.
type OpKind uint8

const (
	Launch OpKind = iota // run Node
	Record               // record Event after Node, the launch before it on the stream
	Wait                 // block the stream until Event, recorded after Node on another stream
)

var opNames = []string{"launch", "record", "wait"}

func (k OpKind) String() string { return words.Name(k, "OpKind", opNames) }

// Op is one entry of a stream. Event is -1 for a launch.
type Op struct {
	Kind  OpKind
	Node  dag.NodeID
	Event int32
}

// Stream is an in-order queue of one device.
type Stream struct {
	Device   int32
	Priority dag.Priority
	Ops      []Op
}

// Placement says where a device buffer lives in its device's arena.
type Placement struct {
	Buffer dag.BufferID
	Device int32
	Offset int64
	Bytes  int64
}

// Plan is a schedule of a graph.
type Plan struct {
	Name      string
	Graph     *dag.Graph    // that it is a plan of; nil for a plan made by hand
	GraphHash string        // hash of the structure of that graph
	Work      string        // hash of what its nodes do: kernels, arguments, launch shapes and costs
	WorkDone  *outline.Work // what was hashed, from a plan file; nil if only the hash is known
	Strategy  string        // the strategy that made the plan
	Requested string        // the strategy that was asked for, such as auto
	Machine   string
	Note      string // a remark on how the plan was made, or ""
	Streams   []Stream
	Order     []int32        // the submission order: each entry is a stream, whose next op is submitted
	Events    int32          // event objects needed
	Memory    []Placement    // every device buffer, by buffer id
	Kept      []dag.BufferID // device buffers that share their bytes with no other for the whole program, ascending
	Bodies    []Body         // of loops and branches, by node, then body
	Costs     []Cost         // what each node was taken to take, by node; empty for plans made by hand
	Spread    *Spread        // how the graph was spread over devices, for texts and files; nil if it is as declared
	Stats     Stats
}

// Stats are the statistics of a plan. Times are predictions of the machine model, in microseconds.
type Stats struct {
	Nodes, Edges, Streams  int
	Records, Waits, Events int
	ForkRecords, ForkWaits int // added by a program so that a replay starts and ends on the first stream
	MakespanUS             float64
	LowerBoundUS           float64
	LowerBoundBy           string // the part of the model that sets the bound, in words
	CriticalPathUS         float64
	PeakDeviceBytes        int64 // arenas of all devices; buffer sizes are rounded up to multiples of 256 bytes
	SumDeviceBytes         int64 // the same without sharing of bytes between buffers
}

// Body is the plan of one body of a loop or branch. Its memory is that of the plan around it, so its Memory and Kept are empty. Its first
// stream is that of the node itself; it begins there and ends there.
type Body struct {
	Node dag.NodeID
	Body int32 // index into the node's Control.Bodies
	Plan *Plan
}
