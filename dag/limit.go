// The limit on edges: says which declaration makes too many before memory is gone. Counts nothing while there are few.

package dag

import (
	"fmt"
	"math"

	"github.com/dagrun/dagrun/internal/words"
)

// MaxEdges is how many edges a graph may have, those of joins included, if its pipeline does not say.
const MaxEdges = 1 << 25

// mostEdges is how many edges the graph of a pipeline may have.
func (p *Pipeline) mostEdges() int32 {
	if p.MaxEdges <= 0 {
		return MaxEdges
	}
	return int32(min(p.MaxEdges, math.MaxInt32-1))
}

// bytesPerEdge is the memory that an edge takes while a graph is made: the edge itself in the log and in the graph, and its entries of
// the adjacency.
const bytesPerEdge = 2*32 + 3*4

// tooManyEdges blames the buffer that most of the edges so far are for.
func (h *hazards) tooManyEdges() error {
	p := h.pipeline
	edges := make([]int64, len(p.Buffers)+1) // by buffer, plus 1
	for _, log := range []*edgeLog{&h.log, &h.joins.edges} {
		for _, block := range log.blocks {
			for k := range block {
				edges[block[k].Buffer+1]++
			}
		}
	}
	most := 0
	for k := range edges {
		if edges[k] > edges[most] {
			most = k
		}
	}
	e := &EdgeLimitError{Buffer: BufferID(most - 1), Edges: edges[most], Node: NodeID(h.node), Pos: p.Nodes[h.node].Pos}
	e.Problem = fmt.Sprintf("the first %s have more than %d dependencies, the limit, which takes %s of memory",
		words.Count(h.node+1, "node", "nodes"), p.mostEdges(), words.Bytes(int64(p.mostEdges())*bytesPerEdge))
	if most == 0 {
		e.Problem += fmt.Sprintf("; %d of them are declared with after", e.Edges)
		e.Hint = "put one node after many, and others after that one"
		return e
	}
	buffer := &p.Buffers[most-1]
	e.Pos = buffer.Pos
	for i := range p.accesses {
		if p.accesses[i].Buffer == e.Buffer {
			e.Accesses++
		}
	}
	e.Problem += fmt.Sprintf("; %d of them are for bytes of buffer %q, which has %s", e.Edges, buffer.Name, words.Count(e.Accesses, "access", "accesses"))
	e.Hint = "let accesses be equal or apart instead of overlapping in part, or make several buffers of it"
	return e
}
