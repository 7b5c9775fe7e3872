// Spreads: graphs over several devices that were made from a graph for one.

package plan

import "github.com/dagrun/dagrun/dag"

// Inserted is the original of a node that the original graph does not have: a copy between devices.
const Inserted dag.NodeID = -1

// Spread is a graph over several devices and how it follows from the graph that was declared.
type Spread struct {
	Graph     *dag.Graph
	Devices   int
	Policy    string // that chose the devices
	Requested string // the policy that was asked for, such as auto
	// Original is the hash of the graph that was declared, and At where its nodes run, then those of each body in the order of EachGraph.
	// Together they determine the rest.
	Original string
	At       []int32
	Nodes    []dag.NodeID   // by node of Graph: the node of the original, or Inserted
	Bodies   [][]dag.NodeID // the same for each body of a loop or branch, in the order of EachGraph
	Buffers  []Piece        // by buffer of Graph
	Kept     []dag.BufferID // buffers of the original that are read after the last replay, besides those that are saved or compared
	// Spilled says what is in device memory when, of the graph on the devices that was to be spilled; empty if all of it fits.
	Spilled []Residency
	// Order is the order in which that graph's nodes come in Graph, where it is not the declared one. The nodes of Spilled are positions in it.
	Order []dag.NodeID
	// Offsets says where each buffer of a spilled Graph lies, if it is on a device. nil if nothing is spilled, or a plan has to find a layout.
	Offsets []int64
	// MemoryCap is how many bytes of a device a plan of a spilled Graph may need; 0 if nothing is spilled.
	MemoryCap int64
	Stats     SpreadStats
}

// Piece says of a buffer which bytes of the original it stands for: its own first byte is byte Lo of Buffer.
type Piece struct {
	Buffer dag.BufferID
	Lo     int64
}

// SpreadStats are the statistics of a spread. Times are predictions, in microseconds.
type SpreadStats struct {
	Copies int   // inserted
	Bytes  int64 // that they move in a replay
	OneUS  float64
	// Spills are the copies to host memory that make room, Reloads those back, and SpilledBytes what both move in a replay.
	Spills, Reloads int
	SpilledBytes    int64
	// UnspilledUS is how long a replay would take on a device that has enough memory.
	UnspilledUS float64
	Tried       []SpreadTry // what auto compared
}

// SpreadTry is one way to place the nodes.
type SpreadTry struct {
	Policy     string
	Copies     int
	Bytes      int64
	MakespanUS float64
	PeakBytes  int64 // of the device that needs the most
	Refused    string
}

// OnDevice counts the nodes of the original on a device.
func (s *Spread) OnDevice(device int32) int {
	n := 0
	if s == nil {
		return n
	}
	for _, at := range s.At {
		if at == device {
			n++
		}
	}
	return n
}

// Residency says that bytes of a buffer are in device memory from before one node until after another. Buffers are those of the graph that was
// spilled: the original, or what it became when it was placed on several devices. Nodes are positions in its order.
type Residency struct {
	Buffer      dag.BufferID
	Lo, Hi      int64
	First, Last dag.NodeID
	Offset      int64 // where they could lie: what lay there before has gone by then
	Stays       bool  // the buffer is there from one replay to the next, and has no copy in host memory
}
