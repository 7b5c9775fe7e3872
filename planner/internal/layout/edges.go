// The edges that a CUDA graph needs so that it keeps a plan's order. Builds no graph.

package layout

import (
	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
)

// Edges returns the edges that a CUDA graph of a plan needs: the transitive reduction of what happens before what in the
// plan, stream order included, because buffers that share bytes rely on it. They come in submission order of To, so that a
// graph can be built by walking the list, and by From among those with the same To. If several nodes have no predecessor, each of them
// gets an edge from GraphRoot.
//
// The plan's ops must be valid (proof.CheckOps).
func Edges(p *plan.Plan, nodes int) []plan.GraphEdge {
	s := order.Read(p, nodes)
	start, from := s.Reduced(p)
	roots := 0
	for k := range s.Order {
		if start[k] == start[k+1] {
			roots++
		}
	}
	edges := make([]plan.GraphEdge, 0, len(from)+roots)
	for k, node := range s.Order {
		if start[k] == start[k+1] && roots > 1 {
			edges = append(edges, plan.GraphEdge{From: plan.GraphRoot, To: dag.NodeID(node)})
		}
		for _, before := range from[start[k]:start[k+1]] {
			edges = append(edges, plan.GraphEdge{From: dag.NodeID(before), To: dag.NodeID(node)})
		}
	}
	if planted.Is(planted.Edges) && len(edges) > 0 {
		edges = edges[:len(edges)-1]
	}
	return edges
}
