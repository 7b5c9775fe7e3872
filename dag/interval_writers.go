// The last writers of a buffer's cells, as runs of cells with one writer. Knows no readers and makes no edges.

package dag

import "math/bits"

// run is a stretch of cells that have one last writer.
type run struct{ writer, end int32 }

// writerRuns cuts the cells of a buffer into runs. A write replaces the runs that begin inside it and adds two at most, so a
// write pays for what it removes and otherwise, like a look-up, only for finding a run: one step for each factor of 64 in the
// number of cells, and in most cases a single word.
type writerRuns struct {
	runs   []run      // by first cell; those of other cells are left over
	starts [][]uint64 // starts[0] marks the first cells; starts[k+1] the words of starts[k] that are not zero
	latest int32      // the last node that wrote anything
}

func newWriterRuns(cells int32) writerRuns {
	w := writerRuns{runs: make([]run, cells), latest: nobody}
	for n := cells; ; {
		n = (n + 63) / 64
		w.starts = append(w.starts, make([]uint64, n))
		if n == 1 {
			break
		}
	}
	w.runs[0] = run{nobody, cells}
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

// at returns the first cell of the run that a cell is in.
func (w *writerRuns) at(c int32) int32 {
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

// set notes that a node, none earlier than those before, has written cells [lo, hi).
func (w *writerRuns) set(lo, hi, node int32) {
	first := w.at(lo)
	start, last, end := lo, w.runs[first], hi
	if first < lo {
		w.runs[first].end = lo
	}
	for last.end < hi {
		next := last.end
		last = w.runs[next]
		w.unmark(next)
	}
	if last.end > hi {
		w.runs[hi] = last
		w.mark(hi)
	}
	if w.latest == node {
		// Merge adjacent runs of this node: it may have written a thousand slices side by side.
		if int(hi) < len(w.runs) && w.runs[hi].writer == node {
			end = w.runs[hi].end
			w.unmark(hi)
		}
		if lo > 0 {
			if before := w.at(lo - 1); w.runs[before].writer == node {
				start = before
				if first == lo {
					w.unmark(lo)
				}
			}
		}
	}
	w.latest = node
	w.runs[start] = run{node, end}
	if start == lo && first < lo {
		w.mark(lo)
	}
}
