// Joins: what stands between many nodes and many others that all depend on them. Decides where joins are worth their while.

package dag

import (
	"github.com/dagrun/dagrun/dag/internal/cells"
	"github.com/dagrun/dagrun/internal/crowd"
)

// Twenty thousand nodes that write a byte each and twenty thousand that read them all depend on each other in four hundred million
// pairs. Where pairs become so many, nodes that others wait for together lead to a join, and these others come after the join: an edge
// for each node instead of one for each pair.
//
// What many readers wait for are the last writers of a range. The range is cut into blocks of four cells, of four such blocks and so
// on; a block has a join for its last writers once a read needs it, made of the joins of the blocks in it, until a write changes some
// of them. So a read depends on a few blocks, and a write costs a later read the joins of the blocks around what it wrote.
//
// What many writers of slices wait for are the readers of a range around the slice. They are a list in a segment tree (see cells.Ledger)
// that moves down as far as a write needs; a long list becomes a join first.
//
// A path through joins always leads from a node to one that depends on it by the rule in hazards.go: joins order nothing else.

// strain is called after an access met more last writers and readers than is usual. When that was too often, crowded buffers get joins
// from then on.
func (h *hazards) strain() {
	l := h.inside
	l.Crowded = true
	h.excess -= l.Left
	l.Left = 0
	if h.excess > crowd.Current().Excess && l.Joins == nil {
		for _, l := range h.ledgers {
			if l.Crowded {
				l.Join()
			}
		}
	}
}

// crowd returns the buffers that were found to need joins on the way, nil for none.
func (h *hazards) crowd() []bool {
	var joined []bool
	for k := range h.buffers {
		if b := &h.buffers[k]; b.ledger >= 0 && h.ledgers[b.ledger].Joins != nil && !b.joined {
			if joined == nil {
				joined = make([]bool, len(h.buffers))
			}
			joined[k] = true
		}
	}
	return joined
}

// newJoin adds a join for cells [lo, hi) of h.inside and returns its id.
func (h *hazards) newJoin(why Why, lo, hi int32) int32 {
	first, end := h.inside.Bytes(lo, hi)
	h.joins.list = append(h.joins.list, Join{Buffer: BufferID(h.buffer), Why: why, Lo: first, Hi: end})
	h.joins.node = append(h.joins.node, h.node)
	h.last = append(h.last, 0)
	if crowd.Current().Lose {
		h.joins.lose = 2
	}
	return int32(len(h.pipeline.Nodes) + len(h.joins.list) - 1)
}

// leads adds an edge to the newest join.
func (h *hazards) leads(from int32, lo, hi int64) {
	if h.joins.lose > 0 {
		if h.joins.lose--; h.joins.lose == 0 {
			return
		}
	}
	j := &h.joins.list[len(h.joins.list)-1]
	if j.Why == RAW && from < int32(len(h.used)) {
		h.used[from] = true
	}
	h.joins.edges.append(Edge{From: NodeID(from), To: NodeID(len(h.pipeline.Nodes) + len(h.joins.list) - 1), Buffer: j.Buffer, Why: j.Why, Lo: lo, Hi: hi})
}

// Copies makes a join of a list of readers that is too long to be copied. The node that is being walked may be among them; it stays
// beside the join, on which it is about to depend.
func (h *hazards) Copies(lo, hi, head int32) int32 {
	entries := h.readers.Entries
	count := int64(0)
	for k := head; k != 0; k = entries[k].Next {
		count++
	}
	if count <= crowd.Current().Pushed {
		return head
	}
	first, end := h.inside.Bytes(lo, hi)
	join := h.newJoin(WAR, lo, hi)
	for len(h.joins.seen) <= int(join) {
		h.joins.seen = append(h.joins.seen, 0)
	}
	own := false
	for k := head; k != 0; k = entries[k].Next {
		reader := entries[k].Node
		if reader == h.node {
			own = true
		} else if h.joins.seen[reader] != join+1 {
			h.joins.seen[reader] = join + 1
			h.leads(reader, first, end)
		}
	}
	h.readers.Release(head)
	head = h.readers.Push(0, join)
	if own {
		head = h.readers.Push(head, h.node)
	}
	return head
}

// readsJoined makes the node depend on the last writers of cells [lo, hi) of h.inside, by the largest blocks and runs that fit.
func (h *hazards) readsJoined(lo, hi int32) {
	l := h.inside
	for lo < hi {
		end := min(l.Writers.Runs[l.Writers.At(lo)].End, hi)
		level := -1
		for up := range l.Joins.Levels {
			last := l.Joins.End(up, lo)
			if lo&(1<<cells.BlockBits(up)-1) != 0 || last > hi {
				break
			}
			if last > end {
				level, end = up, last
			}
		}
		var b cells.Block
		if level >= 0 {
			b = h.block(level, lo>>cells.BlockBits(level))
		} else {
			b = cells.WrittenBy(l.Writers.Runs[l.Writers.At(lo)].Writer, lo, end)
		}
		if b.Bare.Lo < b.Bare.Hi {
			h.unwrittenRead(l.Bounds[b.Bare.Lo], l.Bounds[b.Bare.Hi])
		}
		if b.Writer != cells.Nobody {
			h.edge(b.Writer, RAW, l.Bounds[b.Written.Lo], l.Bounds[b.Written.Hi])
		}
		lo = end
	}
}

// block returns what stands for the last writers of a block of h.inside, and makes a join where these are several.
func (h *hazards) block(level int, k int32) cells.Block {
	l := h.inside
	first := k << cells.BlockBits(level)
	end := l.Joins.End(level, first)
	if r := l.Writers.Runs[l.Writers.At(first)]; r.End >= end {
		return cells.WrittenBy(r.Writer, first, end)
	}
	at := &l.Joins.Levels[level][k]
	if at.Known == cells.Known {
		return *at
	}
	var parts [4]cells.Block
	count := 0
	made := cells.Block{Writer: cells.Nobody, Known: cells.Known}
	for c := first; c < end; {
		to := c + 1
		var part cells.Block
		if level > 0 {
			to = l.Joins.End(level-1, c)
			part = h.block(level-1, c>>cells.BlockBits(level-1))
		} else {
			part = cells.WrittenBy(l.Writers.Runs[l.Writers.At(c)].Writer, c, to)
		}
		c = to
		made.Written.Widen(part.Written)
		made.Bare.Widen(part.Bare)
		if part.Writer == cells.Nobody {
			continue
		}
		same := 0
		for same < count && parts[same].Writer != part.Writer {
			same++
		}
		if same == count {
			parts[count] = part
			count++
		} else {
			parts[same].Written.Widen(part.Written)
		}
	}
	if count == 1 {
		made.Writer = parts[0].Writer
	} else {
		made.Writer = h.newJoin(RAW, made.Written.Lo, made.Written.Hi)
		for _, part := range parts[:count] {
			h.leads(part.Writer, l.Bounds[part.Written.Lo], l.Bounds[part.Written.Hi])
		}
	}
	*at = made
	for up := level + 1; up < len(l.Joins.Levels); up++ {
		if above := &l.Joins.Levels[up][first>>cells.BlockBits(up)]; above.Known == cells.Unknown {
			above.Known = cells.Below
		}
	}
	return made
}
