// The proof of a spread: what the bodies of loops and branches may write. All else keeps its versions, whatever runs.

package proof

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// changedBy finds what a loop or branch may write.
func (c *spreadCheck) changedBy(l *spreadLevel, i dag.NodeID) *changes {
	if known := l.changed[i]; known != nil {
		return known
	}
	lists := make([][]extent, len(c.original.Buffers))
	for _, body := range l.inner[l.nodes[i]] {
		add := func(r dag.Range) { lists[r.Buffer] = append(lists[r.Buffer], c.extents(r)...) }
		eachWrite(body.original, add)
		eachWrite(body.g, func(r dag.Range) { add(c.declared(r)) })
	}
	w := &changes{}
	for b := range lists {
		if lists[b] = joined(lists[b]); len(lists[b]) > 0 {
			w.buffers = append(w.buffers, changedPlaces{dag.BufferID(b), lists[b]})
		}
	}
	for k, at := range c.s.Buffers {
		if places := clipped(lists[at.Buffer], c.placeOf(dag.BufferID(k))); len(places) > 0 {
			w.pieces = append(w.pieces, changedPiece{dag.BufferID(k), places})
		}
	}
	l.changed[i] = w
	return w
}

// eachWrite calls visit with all ranges that the nodes of a graph may write, those of bodies included.
func eachWrite(g *dag.Graph, visit func(r dag.Range)) {
	for i := range g.Nodes {
		if control := g.Nodes[i].Control; control != nil {
			for _, body := range control.Bodies {
				eachWrite(body, visit)
			}
			continue
		}
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if a.Mode&dag.Write != 0 {
				visit(a.Range)
			}
		}
	}
}

// joined puts extents in order and joins those that meet.
func joined(list []extent) []extent {
	slices.SortFunc(list, func(a, b extent) int { return cmp.Compare(a.lo, b.lo) })
	var all []extent
	for _, e := range list {
		if last := len(all) - 1; last >= 0 && e.lo <= all[last].hi {
			all[last].hi = max(all[last].hi, e.hi)
		} else {
			all = append(all, e)
		}
	}
	return all
}

// clipped cuts extents to those parts that lie in another.
func clipped(list []extent, all extent) []extent {
	var parts []extent
	for _, e := range list {
		if lo, hi := max(e.lo, all.lo), min(e.hi, all.hi); lo < hi {
			parts = append(parts, extent{lo, hi})
		}
	}
	return parts
}

// right returns, for each piece that bodies may write, those of these places that hold what the buffer holds in the original.
func (c *spreadCheck) right(w *changes) [][]extent {
	list := make([][]extent, len(w.pieces))
	for k, p := range w.pieces {
		for _, e := range p.places {
			list[k] = append(list[k], sameVersions(&c.wanted[c.s.Buffers[p.piece].Buffer], &c.held[p.piece], e)...)
		}
	}
	return list
}

// assume gives all that bodies may write one version, which the pieces hold in some places.
func (c *spreadCheck) assume(w *changes, places [][]extent, version int32) {
	for _, b := range w.buffers {
		for _, e := range b.places {
			c.wanted[b.buffer].set(e.lo, e.hi, version)
		}
	}
	for k, p := range w.pieces {
		for _, e := range p.places {
			c.held[p.piece].set(e.lo, e.hi, noVersion)
		}
		for _, e := range places[k] {
			c.held[p.piece].set(e.lo, e.hi, version)
		}
	}
}
