// What a .dagrun file holds: one planned graph with its code, its memory and what that holds at first.

package graphfile

import (
	"encoding/binary"

	"github.com/dagrun/dagrun/internal/recording"
)

// File is a planned graph. Nodes, buffers, functions and modules refer to each other by index; nodes come after those that they wait for.
type File struct {
	Name         string
	Architecture string // that the code is for, such as sm_90; "": it is PTX, which any GPU's driver compiles
	Buffers      []Buffer
	Modules      [][]byte // code as it is given to the driver: PTX and a zero, a cubin or a fatbin
	Functions    []Function
	Nodes        []Node
	Edges        [][2]int32 // from a node to one further down

	process *recording.Process // whose memory the code and the contents are
}

// Buffer is a named piece of memory.
type Buffer struct {
	Name, DType string
	Shape       []int64
	Bytes       int64
	Host        bool
	Given       bool   // a replay reads what it held before
	Result      bool   // a replay leaves something in it that is not only for itself
	Address     uint64 // of device memory: where it lies in relation to others
	Contents    []byte // at first; nil: zeros
}

// Function is a kernel of a module.
type Function struct {
	Module     int32
	Entry      string
	Parameters []recording.Parameter // where each lies among the bytes that a node has for them
}

// Kind is what a node does. The numbers are those of CUgraphNodeType.
type Kind uint32

// The kinds of nodes.
const (
	Kernel Kind = 0
	Copy   Kind = 1
	Set    Kind = 2
	Empty  Kind = 5
)

// Words of what describes a node, as format.h lists them.
const (
	kernelWords = 10 // before the parameters
	copyWords   = 13
	setWords    = 6
)

// Node is one piece of work. Body is what describes it, as format.h has it for its kind.
type Node struct {
	Name     string
	Priority int8
	Kind     Kind
	Body     []byte
	Pointers []Pointer // the addresses in Body
	Uses     []Use     // what it accesses
}

// Pointer is an address in the body of a node.
type Pointer struct {
	Byte   uint32 // of the body
	Buffer int32
	At     int64 // in the buffer
	Bytes  int64 // that the node may reach from there
}

// Use is an access of rows of bytes.
type Use struct {
	Buffer                 int32
	At, Width, Rows, Pitch int64
	Modes                  uint32 // recording.Read, Write
}

// end is behind the last byte of a use, in its buffer.
func (u *Use) end() int64 { return u.At + (u.Rows-1)*u.Pitch + u.Width }

func (n *Node) word(k int) uint64 { return binary.LittleEndian.Uint64(n.Body[8*k:]) }

func (n *Node) shape(k int) [3]uint32 {
	return [3]uint32{uint32(n.word(k)), uint32(n.word(k + 1)), uint32(n.word(k + 2))}
}

// Close gives back the memory of a file that was read.
func (f *File) Close() error {
	if f.process == nil {
		return nil
	}
	return f.process.Close()
}
