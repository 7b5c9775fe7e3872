// The outline of a graph: what a saved plan holds of it, by name.

// Package outline says in words what a graph consists of and what its nodes do, which a saved plan holds, and names the first difference
// between a graph and an older one.
package outline

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// Graph is what a saved plan knows of the graph that it was made for. Parts left nil are not compared.
type Graph struct {
	Nodes   []string // in any order
	Buffers []Buffer
	Edges   []Edge
}

// Buffer is a device buffer.
type Buffer struct {
	Name   string
	Device int32
	Bytes  int64
}

// Edge is a dependency. Why is what Graph.EdgeText says; Lo and Hi are bytes.
type Edge struct {
	From, To string
	Why      string
	Lo, Hi   int64
}

// Of returns the outline of a graph.
func Of(g *dag.Graph) *Graph {
	if g.Check() != nil {
		return &Graph{}
	}
	o := &Graph{Nodes: make([]string, len(g.Nodes)), Edges: make([]Edge, len(g.Edges()))}
	for i := range g.Nodes {
		o.Nodes[i] = g.Nodes[i].Name
	}
	for k := range g.Buffers {
		if b := &g.Buffers[k]; b.Place == dag.Device {
			o.Buffers = append(o.Buffers, Buffer{b.Name, b.Device, b.Bytes})
		}
	}
	for k, e := range g.Edges() {
		o.Edges[k] = edgeOf(g, e)
	}
	return o
}

func edgeOf(g *dag.Graph, e dag.Edge) Edge {
	return Edge{g.NameOf(e.From), g.NameOf(e.To), g.EdgeText(e), e.Lo, e.Hi}
}

// DifferenceFrom names the first thing in which a graph differs from an outline, in the graph's order, as a sentence about
// the graph such as `node "up_x" is new` or `node "down" does not wait for "saxpy" (RAW d_y), it did`. It returns "" where the
// outline shows no difference; hashes may still differ in what no outline holds, such as a stream: or priority:.
func DifferenceFrom(g *dag.Graph, old *Graph) string {
	if old == nil || g.Check() != nil {
		return ""
	}
	if old.Nodes != nil {
		if d := setDifference("node", Of(g).Nodes, old.Nodes); d != "" {
			return d
		}
	}
	if old.Buffers != nil {
		if d := buffersDifferFrom(g, old.Buffers); d != "" {
			return d
		}
	}
	if old.Edges != nil {
		return edgesDifferFrom(g, old.Edges)
	}
	return ""
}

func setDifference(what string, is, was []string) string {
	old := make(map[string]bool, len(was))
	for _, name := range was {
		old[name] = true
	}
	for _, name := range is {
		if !old[name] {
			return fmt.Sprintf("%s %q is new", what, name)
		}
	}
	own := make(map[string]bool, len(is))
	for _, name := range is {
		own[name] = true
	}
	for _, name := range was {
		if !own[name] {
			return fmt.Sprintf("%s %q is gone", what, name)
		}
	}
	return ""
}

func buffersDifferFrom(g *dag.Graph, old []Buffer) string {
	own := Of(g).Buffers
	names := func(buffers []Buffer) []string {
		list := make([]string, len(buffers))
		for k := range buffers {
			list[k] = buffers[k].Name
		}
		return list
	}
	if d := setDifference("buffer", names(own), names(old)); d != "" {
		return d
	}
	was := make(map[string]Buffer, len(old))
	for _, b := range old {
		was[b.Name] = b
	}
	for _, b := range own {
		switch o := was[b.Name]; {
		case b.Device != o.Device:
			return fmt.Sprintf("buffer %q is on device %d, it was on %d", b.Name, b.Device, o.Device)
		case b.Bytes != o.Bytes:
			return fmt.Sprintf("buffer %q has %s, it had %d", b.Name, words.Count(b.Bytes, "byte", "bytes"), o.Bytes)
		}
	}
	return ""
}

func edgesDifferFrom(g *dag.Graph, old []Edge) string {
	type pair struct{ from, to string }
	was := make(map[pair]Edge, len(old))
	for _, e := range old {
		was[pair{e.From, e.To}] = e
	}
	for _, e := range g.Edges() {
		edge := edgeOf(g, e)
		o, ok := was[pair{edge.From, edge.To}]
		switch {
		case !ok:
			return fmt.Sprintf("node %q waits for %q (%s), it did not", edge.To, edge.From, edge.Why)
		case o.Why != edge.Why:
			return fmt.Sprintf("node %q waits for %q because of %s, it was %s", edge.To, edge.From, edge.Why, o.Why)
		case o.Lo != edge.Lo || o.Hi != edge.Hi:
			return fmt.Sprintf("node %q waits for %q because of bytes %d to %d of %s, they were %d to %d", edge.To, edge.From, edge.Lo, edge.Hi, edge.Why, o.Lo, o.Hi)
		}
		delete(was, pair{edge.From, edge.To})
	}
	k := slices.IndexFunc(old, func(e Edge) bool { _, left := was[pair{e.From, e.To}]; return left })
	if k < 0 {
		return ""
	}
	return fmt.Sprintf("node %q does not wait for %q (%s), it did", old[k].To, old[k].From, old[k].Why)
}
