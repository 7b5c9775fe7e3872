// Lifetimes: which buffers keep their bytes for the whole program, and which may share them. Places nothing.

package planner

import "github.com/dagrun/dagrun/dag"

// keptBuffers says by buffer whether its bytes must stay its own: it has contents before the first replay, or they are looked at after the last,
// or they pass from one replay to the next. Scratch means nothing outside the kernel it was made for.
func keptBuffers(g *dag.Graph) []bool {
	kept := make([]bool, len(g.Buffers))
	for i := range g.Buffers {
		b := &g.Buffers[i]
		kept[i] = b.Init != nil || b.Save != "" || b.Expect != nil
	}
	for _, b := range g.Carried() {
		kept[b] = kept[b] || !g.Buffers[b].Scratch
	}
	return kept
}
