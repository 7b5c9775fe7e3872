// The proof of a plan that is spread over several devices: what it works on.

package spread

import (
	"errors"
	"fmt"
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
	"github.com/dagrun/dagrun/planner/proof"
)

// ErrWrong: a graph over several devices computes something else than the graph that it was made from.
var ErrWrong = errors.New("wrong spread over devices")

// spreadCheck is the state of Verify.
type spreadCheck struct {
	original *dag.Graph
	s        *plan.Spread
	g        *dag.Graph
	final    []dag.BufferID // by buffer of the original: the piece that must hold the last version in the end, or -1
	top      *spreadLevel
	bodies   [][]dag.NodeID // of the spread, those that no level has taken yet
	names    []string       // by number of a node of the original
	wanted   []byteVersions // by buffer of the original
	moved    bool           // the nodes come in another order than declared
	views    [][]readView   // by node of the original, where they do
	view     []readView     // of the node that is followed
	held     []byteVersions // by buffer of g
	bands    []bandTable    // by buffer of the original
	list     []extent
	good     [][]extent // by buffer of g: the bytes that begin a replay with what the original begins it with
}

func wrong(format string, args ...any) *proof.Violation {
	return &proof.Violation{
		Fault: ErrWrong, Node: -1, Before: -1, Stream: -1, BeforeStream: -1, Op: -1, Event: -1, Buffer: -1, Other: -1,
		Problem: fmt.Sprintf(format, args...),
	}
}

// wrongAt is wrong for a node of a graph over several devices.
func wrongAt(g *dag.Graph, node dag.NodeID, format string, args ...any) *proof.Violation {
	v := wrong(format, args...)
	v.Node, v.NodeName = node, plan.NodeName(g, node)
	return v
}

// spreadLevel is the graph or a body of a loop or branch, in the original and over several devices.
type spreadLevel struct {
	original, g *dag.Graph
	nodes       []dag.NodeID                  // by node of g: the node of the original, or plan.Inserted
	ids         []dag.NodeID                  // by node of the original
	first       int32                         // the number of its first node of the original
	inner       map[dag.NodeID][]*spreadLevel // by loop or branch of the original
	changed     map[dag.NodeID]*changes       // by loop or branch of g, those that were asked for
}

// changedPiece is a piece of a buffer that the bodies of a loop or branch may write.
type changedPiece struct {
	piece   dag.BufferID
	places  []extent // of the piece: those that are written in it, in another piece, or in the original
	written []extent // those that are written in it
}

// changes are what the bodies of a loop or branch may write.
type changes struct {
	buffers []changedPlaces // in the original
	all     []changedPlaces // in the original or over several devices
	pieces  []changedPiece
}

// changedPlaces are places of a buffer of the original, in order.
type changedPlaces struct {
	buffer dag.BufferID
	places []extent
}

// extent is a half-open range of bytes.
type extent struct{ lo, hi int64 }

// bandTable numbers the places of a buffer. A buffer without tiles has one place for each byte. Of one with tiles, a band of rows has as many
// places as one row has bytes: the versions of all its rows are the same at all times.
type bandTable struct {
	pitch  int64
	starts []int64 // rows
	rows   int64
}

// byteVersions are the versions of all bytes of a buffer, in order and without gaps.
type byteVersions struct{ runs []versionRun }

// versionRun is a range of bytes with one version.
type versionRun struct {
	lo, hi  int64
	version int32
}

// readView says which versions a node of the original finds in a buffer, where it reads it.
type readView struct {
	buffer   dag.BufferID
	versions byteVersions
}

// The versions of bytes besides those that nodes write.
const (
	atStart   int32 = -1 // what the original begins the replay with
	noVersion int32 = math.MinInt32
)
