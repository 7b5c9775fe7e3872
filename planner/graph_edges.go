// The edges of a CUDA graph: what has to be linked so that a graph keeps a plan's order. Builds no graph.

package planner

// graphEdges returns the edges that a CUDA graph of a plan needs: the transitive reduction of what happens before what in the
// plan, stream order included, because buffers that share bytes rely on it. They come in submission order of To, so that a
// graph can be built by walking the list, and for one To with ascending From. Where several nodes have no predecessor, each of them
// gets an edge from GraphRoot.
//
// The plan is known to be whole.
func graphEdges(p *Plan, nodes int) []GraphEdge {
	s := readOrd(p, nodes)
	a := ordPlanAncestry(p, s)
	needless := a.needless()
	roots := 0
	for k := range s.order {
		if len(a.of(k)) == 0 {
			roots++
		}
	}
	edges := make([]GraphEdge, 0, len(a.from)+roots)
	for k, node := range s.order {
		if len(a.of(k)) == 0 && roots > 1 {
			edges = append(edges, GraphEdge{GraphRoot, node})
		}
		first := len(edges)
		for i := a.start[k]; i < a.start[k+1]; i++ {
			if needless[i] {
				continue
			}
			edges = append(edges, GraphEdge{a.from[i], node})
			for at := len(edges) - 1; at > first && edges[at].From < edges[at-1].From; at-- {
				edges[at], edges[at-1] = edges[at-1], edges[at]
			}
		}
	}
	return edges
}
