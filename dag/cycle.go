// Cycles: which nodes depend on each other, reported in one canonical form.

package dag

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrCycle is what every CycleError is.
var ErrCycle = errors.New("dependency cycle")

// CycleError names nodes that depend on each other in a circle.
type CycleError struct {
	Nodes []NodeID // from the first-declared node on, each once; every node must run before the next, the last before the first
	Names []string // of Nodes
	Pos   Pos      // of the first
}

// Error shows the circle, such as "dependency cycle: a -> b -> c -> a", or "node "a" depends on itself". Long circles are cut
// short in the middle.
func (e *CycleError) Error() string {
	if len(e.Names) == 0 {
		return ErrCycle.Error()
	}
	if len(e.Names) == 1 {
		return fmt.Sprintf("node %q depends on itself", e.Names[0])
	}
	var b strings.Builder
	b.WriteString("dependency cycle: ")
	const shown = 16
	for i, name := range e.Names {
		if skipped := len(e.Names) - shown; skipped > 1 && i >= shown/2 && i < shown/2+skipped {
			if i == shown/2 {
				fmt.Fprintf(&b, "(%d more) -> ", skipped)
			}
			continue
		}
		b.WriteString(plain(name))
		b.WriteString(" -> ")
	}
	b.WriteString(plain(e.Names[0]))
	return b.String()
}

// Is makes errors.Is(err, ErrCycle) true.
func (e *CycleError) Is(target error) bool { return target == ErrCycle }

// plain quotes a name that could not be read in a line of names.
func plain(name string) string {
	if q := strconv.Quote(name); len(q) != len(name)+2 || strings.ContainsAny(name, " >") {
		return q
	}
	return name
}

func newCycleError(p *Pipeline, nodes []NodeID) *CycleError {
	e := &CycleError{Nodes: nodes, Pos: p.Nodes[nodes[0]].Pos}
	for _, i := range nodes {
		e.Names = append(e.Names, p.Nodes[i].Name)
	}
	return e
}

// findCycle returns the shortest cycle through the first-declared node that is on any, beginning with it. Of the nodes only
// those with a positive open count are looked at: the ones that could not be put in order.
func (g *Graph) findCycle(open []int32) []NodeID {
	component, size := g.components(open)
	first := NodeID(-1)
	for i, c := range component {
		if c >= 0 && size[c] > 1 {
			first = NodeID(i)
			break
		}
	}
	// Search breadth-first from that node until it is reached again; successors ascend, so ties go to the node declared first.
	from := map[NodeID]NodeID{}
	queue := []NodeID{first}
	for head := 0; head < len(queue); head++ {
		i := queue[head]
		for _, next := range g.Succs(i) {
			if next == first {
				cycle := []NodeID{i}
				for i != first {
					i = from[i]
					cycle = append(cycle, i)
				}
				slices.Reverse(cycle)
				return slices.DeleteFunc(cycle, g.IsJoin)
			}
			if _, seen := from[next]; !seen && component[next] == component[first] {
				from[next] = i
				queue = append(queue, next)
			}
		}
	}
	panic("dag: a strongly connected component without a cycle")
}

// components numbers the strongly connected components of the open nodes (Tarjan's algorithm) and counts their nodes; a node
// that is not open gets -1.
//
// It does not call StronglyConnectedComponents of github.com/dominikbraun/graph v0.23.0, with which a test compares it: that
// recurses, so that a circle of some million nodes outgrows Go's stack, which no caller can recover from.
func (g *Graph) components(open []int32) (component, size []int32) {
	n := len(open)
	component = make([]int32, n)
	index := make([]int32, n) // 1 + order of discovery; 0: not seen
	low := make([]int32, n)
	next := make([]int32, n) // position among the successors
	for i := range component {
		component[i] = -1
	}
	var path, stack []NodeID
	seen := int32(0)
	enter := func(i NodeID) {
		seen++
		index[i], low[i] = seen, seen
		path, stack = append(path, i), append(stack, i)
	}
	for root := range NodeID(n) {
		if open[root] <= 0 || index[root] != 0 {
			continue
		}
		enter(root)
		for len(path) > 0 {
			i := path[len(path)-1]
			if succs := g.Succs(i); int(next[i]) < len(succs) {
				s := succs[next[i]]
				next[i]++
				switch {
				case open[s] <= 0:
				case index[s] == 0:
					enter(s)
				case component[s] < 0:
					low[i] = min(low[i], index[s])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				parent := path[len(path)-1]
				low[parent] = min(low[parent], low[i])
			}
			if low[i] != index[i] {
				continue
			}
			c := int32(len(size))
			size = append(size, 0)
			for {
				s := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				component[s] = c
				size[c]++
				if s == i {
					break
				}
			}
		}
	}
	return component, size
}
