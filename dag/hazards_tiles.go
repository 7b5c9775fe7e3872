// Hazards of tiles: lays the boxes that the accesses of a buffer cut it into out in one line, so that the derivation sees ranges only.

package dag

import (
	"fmt"
	"slices"

	"github.com/dagrun/dagrun/dag/internal/cells"
)

// A buffer with a tile among its accesses is cut into bands: at each row where some access begins or ends. What an access touches of a
// band is the same for all rows of the band, so one line stands for them all, and the lines follow each other. A tile becomes a run in
// each of its bands, whole rows become one run. Bands are of columns instead where that makes fewer runs.
//
// Where there are few enough of them, every line is cut at the same places too, wherever some access begins or ends. Then the cells are a
// grid, whose numbers are the positions in the line: they follow from the bands and columns of an access, which are looked up once.

// irregular marks an access that is no single patch.
const irregular = -1

// mostCells is how many cells a grid may have if the accesses have so many runs. A test changes it.
var mostCells = func(runs int64) int64 { return max(runs, 1<<16) }

// maxTileRuns is how many runs the accesses of one buffer may have.
const maxTileRuns = 1 << 26

// TileLimitError is the error for a buffer that is cut into too many pieces.
type TileLimitError struct {
	Buffer string
	Pieces int64
	Limit  int64
}

func (e *TileLimitError) Error() string {
	return fmt.Sprintf("the tiles of %q cut each other into %d pieces, the limit is %d; cut its rows and columns in fewer places",
		e.Buffer, e.Pieces, e.Limit)
}

// tiles lays out the buffers that have tiles among their accesses.
func (h *hazards) tiles() error {
	accesses := h.pipeline.accesses
	if !slices.ContainsFunc(accesses, func(a Access) bool { return a.Pitch != 0 }) {
		return nil
	}
	h.tilings = make([]*tiling, len(h.pipeline.Buffers))
	for k := range accesses {
		if a := &accesses[k]; a.Pitch != 0 && h.tilings[a.Buffer] == nil {
			h.tilings[a.Buffer] = &tiling{pitch: int64(a.Pitch)}
		}
	}
	tops, sides := make([][]int64, len(h.tilings)), make([][]int64, len(h.tilings))
	for k := range accesses {
		a := &accesses[k]
		if t := h.tilings[a.Buffer]; t != nil && a.Lo < a.Hi {
			b := boxesIn(a.Range, t.pitch)
			for _, x := range b.list[:b.count] {
				tops[a.Buffer] = append(tops[a.Buffer], x.top, x.bottom)
				sides[a.Buffer] = append(sides[a.Buffer], x.left, x.right)
			}
		}
	}
	byRow, byColumn := make([]tiling, len(h.tilings)), make([]tiling, len(h.tilings))
	for k, t := range h.tilings {
		if t == nil {
			continue
		}
		// The ends of lines are cuts too, so that what covers whole lines has all of their cells.
		tops[k], sides[k] = append(tops[k], 0), append(sides[k], 0, t.pitch)
		byRow[k], byColumn[k] = *t, *t
		byRow[k].line, byRow[k].bands = t.pitch, cells.NewCuts(tops[k])
		byColumn[k].columns, byColumn[k].bands = true, cells.NewCuts(sides[k])
		byColumn[k].line = byRow[k].bands.Bounds[byRow[k].bands.Cells()]
	}
	rowRuns, columnRuns := make([]int64, len(h.tilings)), make([]int64, len(h.tilings))
	for k := range accesses {
		a := &accesses[k]
		if h.tilings[a.Buffer] == nil || a.Lo >= a.Hi {
			continue
		}
		rowRuns[a.Buffer] += byRow[a.Buffer].count(a.Range)
		columnRuns[a.Buffer] += byColumn[a.Buffer].count(a.Range)
	}
	for k, t := range h.tilings {
		if t == nil {
			continue
		}
		*t = byRow[k]
		if columnRuns[k] < rowRuns[k] {
			*t = byColumn[k]
		}
		runs := min(rowRuns[k], columnRuns[k])
		if runs > maxTileRuns {
			return &TileLimitError{h.pipeline.Buffers[k].Name, runs, maxTileRuns}
		}
		t.across = byColumn[k].bands
		if t.columns {
			t.across = byRow[k].bands
		}
		if int64(t.bands.Cells())*int64(t.across.Cells()) <= mostCells(runs) {
			t.grid, t.line = true, int64(t.across.Cells())
		}
	}
	h.patches = make([]patch, len(accesses))
	for k := range accesses {
		if t := h.tilings[accesses[k].Buffer]; t != nil && t.grid {
			h.patches[k] = t.patch(accesses[k].Range)
		}
	}
	return nil
}

// patch looks up what a range covers of a grid.
func (t *tiling) patch(r Range) patch {
	b := boxesIn(r, t.pitch)
	switch b.count {
	case 0:
		return patch{}
	case 1:
		x := b.list[0]
		if t.columns {
			x = x.flip()
		}
		p := patch{t.bands.Find(x.top), t.bands.Find(x.bottom), t.across.Find(x.left), t.across.Find(x.right)}
		t.overlap = t.overlap || p.right-p.left > 1 || p.end-p.first > 1 && int64(p.right-p.left) == t.line
		return p
	}
	t.overlap = true
	return patch{first: irregular}
}

