// Runs: the bytes of a buffer, cut where accesses begin and end.

package proof

import (
	"cmp"
	"math"
	"slices"
)

// byteRun is a range of bytes that the same nodes have touched last.
type byteRun struct {
	lo, hi  int64
	writer  int32 // -1 for none
	readers int32 // plus 1: the first of a list with at most one entry per stream
}

// The range of all possible bytes.
const lowest, highest = math.MinInt64, math.MaxInt64

// runsInChunk is the most runs in one chunk: few enough to move quickly, enough that there are few chunks.
const runsInChunk = 256

// byteRuns are the runs of a buffer, ascending and without gaps. Most buffers are touched as a whole, and have one.
type byteRuns struct {
	first  byteRun // the only run, while there are no chunks
	chunks []runChunk
}

// runChunk holds runs that lie next to each other. An access of thousands of runs looks at full chunks as a whole: all that wrote to
// one or have read all of it are summed up by stream.
type runChunk struct {
	runs    []byteRun
	readers int32 // plus 1: the first of a list of those that have read all of it, besides the readers of its runs
	writers int32 // plus 1: the first of a list of those that wrote its runs last, if known
	known   bool
	bare    bool // nobody wrote some of it, if known
}

// fewRuns is how many runs a chunk has that is not worth a summary.
const fewRuns = 32

func (c *runChunk) end() int64 { return c.runs[len(c.runs)-1].hi }

// runAt is the place of a run.
type runAt struct{ chunk, index int }

func (b *byteRuns) at(at runAt) *byteRun { return &b.chunks[at.chunk].runs[at.index] }

func (b *byteRuns) next(at runAt) runAt {
	if at.index+1 < len(b.chunks[at.chunk].runs) {
		return runAt{at.chunk, at.index + 1}
	}
	return runAt{at.chunk + 1, 0}
}

// spread puts the single run of a buffer into a chunk, together with the bytes around it.
func (b *byteRuns) spread() {
	chunk := make([]byteRun, 0, 8)
	if b.first.lo > lowest {
		chunk = append(chunk, byteRun{lo: lowest, hi: b.first.lo, writer: -1})
	}
	chunk = append(chunk, b.first)
	if b.first.hi < highest {
		chunk = append(chunk, byteRun{lo: b.first.hi, hi: highest, writer: -1})
	}
	b.chunks = []runChunk{{runs: chunk}}
}

// find returns the run that has a byte.
func (b *byteRuns) find(byte int64) runAt {
	c, _ := slices.BinarySearchFunc(b.chunks, byte, func(chunk runChunk, byte int64) int { return cmp.Compare(chunk.end(), byte+1) })
	i, _ := slices.BinarySearchFunc(b.chunks[c].runs, byte, func(r byteRun, byte int64) int { return cmp.Compare(r.hi, byte+1) })
	return runAt{c, i}
}

// join replaces the runs from a place up to a byte by one run that was just written.
func (b *byteRuns) join(first runAt, hi int64, writer int32) {
	r := b.at(first)
	r.writer = writer
	if r.hi == hi {
		return
	}
	r.hi = hi
	// Drop the runs up to hi: the rest of this chunk, whole chunks, the beginning of the last chunk.
	c := first.chunk
	end := first.index + 1
	for end < len(b.chunks[c].runs) && b.chunks[c].runs[end].lo < hi {
		end++
	}
	whole := end == len(b.chunks[c].runs)
	b.chunks[c].runs = slices.Delete(b.chunks[c].runs, first.index+1, end)
	if !whole {
		return
	}
	last := c + 1
	for last < len(b.chunks) && b.chunks[last].end() <= hi {
		last++
	}
	b.chunks = slices.Delete(b.chunks, c+1, last)
	if c+1 < len(b.chunks) {
		rest := &b.chunks[c+1]
		keep := 0
		for keep < len(rest.runs) && rest.runs[keep].lo < hi {
			keep++
		}
		rest.runs = rest.runs[keep:]
	}
}
