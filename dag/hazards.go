// Hazards: which nodes must not be reordered because of the bytes they touch. Looks at accesses and after: only, never at devices.

package dag

import (
	"errors"

	"github.com/dagrun/dagrun/dag/internal/cells"
	"github.com/dagrun/dagrun/internal/crowd"
)

// The rule, for every byte on its own and in declaration order: a node that reads it depends on the last node that wrote it
// (RAW); a node that writes it depends on all that read it since that write (WAR), and where nobody did, on the last node
// that wrote it (WAW). Every other pair that conflicts on the byte is ordered through these: no edge can be left out without
// losing the order of some pair that conflicts, unless other edges happen to imply it.
//
// A node reads before it writes; it never depends on itself.

// errEnded is the error of a graph that nobody waits for any more.
var errEnded = errors.New("the context has ended")

// endedEvery is after how many nodes it is looked whether somebody still waits.
const endedEvery = 64

func (p *Pipeline) stopped() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// survey decides for each buffer how it is kept track of: buffers that are always accessed as a whole, and those whose slices
// never overlap in part, need no tree.
func (h *hazards) survey(joined []bool) {
	p := h.pipeline
	h.buffers = make([]bufferState, len(p.Buffers))
	for k := range h.buffers {
		h.buffers[k] = bufferState{lastWrite: -1, ledger: -1, cell: -1, cuts: -1, joined: k < len(joined) && joined[k]}
	}
	varied := 0
	for i := range p.Nodes {
		accesses, base := p.Accesses(NodeID(i)), int(p.accessStart[i])
		for k := range accesses {
			a := &accesses[k]
			if a.Lo >= a.Hi {
				continue
			}
			b := &h.buffers[a.Buffer]
			if a.Mode&Write != 0 {
				b.lastWrite = int32(i)
			}
			if t := h.tiling(a.Buffer); t != nil && t.grid {
				if b.cell < 0 {
					b.cell, b.varied, b.cuts = 0, true, int32(varied)
					varied++
				}
				continue
			}
			for _, run := range h.runs(base+k, &a.Range) {
				if b.cell < 0 {
					b.cell, b.lo, b.hi = 0, run.lo, run.hi
				} else if !b.varied && (run.lo != b.lo || run.hi != b.hi) {
					b.varied = true
					b.cuts = int32(varied)
					varied++
				}
			}
		}
	}
	positions := make([][]int64, varied)
	counts := make([]int32, varied)
	if varied > 0 {
		h.eachVaried(func(k int32, run stretch) { counts[k] += 2 })
		for k, n := range counts {
			if n > 0 {
				positions[k] = make([]int64, 0, n)
			}
		}
		h.eachVaried(func(k int32, run stretch) { positions[k] = append(positions[k], run.lo, run.hi) })
	}
	h.cuts = make([]cells.Cuts, varied)
	overlap := make([]bool, varied)
	for k := range h.cuts {
		if positions[k] != nil {
			h.cuts[k] = cells.NewCuts(positions[k])
			positions[k] = nil
		}
	}
	for k, t := range h.tilings {
		if c := h.buffers[k].cuts; t != nil && t.grid && c >= 0 {
			h.cuts[c], overlap[c] = cells.EveryCut(int64(t.bands.Cells())*t.line), t.overlap
		}
	}
	if varied > 0 {
		h.eachVaried(func(k int32, run stretch) {
			if !overlap[k] {
				c := &h.cuts[k]
				overlap[k] = c.Bounds[c.Find(run.lo)+1] != run.hi
			}
		})
	}
	total := int32(0)
	for k := range h.buffers {
		b := &h.buffers[k]
		switch {
		case b.cell < 0:
		case b.cuts >= 0 && overlap[b.cuts]:
			b.ledger = int32(len(h.ledgers))
			h.ledgers = append(h.ledgers, cells.NewLedger(h.cuts[b.cuts]))
			h.ledgers[b.ledger].Left = crowd.Current().Start
			if b.joined {
				h.ledgers[b.ledger].Join()
			}
		case b.cuts >= 0:
			b.cell = total
			total += h.cuts[b.cuts].Cells()
		default:
			b.cell = total
			total++
		}
	}
	h.cells = make([]cells.Cell, total)
	for k := range h.cells {
		h.cells[k].Writer = cells.Nobody
	}
}