// flip swaps rows and columns.
func (b box) flip() box { return box{b.left, b.right, b.top, b.bottom} }

// each visits the runs of a range, as bands and positions in their lines. A run over several bands covers their lines.
func (t *tiling) each(r Range, visit func(first, end int32, left, right int64)) {
	b := boxesIn(r, t.pitch)
	for _, x := range b.list[:b.count] {
		if t.columns {
			x = x.flip()
		}
		first, end := t.bands.Find(x.top), t.bands.Find(x.bottom)
		if t.grid {
			x.left, x.right = int64(t.across.Find(x.left)), int64(t.across.Find(x.right))
		}
		if x.left == 0 && x.right == t.line {
			visit(first, end, x.left, x.right)
			continue
		}
		for ; first < end; first++ {
			visit(first, first+1, x.left, x.right)
		}
	}
}

// count returns how many runs a range has.
func (t *tiling) count(r Range) (n int64) {
	b := boxesIn(r, t.pitch)
	for _, x := range b.list[:b.count] {
		if t.columns {
			x = x.flip()
		}
		if n++; x.left != 0 || x.right != t.line {
			n += int64(t.bands.Find(x.bottom)-t.bands.Find(x.top)) - 1
		}
	}
	return n
}

// runs returns what an access touches, in the positions that the derivation works with: its bytes, or its runs. Without tiles it is so
// short that the compiler puts it into the loops over all accesses.
func (h *hazards) runs(k int, r *Range) []stretch {
	if h.tilings == nil {
		return append(h.spans[:0], stretch{r.Lo, r.Hi})
	}
	return h.tileRuns(k, r)
}

// tileRuns is runs where some buffer has tiles.
func (h *hazards) tileRuns(k int, r *Range) []stretch {
	h.spans = h.spans[:0]
	t := h.tilings[r.Buffer]
	if t == nil {
		h.spans = append(h.spans, stretch{r.Lo, r.Hi})
		return h.spans
	}
	if p := &h.patches[k]; t.grid && p.first != irregular {
		at := int64(p.first) * t.line
		if p.left == 0 && int64(p.right) == t.line {
			h.spans = append(h.spans, stretch{at, int64(p.end) * t.line})
			return h.spans
		}
		for range p.end - p.first {
			h.spans = append(h.spans, stretch{at + int64(p.left), at + int64(p.right)})
			at += t.line
		}
		return h.spans
	}
	t.each(*r, func(first, end int32, left, right int64) {
		h.spans = append(h.spans, stretch{int64(first)*t.line + left, int64(end-1)*t.line + right})
	})
	return h.spans
}

// boxAt returns the box around a run of positions, in bands.
func (t *tiling) boxAt(lo, hi int64, tile bool) box {
	b := box{lo / t.line, (hi-1)/t.line + 1, lo % t.line, (hi-1)%t.line + 1}
	if b.bottom-b.top > 1 && !tile {
		b.left, b.right = 0, t.line
	}
	return b
}

// positions is a box in bands, as an edge holds it until the end.
func (t *tiling) positions(b box) (lo, hi int64, tile bool) {
	return b.top*t.line + b.left, (b.bottom-1)*t.line + b.right, b.bottom-b.top > 1 && b.right-b.left < t.line
}

// hull widens a range of positions of a buffer with tiles.
func (t *tiling) hull(lo, hi int64, tile bool, otherLo, otherHi int64, other bool) (int64, int64, bool) {
	return t.positions(t.boxAt(lo, hi, tile).hull(t.boxAt(otherLo, otherHi, other)))
}

// bytes turns positions into bytes of the buffer.
func (t *tiling) bytes(lo, hi int64, tile bool) (int64, int64, bool) {
	b := t.boxAt(lo, hi, tile)
	b.top, b.bottom = t.bands.Bounds[b.top], t.bands.Bounds[b.bottom]
	if t.grid {
		b.left, b.right = t.across.Bounds[b.left], t.across.Bounds[b.right]
	}
	if t.columns {
		b = b.flip()
	}
	r := rangeOf(0, t.pitch, b)
	return r.Lo, r.Hi, r.Pitch != 0
}

// tiling returns the layout of a buffer's line, nil where positions are bytes.
func (h *hazards) tiling(buffer BufferID) *tiling {
	if h.tilings == nil || buffer < 0 {
		return nil
	}
	return h.tilings[buffer]
}

// inBytes turns the positions of all that was found into bytes.
func (h *hazards) inBytes() {
	if h.tilings == nil {
		return
	}
	for _, log := range []*edgeLog{&h.log, &h.joins.edges} {
		for _, block := range log.blocks {
			for k := range block {
				e := &block[k]
				if t := h.tiling(e.Buffer); t != nil {
					e.Lo, e.Hi, e.Tile = t.bytes(e.Lo, e.Hi, e.Tile)
				}
			}
		}
	}
	for k := range h.joins.list {
		j := &h.joins.list[k]
		if t := h.tiling(j.Buffer); t != nil {
			j.Lo, j.Hi, j.Tile = t.bytes(j.Lo, j.Hi, j.Tile)
		}
	}
	for k := range h.unwritten {
		u := &h.unwritten[k]
		if t := h.tiling(u.Buffer); t != nil {
			u.Lo, u.Hi, u.Tile = t.bytes(u.Lo, u.Hi, u.Tile)
		}
	}
}
