// The outline of a graph: what a saved plan holds of it, by name, so that the two can be compared.

package dag

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/internal/words"
)

// Outline is what a saved plan knows of the graph that it was made for. Parts left nil are not compared.
type Outline struct {
	Nodes   []string // in any order
	Buffers []OutlineBuffer
	Edges   []OutlineEdge
}

// OutlineBuffer is a device buffer.
type OutlineBuffer struct {
	Name   string
	Device int32
	Bytes  int64
}

// OutlineEdge is a dependency. Why is what Graph.EdgeText says; Lo and Hi are bytes.
type OutlineEdge struct {
	From, To string
	Why      string
	Lo, Hi   int64
}

// Outline returns the graph's own.
func (g *Graph) Outline() *Outline {
	if g.Check() != nil {
		return &Outline{}
	}
	o := &Outline{Nodes: make([]string, len(g.Nodes)), Edges: make([]OutlineEdge, len(g.edges))}
	for i := range g.Nodes {
		o.Nodes[i] = g.Nodes[i].Name
	}
	for k := range g.Buffers {
		if b := &g.Buffers[k]; b.Place == Device {
			o.Buffers = append(o.Buffers, OutlineBuffer{b.Name, b.Device, b.Bytes})
		}
	}
	for k, e := range g.edges {
		o.Edges[k] = g.outlineEdge(e)
	}
	return o
}

func (g *Graph) outlineEdge(e Edge) OutlineEdge {
	return OutlineEdge{g.NameOf(e.From), g.NameOf(e.To), g.EdgeText(e), e.Lo, e.Hi}
}

// DifferenceFrom names the first thing in which the graph differs from an outline, in the graph's order, as a sentence about
// the graph such as `node "up_x" is new` or `node "down" does not wait for "saxpy" (RAW d_y), it did`. It returns "" where the
// outline shows no difference; hashes may still differ in what no outline holds, such as a stream: or priority:.
func (g *Graph) DifferenceFrom(old *Outline) string {
	if old == nil || g.Check() != nil {
		return ""
	}
	if old.Nodes != nil {
		if d := setDifference("node", g.Outline().Nodes, old.Nodes); d != "" {
			return d
		}
	}
	if old.Buffers != nil {
		if d := g.buffersDifferFrom(old.Buffers); d != "" {
			return d
		}
	}
	if old.Edges != nil {
		return g.edgesDifferFrom(old.Edges)
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

func (g *Graph) buffersDifferFrom(old []OutlineBuffer) string {
	own := g.Outline().Buffers
	names := func(buffers []OutlineBuffer) []string {
		list := make([]string, len(buffers))
		for k := range buffers {
			list[k] = buffers[k].Name
		}
		return list
	}
	if d := setDifference("buffer", names(own), names(old)); d != "" {
		return d
	}
	was := make(map[string]OutlineBuffer, len(old))
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

func (g *Graph) edgesDifferFrom(old []OutlineEdge) string {
	type pair struct{ from, to string }
	was := make(map[pair]OutlineEdge, len(old))
	for _, e := range old {
		was[pair{e.From, e.To}] = e
	}
	for _, e := range g.edges {
		edge := g.outlineEdge(e)
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
	k := slices.IndexFunc(old, func(e OutlineEdge) bool { _, left := was[pair{e.From, e.To}]; return left })
	if k < 0 {
		return ""
	}
	return fmt.Sprintf("node %q does not wait for %q (%s), it did", old[k].To, old[k].From, old[k].Why)
}
