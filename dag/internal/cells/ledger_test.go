// Tests of the ledger on buffers of thousands of cells, compared with a plain array of cells. Derives no edges.

package cells

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawCells draws a range of cells: most are short, and some reach the start or the end of the buffer.
func drawCells(t *rapid.T, cells int32) (lo, hi int32) {
	lo = rapid.Int32Range(0, cells-1).Draw(t, "lo")
	hi = min(cells, lo+1+rapid.Int32Range(0, cells).Draw(t, "length")>>rapid.IntRange(0, 13).Draw(t, "bits"))
	switch rapid.IntRange(0, 9).Draw(t, "reach") {
	case 0:
		lo = 0
	case 1:
		hi = cells
	}
	return lo, hi
}

func TestWriterRunsAgreeWithAnArray(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SampledFrom([]int32{1, 2, 63, 64, 65, 4095, 4096, 4097, 9000}).Draw(t, "cells")
		w := newWriterRuns(cells)
		want := slices.Repeat([]int32{Nobody}, int(cells))
		node := int32(0)
		for range rapid.IntRange(1, 40).Draw(t, "writes") {
			node += rapid.Int32Range(0, 1).Draw(t, "next")
			lo, hi := drawCells(t, cells)
			w.Set(lo, hi, node)
			for c := lo; c < hi; c++ {
				want[c] = node
			}
			// Runs hold the right cells, look-ups from inside a run lead to its start, and two runs of the latest writer are never neighbours.
			before := Nobody
			for c := int32(0); c < cells; {
				r := w.Runs[c]
				require.Greater(t, r.End, c)
				for _, inside := range []int32{c, (c + r.End) / 2, r.End - 1} {
					require.Equal(t, c, w.At(inside))
				}
				require.False(t, slices.ContainsFunc(want[c:r.End], func(writer int32) bool { return writer != r.Writer }))
				require.False(t, r.Writer == node && before == node)
				before, c = r.Writer, r.End
			}
		}
	})
}

// seen records what a sweep finds in each cell.
type seen struct {
	ledger  *Ledger
	readers []map[int32]bool
}

func (s *seen) Read(lo, hi, reader int32) {
	for c := lo; c < min(hi, s.ledger.Cells()); c++ {
		s.readers[c][reader] = true
	}
}

func (s *seen) Copies(_, _, head int32) int32 { return head }

func TestSweepsAgreeWithAnArray(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SampledFrom([]int32{1, 2, 3, 5, 64, 100, 129}).Draw(t, "cells")
		bounds := make([]int64, cells+1)
		for c := range bounds {
			bounds[c] = int64(c)
		}
		l := NewLedger(Cuts{Bounds: bounds})
		empty := func() []map[int32]bool {
			sets := make([]map[int32]bool, cells)
			for c := range sets {
				sets[c] = map[int32]bool{}
			}
			return sets
		}
		var lists ReaderList
		want := empty()
		for node := range rapid.Int32Range(1, 60).Draw(t, "nodes") {
			lo, hi := drawCells(t, cells)
			if rapid.IntRange(0, 2).Draw(t, "read") > 0 {
				l.AddReader(&lists, lo, hi, node)
				for c := lo; c < hi; c++ {
					want[c][node] = true
				}
				continue
			}
			found := &seen{l, empty()}
			s := Sweep{Ledger: l, Lists: &lists, Visitor: found}
			s.Run(lo, hi)
			gap := make([]bool, cells)
			end := int32(-1)
			for _, g := range s.Gaps {
				require.Greater(t, g[0], end, "gaps ascend and do not touch")
				require.Greater(t, g[1], g[0])
				end = g[1]
				for c := g[0]; c < g[1]; c++ {
					gap[c] = true
				}
			}
			for c := range cells {
				if c < lo || c >= hi {
					require.Empty(t, found.readers[c])
					require.False(t, gap[c])
					continue
				}
				require.Equal(t, want[c], found.readers[c])
				require.Equal(t, len(want[c]) == 0, gap[c])
				want[c] = map[int32]bool{}
			}
		}
		// After a sweep of all cells nothing is left.
		s := Sweep{Ledger: l, Lists: &lists, Visitor: &seen{l, empty()}}
		s.Run(0, cells)
		require.Equal(t, slices.Repeat([]treeNode{0}, len(l.tree)), l.tree)
		require.Zero(t, l.depths)
		require.Zero(t, l.listed)
	})
}
