// The graph: a pipeline with its dependencies. It does not change once it is built.

package dag

import (
	"errors"
	"strconv"

	"github.com/dagrun/dagrun/internal/words"
)

// Warnings returns what the reader of its file found legal but probably not meant, in file order. A graph made by Go calls has none.
func (g *Graph) Warnings() *Diagnostics {
	if g == nil {
		return &Diagnostics{}
	}
	return &g.warnings
}

// WithWarnings returns the graph with what the reader of its file found.
func (g *Graph) WithWarnings(list Diagnostics) *Graph {
	if g == nil {
		return nil
	}
	warned := *g
	warned.warnings = list
	return &warned
}

// Check returns an error for a graph that can be neither planned nor run: nil, one that file.Parse, Builder.Graph and Pipeline.Graph did
// not return, and one that has another number of nodes or buffers by now. It looks at nothing else.
func (g *Graph) Check() error {
	switch {
	case g == nil || g.Pipeline == nil:
		return errors.New("there is no graph")
	case len(g.succStart) != g.Vertices()+1 || len(g.predStart) != g.Vertices()+1 || len(g.topo) != len(g.Nodes) || g.buffers != len(g.Buffers):
		return errors.New("the graph has no dependencies derived for its nodes; make it with file.Parse, Builder.Graph or Pipeline.Graph")
	}
	return nil
}

// has reports whether dependencies were derived for a node.
func (g *Graph) has(i NodeID) bool { return g != nil && i >= 0 && int(i) < len(g.succStart)-1 }

// Len returns the number of nodes.
func (g *Graph) Len() int {
	if g == nil || g.Pipeline == nil {
		return 0
	}
	return len(g.Nodes)
}

// Joins returns what stands between many nodes and many others that depend on all of them; the id of the k-th is Len()+k. A graph
// without crowded buffers has none, and then every edge leads from a node to a node.
func (g *Graph) Joins() []Join {
	if g == nil {
		return nil
	}
	return g.joins
}

// IsJoin reports whether an end of an edge is a join, not a node.
func (g *Graph) IsJoin(i NodeID) bool { return int(i) >= g.Len() }

// Vertices returns the number of nodes and joins.
func (g *Graph) Vertices() int { return g.Len() + len(g.Joins()) }

// NameOf returns the name of a node, or what to call a join: "join 3". It is "" for a negative id.
func (g *Graph) NameOf(i NodeID) string {
	if i < 0 {
		return ""
	}
	if g.IsJoin(i) {
		return JoinName(int(i) - g.Len())
	}
	return g.Nodes[i].Name
}

// JoinName is what to call the k-th join.
func JoinName(k int) string { return "join " + strconv.Itoa(k) }

// DependenciesText counts the edges and the joins that they go through: "3 dependencies".
func (g *Graph) DependenciesText() string {
	text := words.Count(len(g.Edges()), "dependency", "dependencies")
	if joins := len(g.Joins()); joins > 0 {
		text += " through " + words.Count(joins, "join", "joins")
	}
	return text
}

// Edges returns every dependency, ordered by From and then To. Callers must not change it. An end may be a [Join].
func (g *Graph) Edges() []Edge {
	if g == nil {
		return nil
	}
	return g.edges
}

// OutEdges returns the dependencies that start at node or join i, by To: Succs with the reasons, for walks in the direction of the work.
func (g *Graph) OutEdges(i NodeID) []Edge {
	if !g.has(i) {
		return nil
	}
	return g.edges[g.succStart[i]:g.succStart[i+1]]
}

// Succs returns the nodes and joins that depend on node or join i, ascending.
func (g *Graph) Succs(i NodeID) []NodeID {
	if !g.has(i) {
		return nil
	}
	return g.succ[g.succStart[i]:g.succStart[i+1]]
}

// Preds returns the nodes and joins that node or join i depends on, ascending.
func (g *Graph) Preds(i NodeID) []NodeID {
	if !g.has(i) {
		return nil
	}
	return g.pred[g.predStart[i]:g.predStart[i+1]]
}

// Successors returns Succs of every node and join in one piece: those of node i are succ[start[i]:start[i+1]]. Callers must not change it.
func (g *Graph) Successors() (start []int32, succ []NodeID) {
	if g == nil {
		return nil, nil
	}
	return g.succStart, g.succ
}

// Predecessors returns Preds of every node and join in one piece: those of node i are pred[start[i]:start[i+1]]. Callers must not change it.
func (g *Graph) Predecessors() (start []int32, pred []NodeID) {
	if g == nil {
		return nil, nil
	}
	return g.predStart, g.pred
}

// PredEdges returns the indices into Edges of the dependencies that end at node or join i, parallel to Preds.
func (g *Graph) PredEdges(i NodeID) []int32 {
	if !g.has(i) {
		return nil
	}
	return g.predEdge[g.predStart[i]:g.predStart[i+1]]
}

// Enforced reports whether a plan must keep the order of a dependency. It must keep all of them, except that in a pipeline with
// sync: explicit, data hazards are only checked. Whoever makes schedules without the planner needs to know this.
func (g *Graph) Enforced(e Edge) bool {
	return e.Declared || g != nil && g.Pipeline != nil && g.Sync == SyncAuto
}

// EdgeText says why an edge is there in the units of a pipeline file: "RAW d_x(0..4)", or "after".
func (g *Graph) EdgeText(e Edge) string {
	if e.Why == After || g == nil {
		return e.Why.String()
	}
	return e.Why.String() + " " + g.rangeText(g.EdgeRange(e))
}

// EdgeRange returns the bytes of an edge's Buffer that it is about: the smallest range or tile around those that both ends touch.
func (g *Graph) EdgeRange(e Edge) Range {
	if e.Why == After || g == nil || g.Pipeline == nil {
		return Range{Buffer: -1}
	}
	return g.rangeOf(e.Buffer, e.Tile, e.Lo, e.Hi)
}

// UnwrittenRange returns the bytes that a read is about: the smallest range or tile around those that nothing has written.
func (g *Graph) UnwrittenRange(u UnwrittenRead) Range {
	if g == nil || g.Pipeline == nil {
		return Range{Buffer: -1}
	}
	return g.rangeOf(u.Buffer, u.Tile, u.Lo, u.Hi)
}

// rangeOf is the range of bytes lo to hi, or the tile of which they are the hull.
func (p *Pipeline) rangeOf(id BufferID, tile bool, lo, hi int64) Range {
	r := Range{Buffer: id, Lo: lo, Hi: hi}
	if b := p.buffer(id); tile && b != nil {
		r.Pitch = int32(rowBytes(b))
	}
	return r
}

// Topological returns all nodes in an order in which every dependency goes forward; of the nodes that are ready the
// first-declared comes first. Where every dependency already goes forward this is declaration order.
func (g *Graph) Topological() []NodeID {
	if g == nil {
		return nil
	}
	return g.topo
}

// Sequence returns the same with every join, each after all that lead to it and before all that depend on it.
func (g *Graph) Sequence() []NodeID {
	if g == nil {
		return nil
	}
	return g.sequence
}
