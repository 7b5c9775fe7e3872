// Levels: the graph and the bodies of its loops and branches, whose nodes are numbered one after the other.

package placement

import (
	"slices"
	"sort"

	"github.com/dagrun/dagrun/dag"
)

// findLevels lists a graph and all bodies in it, outer ones first.
func (p *Problem) findLevels(g *dag.Graph, owner int32) {
	l := level{g, p.nodes, owner}
	p.levels = append(p.levels, l)
	p.nodes += int32(g.Len())
	for i := range g.Nodes {
		c := g.Nodes[i].Control
		if c == nil {
			continue
		}
		number := l.first + int32(i)
		for _, body := range c.Bodies {
			p.inner[number] = append(p.inner[number], int32(len(p.levels)))
			p.findLevels(body, number)
		}
	}
}

// eachNode calls visit with every node, those of bodies included, and its number.
func (p *Problem) eachNode(visit func(l *level, i dag.NodeID, number int32) error) error {
	for k := range p.levels {
		l := &p.levels[k]
		for i := range l.graph.Nodes {
			if err := visit(l, dag.NodeID(i), l.first+int32(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// within calls visit with every node of the bodies of a loop or branch, those of nested ones included.
func (p *Problem) within(number int32, visit func(l *level, i dag.NodeID)) {
	for _, k := range p.inner[number] {
		l := &p.levels[k]
		for i := range l.graph.Nodes {
			visit(l, dag.NodeID(i))
			p.within(l.first+int32(i), visit)
		}
	}
}

// levelOf finds the level of a node by its number.
func (p *Problem) levelOf(number int32) *level {
	k := sort.Search(len(p.levels), func(k int) bool { return p.levels[k].first > number })
	return &p.levels[k-1]
}

// name is the name of a node by its number.
func (p *Problem) name(number int32) string {
	l := p.levelOf(number)
	return l.graph.Nodes[number-l.first].Name
}

// findUnits finds where the nodes of the graph itself have to run if no loop or branch is divided: where the fixed nodes of its bodies are, if those
// agree.
func (p *Problem) findUnits() {
	p.unit = slices.Clone(p.Fixed[:p.Graph.Len()])
	for i := range p.unit {
		if p.unit[i] != Free {
			continue
		}
		const several = -2
		at := int32(Free)
		p.within(int32(i), func(l *level, k dag.NodeID) {
			switch d := p.Fixed[l.first+int32(k)]; {
			case d == Free:
			case at == Free:
				at = d
			case at != d:
				at = several
			}
		})
		p.unit[i] = max(at, Free)
	}
}

// Expand makes a placement of all nodes of one of the nodes outside of bodies: those of a body run where the loop or branch does, unless they
// are fixed.
func (p *Problem) Expand(at []int32) []int32 {
	all := slices.Clone(p.Fixed)
	copy(all, at)
	for k := range p.levels[1:] {
		l := &p.levels[k+1]
		for i := range l.graph.Nodes {
			if number := l.first + int32(i); all[number] == Free {
				all[number] = all[l.owner]
			}
		}
	}
	return all
}

// Follow moves the nodes of loops and branches that were not divided, and that have moved since before, along with them. Those that were divided
// move back.
func (p *Problem) Follow(at, before []int32) {
	for i := range p.unit {
		from, to := before[i], at[i]
		if from == to || p.inner[int32(i)] == nil {
			continue
		}
		together := true
		p.within(int32(i), func(l *level, k dag.NodeID) {
			number := l.first + int32(k)
			together = together && (p.Fixed[number] != Free || before[number] == from)
		})
		if !together {
			at[i] = from
			continue
		}
		p.within(int32(i), func(l *level, k dag.NodeID) {
			if number := l.first + int32(k); p.Fixed[number] == Free {
				at[number] = to
			}
		})
	}
}
