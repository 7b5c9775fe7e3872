// Which node of a graph a measurement belongs to. An executable graph has nodes of its own, and the driver does not tell which they were made of. It makes
// them one after the other in its memory, in the order of the graph, so they are matched in the order of their handles; that is taken only if every one launches what
// its counterpart does. Where that fails, a kernel that only one node launches in this shape is matched, and no other.

package order

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/internal/recording"
)

// nodeAccess is a node of a launched graph that was measured.
type nodeAccess struct {
	node, number uint64
	launches     string // the kernel and its shape; "" if that is not known
}

func accessOf(p *recording.Process, c *recording.Call) nodeAccess {
	const own, shape = 4, 7 // words that say which, and words that say what is launched
	n := nodeAccess{node: c.Args[2], number: c.Args[3]}
	if len(c.Args) >= own+shape {
		n.launches = launchText(nameOf(p, c.Args[own], c.Begin), c.Args[own+1:own+shape])
	}
	return n
}

func launchText(kernel string, shape []uint64) string { return fmt.Sprint(kernel, shape) }

func nameOf(p *recording.Process, function, moment uint64) string {
	name := ""
	for _, f := range p.Functions[function] {
		if name == "" || f.Sequence <= moment {
			name = f.Name
		}
	}
	return name
}

// signed is a node of a graph that launches a kernel.
type signed struct {
	node     uint64
	launches string
}

// numbers returns the numbers of the measured launches by the nodes of a graph.
func (m *machine) numbers(g *graph, launch uint64) map[uint64]uint64 {
	measured := m.index.measured[launch]
	if len(measured) == 0 {
		return nil
	}
	kernels := m.kernels(g, launch)
	found := map[uint64]uint64{}
	own := map[uint64]bool{}
	for _, k := range kernels {
		own[k.node] = true
	}
	for _, a := range measured {
		if own[a.node] {
			found[a.node] = a.number
		}
	}
	if len(found) > 0 {
		return found
	}
	sorted := slices.Clone(measured)
	slices.SortFunc(sorted, func(a, b nodeAccess) int { return cmp.Compare(a.node, b.node) })
	if slices.EqualFunc(sorted, kernels, func(a nodeAccess, k signed) bool { return a.launches == k.launches }) {
		for k, a := range sorted {
			found[kernels[k].node] = a.number
		}
		return found
	}
	only := map[string][]uint64{}
	for _, k := range kernels {
		only[k.launches] = append(only[k.launches], k.node)
	}
	for _, a := range measured {
		if nodes := only[a.launches]; len(nodes) == 1 {
			found[nodes[0]] = a.number
		}
	}
	return found
}

// kernels lists the nodes of a graph that launch kernels, those of children in their place.
func (m *machine) kernels(g *graph, moment uint64) []signed {
	if g.kernels != nil {
		return g.kernels
	}
	g.kernels = []signed{}
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.node == nil || n.node.Type != nodeKernel || len(n.words) < kernelWords {
			continue
		}
		shape := make([]uint64, 6)
		for k := range shape {
			shape[k] = binary.LittleEndian.Uint64(n.node.Body[8*(k+1):])
		}
		g.kernels = append(g.kernels, signed{n.node.Node, launchText(m.function(n.words[0], moment).name, shape)})
	}
	return g.kernels
}
