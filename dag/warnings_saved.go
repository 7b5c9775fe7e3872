// A warning about device buffers that are saved although some of their bytes never get contents.

package dag

import (
	"cmp"
	"slices"
)

// warnPartlySaved warns of device buffers that are saved, have no init, and of which no node writes some part.
func (p *parser) warnPartlySaved(g *Graph) {
	written := make(map[BufferID][]Range)
	for k := range g.Buffers {
		if b := &g.Buffers[k]; b.Place == Device && b.Save != "" && b.Init == nil && b.Bytes > 0 {
			written[BufferID(k)] = nil
		}
	}
	if len(written) == 0 {
		return
	}
	for _, a := range g.accesses {
		if list, saved := written[a.Buffer]; saved && a.Mode&Write != 0 && a.Lo < a.Hi {
			written[a.Buffer] = append(list, a.Range)
		}
	}
	for k := range g.Buffers {
		id := BufferID(k)
		list, saved := written[id]
		if !saved {
			continue
		}
		b := &g.Buffers[k]
		if gap := firstGap(id, b.Bytes, list); gap.Lo < gap.Hi {
			p.warning(b.Pos, "give it an init, or save a buffer of which all is written", "%q is saved, but no node writes %s", shorten(b.Name), shorten(g.rangeText(gap)))
		}
	}
}

// firstGap returns the first bytes of a buffer that none of some ranges covers; an empty range: there are none.
func firstGap(id BufferID, bytes int64, covered []Range) Range {
	slices.SortFunc(covered, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	end := int64(0)
	for _, r := range covered {
		if r.Lo > end {
			return Range{id, end, r.Lo}
		}
		end = max(end, r.Hi)
	}
	return Range{id, end, bytes}
}
