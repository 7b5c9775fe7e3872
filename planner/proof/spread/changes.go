// The proof of a spread: what the bodies of loops and branches may write. All else keeps its versions, whatever runs.

package spread

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
	original, all, written := make([][]extent, len(c.original.Buffers)), make([][]extent, len(c.original.Buffers)), make([][]extent, len(c.g.Buffers))
	for _, body := range l.inner[l.nodes[i]] {
		eachWrite(body.original, func(r dag.Range) {
			original[r.Buffer] = append(original[r.Buffer], c.extents(r)...)
		})
		eachWrite(body.g, func(r dag.Range) {
			written[r.Buffer] = append(written[r.Buffer], c.extents(c.declared(r))...)
		})
	}
	for b := range original {
		all[b] = slices.Clone(original[b])
	}
	for k, at := range c.s.Buffers {
		all[at.Buffer] = append(all[at.Buffer], written[k]...)
	}
	w := &changes{}
	for b := range original {
		if original[b], all[b] = joined(original[b]), joined(all[b]); len(original[b]) > 0 {
			w.buffers = append(w.buffers, changedPlaces{dag.BufferID(b), original[b]})
		}
		if len(all[b]) > 0 {
			w.all = append(w.all, changedPlaces{dag.BufferID(b), all[b]})
		}
	}
	for k, at := range c.s.Buffers {
		if places := clipped(all[at.Buffer], c.placeOf(dag.BufferID(k))); len(places) > 0 {
			w.pieces = append(w.pieces, changedPiece{dag.BufferID(k), places, joined(written[k])})
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

// before returns what the pieces hold that bodies may write.
func (c *spreadCheck) before(w *changes) []byteVersions {
	list := make([]byteVersions, len(w.pieces))
	for k, p := range w.pieces {
		list[k].runs = slices.Clone(c.held[p.piece].runs)
	}
	return list
}

// assume gives all that bodies may write in the original one version. In some places, the pieces hold what the original has then. In others they
// hold what they held before, unless bodies may write there.
func (c *spreadCheck) assume(w *changes, before []byteVersions, places [][]extent, version int32) {
	for _, b := range w.buffers {
		for _, e := range b.places {
			c.wanted[b.buffer].set(e.lo, e.hi, version)
		}
	}
	for k, p := range w.pieces {
		held := &c.held[p.piece]
		for _, e := range p.places {
			held.take(&before[k], e)
		}
		for _, e := range p.written {
			held.set(e.lo, e.hi, noVersion)
		}
		for _, e := range places[k] {
			held.take(&c.wanted[c.s.Buffers[p.piece].Buffer], e)
		}
	}
}