// eachVaried visits what is accessed of buffers whose accesses differ in range and whose cells are not a grid.
func (h *hazards) eachVaried(visit func(cuts int32, run stretch)) {
	accesses := h.pipeline.accesses
	for k := range accesses {
		if a := &accesses[k]; a.Lo < a.Hi && h.buffers[a.Buffer].varied {
			if t := h.tiling(a.Buffer); t != nil && t.grid {
				continue
			}
			for _, run := range h.runs(k, &a.Range) {
				visit(h.buffers[a.Buffer].cuts, run)
			}
		}
	}
}

// derive walks the nodes and leaves their edges, explicit ones included, in h.log and h.joins. The dependencies of the given buffers
// go through joins from the start. It returns the first node that names itself in its After, or -1.
func (h *hazards) derive(p *Pipeline, joined []bool) (selfish int32, err error) {
	h.pipeline, h.spans = p, make([]stretch, 1)
	if err := h.tiles(); err != nil {
		return -1, err
	}
	h.survey(joined)
	h.sweep.Lists, h.sweep.Visitor = &h.readers, h
	h.last = make([]int32, len(p.Nodes))
	h.used = make([]bool, len(p.Nodes))
	selfish = -1
	most := p.mostEdges()
	h.usual = crowd.Current().Usual
	for i := range p.Nodes {
		if i%endedEvery == 0 && p.stopped() {
			return -1, errEnded
		}
		h.node, h.first = int32(i), h.log.len
		accesses, base := p.Accesses(NodeID(i)), int(p.accessStart[i])
		for k := range accesses {
			if a := &accesses[k]; a.Mode&Read != 0 && a.Lo < a.Hi {
				for _, run := range h.runs(base+k, &a.Range) {
					h.reads(a, run)
				}
			}
		}
		for k := range accesses {
			if a := &accesses[k]; a.Mode&Write != 0 && a.Lo < a.Hi {
				for _, run := range h.runs(base+k, &a.Range) {
					h.writes(a, run)
				}
			}
		}
		for _, from := range p.Nodes[i].After {
			if from != NodeID(i) {
				h.declared(int32(from))
			} else if selfish < 0 {
				selfish = int32(from)
			}
		}
		if h.log.len > most-h.joins.edges.len {
			return selfish, h.tooManyEdges()
		}
	}
	h.lastWriters()
	h.inBytes()
	return selfish, nil
}

// lastWriters marks the nodes whose values are in a buffer at the end that is of use after the replay: to the host, to the next
// replay, or to a check.
func (h *hazards) lastWriters() {
	h.node = cells.Nobody
	for k := range h.buffers {
		b, buffer := &h.buffers[k], &h.pipeline.Buffers[k]
		if b.cell < 0 || !(b.readFirst || buffer.Place == Host || buffer.Save != "" || buffer.Expect != nil) {
			continue
		}
		if b.ledger >= 0 {
			h.inside = h.ledgers[b.ledger]
			h.writers(lasts, 0, h.inside.Cells())
			continue
		}
		count := int32(1)
		if b.cuts >= 0 {
			count = h.cuts[b.cuts].Cells()
		}
		for _, c := range h.cells[b.cell : b.cell+count] {
			if c.Writer != cells.Nobody {
				h.used[c.Writer] = true
			}
		}
	}
}

// locate finds the state of what is accessed: a cell, or with a nil cell the range [lo, hi) of cells of h.inside.
func (h *hazards) locate(buffer BufferID, run stretch, b *bufferState) (c *cells.Cell, lo, hi int32) {
	h.buffer = int32(buffer)
	if b.ledger >= 0 {
		h.inside = h.ledgers[b.ledger]
		return nil, h.inside.Find(run.lo), h.inside.Find(run.hi)
	}
	k := b.cell
	if b.cuts >= 0 {
		k += h.cuts[b.cuts].Find(run.lo)
	}
	return &h.cells[k], 0, 0
}

