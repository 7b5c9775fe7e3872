// A warning about device buffers that are saved although some of their bytes never get contents.

package file

import (
	"cmp"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/internal/words"
)

// warnPartlySaved warns of device buffers that are saved, have no init, and of which no node writes some part.
func (p *parser) warnPartlySaved(g *dag.Graph) {
	written := make(map[dag.BufferID][]dag.Range)
	for k := range g.Buffers {
		if b := &g.Buffers[k]; b.Place == dag.Device && b.Save != "" && b.Init == nil && b.Bytes > 0 {
			written[dag.BufferID(k)] = nil
		}
	}
	if len(written) == 0 {
		return
	}
	for i := range g.Nodes {
		for _, a := range g.Accesses(dag.NodeID(i)) {
			if list, saved := written[a.Buffer]; saved && a.Mode&dag.Write != 0 && a.Lo < a.Hi {
				written[a.Buffer] = appendRows(list, a.Range)
			}
		}
	}
	for k := range g.Buffers {
		id := dag.BufferID(k)
		list, saved := written[id]
		if !saved {
			continue
		}
		b := &g.Buffers[k]
		if gap := firstGap(id, b.Bytes, list); gap.Lo < gap.Hi {
			p.warning(b.Pos, "give it an init, or save a buffer of which all is written", "%q is saved, but no node writes %s", words.Shorten(b.Name),
				words.Shorten(g.RangeText(gap)))
		}
	}
}

// appendRows adds the rows of a tile to some ranges, or a range that is no tile.
func appendRows(list []dag.Range, r dag.Range) []dag.Range {
	rows, width := r.Box()
	for k := range rows {
		at := r.Lo + k*int64(r.Pitch)
		list = append(list, dag.Range{Buffer: r.Buffer, Lo: at, Hi: at + width})
	}
	return list
}

// firstGap returns the first bytes of a buffer that none of some ranges covers; an empty range: there are none.
func firstGap(id dag.BufferID, bytes int64, covered []dag.Range) dag.Range {
	slices.SortFunc(covered, func(a, b dag.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	end := int64(0)
	for _, r := range covered {
		if r.Lo > end {
			return dag.Range{Buffer: id, Lo: end, Hi: r.Lo}
		}
		end = max(end, r.Hi)
	}
	return dag.Range{Buffer: id, Lo: end, Hi: bytes}
}
