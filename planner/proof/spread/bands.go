// Bands: rows of a buffer that every node uses in the same way, so that versions of tiles need not be kept row by row.

package spread

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/proof"
)

// findBands cuts every buffer with tiles where an access or a piece begins or ends.
func (c *spreadCheck) findBands() *proof.Violation {
	c.bands = make([]bandTable, len(c.original.Buffers))
	each := func(visit func(r dag.Range)) {
		eachRange(c.original, visit)
		eachRange(c.g, func(r dag.Range) { visit(c.declared(r)) }) // copies that were inserted may cut a buffer elsewhere
	}
	each(func(r dag.Range) {
		if t := &c.bands[r.Buffer]; r.Pitch != 0 {
			t.pitch, t.rows = int64(r.Pitch), c.original.Buffers[r.Buffer].Bytes/int64(r.Pitch)
		}
	})
	for k, at := range c.s.Buffers {
		t, bytes := &c.bands[at.Buffer], c.g.Buffers[k].Bytes
		if t.pitch == 0 {
			continue
		}
		if at.Lo%t.pitch != 0 || bytes%t.pitch != 0 {
			return wrong("buffer %q begins or ends within a row of %q, which is used in tiles", c.g.Buffers[k].Name, c.original.Buffers[at.Buffer].Name)
		}
		t.starts = append(t.starts, at.Lo/t.pitch, (at.Lo+bytes)/t.pitch)
	}
	each(func(r dag.Range) {
		t := &c.bands[r.Buffer]
		if t.pitch == 0 || r.Lo >= r.Hi {
			return
		}
		top, bottom := r.Lo/t.pitch, (r.Hi-1)/t.pitch+1
		t.starts = append(t.starts, top, bottom)
		if r.Pitch == 0 { // its first and last rows may be used in part
			t.starts = append(t.starts, top+1, bottom-1)
		}
	})
	for k := range c.bands {
		t := &c.bands[k]
		t.starts = append(t.starts, 0, t.rows)
		slices.Sort(t.starts)
		t.starts = slices.Compact(t.starts)
	}
	return nil
}

// eachRange calls visit with all ranges that nodes and conditions of a graph use, those of bodies included.
func eachRange(g *dag.Graph, visit func(r dag.Range)) {
	for i := range g.Nodes {
		for _, a := range g.Accesses(dag.NodeID(i)) {
			visit(a.Range)
		}
		c := g.Nodes[i].Control
		if c == nil {
			continue
		}
		if c.Condition != nil {
			for _, r := range c.Condition.Operands {
				visit(r)
			}
		}
		for _, body := range c.Bodies {
			eachRange(body, visit)
		}
	}
}

// declared is what a range of a piece stands for.
func (c *spreadCheck) declared(r dag.Range) dag.Range {
	at := c.s.Buffers[r.Buffer]
	return dag.Range{Buffer: at.Buffer, Pitch: r.Pitch, Lo: r.Lo + at.Lo, Hi: r.Hi + at.Lo}
}

// placeOf is where a piece lies among the places of its buffer.
func (c *spreadCheck) placeOf(piece dag.BufferID) extent {
	at := c.s.Buffers[piece]
	t := &c.bands[at.Buffer]
	return extent{t.place(at.Lo), t.place(at.Lo + c.g.Buffers[piece].Bytes)}
}

// extents are the places of a range of the original; they are valid until the next call.
func (c *spreadCheck) extents(r dag.Range) []extent {
	t := &c.bands[r.Buffer]
	c.list = c.list[:0]
	switch {
	case r.Lo >= r.Hi:
	case r.Pitch == 0:
		c.list = append(c.list, extent{t.place(r.Lo), t.place(r.Hi-1) + 1})
	default:
		left, right := r.Lo%t.pitch, (r.Hi-1)%t.pitch
		for k := t.band(r.Lo / t.pitch); k < len(t.starts)-1 && t.starts[k]*t.pitch < r.Hi; k++ {
			c.list = append(c.list, extent{int64(k)*t.pitch + left, int64(k)*t.pitch + right + 1})
		}
	}
	return c.list
}

// band finds the band that begins with a row: one does where a range begins, and with its last row.
func (t *bandTable) band(row int64) int {
	k, _ := slices.BinarySearch(t.starts, row)
	return k
}

// place finds the place of a byte. The byte behind the last one has the place behind the last.
func (t *bandTable) place(byte int64) int64 {
	if t.pitch == 0 {
		return byte
	}
	return int64(t.band(byte/t.pitch))*t.pitch + byte%t.pitch
}

func (t *bandTable) size(bytes int64) int64 { return t.place(bytes) }

// rangeOf is a range of the buffer with the first bytes of an extent, for messages.
func (t *bandTable) rangeOf(b dag.BufferID, e extent) dag.Range {
	if t.pitch == 0 {
		return dag.Range{Buffer: b, Lo: e.lo, Hi: e.hi}
	}
	k := e.lo / t.pitch
	left, right := e.lo%t.pitch, min(t.pitch, e.hi-k*t.pitch)
	top, bottom := t.starts[k], t.starts[k+1]
	r := dag.Range{Buffer: b, Lo: top*t.pitch + left, Hi: (bottom-1)*t.pitch + right}
	if bottom-top > 1 && right-left < t.pitch {
		r.Pitch = int32(t.pitch)
	}
	return r
}
