// The pipeline as declared, with all expressions evaluated and all repetitions expanded.

package dag

import (
	"errors"
	"fmt"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
)

// NodeID is a node: its place in the order of declaration, from 0.
type NodeID int32

// BufferID is a buffer: its place in the order of declaration, from 0.
type BufferID int32

// Pipeline is a declaration of GPU work: buffers and the nodes that use them, in declaration order.
type Pipeline struct {
	Name    string
	Sync    Sync
	Dir     string // the directory that relative file names start from; "" for the working directory
	Params  []Param
	Modules []Module
	Buffers []Buffer
	Nodes   []Node
	// Ranks is how many ranks run the file, each with a pipeline of its own, and Rank is the one that this pipeline is for. 0 ranks is one.
	Rank, Ranks int32
	// Devices is over how many devices the work may be spread: 0 leaves everything on the device that it names, AllDevices takes as many as
	// there are. What is not Fixed may then run on any of them.
	Devices int32
	// MaxEdges is how many edges the graph may have before it is refused with an EdgeLimitError; 0 stands for the constant MaxEdges.
	MaxEdges int

	accesses    []Access // of all nodes, one after the other
	accessStart []int32  // len(Nodes)+1
}

// Graph checks the pipeline and derives its dependencies. The pipeline must not change afterwards. The error joins everything that
// is wrong: *DeclarationError, and where nothing else is wrong a *CycleError.
func (p *Pipeline) Graph() (*Graph, error) {
	if p == nil {
		return nil, &DeclarationError{What: "pipeline", Message: "there is none: it is nil"}
	}
	var c checker
	c.pipeline(p)
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	p.chain()
	return newGraph(p)
}

// Accesses returns what node i reads and writes, and nothing for a node that the pipeline does not have. Callers must not change it.
func (p *Pipeline) Accesses(i NodeID) []Access {
	if p == nil || i < 0 || int(i) >= len(p.accessStart)-1 {
		return nil
	}
	return p.accesses[p.accessStart[i]:p.accessStart[i+1]]
}

// add appends a node with its accesses and returns its id.
func (p *Pipeline) add(node Node, accesses []Access) NodeID {
	if len(p.accessStart) == 0 {
		p.accessStart = append(p.accessStart, 0)
	}
	p.Nodes = append(p.Nodes, node)
	p.accesses = append(p.accesses, accesses...)
	p.accessStart = append(p.accessStart, int32(len(p.accesses)))
	return NodeID(len(p.Nodes) - 1)
}

// Sync says which dependencies become waits.
type Sync uint8

const (
	SyncAuto     Sync = iota // data and after: everything is enforced
	SyncExplicit             // stream order and after only; data hazards are checked, not enforced
)

var syncNames = []string{"auto", "explicit"}

// String returns the word that a pipeline file uses.
func (s Sync) String() string { return words.Name(s, "Sync", syncNames) }

// Param is a named number of the file with the value it had for this pipeline.
type Param struct {
	Name  string
	Value expr.Value
}

// Module is a user's own file of kernels.
type Module struct {
	Name    string
	Path    string // as declared
	Library Library
	Pos     Pos

	// How CUDA C is compiled, as declared.
	Include  []string // folders
	Define   []Definition
	Options  []string
	Compiler string // "": the first that works

	Unconfirmed string // why its code was not looked at; "": it was, or is not compiled
}

// Definition is a macro that is defined before the first line of a module.
type Definition struct{ Name, Value string }

// Place says which memory a buffer lives in.
type Place uint8

const (
	Host Place = iota
	Device
)

var placeNames = []string{"host", "device"}

// String returns the word that a pipeline file uses.
func (p Place) String() string { return words.Name(p, "Place", placeNames) }

