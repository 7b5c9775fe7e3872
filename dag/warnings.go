// Warnings: what is legal in a pipeline but hardly meant. Changes nothing.

package dag

// warn looks at a finished graph.
func (p *parser) warn(g *Graph) {
	used := make([]bool, len(g.Buffers))
	kept := make([]bool, len(g.Buffers)) // someone sees the contents after the replay
	for k := range g.Buffers {
		b := &g.Buffers[k]
		kept[k] = b.Place == Host || b.Save != "" || b.Expect != nil
	}
	for _, k := range g.Carried() {
		kept[k] = true
	}
	for i := range int32(g.Len()) {
		writes, seen := false, false
		for _, a := range g.Accesses(i) {
			used[a.Buffer] = true
			if a.Mode&Write == 0 || a.Lo == a.Hi || g.Buffers[a.Buffer].Scratch {
				continue
			}
			writes = true
			seen = seen || kept[a.Buffer]
		}
		if !writes || seen {
			continue
		}
		for _, e := range g.OutEdges(i) {
			seen = seen || e.Why == RAW
		}
		if !seen {
			p.warning(g.Nodes[i].Pos, "", "nobody reads what node %q writes", shorten(g.Nodes[i].Name))
		}
	}
	for _, u := range g.ReadFirst() {
		if b := &g.Buffers[u.Buffer]; b.Init == nil && !b.Scratch {
			p.warning(b.Pos, "give it an init", "%q is read by %q before anything wrote it", shorten(b.Name), shorten(g.Nodes[u.Node].Name))
		}
	}
	for k := range g.Buffers {
		if b := &g.Buffers[k]; !used[k] && !b.Scratch {
			p.warning(b.Pos, "", "buffer %q is never used", shorten(b.Name))
		}
	}
}
