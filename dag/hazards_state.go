// What deriving the hazards of a pipeline works on: the state of each buffer, the edges and joins so far, and the tiles laid out in a line.

package dag

import (
	"errors"

	"github.com/dagrun/dagrun/dag/internal/cells"
)

// hazards derives the edges of a pipeline. Nodes are walked in declaration order, so edges come out grouped by Edge.To.
type hazards struct {
	pipeline *Pipeline
	tilings  []*tiling // by buffer, nil where its positions are bytes; nil: no buffer has tiles
	patches  []patch   // by access, of the buffers whose cells are a grid
	spans    []stretch // of the last access asked about; one, where no buffer has tiles
	buffers  []bufferState
	cuts     []cells.Cuts // of the buffers whose accesses differ in range
	cells    []cells.Cell // of the buffers that need no ledger
	ledgers  []*cells.Ledger
	readers  cells.ReaderList
	sweep    cells.Sweep

	log    edgeLog
	last   []int32 // by node or join: 1 + the index in log of the latest edge from it
	joins  joinLog
	excess int64         // how many more last writers and readers the accesses have met than usual
	usual  int64         // how many are usual for one access
	node   int32         // the node being walked
	first  int32         // index in log of its first edge
	buffer int32         // the access being walked
	inside *cells.Ledger // the ledger of its buffer

	unwritten []UnwrittenRead
	used      []bool // by node: what it wrote is read by a later node or after the replay
	backward  bool   // some edge points to an earlier node, which only After can cause
}

// question is what the writers of cells are wanted for.
type question uint8

const (
	readsFrom  question = iota // the node reads the cells
	overwrites                 // the node writes cells that nobody has read since they were written
	carries                    // the node writes cells that were read: had any node written them before the read?
	lasts                      // the end of the replay: whose values remain?
)

// bufferState is what is known of a buffer in advance and while walking.
type bufferState struct {
	lo, hi    int64 // of its first access
	lastWrite int32 // the last node that writes any of it, -1: none
	ledger    int32 // index of its ledger, -1: none
	cell      int32 // index of its first cell; -1: never accessed
	cuts      int32 // index of its cuts, -1: it has one cell
	varied    bool  // accesses differ in range
	joined    bool  // its dependencies go through joins
	readFirst bool  // some byte was read that nothing had written
	carried   bool  // some such byte was written later
}

// edgeLog is a list of edges that grows without being moved: a slice's doubling would need three times the memory.
type edgeLog struct {
	blocks [][]Edge
	len    int32
}

func (l *edgeLog) at(k int32) *Edge { return &l.blocks[k>>edgeBlockBits][k&(edgeBlock-1)] }

const (
	edgeBlockBits = 14
	edgeBlock     = 1 << edgeBlockBits
)

// joinLog holds the joins and the edges that lead to them, by join.
type joinLog struct {
	list  []Join
	node  []int32 // the node being walked when each was made
	edges edgeLog
	seen  []int32 // by node or join: 1 + the last join that it leads to
	lose  int     // fault injection: if above 0, which of the next edges to leave out, 1 being the next
}

// EdgeLimitError says that the dependencies of a pipeline would take too much memory.
type EdgeLimitError struct {
	Buffer   BufferID // most of them are for its bytes; -1: most are declared with after
	Edges    int64    // how many of them, up to the limit
	Accesses int      // of the buffer
	Node     NodeID   // the node at which the limit was reached
	Pos      Pos      // of the buffer, or else of the node
	Problem  string   // what is wrong
	Hint     string   // what to do about it
}

func (e *EdgeLimitError) Error() string { return e.Problem + "; " + e.Hint }

// Is makes errors.Is(err, ErrTooManyEdges) true.
func (e *EdgeLimitError) Is(target error) bool { return target == ErrTooManyEdges }

// ErrTooManyEdges is what every EdgeLimitError is.
var ErrTooManyEdges = errors.New("too many dependencies")

// tiling is how the bytes of a buffer are laid out in a line.
type tiling struct {
	pitch   int64 // bytes of a row of the buffer
	columns bool  // bands are of columns; a line is then as long as a column
	line    int64 // positions from one band to the next
	bands   cells.Cuts
	grid    bool       // positions are numbers of cells, not bytes
	across  cells.Cuts // of a grid: where all lines are cut
	overlap bool       // of a grid: some access has more than one cell
}

// patch is what an access covers of a grid: bands and cells of their lines.
type patch struct{ first, end, left, right int32 }

// stretch is a run of positions in the line.
type stretch struct{ lo, hi int64 }
