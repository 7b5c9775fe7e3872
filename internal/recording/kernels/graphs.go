// Graphs: the nodes that launch kernels, in the state that a graph had at a moment.

package kernels

import (
	"encoding/binary"
	"sort"

	"github.com/dagrun/dagrun/internal/recording"
)

// Types of nodes, as the driver numbers them, and the words of a kernel node.
const (
	nodeKernel = 0
	nodeChild  = 4

	bodyGrid    = 1
	bodyShared  = 7
	bodyCluster = 9
	bodyWords   = 10
)

// mostNested is how deep child graphs are followed: a file may claim that a graph is its own child.
const mostNested = 8

// mostNodes is how many nodes of one graph are counted, for the same reason.
const mostNodes = 1 << 22

// graphs finds the state that a graph had at a moment.
type graphs struct {
	all          []recording.GraphInfo
	executions   map[uint64][]int
	descriptions map[uint64][]int
}

func newGraphs(p *recording.Process) graphs {
	g := graphs{p.Graphs, map[uint64][]int{}, map[uint64][]int{}}
	for k := range p.Graphs {
		if info := &p.Graphs[k]; info.Execution != 0 {
			g.executions[info.Execution] = append(g.executions[info.Execution], k)
		} else {
			g.descriptions[info.Graph] = append(g.descriptions[info.Graph], k)
		}
	}
	return g
}

func (g *graphs) at(states []int, moment uint64) *recording.GraphInfo {
	k := sort.Search(len(states), func(k int) bool { return g.all[states[k]].Sequence > moment }) - 1
	if k < 0 {
		return nil
	}
	return &g.all[states[k]]
}

// kernels calls visit with the words of each node that launches a kernel.
func (g *graphs) kernels(of *recording.GraphInfo, moment uint64, nested int, left *int, visit func(words []uint64)) {
	for k := range of.Nodes {
		n := &of.Nodes[k]
		if *left--; *left < 0 {
			return
		}
		words := make([]uint64, min(len(n.Body)/8, bodyWords))
		for w := range words {
			words[w] = binary.LittleEndian.Uint64(n.Body[8*w:])
		}
		switch {
		case n.Type == nodeKernel && len(words) == bodyWords:
			visit(words)
		case n.Type == nodeChild && len(words) > 0 && nested < mostNested:
			if child := g.at(g.descriptions[words[0]], moment); child != nil {
				g.kernels(child, moment, nested+1, left, visit)
			}
		}
	}
}
