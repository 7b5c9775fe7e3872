// Which loops and branches can be part of a CUDA graph.

package dag

import (
	"fmt"

	"github.com/dagrun/dagrun/internal/words"
)

// mostReasons is how many loops and branches NotInGraph names.
const mostReasons = 4

// Fallback is why a loop or branch cannot be a conditional node of a CUDA graph. The pipeline then runs as streams, and the host tests its
// conditions.
type Fallback struct {
	Control *Node  // the loop or branch
	Because *Node  // the first node of its bodies that cannot be in one
	Why     string // what that does, such as "copies pageable host memory"
	Fix     string // what to change
}

// Fallbacks returns the loops and branches that cannot be conditional nodes, those of a body after the one around it.
func (g *Graph) Fallbacks() []Fallback { return g.fallbacks(nil) }

// NotInGraph says why a pipeline cannot be a CUDA graph because of what its loops and branches do, such as `"up" in "solve" copies pageable
// host memory, which the body of a conditional graph node cannot`, or "" if they can all be conditional nodes. Such a pipeline runs as
// streams, and the host tests the conditions.
func (g *Graph) NotInGraph() string {
	all := g.Fallbacks()
	if len(all) == 0 {
		return ""
	}
	var reasons []string
	for _, f := range all[:min(len(all), mostReasons)] {
		reasons = append(reasons, fmt.Sprintf("%q in %q %s", f.Because.Name, f.Control.Name, f.Why))
	}
	if more := len(all) - mostReasons; more > 0 {
		reasons = append(reasons, "so do "+words.Count(int64(more), "other loop or branch", "other loops and branches"))
	}
	return words.List(reasons, "and") + ", which the body of a conditional graph node cannot"
}

func (g *Graph) fallbacks(all []Fallback) []Fallback {
	if g == nil || g.Pipeline == nil {
		return all
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Control == nil {
			continue
		}
		elsewhere := n.elsewhere()
		found := elsewhere != nil
		if found {
			all = append(all, Fallback{n, elsewhere, fmt.Sprintf("runs on device %d, not %d", elsewhere.Device, n.Device), "keep all of it on one device"})
		}
		for _, body := range n.Control.Bodies {
			if body == nil || body.Pipeline == nil {
				continue
			}
			for k := range body.Nodes {
				if why, fix := body.notConditional(&body.Nodes[k]); why != "" && !found {
					found = true
					all = append(all, Fallback{n, &body.Nodes[k], why, fix})
				}
			}
			all = body.fallbacks(all)
		}
	}
	return all
}

// elsewhere returns the first node of the bodies of a loop or branch that runs on another device than the condition is read on, nil if there is none.
func (n *Node) elsewhere() *Node {
	for _, body := range n.Control.Bodies {
		if body == nil || body.Pipeline == nil {
			continue
		}
		for k := range body.Nodes {
			if body.Nodes[k].Device != n.Device {
				return &body.Nodes[k]
			}
		}
	}
	return nil
}

// notConditional says what a node of a body does that no conditional node can, or "", and what to change. Kernels, sets, and copies between
// one device and pinned host memory are possible.
func (g *Graph) notConditional(n *Node) (why, fix string) {
	switch n.Kind {
	case Call:
		return "calls a vendor's library", "use a kernel instead, or move the call out of the body"
	case HostFunction:
		return "runs a host function", "move it out of the body"
	case Communicate:
		if g.talks(n.Communication) {
			return "communicates with other ranks", "use foreach in place of the loop, or move it out of the body"
		}
	}
	if n.Copy == nil || g.rangeProblem(n.Copy.Dst) != nil || g.rangeProblem(n.Copy.Src) != nil {
		return "", ""
	}
	dst, src := &g.Buffers[n.Copy.Dst.Buffer], &g.Buffers[n.Copy.Src.Buffer]
	pageable := dst
	if !(dst.Place == Host && dst.Pageable) {
		pageable = src
	}
	switch {
	case pageable.Place == Host && pageable.Pageable:
		return "copies pageable host memory", fmt.Sprintf("let %q be pinned, or move the copy out of the body", pageable.Name)
	case dst.Place == Host && src.Place == Host:
		return "copies within host memory", "keep the data on the device, or move the copy out of the body"
	case dst.Place == Device && dst.Device != n.Device, src.Place == Device && src.Device != n.Device:
		return "copies to or from another device", "move the copy out of the body"
	}
	return "", ""
}

// talks reports whether a communication of a body is more than a copy, which it is where there is only one rank.
func (g *Graph) talks(c *Communication) bool {
	if c == nil || g.ranks() > 1 || c.Verb != Exchange {
		return g.ranks() > 1
	}
	met := 0
	for _, t := range c.Transfers {
		if g.Meets(t) {
			met++
		}
	}
	return met > 2
}
