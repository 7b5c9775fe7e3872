// Which node of a graph a measurement belongs to. An executable graph has nodes of its own, and the driver does not tell which they were made of. It
// makes them one after the other in its memory, in the order of the graph, so they are matched in the order of their handles, if
// each launches the kernel of its
// counterpart in the same shape, and touched something that its parameters point to. Where that fails, a measurement is matched
// with the node that it fits best.

package order

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/internal/recording"
)

func accessOf(p *recording.Process, c *recording.Call) nodeAccess {
	return nodeAccess{node: c.Args[2], number: c.Args[3], launches: launchText(p.FunctionName(c.Args[4], c.Begin), c.Args[5:11])}
}

func launchText(kernel string, shape []uint64) string { return fmt.Sprint(kernel, shape) }

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
	if slices.EqualFunc(sorted, kernels, func(a nodeAccess, k signed) bool { return a.launches == k.launches && m.touches(&k, a.number) }) {
		for k, a := range sorted {
			found[kernels[k].node] = a.number
		}
		return found
	}
	for name, same := range byLaunch(measured) {
		var nodes []signed
		for _, k := range kernels {
			if k.launches == name {
				nodes = append(nodes, k)
			}
		}
		m.match(same, nodes, found)
	}
	return found
}

func byLaunch(measured []nodeAccess) map[string][]nodeAccess {
	groups := map[string][]nodeAccess{}
	for _, a := range measured {
		groups[a.launches] = append(groups[a.launches], a)
	}
	return groups
}

// match pairs measurements with nodes that launch the same: first those that fit best. Where two fit a node equally well, but touched different bytes, neither
// is taken for it.
func (m *machine) match(measured []nodeAccess, nodes []signed, found map[uint64]uint64) {
	if len(measured) == 1 && len(nodes) == 1 {
		found[nodes[0].node] = measured[0].number
		return
	}
	type pair struct{ fits, node, measurement int }
	var pairs []pair
	for n := range nodes {
		for k := range measured {
			if fits := m.fits(&nodes[n], measured[k].number); fits > 0 {
				pairs = append(pairs, pair{fits, n, k})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return b.fits - a.fits })
	matched, taken := make([]bool, len(nodes)), make([]bool, len(measured))
	for at, p := range pairs {
		if matched[p.node] || taken[p.measurement] {
			continue
		}
		matched[p.node] = true
		rival := slices.ContainsFunc(pairs[at+1:], func(q pair) bool {
			return q.fits == p.fits && q.node == p.node && !taken[q.measurement] && !m.sameRuns(measured[q.measurement].number, measured[p.measurement].number)
		})
		if !rival {
			taken[p.measurement] = true
			found[nodes[p.node].node] = measured[p.measurement].number
		}
	}
}

// fits counts the words of a node's parameters at which a stretch of accessed bytes begins, and once more those that lie within one.
func (m *machine) fits(node *signed, number uint64) int {
	is := m.process.Accesses[number]
	if is == nil {
		return 0
	}
	score := 0
	for at := 0; at+8 <= len(node.parameters); at += 8 {
		word := binary.LittleEndian.Uint64(node.parameters[at:])
		k, begins := slices.BinarySearchFunc(is.Runs, word, func(r recording.Run, word uint64) int { return cmp.Compare(r.Address, word) })
		switch {
		case begins && (k == 0 || is.Runs[k-1].Address+uint64(is.Runs[k-1].Bytes) < word):
			score += 2
		case begins, k > 0 && word < is.Runs[k-1].Address+uint64(is.Runs[k-1].Bytes):
			score++
		}
	}
	return score
}

// touches tells whether a measurement may be that of a node: its parameters point to something that was accessed, or nothing was.
func (m *machine) touches(node *signed, number uint64) bool {
	is := m.process.Accesses[number]
	return is == nil || len(is.Runs) == 0 || m.fits(node, number) > 0
}

func (m *machine) sameRuns(a, b uint64) bool {
	return slices.Equal(m.process.Accesses[a].Runs, m.process.Accesses[b].Runs)
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
		g.kernels = append(g.kernels, signed{n.node.Node, launchText(m.function(n.words[0], moment).name, shape), n.node.Body[kernelWords*8:]})
	}
	return g.kernels
}
