// Which node of a graph a measurement belongs to. An executable graph has nodes of its own, which the driver does not tell apart by the nodes that they were
// made of. So they are matched by what they launch: the kernel, its shape, and the bytes of its parameters.

package order

import (
	"encoding/binary"
	"fmt"

	"github.com/dagrun/dagrun/internal/recording"
)

// nodeAccess is a node of a launched graph that was measured.
type nodeAccess struct {
	node, number uint64
	launches     string // what it launches; "" if that is not known
}

func accessOf(p *recording.Process, c *recording.Call) nodeAccess {
	const own = 4 // words before those that say what is launched
	n := nodeAccess{node: c.Args[2], number: c.Args[3]}
	if len(c.Args) >= own+7 {
		n.launches = launchText(nameOf(p, c.Args[own], c.Begin), c.Args[own+1:own+7], c.Tail)
	}
	return n
}

func launchText(kernel string, shape []uint64, parameters []byte) string {
	return fmt.Sprint(kernel, shape, string(parameters))
}

func nameOf(p *recording.Process, function, moment uint64) string {
	name := ""
	for _, f := range p.Functions[function] {
		if name == "" || f.Sequence <= moment {
			name = f.Name
		}
	}
	return name
}

// numbers returns the numbers of the measured launches by the nodes of a graph. Nodes that launch the same with the same parameters are matched in their
// order. A measurement that could belong to several other nodes belongs to none.
func (m *machine) numbers(g *graph, launch uint64) map[uint64]uint64 {
	measured := m.index.measured[launch]
	found := map[uint64]uint64{}
	if len(measured) == 0 {
		return found
	}
	m.sign(g, launch)
	taken := map[string]int{}
	for _, a := range measured {
		if g.handles[a.node] {
			found[a.node] = a.number
			continue
		}
		nodes := g.launches[a.launches]
		if at := taken[a.launches]; at < len(nodes) {
			found[nodes[at]] = a.number
			taken[a.launches]++
		}
	}
	return found
}

// sign lists the nodes of a graph by what they launch, once.
func (m *machine) sign(g *graph, moment uint64) {
	if g.launches != nil {
		return
	}
	g.launches, g.handles = map[string][]uint64{}, map[uint64]bool{}
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.node == nil || n.node.Type != nodeKernel || len(n.words) < kernelWords {
			continue
		}
		g.handles[n.node.Node] = true
		shape := make([]uint64, 6)
		for k := range shape {
			shape[k] = binary.LittleEndian.Uint64(n.node.Body[8*(k+1):])
		}
		text := launchText(m.function(n.words[0], moment).name, shape, n.node.Body[kernelWords*8:])
		g.launches[text] = append(g.launches[text], n.node.Node)
	}
}
