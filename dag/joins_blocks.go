// Blocks of cells that one join stands for, and the joins that still hold for the reads to come.

package dag

// block is what stands for the last writers of a block of cells: a node, a join, or nobody.
type block struct {
	writer  int32
	written cellSpan // the hull of the cells that somebody has written
	bare    cellSpan // the hull of those that nobody has
	known   blockState
}

// cellSpan is a range of cells.
type cellSpan struct{ lo, hi int32 }

// widen makes a span the hull of itself and another.
func (s *cellSpan) widen(other cellSpan) {
	switch {
	case other.lo >= other.hi:
	case s.lo >= s.hi:
		*s = other
	default:
		s.lo, s.hi = min(s.lo, other.lo), max(s.hi, other.hi)
	}
}

// writtenBy is the block of cells that one node wrote last, or nobody.
func writtenBy(writer, lo, hi int32) block {
	if writer == nobody {
		return block{writer: nobody, bare: cellSpan{lo, hi}}
	}
	return block{writer: writer, written: cellSpan{lo, hi}}
}

type blockState uint8

const (
	unknown blockState = iota // nothing is known of the block or of any block in it
	below                     // blocks in it may be known
	known
)

// blockJoins remembers what stands for blocks.
type blockJoins struct {
	cells  int32
	levels [][]block // levels[k] are the blocks of 4 to the power of k+1 cells
}

// end is the cell at which the block ends that has a cell.
func (b *blockJoins) end(level int, cell int32) int32 {
	return int32(min(int64(cell>>blockBits(level)+1)<<blockBits(level), int64(b.cells)))
}

// forget drops what is known of the blocks that a write to cells [lo, hi) changes.
func (b *blockJoins) forget(lo, hi int32) {
	if top := len(b.levels) - 1; top >= 0 {
		b.drop(top, 0, lo, hi)
	}
}

func (b *blockJoins) drop(level int, k, lo, hi int32) {
	at := &b.levels[level][k]
	first := k << blockBits(level)
	end := b.end(level, first)
	if at.known == unknown || end <= lo || first >= hi {
		return
	}
	at.known = below
	if lo <= first && end <= hi {
		at.known = unknown
	}
	if level > 0 {
		for c := 4 * k; c < min(4*k+4, int32(len(b.levels[level-1]))); c++ {
			b.drop(level-1, c, lo, hi)
		}
	}
}

// blockBits is the number of bits of a cell's number that tell cells of one block apart.
func blockBits(level int) int { return 2 * (level + 1) }

func newBlockJoins(cells int32) *blockJoins {
	b := &blockJoins{cells: cells}
	for n := cells; n > 1; {
		n = (n + 3) / 4
		b.levels = append(b.levels, make([]block, n))
	}
	return b
}
