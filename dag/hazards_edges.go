// The edges that hazards make: appends each with its reason and its bytes.

package dag

// edge notes a hazard between an earlier node and this one. Of a pair's hazards the strongest reason stays, then the buffer
// declared first, with the hull of its bytes.
func (h *hazards) edge(from int32, why Why, lo, hi int64) {
	if why == RAW && from < int32(len(h.used)) {
		h.used[from] = true
	}
	e := h.between(from)
	switch {
	case e == nil:
		h.append(Edge{From: NodeID(from), To: NodeID(h.node), Buffer: BufferID(h.buffer), Why: why, Lo: lo, Hi: hi})
	case why < e.Why || why == e.Why && BufferID(h.buffer) < e.Buffer:
		e.Why, e.Buffer, e.Lo, e.Hi, e.Tile = why, BufferID(h.buffer), lo, hi, false
	case why == e.Why && BufferID(h.buffer) == e.Buffer:
		if t := h.tiling(e.Buffer); t != nil {
			e.Lo, e.Hi, e.Tile = t.hull(e.Lo, e.Hi, e.Tile, lo, hi, false)
		} else {
			e.Lo, e.Hi = min(e.Lo, lo), max(e.Hi, hi)
		}
	}
}

// unwrittenRead notes that the node reads bytes that nothing wrote before.
func (h *hazards) unwrittenRead(lo, hi int64) {
	b := &h.buffers[h.buffer]
	if !b.readFirst {
		b.readFirst = true
		h.unwritten = append(h.unwritten, UnwrittenRead{Buffer: BufferID(h.buffer), Node: NodeID(h.node), Lo: lo, Hi: hi})
		return
	}
	for k := len(h.unwritten) - 1; k >= 0 && h.unwritten[k].Node == NodeID(h.node); k-- {
		if u := &h.unwritten[k]; u.Buffer == BufferID(h.buffer) {
			if t := h.tiling(u.Buffer); t != nil {
				u.Lo, u.Hi, u.Tile = t.hull(u.Lo, u.Hi, u.Tile, lo, hi, false)
			} else {
				u.Lo, u.Hi = min(u.Lo, lo), max(u.Hi, hi)
			}
			return
		}
	}
}

// between returns the edge from a node to this one, if there is one by now.
func (h *hazards) between(from int32) *Edge {
	if k := h.last[from] - 1; k >= h.first {
		return h.log.at(k)
	}
	return nil
}

func (h *hazards) append(e Edge) {
	h.log.append(e)
	h.last[e.From] = h.log.len
}

func (l *edgeLog) append(e Edge) {
	k := l.len & (edgeBlock - 1)
	if k == 0 {
		size := edgeBlock
		if l.len == 0 {
			size = 64
		}
		l.blocks = append(l.blocks, make([]Edge, 0, size))
	}
	b := &l.blocks[len(l.blocks)-1]
	*b = append(*b, e)
	l.len++
}
