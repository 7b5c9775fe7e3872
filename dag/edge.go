// Edges of a graph, the reasons for them, and joins.

package dag

import "github.com/dagrun/dagrun/internal/words"

// Edge is a dependency: To must not start before From has finished. For After, Buffer is -1. Of several buffers with the same
// reason it names the one declared first.
//
// Where many nodes and many others would all depend on each other, edges lead to and from a [Join] instead, whose id counts on from
// those of the nodes.
type Edge struct {
	From, To NodeID
	Buffer   BufferID
	Why      Why
	Declared bool  // To names From in its After, whatever Why says
	Tile     bool  // the bytes are a tile: Graph.EdgeRange says which
	Lo, Hi   int64 // the bytes of Buffer that both touch (the hull, where there are several ranges)
}

// Why is the reason for an edge. If a pair of nodes has several, the first in this order is kept.
type Why uint8

const (
	RAW   Why = iota // the later node reads what the earlier wrote
	WAW              // both write
	WAR              // the later node overwrites what the earlier read
	After            // declared with after:
)

var whyNames = []string{"RAW", "WAW", "WAR", "after"}

func (w Why) String() string { return words.Name(w, "Why", whyNames) }

// Join replaces the edges from each node of one group to each node of another, if all nodes of the second depend on all nodes of the
// first for bytes of one buffer. It is no node: it does not run, and no wait is inserted for it. A node with an edge from a join comes
// after every node with a path to that join, through other joins too.
type Join struct {
	Buffer BufferID
	Why    Why   // RAW: the nodes before it are the last writers of the bytes; WAR: they have read them
	Tile   bool  // the bytes are a tile: rows of a row's length, from byte Lo to byte Hi
	Lo, Hi int64 // the bytes
}

// UnwrittenRead is the first read of a buffer's bytes that no earlier node wrote.
type UnwrittenRead struct {
	Buffer BufferID
	Node   NodeID // the first node that reads such bytes
	Tile   bool   // the bytes are a tile, as those of an Edge are
	Lo, Hi int64  // which bytes (the hull)
}
