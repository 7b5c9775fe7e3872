// The edges of a CUDA graph: what has to be linked so that a graph keeps a plan's order. Builds no graph.

package layout

import (
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
)

// Edges returns the edges that a CUDA graph of a plan needs: the transitive reduction of what happens before what in the
// plan, stream order included, because buffers that share bytes rely on it. They come in submission order of To, so that a
// graph can be built by walking the list, and for one To with ascending From. Where several nodes have no predecessor, each of them
// gets an edge from GraphRoot.
//
// The plan is known to be whole.
func Edges(p *plan.Plan, nodes int) []plan.GraphEdge {
	s := order.Read(p, nodes)
	a := order.NewAncestry(p, s)
	needless := a.Needless()
	roots := 0
	for k := range s.Order {
		if len(a.Of(k)) == 0 {
			roots++
		}
	}
	edges := make([]plan.GraphEdge, 0, len(a.From)+roots)
	for k, node := range s.Order {
		if len(a.Of(k)) == 0 && roots > 1 {
			edges = append(edges, plan.GraphEdge{From: plan.GraphRoot, To: node})
		}
		first := len(edges)
		for i := a.Start[k]; i < a.Start[k+1]; i++ {
			if needless[i] {
				continue
			}
			edges = append(edges, plan.GraphEdge{From: a.From[i], To: node})
			for at := len(edges) - 1; at > first && edges[at].From < edges[at-1].From; at-- {
				edges[at], edges[at-1] = edges[at-1], edges[at]
			}
		}
	}
	if planted.Is(planted.Edges) && len(edges) > 0 {
		edges = edges[:len(edges)-1]
	}
	return edges
}
