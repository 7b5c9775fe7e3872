// Warnings: what is legal in a pipeline but hardly meant. Changes nothing.

package dag

// warn looks at a finished graph.
func (p *parser) warn(g *Graph) {
	for _, i := range g.Unread() {
		p.warning(g.Nodes[i].Pos, "", "nobody reads what node %q writes", shorten(g.Nodes[i].Name))
	}
	for _, u := range g.Unwritten() {
		if b := &g.Buffers[u.Buffer]; !b.Scratch {
			p.warning(b.Pos, "give it an init", "%q is read by %q before anything wrote it", shorten(b.Name), shorten(g.Nodes[u.Node].Name))
		}
	}
	for _, k := range g.Unused() {
		p.warning(g.Buffers[k].Pos, "", "buffer %q is never used", shorten(g.Buffers[k].Name))
	}
}
