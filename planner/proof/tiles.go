// Tiles in the proof: lays the rows of a buffer one behind the other, so that accesses to tiles become runs. Shares no code with the
// derivation of hazards in dag.

package proof

import (
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// pair asks whether from has finished before to starts.
type pair struct{ from, to int32 }

// nobody stands for no pair.
var nobody = pair{-1, -1}

// rowBands says how the rows of a buffer are taken together: rows first[k] to first[k+1] are touched in the same columns by every access
// that touches any of them, so that one line of bytes stands for them all.
type rowBands struct {
	pitch int64 // bytes of a row
	first []int64
}

// lines finds the bands of the buffers with tiles; an entry without a pitch is a buffer without. nil: no buffer has any.
func lines(g *dag.Graph) []rowBands {
	var bands []rowBands
	each := func(visit func(a *dag.Access)) {
		for node := range dag.NodeID(g.Len()) {
			accesses := g.Accesses(node)
			for k := range accesses {
				visit(&accesses[k])
			}
		}
	}
	each(func(a *dag.Access) {
		if a.Pitch > 0 {
			if bands == nil {
				bands = make([]rowBands, len(g.Buffers))
			}
			bands[a.Buffer].pitch = int64(a.Pitch)
		}
	})
	if bands == nil {
		return nil
	}
	each(func(a *dag.Access) {
		b := &bands[a.Buffer]
		if b.pitch == 0 || a.Lo >= a.Hi {
			return
		}
		top, bottom := a.Lo/b.pitch, (a.Hi-1)/b.pitch+1
		rows := []int64{top, bottom}
		if a.Pitch == 0 {
			// The first and the last row may be touched in part.
			rows = append(rows, top+1, bottom-1)
		}
		for _, row := range rows {
			if n := len(b.first); n == 0 || b.first[n-1] != row {
				b.first = append(b.first, row)
			}
		}
		if n := len(b.first); n >= 1024 && n == cap(b.first) {
			b.settle() // most accesses begin where others do
		}
	})
	for k := range bands {
		bands[k].settle()
	}
	return bands
}

func (b *rowBands) settle() {
	slices.Sort(b.first)
	b.first = slices.Compact(b.first)
}

// runs visits the runs of an access, ascending, until visit finds a bad pair.
func (b *rowBands) runs(a *dag.Access, visit func(lo, hi int64) pair) pair {
	if b.pitch == 0 {
		return visit(a.Lo, a.Hi)
	}
	last := (a.Hi - 1) / b.pitch
	at, _ := slices.BinarySearch(b.first, a.Lo/b.pitch)
	from, to := int64(-1), int64(-1)
	for ; at < len(b.first) && b.first[at] <= last; at++ {
		left, right := a.Lo%b.pitch, (a.Hi-1)%b.pitch+1
		if a.Pitch == 0 {
			row := b.first[at] * b.pitch
			left, right = max(a.Lo-row, 0), min(a.Hi-row, b.pitch)
		}
		line := int64(at) * b.pitch
		if to == line+left {
			to = line + right
			continue
		}
		if from >= 0 {
			if bad := visit(from, to); bad != nobody {
				return bad
			}
		}
		from, to = line+left, line+right
	}
	return visit(from, to)
}

// shared returns the smallest range or tile around the bytes that two accesses share; nothing if they share none.
func shared(a, b dag.Range) (dag.Range, bool) {
	both := dag.Range{Buffer: a.Buffer, Lo: max(a.Lo, b.Lo), Hi: min(a.Hi, b.Hi)}
	if a.Buffer != b.Buffer || both.Lo >= both.Hi {
		return both, false
	}
	pitch := int64(max(a.Pitch, b.Pitch))
	if pitch == 0 {
		return both, true
	}
	// Columns that a range touches in a row.
	columns := func(r dag.Range, row int64) (int64, int64) {
		if r.Pitch != 0 {
			return r.Lo % pitch, (r.Hi-1)%pitch + 1
		}
		return max(r.Lo-row*pitch, 0), min(r.Hi-row*pitch, pitch)
	}
	found := false
	var top, bottom, left, right int64
	first, last := both.Lo/pitch, (both.Hi-1)/pitch
	// The rows between the first and the last are touched alike, so the ends of that stretch stand for all of it.
	rows := []int64{first, first + 1, last - 1, last}
	slices.Sort(rows)
	for _, row := range rows {
		if row < first || row > last {
			continue
		}
		aLeft, aRight := columns(a, row)
		bLeft, bRight := columns(b, row)
		from, to := max(aLeft, bLeft), min(aRight, bRight)
		switch {
		case from >= to:
		case !found:
			found, top, bottom, left, right = true, row, row, from, to
		default:
			bottom, left, right = row, min(left, from), max(right, to)
		}
	}
	if !found {
		return both, false
	}
	both.Lo, both.Hi, both.Pitch = top*pitch+left, bottom*pitch+right, 0
	if bottom > top && right-left < pitch {
		both.Pitch = int32(pitch)
	}
	return both, true
}
