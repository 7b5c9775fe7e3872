// Blocks of cells that one join stands for, and the joins that still hold for the reads to come.

package cells

// Block is what stands for the last writers of a block of cells: a node, a join, or Nobody.
type Block struct {
	Writer  int32
	Written Span // the hull of the cells that somebody has written
	Bare    Span // the hull of those that nobody has
	Known   BlockState
}

// Span is a range of cells.
type Span struct{ Lo, Hi int32 }

// Widen makes a span the hull of itself and another.
func (s *Span) Widen(other Span) {
	switch {
	case other.Lo >= other.Hi:
	case s.Lo >= s.Hi:
		*s = other
	default:
		s.Lo, s.Hi = min(s.Lo, other.Lo), max(s.Hi, other.Hi)
	}
}

// WrittenBy is the block of cells that one node wrote last, or Nobody.
func WrittenBy(writer, lo, hi int32) Block {
	if writer == Nobody {
		return Block{Writer: Nobody, Bare: Span{lo, hi}}
	}
	return Block{Writer: writer, Written: Span{lo, hi}}
}

// BlockState is what is known of a block.
type BlockState uint8

const (
	Unknown BlockState = iota // nothing is known of the block or of any block in it
	Below                     // blocks in it may be known
	Known
)

// BlockJoins remembers what stands for blocks.
type BlockJoins struct {
	cells  int32
	Levels [][]Block // Levels[k] are the blocks of 4 to the power of k+1 cells
}

// End is the cell at which the block ends that has a cell.
func (b *BlockJoins) End(level int, cell int32) int32 {
	return int32(min(int64(cell>>BlockBits(level)+1)<<BlockBits(level), int64(b.cells)))
}

// Forget drops what is known of the blocks that a write to cells [lo, hi) changes.
func (b *BlockJoins) Forget(lo, hi int32) {
	if top := len(b.Levels) - 1; top >= 0 {
		b.drop(top, 0, lo, hi)
	}
}

func (b *BlockJoins) drop(level int, k, lo, hi int32) {
	at := &b.Levels[level][k]
	first := k << BlockBits(level)
	end := b.End(level, first)
	if at.Known == Unknown || end <= lo || first >= hi {
		return
	}
	at.Known = Below
	if lo <= first && end <= hi {
		at.Known = Unknown
	}
	if level > 0 {
		for c := 4 * k; c < min(4*k+4, int32(len(b.Levels[level-1]))); c++ {
			b.drop(level-1, c, lo, hi)
		}
	}
}

// BlockBits is the number of bits of a cell's number that tell cells of one block apart.
func BlockBits(level int) int { return 2 * (level + 1) }

func newBlockJoins(cells int32) *BlockJoins {
	b := &BlockJoins{cells: cells}
	for n := cells; n > 1; {
		n = (n + 3) / 4
		b.Levels = append(b.Levels, make([]Block, n))
	}
	return b
}