// Buffer is a named piece of memory.
type Buffer struct {
	Name     string
	Place    Place
	DType    DType
	Pageable bool  // host memory that is not pinned: copies from it are not asynchronous
	Scratch  bool  // made by dagrun for one kernel; has no name a user wrote
	Device   int32 // device number where Place is Device
	Fixed    bool  // Device was asked for: spreading over several devices leaves the buffer there
	Shape    []int64
	Bytes    int64
	Init     *Init   // contents before the first replay; nil: unspecified
	Save     string  // file to write after the run; "": none
	Expect   *Expect // what to check after the run; nil: nothing
	// Symbol is the variable of a module that the buffer stands for, as "MODULE.VARIABLE"; "": it is memory of its own.
	Symbol      string
	Initialised bool // Symbol's code gives it its first contents
	Pos         Pos
}

// InitKind says how a buffer gets its first contents.
type InitKind uint8

const (
	InitZeros   InitKind = iota
	InitValue            // every element is Value
	InitRamp             // A + B*i
	InitUniform          // uniform in [A, B), from Seed
	InitNormal           // mean A, standard deviation B, from Seed
	InitExpr             // Expr over the flat index i
	InitFile             // a .npy or raw .bin file
)

// Init describes a buffer's first contents.
type Init struct {
	Kind  InitKind
	Value expr.Value // InitValue
	// Values are the components of every element of a vector or of complex numbers, in place of Value.
	Values []expr.Value
	A, B   float64
	Seed   uint64
	Expr   *expr.Expr // InitExpr; free variable i, params already bound
	File   string
}

// ExpectKind says what a buffer is compared with.
type ExpectKind uint8

const (
	ExpectFile ExpectKind = iota
	ExpectValue
	ExpectSum
	ExpectExpr
)

// Expect describes what a buffer must hold after a run. An element passes if |got-want| <= ATol + RTol*|want|; elements of integer
// types are compared exactly, whatever their size.
type Expect struct {
	Kind       ExpectKind
	File       string
	Value      expr.Value   // ExpectValue, ExpectSum
	Values     []expr.Value // ExpectValue: as Init.Values
	Expr       *expr.Expr   // ExpectExpr; free variable i
	RTol, ATol float64
	Norm       Norm  // if not NoNorm, the norm of all differences passes if it is <= ATol + RTol * the norm of what is expected
	Differing  int64 // so many elements may not pass; without a norm
}

// Norm says how the difference between two buffers is judged as a whole.
type Norm uint8

const (
	NoNorm  Norm = iota // element by element
	NormL1              // the sum of absolute values
	NormL2              // the root of the sum of squares
	NormMax             // the largest absolute value
)

var normNames = []string{"none", "l1", "l2", "max"}

// String returns the word that a pipeline file uses.
func (n Norm) String() string { return words.Name(n, "Norm", normNames) }

// ParseNorm reads l1, l2 or max.
func ParseNorm(s string) (Norm, error) {
	for n := NormL1; n <= NormMax; n++ {
		if s == normNames[n] {
			return n, nil
		}
	}
	return NoNorm, fmt.Errorf("unknown norm %q", s)
}

// Kind says what a node does.
type Kind uint8

const (
	Task        Kind = iota // opaque: declared accesses and a cost, no action of dagrun's; can be planned, not run
	Memcpy                  // Copy
	Memset                  // Set
	Kernel                  // Launch
	Map                     // Launch, with Launch.Map set
	Communicate             // Communication
	Repeat                  // Control: a loop
	Branch                  // Control: a branch
)

var kindNames = []string{"task", "memcpy", "memset", "kernel", "map", "communication", "repeat", "if"}

// String returns the word that a pipeline file uses.
func (k Kind) String() string { return words.Name(k, "Kind", kindNames) }

// Priority orders streams. Nodes of different priority never share one.
type Priority int8

const (
	Normal Priority = 0
	High   Priority = 1
	Low    Priority = -1
)

// String returns the word that a pipeline file uses.
func (p Priority) String() string {
	switch {
	case p > 0:
		return "high"
	case p < 0:
		return "low"
	}
	return "normal"
}

// Binding is the stream that a node must run on, if any. The zero Binding is none; OnStream makes one.
type Binding struct{ plusOne int32 }

// OnStream is the stream of that number, which must not be negative.
func OnStream(number int32) Binding {
	if number < 0 {
		return Binding{-1}
	}
	return Binding{number + 1} // the largest number becomes the least int32, which is refused like a negative one
}

