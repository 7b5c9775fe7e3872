// The pipeline as declared, with all expressions evaluated and all repetitions expanded. Graph's data is here too, since the bodies of loops are graphs.

package dag

import (
	"fmt"

	"github.com/dagrun/dagrun/dag/expr"
	"github.com/dagrun/dagrun/internal/words"
)

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

	ended       <-chan struct{} // closed when nobody waits for the graph any more; nil: somebody does
	accesses    []Access        // of all nodes, one after the other
	accessStart []int32         // len(Nodes)+1
}

// Accesses returns what node i reads and writes, and nothing for a node that the pipeline does not have. Callers must not change it.
func (p *Pipeline) Accesses(i NodeID) []Access {
	if p == nil || i < 0 || int(i) >= len(p.accessStart)-1 {
		return nil
	}
	return p.accesses[p.accessStart[i]:p.accessStart[i+1]]
}

// Draft is a pipeline that is being declared, by Go calls ([Builder]) or by a file. Its methods take one declaration at a time and say what is wrong
// with it, so that both accept the same. They trust the ids and ranges that they are given.
type Draft struct{ Pipeline }

// Add appends a node with its accesses and returns its id.
func (d *Draft) Add(node Node, accesses ...Access) NodeID {
	if len(d.accessStart) == 0 {
		d.accessStart = append(d.accessStart, 0)
	}
	d.Nodes = append(d.Nodes, node)
	d.accesses = append(d.accesses, accesses...)
	d.accessStart = append(d.accessStart, int32(len(d.accesses)))
	return NodeID(len(d.Nodes) - 1)
}

// Swap exchanges the list of nodes with that of another draft. The bodies of loops and branches have lists of their own over the buffers of the pipeline.
func (d *Draft) Swap(other *Draft) {
	d.Nodes, other.Nodes = other.Nodes, d.Nodes
	d.accesses, other.accesses = other.accesses, d.accesses
	d.accessStart, other.accessStart = other.accessStart, d.accessStart
}

// Reuse takes the memory of the nodes of a draft that nobody looks at any more. It comes before the first node.
func (d *Draft) Reuse(old *Draft) {
	d.Nodes, d.accesses, d.accessStart = old.Nodes[:0], old.accesses[:0], append(old.accessStart[:0], 0)
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
	// Values are in place of Value: the numbers of all elements, or the components of every element of a vector or of complex numbers.
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
	Task         Kind = iota // opaque: declared accesses and a cost, no action of dagrun's; can be planned, not run
	Memcpy                   // Copy
	Memset                   // Set
	Kernel                   // Launch
	Map                      // Launch, with Launch.Map set
	Communicate              // Communication
	Repeat                   // Control: a loop
	Branch                   // Control: a branch
	Call                     // Launch, of a function of a vendor's library
	HostFunction             // Function, of the program that embeds dagrun
)

var kindNames = []string{"task", "memcpy", "memset", "kernel", "map", "communication", "repeat", "if", "call", "host"}

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
	Function      string   // the name under which the embedding program registers what a HostFunction node runs
	After         []NodeID // explicit predecessors
	Pos           Pos
}

// Copy moves Src to Dst, equal in size.
type Copy struct{ Dst, Src Range }

// Set fills Dst with an element of the buffer's type, given as its bits.
type Set struct {
	Dst  Range
	Bits uint64
}

// Control makes a node a loop (Repeat) or a branch (Branch). Builder.Repeat and Builder.If make one; its bodies are complete once the
// graph is.
//
// To the nodes around it, a loop or branch is a single node with the accesses of its bodies together. Bytes that may or may not be
// written count as read and written: afterwards they hold either the new contents or the old.
type Control struct {
	// Times is how many passes a loop without Condition makes, and how many one with a Condition makes at most.
	Times int64
	// Condition ends a loop once it holds (until), or, with While, once it does not. It chooses the body of a branch. nil: a loop of
	// exactly Times passes.
	Condition *Condition
	While     bool   // the loop tests before each pass; otherwise after it
	Every     int64  // the loop tests only every so many passes, and after the last; at least 1
	OrStop    bool   // it is no failure that Times passes were not enough
	Expect    *int64 // how many passes the last replay must have made; nil: not checked

	// Bodies are over the buffers of the pipeline. A loop has one body. A branch has one, or a second that runs if the condition does
	// not hold. Their nodes may run on several devices; the condition is read on the node's.
	Bodies []*Graph

	declared []*Pipeline // the bodies until the graph is made
	effect   effect
	carried  []BufferID // of a loop: what a pass may leave in it can matter to the next; ascending
}

// Condition is a truth value that is computed from single elements of device buffers while a pipeline runs.
//
// Integers are computed exactly, in 64 bits that wrap around; everything that a float or a division enters is computed in 64-bit floats,
// each operation rounded on its own. A comparison with a NaN is false, != included.
type Condition struct {
	Text string     // as written
	Expr *expr.Expr // with the values of params; its variables are named by OperandName
	// Operands are the elements that it reads, each of one element.
	Operands []Range
	Types    []DType // of Operands
}

// effect is what a loop or branch does with bytes.
type effect struct {
	reads rangeSet // before it has certainly written them
	may   rangeSet // written in some run
	must  rangeSet // written in every run
}

// Graph is a checked pipeline with its dependencies.
type Graph struct {
	*Pipeline
	edges     []Edge   // by From, then To
	succStart []int32  // edges of node i: edges[succStart[i]:succStart[i+1]]
	succ      []NodeID // successor nodes, parallel to edges
	predStart []int32
	pred      []NodeID // predecessor nodes, ascending
	predEdge  []int32  // their edges
	topo      []NodeID
	joins     []Join
	sequence  []NodeID // topo with the joins
	buffers   int      // how many there were
	carried   []BufferID
	unwritten []UnwrittenRead
	unread    []NodeID
	warnings  Diagnostics
}
