// Which loops and branches can be part of a CUDA graph.

package dag

import "fmt"

// NotInGraph says why a pipeline cannot be a CUDA graph because of what its loops and branches do, such as `"up" in "solve" copies pageable
// host memory, which the body of a conditional graph node cannot`, or "" if they can all be conditional nodes. Such a pipeline runs as
// streams, and the host tests the conditions.
func (g *Graph) NotInGraph() string {
	if g == nil || g.Pipeline == nil {
		return ""
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Control == nil {
			continue
		}
		for _, body := range n.Control.Bodies {
			if body == nil || body.Pipeline == nil {
				continue
			}
			for k := range body.Nodes {
				if problem := body.notConditional(&body.Nodes[k]); problem != "" {
					return fmt.Sprintf("%q in %q %s, which the body of a conditional graph node cannot", body.Nodes[k].Name, n.Name, problem)
				}
			}
			if problem := body.NotInGraph(); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// notConditional says what a node of a body does that no conditional node can, or "". Kernels, sets, and copies between one device and
// pinned host memory are possible.
func (g *Graph) notConditional(n *Node) string {
	if n.Kind != Memcpy || n.Copy == nil || g.rangeProblem(n.Copy.Dst) != nil || g.rangeProblem(n.Copy.Src) != nil {
		return ""
	}
	dst, src := &g.Buffers[n.Copy.Dst.Buffer], &g.Buffers[n.Copy.Src.Buffer]
	switch {
	case dst.Place == Host && dst.Pageable, src.Place == Host && src.Pageable:
		return "copies pageable host memory"
	case dst.Place == Host && src.Place == Host:
		return "copies within host memory"
	case dst.Place == Device && dst.Device != n.Device, src.Place == Device && src.Device != n.Device:
		return "copies to or from another device"
	}
	return ""
}