func (h *hazards) reads(a *Access, run stretch) {
	b := &h.buffers[a.Buffer]
	c, lo, hi := h.locate(a.Buffer, run, b)
	// Remember a reader only if a later node writes the buffer. One that overwrites what it reads need not be remembered either:
	// if it follows a writer, their edge is RAW already, which is stronger than the WAW that its write would add.
	remember := a.Mode&Write == 0 && h.node <= b.lastWrite
	if c == nil {
		h.inside.Left += h.usual
		// A node that reads and writes becomes the only last writer in place of many, so these are not visited again: no join needed.
		if h.inside.Joins != nil && a.Mode&Write == 0 {
			h.readsJoined(lo, hi)
		} else {
			h.writers(readsFrom, lo, hi)
		}
		if a.Mode&Write != 0 && b.readFirst && !b.carried {
			h.writers(carries, lo, hi)
		}
		if remember {
			h.inside.AddReader(&h.readers, lo, hi, h.node)
		}
		return
	}
	switch c.Writer {
	case h.node:
	case cells.Nobody:
		h.unwrittenRead(run.lo, run.hi)
		b.carried = b.carried || a.Mode&Write != 0
	default:
		h.edge(c.Writer, RAW, run.lo, run.hi)
	}
	if remember {
		c.Readers = h.readers.Push(c.Readers, h.node)
	}
}

func (h *hazards) writes(a *Access, run stretch) {
	b := &h.buffers[a.Buffer]
	c, lo, hi := h.locate(a.Buffer, run, b)
	if c == nil {
		h.sweep.Ledger = h.inside
		h.sweep.Run(lo, hi)
		asking := b.readFirst && !b.carried
		covered := lo
		for _, gap := range h.sweep.Gaps {
			h.writers(overwrites, gap[0], gap[1])
			if asking {
				h.writers(carries, covered, gap[0])
			}
			covered = gap[1]
		}
		if asking {
			h.writers(carries, covered, hi)
		}
		h.inside.Left += h.usual
		h.inside.Writers.Set(lo, hi, h.node)
		if h.inside.Joins != nil {
			h.inside.Joins.Forget(lo, hi)
		}
		return
	}
	if c.Readers != 0 {
		for k := c.Readers; k != 0; k = h.readers.Entries[k].Next {
			if reader := h.readers.Entries[k].Node; reader != h.node {
				h.edge(reader, WAR, run.lo, run.hi)
			}
		}
		h.readers.Release(c.Readers)
		c.Readers = 0
		b.carried = b.carried || c.Writer == cells.Nobody
	} else if c.Writer != cells.Nobody && c.Writer != h.node {
		h.edge(c.Writer, WAW, run.lo, run.hi)
	}
	c.Writer = h.node
}

// writers goes through the last writers of cells [lo, hi) of h.inside, as far as they are not the node itself.
func (h *hazards) writers(q question, lo, hi int32) {
	if lo >= hi {
		return
	}
	l := h.inside
	for at := l.Writers.At(lo); lo < hi; {
		r := l.Writers.Runs[at]
		at = r.End
		first, end := lo, min(at, hi)
		lo = end
		if r.Writer == h.node {
			continue
		}
		switch q {
		case readsFrom:
			if l.Left--; l.Left < 0 {
				h.strain()
			}
			if r.Writer == cells.Nobody {
				h.unwrittenRead(l.Bounds[first], l.Bounds[end])
			} else {
				h.edge(r.Writer, RAW, l.Bounds[first], l.Bounds[end])
			}
		case overwrites:
			if r.Writer != cells.Nobody {
				h.edge(r.Writer, WAW, l.Bounds[first], l.Bounds[end])
			}
		case carries:
			if r.Writer == cells.Nobody {
				h.buffers[h.buffer].carried = true
			}
		case lasts:
			h.used[r.Writer] = true
		}
	}
}

// Read is what a sweep calls.
func (h *hazards) Read(lo, hi, reader int32) {
	if h.inside.Left--; h.inside.Left < 0 {
		h.strain()
	}
	if reader != h.node {
		if first, end := h.inside.Bytes(lo, hi); first < end { // else the reader has read the last cell too
			h.edge(reader, WAR, first, end)
		}
	}
}

// declared notes an explicit dependency of this node, after its hazards.
func (h *hazards) declared(from int32) {
	if e := h.between(from); e != nil {
		e.Declared = true
		return
	}
	h.append(Edge{From: NodeID(from), To: NodeID(h.node), Buffer: -1, Why: After, Declared: true})
	h.backward = h.backward || from > h.node
}
