// Pieces: which bytes of a buffer a device has memory for.

package placement

import (
	"cmp"
	"slices"
	"sort"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// alignment of pieces: addresses in a piece are aligned as in the whole buffer, which the planner aligns to this.
const alignment = 256

// piece is a range of bytes of a buffer on a device.
type piece struct {
	lo, hi int64
	id     dag.BufferID // in the graph that is being made
}

// use is a range of a buffer that a step uses on a device.
type use struct {
	buffer dag.BufferID
	device int32
	lo, hi int64
}

// pieces holds the pieces of all buffers: those of buffer b on device d are list[b*devices+d], by lo.
type pieces struct {
	devices int
	list    [][]piece
}

func (w *walker) pieces() *pieces {
	p, g := w.p, w.p.Graph
	var uses []use
	add := func(r dag.Range, device int32) {
		uses = append(uses, use{r.Buffer, device, r.Lo, max(r.Hi, r.Lo)})
	}
	eachStep(w.steps, func(s *step) {
		if s.node == plan.Inserted {
			add(s.moved, s.from)
			add(s.moved, s.to)
			return
		}
		l, at := p.levelOf(s.number), w.at[s.number]
		node := &l.graph.Nodes[s.node]
		switch {
		case node.Control != nil: // its bodies have steps of their own
			if c := node.Control.Condition; c != nil {
				for _, r := range c.Operands {
					add(r, p.where(r.Buffer, at))
				}
			}
			return
		case node.Copy != nil:
			add(node.Copy.Src, p.where(node.Copy.Src.Buffer, s.source))
			add(node.Copy.Dst, p.where(node.Copy.Dst.Buffer, at))
			return
		}
		for _, a := range l.graph.Accesses(s.node) {
			add(a.Range, p.where(a.Buffer, at))
		}
		if node.Launch != nil {
			for _, a := range node.Launch.Args {
				if a.IsBuffer {
					add(a.Range, p.where(a.Range.Buffer, at))
				}
			}
		}
	})
	uses = sorted(uses, len(g.Buffers), p.Devices)
	align := alignments(g)
	all := &pieces{devices: p.Devices, list: make([][]piece, len(g.Buffers)*p.Devices)}
	for _, u := range uses {
		b := &g.Buffers[u.buffer]
		lo, hi := bounds(u, b.Bytes, p.spaces[u.buffer].pitch, align[u.buffer])
		if p.stays[u.buffer] || p.whole(u.buffer) && (w.homes[u.buffer] == u.device || p.constant(u.buffer) && b.Init != nil) {
			lo, hi = 0, b.Bytes
		}
		at := &all.list[int(u.buffer)*p.Devices+int(u.device)]
		if last := len(*at) - 1; last >= 0 && lo <= (*at)[last].hi {
			(*at)[last].hi = max((*at)[last].hi, hi)
			continue
		}
		*at = append(*at, piece{lo: lo, hi: hi})
	}
	for k := range g.Buffers {
		if at := all.of(dag.BufferID(k), w.homes[k]); len(*at) == 0 && (p.whole(dag.BufferID(k)) || !all.any(dag.BufferID(k))) {
			*at = []piece{{lo: 0, hi: g.Buffers[k].Bytes}}
		}
	}
	return all
}

// sorted orders uses by buffer, device and first byte. Most buffers have few uses on each device, so that little is left to compare once the uses
// are dealt out to them.
func sorted(uses []use, buffers, devices int) []use {
	start := make([]int32, buffers*devices+1)
	at := func(u *use) int { return int(u.buffer)*devices + int(u.device) }
	for k := range uses {
		start[at(&uses[k])+1]++
	}
	for k := range buffers * devices {
		start[k+1] += start[k]
	}
	list, next := make([]use, len(uses)), slices.Clone(start)
	for k := range uses {
		to := &next[at(&uses[k])]
		list[*to] = uses[k]
		*to++
	}
	for k := range buffers * devices {
		if group := list[start[k]:start[k+1]]; len(group) > 1 {
			slices.SortFunc(group, func(a, b use) int { return cmp.Compare(a.lo, b.lo) })
		}
	}
	return list
}

// alignments are those of the pieces of each buffer, in bytes.
func alignments(g *dag.Graph) []int64 {
	align := slices.Repeat([]int64{alignment}, len(g.Buffers))
	for b, textured := range g.Textured() {
		if textured {
			align[b] = plan.TextureAlign
		}
	}
	return align
}

// bounds are those of the piece that a use needs: aligned, and of whole rows if the buffer is used in tiles.
func bounds(u use, bytes, pitch, alignment int64) (lo, hi int64) {
	unit := alignment
	if pitch > 0 {
		for unit = pitch; unit%alignment != 0; unit += pitch {
		}
	}
	lo = min(u.lo, bytes) / unit * unit
	hi = min(bytes, (max(u.hi, u.lo+1)+unit-1)/unit*unit)
	if lo == bytes && lo > 0 { // an empty slice at the end
		lo = (bytes - 1) / unit * unit
	}
	return lo, hi
}

func (p *pieces) of(b dag.BufferID, device int32) *[]piece {
	return &p.list[int(b)*p.devices+int(device)]
}

func (p *pieces) any(b dag.BufferID) bool {
	for d := range p.devices {
		if len(p.list[int(b)*p.devices+d]) > 0 {
			return true
		}
	}
	return false
}

// find maps a range of the original to the piece on a device that has it.
func (p *pieces) find(r dag.Range, device int32) dag.Range {
	list := *p.of(r.Buffer, device)
	k := sort.Search(len(list), func(k int) bool { return list[k].hi > r.Lo })
	k = min(k, len(list)-1) // an empty range can lie at the very end
	return dag.Range{Buffer: list[k].id, Pitch: r.Pitch, Lo: r.Lo - list[k].lo, Hi: r.Hi - list[k].lo}
}
