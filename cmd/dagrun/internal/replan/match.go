// Whether a graph is the one that is known, and where its values lie now.

package replan

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// ErrOther is a graph that is not the one that was recorded.
type ErrOther struct {
	Node int // -1: the graph as a whole
	What string
}

func (e *ErrOther) Error() string {
	where := "the graph"
	if e.Node >= 0 {
		where = fmt.Sprintf("node %d of the graph", e.Node)
	}
	return fmt.Sprintf("%s is not as it was recorded: %s; record the program again", where, e.What)
}

// located is a graph that is known, in the process that wants a plan.
type located struct {
	known *Known
	graph *Graph
	order []int
	at    []uint64        // where each value lies now; 0 if no node was seen to touch it
	stale map[[2]int]bool // words, by node and offset, that point elsewhere in this process, to nothing that was touched
	loose [][]int         // of each node, the bytes of its parameters that differ and may matter
}

// match compares a graph with what is known.
func match(known *Known, g *Graph) (*located, error) {
	switch {
	case g.Torch != known.Torch:
		return nil, &ErrOther{-1, fmt.Sprintf("torch %s instead of %s", g.Torch, known.Torch)}
	case g.Device != known.Device:
		return nil, &ErrOther{-1, fmt.Sprintf("%s instead of %s", g.Device, known.Device)}
	}
	if len(g.Nodes) != len(known.Nodes) {
		return nil, &ErrOther{-1, fmt.Sprintf("%d nodes instead of %d", len(g.Nodes), len(known.Nodes))}
	}
	l := &located{known: known, graph: g, at: make([]uint64, len(known.Values)), stale: map[[2]int]bool{}, loose: make([][]int, len(g.Nodes))}
	var err error
	if l.order, err = g.order(); err != nil {
		return nil, err
	}
	for k := range g.Nodes {
		if what := same(&known.Nodes[k], &g.Nodes[k]); what != "" {
			return nil, &ErrOther{k, what}
		}
		l.loose[k] = differs(&known.Nodes[k], &g.Nodes[k])
	}
	for k := range g.Nodes {
		for _, w := range known.Nodes[k].Words {
			if !w.Touched {
				continue
			}
			base := binary.LittleEndian.Uint64(g.Nodes[k].Bytes[w.Offset:]) - uint64(w.Delta)
			if before := l.at[w.Value]; before != 0 && before != base {
				return nil, &ErrOther{k, fmt.Sprintf("its word at %d points to another tensor", w.Offset)}
			}
			l.at[w.Value] = base
		}
	}
	return l, l.rest()
}

func same(was *Seen, is *Node) string {
	switch {
	case was.Type != is.Type:
		return fmt.Sprintf("type %d instead of %d", is.Type, was.Type)
	case was.Type == kernelNode && was.Function != is.Function:
		return fmt.Sprintf("it launches %s instead of %s", is.Function, was.Function)
	case was.Type == kernelNode && !maps.Equal(was.Attributes, is.Attributes):
		return "its code is another version"
	case was.Grid != is.Grid || was.Block != is.Block || was.Shared != is.Shared || was.Cluster != is.Cluster || was.Cooperative != is.Cooperative:
		return fmt.Sprintf("%v blocks of %v threads with %d bytes instead of %v of %v with %d", is.Grid, is.Block, is.Shared, was.Grid, was.Block, was.Shared)
	case !slices.Equal(was.Parameters, is.Parameters) || len(was.Bytes) != len(is.Bytes):
		return "it takes other parameters"
	}
	return ""
}

// differs returns which bytes of parameters are others than when they were recorded, besides the words that point to memory. Structures have bytes that nobody
// wrote, which are others in every process, and there is no telling them from those that matter; so such a node is to be tried in the process itself.
func differs(was *Seen, is *Node) []int {
	list := []int{}
	for _, p := range was.Parameters {
		for at := p[0]; at < p[0]+p[1]; at++ {
			if was.Bytes[at] != is.Bytes[at] && !slices.ContainsFunc(was.Words, func(w Word) bool { return w.Offset <= at && at < w.Offset+8 }) {
				list = append(list, at)
			}
		}
	}
	return list
}

// rest finds out where values are that no word was seen to reach, and which words point to nothing that matters: in this process they point elsewhere.
func (l *located) rest() error {
	for k := range l.graph.Nodes {
		for _, w := range l.known.Nodes[k].Words {
			if w.Touched {
				continue
			}
			base := binary.LittleEndian.Uint64(l.graph.Nodes[k].Bytes[w.Offset:]) - uint64(w.Delta)
			if l.at[w.Value] == 0 {
				l.at[w.Value] = base
			} else if l.at[w.Value] != base {
				l.stale[[2]int{k, w.Offset}] = true
			}
		}
	}
	for k, n := range l.known.Nodes {
		for _, u := range n.Uses {
			if l.at[u.Value] == 0 {
				v := &l.known.Values[u.Value]
				if n.Type == kernelNode && !v.Pool {
					l.at[u.Value] = v.At // no word leads there: a global of the code, whose address is as good a name as any
					continue
				}
				if e, ok := l.direct(k, u.Value); ok {
					l.at[u.Value] = e
				}
			}
		}
	}
	return nil
}

// direct finds a value that only copies and memsets touch.
func (l *located) direct(k, value int) (uint64, bool) {
	was, is := &l.known.Nodes[k], &l.graph.Nodes[k]
	v := &l.known.Values[value]
	extent := Extent{v.At, v.Bytes}
	switch {
	case was.Type == setNode && extent.holds(was.Set.Address):
		return is.Set.Address - (was.Set.Address - v.At), true
	case was.Type == copyNode && extent.holds(was.Copy.Source.Address):
		return is.Copy.Source.Address - (was.Copy.Source.Address - v.At), true
	case was.Type == copyNode && extent.holds(was.Copy.Destination.Address):
		return is.Copy.Destination.Address - (was.Copy.Destination.Address - v.At), true
	}
	return 0, false
}