// Number returns the stream's number, or -1 where none is asked for.
func (b Binding) Number() int32 { return max(b.plusOne, 0) - 1 }

// Node is one piece of work.
type Node struct {
	Name          string
	Kind          Kind
	Priority      Priority
	Peer          bool    // its kernel may touch another device's buffers
	HasCost       bool    // CostUS was declared
	Fixed         bool    // Device was asked for: spreading over several devices leaves the node there
	Stream        Binding // the stream it must run on; the zero Binding leaves the choice to the planner
	Device        int32   // where it runs; for a memcpy, the device whose copy engine does it
	CostUS        float64 // declared duration in microseconds
	Work          Work    // what it moves and computes, for the cost model
	Copy          *Copy
	Set           *Set
	Launch        *Launch
	Communication *Communication
	Control       *Control
	After         []NodeID // explicit predecessors
	Pos           Pos
}

// Work is what a node moves and computes. Figures that are not known are 0.
type Work struct {
	Bytes   int64 // read and written
	Flops   int64
	Blocks  int64 // of its grid
	Threads int32 // of a block
	Shared  int32 // bytes of a block
	// US is the least time in microseconds that the node takes on any machine because its arguments say so, as for spin. It is 0 if the
	// duration depends on bytes and operations only.
	US float64
}

// Range is a half-open range of bytes of a buffer, or a tile: of each row of its first dimension the same columns. Make one
// with Builder.Tile: a range has a Pitch only where it has several rows and some bytes between them.
type Range struct {
	Buffer BufferID
	Pitch  int32 // of a tile: the bytes from one row to the next, which are those of a row of the buffer; otherwise 0
	Lo, Hi int64 // of a tile: from the first byte of its first row to the end of its last row
}

// Copy moves Src to Dst, equal in size.
type Copy struct{ Dst, Src Range }

// Set fills Dst with an element of the buffer's type, given as its bits.
type Set struct {
	Dst  Range
	Bits uint64
}

// Launch is a kernel with its arguments. Args are in the kernel's own order and include scratch.
type Launch struct {
	Name   string       // the kernel as written, "saxpy" or "mine.blur"; "" for a map
	Module int32        // index into Pipeline.Modules; -1: the library that came with dagrun
	Kernel LaunchKernel // the resolved kernel
	Args   []Arg
	Grid   [3]uint32 // blocks, never zero, except that a launch of nothing has Grid[0] == 0
	Block  [3]uint32 // threads; Block[0] == 0: chosen from occupancy when the device is known
	Shared uint32    // dynamic shared memory
	// Cooperative says that all blocks must run at once, so that the kernel can wait for its whole grid.
	Cooperative bool
	Map         *MapSpec
}

// Arg is one argument of a launch.
type Arg struct {
	IsBuffer bool
	Inferred bool   // IsBuffer: Mode comes from the kernel's code, not from a declaration
	Mode     Mode   // IsBuffer
	DType    DType  // of the element or of the scalar
	Range    Range  // IsBuffer: the slice that is passed
	Bits     uint64 // scalar: its value as the bits of DType
}

// MapSpec is an elementwise computation: Out = Expr(Inputs..., Scalars...). The launch's Args are: n (i64), the output, the inputs, the scalars (f64).
type MapSpec struct {
	Text    string // as written, "y = a*x + b"
	Expr    *expr.Expr
	Out     string
	OutType DType
	Inputs  []string
	InTypes []DType
	// Single marks the inputs of one element, which goes with every element of the others; nil: there are none.
	Single  []bool
	Scalars []string
}

// Mode says what a node does with a byte range.
type Mode uint8

const (
	Read      Mode = 1
	Write     Mode = 2 // every byte is written before it is read
	ReadWrite Mode = 3
)

var modeNames = []string{"none", "in", "out", "inout"}

// String returns the word that a pipeline file uses.
func (m Mode) String() string { return words.Name(m, "Mode", modeNames) }

// Access is one node's use of a byte range of a buffer.
type Access struct {
	Range
	Mode Mode
}

// Pos is a place in a pipeline file; the zero Pos is "not from a file". Columns count from 1, in characters.
type Pos struct{ Line, Column int32 }
