// Warnings: what is legal in a pipeline but probably a mistake.

package file

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// warn looks at a finished graph.
func (p *parser) warn(g *dag.Graph) {
	ordered, unmet, here := orderedByAfter(g), unmet(g), ""
	if g.Ranks > 1 {
		here = fmt.Sprintf(" on rank %d", g.Rank)
	}
	for _, i := range g.Unread() {
		forNobody := slices.ContainsFunc(g.Accesses(i), func(a dag.Access) bool {
			return a.Mode&dag.Write != 0 && slices.ContainsFunc(unmet, func(t dag.Transfer) bool { return !t.Receive && a.Overlaps(t.Range) })
		})
		if !ordered[i] && !forNobody { // otherwise it is there for its place in the order, like a spin, or would be sent by another rank
			p.warning(g.Nodes[i].Pos, "", "the result of node %q is never used%s", words.Shorten(g.Nodes[i].Name), here)
		}
	}
	unwritten := g.Unwritten()
	later := laterWriters(g, unwritten)
	for k, u := range unwritten {
		b := &g.Buffers[u.Buffer]
		reader, text := &g.Nodes[u.Node], words.Shorten(g.RangeText(g.UnwrittenRange(u)))
		switch {
		case b.Scratch || b.Symbol != "": // variables begin as their code says, or as zeros; see unfilled
		case reader.Control.MayOnly(dag.Range{Buffer: u.Buffer, Lo: u.Lo, Hi: u.Hi}):
			p.warning(reader.Pos, fmt.Sprintf("give %s an init", words.Shorten(b.Name)),
				"%q writes %s only if its condition says so, and nothing writes it before", words.Shorten(reader.Name), text)
		case later[k] < 0:
			p.warning(b.Pos, initHint(b, u.Buffer, reader), "%q is read by %q before anything wrote it", words.Shorten(b.Name), words.Shorten(reader.Name))
		default:
			writer := &g.Nodes[later[k]]
			p.warning(reader.Pos, "", "node %q reads %s, which %q%s writes only later", words.Shorten(reader.Name), text, words.Shorten(writer.Name),
				writer.Pos.OnLine())
		}
	}
	p.unfilled(g)
	p.warnPartlySaved(g)
	for _, k := range g.Unused() {
		if !slices.ContainsFunc(unmet, func(t dag.Transfer) bool { return t.Range.Buffer == k }) {
			p.warning(g.Buffers[k].Pos, "", "buffer %q is never used%s", words.Shorten(g.Buffers[k].Name), here)
		}
	}
}

// initHint is what to do about a buffer that a node reads before anything wrote it. An argument of a user's kernel that is declared inout may only be
// written.
func initHint(b *dag.Buffer, id dag.BufferID, reader *dag.Node) string {
	if l := reader.Launch; l != nil && l.Module >= 0 {
		for _, a := range l.Args {
			if a.IsBuffer && a.Range.Buffer == id && a.Mode == dag.ReadWrite {
				return fmt.Sprintf("give it an init, or write {out: %s} if the kernel writes all of it and reads none", words.Shorten(b.Name))
			}
		}
	}
	return "give it an init"
}

// unmet lists transfers with ranks that do not exist.
func unmet(g *dag.Graph) []dag.Transfer {
	var list []dag.Transfer
	g.EachGraph(func(level *dag.Graph, _ []string) {
		for i := range level.Nodes {
			if c := level.Nodes[i].Communication; c != nil {
				list = append(list, slices.DeleteFunc(slices.Clone(c.Transfers), level.Meets)...)
			}
		}
	})
	return list
}

// orderedByAfter marks the nodes that after: orders and no data does.
func orderedByAfter(g *dag.Graph) []bool {
	const declared, data = 1, 2
	ordered := make([]uint8, g.Vertices())
	for _, e := range g.Edges() {
		by := uint8(data)
		if e.Why == dag.After {
			by = declared
		}
		ordered[e.From] |= by
		ordered[e.To] |= by
	}
	only := make([]bool, len(g.Nodes))
	for i := range only {
		only[i] = ordered[i] == declared
	}
	return only
}

// laterWriters finds for each read the first node behind the reading one that writes some of its bytes; -1 where there is none.
func laterWriters(g *dag.Graph, reads []dag.UnwrittenRead) []dag.NodeID {
	writers := make([]dag.NodeID, len(reads))
	ofBuffer := make([]int32, len(g.Buffers)) // by buffer: 1 + the index of its read (there is at most one); 0: none
	for k, u := range reads {
		writers[k] = -1
		ofBuffer[u.Buffer] = int32(k) + 1
	}
	for i := range g.Nodes {
		for _, a := range g.Accesses(dag.NodeID(i)) {
			k := ofBuffer[a.Buffer] - 1
			if k >= 0 && writers[k] < 0 && reads[k].Node < dag.NodeID(i) && a.Mode&dag.Write != 0 && a.Overlaps(g.UnwrittenRange(reads[k])) {
				writers[k] = dag.NodeID(i)
			}
		}
	}
	return writers
}
