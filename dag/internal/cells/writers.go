// The last writers of a buffer's cells, as runs of cells with one writer. Knows no readers and makes no edges.

package cells

import "math/bits"

// run is a stretch of cells that have one last writer.
type run struct{ Writer, End int32 }

// writerRuns cuts the cells of a buffer into runs. A write replaces the runs that begin inside it and adds two at most, so a
// write pays for what it removes and otherwise, like a look-up, only for finding a run: one step for each factor of 64 in the
// number of cells, and in most cases a single word.
type writerRuns struct {
	Runs   []run      // by first cell; those of other cells are left over
	starts [][]uint64 // starts[0] marks the first cells; starts[k+1] the words of starts[k] that are not zero
	latest int32      // the last node that wrote anything
}

func newWriterRuns(cells int32) writerRuns {
	w := writerRuns{Runs: make([]run, cells), latest: Nobody}
	for n := cells; ; {
		n = (n + 63) / 64
		w.starts = append(w.starts, make([]uint64, n))
		if n == 1 {
			break
		}
	}
	w.Runs[0] = run{Nobody, cells}
	w.mark(0)
	return w
}

func (w *writerRuns) mark(c int32) {
	for _, words := range w.starts {
		word := &words[c>>6]
		was := *word
		*word |= 1 << (c & 63)
		if was != 0 {
			return
		}
		c >>= 6
	}
}

func (w *writerRuns) unmark(c int32) {
	for _, words := range w.starts {
		word := &words[c>>6]
		*word &^= 1 << (c & 63)
		if *word != 0 {
			return
		}
		c >>= 6
	}
}

// At returns the first cell of the run that a cell is in.
func (w *writerRuns) At(c int32) int32 {
	if m := w.starts[0][c>>6] << (^c & 63); m != 0 {
		return c - int32(bits.LeadingZeros64(m))
	}
	// Cell 0 begins a run, so some word to the left is not zero.
	level := 0
	for {
		level++
		c >>= 6
		if m := w.starts[level][c>>6] & (1<<(c&63) - 1); m != 0 {
			c = c | 63 - int32(bits.LeadingZeros64(m))
			break
		}
	}
	for level > 0 {
		level--
		c = c<<6 | 63 - int32(bits.LeadingZeros64(w.starts[level][c]))
	}
	return c
}

// Set notes that a node, none earlier than those before, has written cells [lo, hi).
func (w *writerRuns) Set(lo, hi, node int32) {
	first := w.At(lo)
	start, last, end := lo, w.Runs[first], hi
	if first < lo {
		w.Runs[first].End = lo
	}
	for last.End < hi {
		next := last.End
		last = w.Runs[next]
		w.unmark(next)
	}
	if last.End > hi {
		w.Runs[hi] = last
		w.mark(hi)
	}
	if w.latest == node {
		// Merge adjacent runs of this node: it may have written a thousand slices side by side.
		if int(hi) < len(w.Runs) && w.Runs[hi].Writer == node {
			end = w.Runs[hi].End
			w.unmark(hi)
		}
		if lo > 0 {
			if before := w.At(lo - 1); w.Runs[before].Writer == node {
				start = before
				if first == lo {
					w.unmark(lo)
				}
			}
		}
	}
	w.latest = node
	w.Runs[start] = run{node, end}
	if start == lo && first < lo {
		w.mark(lo)
	}
}
