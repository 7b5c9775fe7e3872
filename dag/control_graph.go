// Which loops and branches can be part of a CUDA graph.

package dag

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/words"
)

// mostReasons is how many loops and branches NotInGraph names.
const mostReasons = 4

// NotInGraph says why a pipeline cannot be a CUDA graph because of what its loops and branches do, such as `"up" in "solve" copies pageable
// host memory, which the body of a conditional graph node cannot`, or "" if they can all be conditional nodes. Such a pipeline runs as
// streams, and the host tests the conditions.
func (g *Graph) NotInGraph() string {
	reasons := g.notInGraph(nil)
	if len(reasons) == 0 {
		return ""
	}
	if more := len(reasons) - mostReasons; more > 0 {
		reasons = append(reasons[:mostReasons], "so do "+words.Count(int64(more), "other loop or branch", "other loops and branches"))
	}
	return words.List(reasons, "and") + ", which the body of a conditional graph node cannot"
}

// notInGraph adds, for each loop or branch that cannot be a conditional node, the first node of its bodies that is why.
func (g *Graph) notInGraph(reasons []string) []string {
	if g == nil || g.Pipeline == nil {
		return reasons
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Control == nil {
			continue
		}
		found := false
		for _, body := range n.Control.Bodies {
			if body == nil || body.Pipeline == nil {
				continue
			}
			for k := range body.Nodes {
				if problem := body.notConditional(&body.Nodes[k]); problem != "" && !found {
					found = true
					reasons = append(reasons, fmt.Sprintf("%q in %q %s", body.Nodes[k].Name, n.Name, problem))
				}
			}
			reasons = body.notInGraph(reasons)
		}
	}
	return reasons
}

// notConditional says what a node of a body does that no conditional node can, or "". Kernels, sets, and copies between one device and
// pinned host memory are possible.
func (g *Graph) notConditional(n *Node) string {
	switch n.Kind {
	case Call:
		return "calls a vendor's library"
	case HostFunction:
		return "runs a host function"
	}
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
