// The ledger of a buffer: for every cell its last writer and the readers since. Makes no edges; it tells what it finds.

package cells

import "math/bits"

// ReaderList holds linked lists of nodes in one array: head 0 is the empty list.
type ReaderList struct {
	Entries []readerEntry
	free    int32
}

type readerEntry struct{ Node, Next int32 }

// Push puts a node in front of a list, unless it is there already, and returns the new head.
func (l *ReaderList) Push(head, node int32) int32 {
	if head != 0 && l.Entries[head].Node == node {
		return head
	}
	if k := l.free; k != 0 {
		l.free = l.Entries[k].Next
		l.Entries[k] = readerEntry{node, head}
		return k
	}
	if len(l.Entries) == 0 {
		l.Entries = append(l.Entries, readerEntry{})
	}
	l.Entries = append(l.Entries, readerEntry{node, head})
	return int32(len(l.Entries) - 1)
}

// join puts a list in front of another and returns its head.
func (l *ReaderList) join(head, rest int32) int32 {
	last := head
	for l.Entries[last].Next != 0 {
		last = l.Entries[last].Next
	}
	l.Entries[last].Next = rest
	return head
}

// Release gives a list's entries back.
func (l *ReaderList) Release(head int32) { l.free = l.join(head, l.free) }

// Cell is the state of a range that is only ever accessed as a whole.
type Cell struct {
	Writer  int32
	Readers int32
}

// Visitor is told what a sweep finds: that a node has read cells [lo, hi) since they were written, and that a list of readers of
// these cells is about to be copied, for which it may return a shorter one.
type Visitor interface {
	Read(lo, hi, reader int32)
	Copies(lo, hi, head int32) int32
}

// Ledger keeps the state of a buffer whose accesses overlap in part: its last writers as runs, and the readers since in a
// segment tree over its cells. A reader in a tree node's list has read all cells below. So a whole-buffer read touches one
// tree node whatever went before, a read of a few cells touches the few nodes just above them, and a write visits, once each,
// the readers that it puts an end to.
type Ledger struct {
	Cuts
	Writers writerRuns
	size    int32      // leaves, a power of two; leaf k is tree[size+k]
	tree    []treeNode // tree[1] is the root; the children of i are 2*i and 2*i+1
	listed  [32]int32  // by depth: how many tree nodes have readers of their own
	depths  uint32     // bit d is set if listed[d] > 0

	Left    int64       // how many more last writers and readers its accesses may meet before that is unusual
	Crowded bool        // they have met more than that
	Joins   *BlockJoins // nil while dependencies are edges from node to node
}

// treeNode is the head of its list of readers, shifted by one, with the bit below set if a child is not zero.
type treeNode uint32

const childBusy treeNode = 1

func (t treeNode) readers() int32 { return int32(t >> 1) }

// NewLedger has no writers and no readers yet.
func NewLedger(c Cuts) *Ledger {
	l := &Ledger{Cuts: c, Writers: newWriterRuns(c.Cells()), size: 1}
	for l.size < c.Cells() {
		l.size *= 2
	}
	l.tree = make([]treeNode, 2*l.size)
	return l
}

// Join makes further dependencies of the buffer go through joins.
func (l *Ledger) Join() {
	if l.Joins == nil {
		l.Joins = newBlockJoins(l.Cells())
	}
}

// span widens a range that ends with the last cell to the last leaf, so that the root stands for the whole buffer.
func (l *Ledger) span(lo, hi int32) (int32, int32) {
	if hi == l.Cells() {
		hi = l.size
	}
	return lo, hi
}

// Bytes returns the byte range of leaves [lo, hi). Leaves beyond the last cell share its fate and have no bytes.
func (l *Ledger) Bytes(lo, hi int32) (int64, int64) {
	return l.Bounds[min(lo, l.Cells())], l.Bounds[min(hi, l.Cells())]
}

// top returns the largest tree node that begins with leaf lo and ends at hi or before, and where it ends.
func (l *Ledger) top(lo, hi int32) (i, end int32) {
	height := min(bits.TrailingZeros32(uint32(l.size|lo)), bits.Len32(uint32(hi-lo))-1)
	return (l.size + lo) >> height, lo + 1<<height
}

// AddReader notes that node has read cells [lo, hi).
func (l *Ledger) AddReader(lists *ReaderList, lo, hi, node int32) {
	lo, hi = l.span(lo, hi)
	for lo < hi {
		i, end := l.top(lo, hi)
		if l.tree[i] == 0 {
			l.wake(i)
		}
		l.setReaders(i, lists.Push(l.tree[i].readers(), node))
		lo = end
	}
}

// wake marks the nodes above i, which is to be busy and was not.
func (l *Ledger) wake(i int32) {
	for i >>= 1; i > 0; i >>= 1 {
		t := l.tree[i]
		l.tree[i] = t | childBusy
		if t != 0 {
			return
		}
	}
}

// rest unmarks the nodes above i, which was busy and is not, as far as nothing else keeps them so. They have no readers of
// their own.
func (l *Ledger) rest(i int32) {
	for i >>= 1; i > 0 && l.tree[2*i]|l.tree[2*i+1] == 0; i >>= 1 {
		l.tree[i] = 0
	}
}

// setReaders gives a tree node a list.
func (l *Ledger) setReaders(i, head int32) {
	t := l.tree[i]
	l.tree[i] = treeNode(head)<<1 | t&childBusy
	if (t.readers() == 0) == (head == 0) {
		return
	}
	depth := bits.Len32(uint32(i)) - 1
	if head != 0 {
		l.listed[depth]++
		l.depths |= 1 << depth
	} else if l.listed[depth]--; l.listed[depth] == 0 {
		l.depths &^= 1 << depth
	}
}

// Sweep visits the readers of cells [lo, hi) and forgets them there. It leaves in gaps, in ascending order, the stretches that
// nobody has read since they were written.
type Sweep struct {
	Ledger  *Ledger
	Lists   *ReaderList
	Visitor Visitor
	Gaps    [][2]int32
}

// Run sweeps cells [lo, hi) of the ledger.
func (s *Sweep) Run(lo, hi int32) {
	s.Gaps = s.Gaps[:0]
	l := s.Ledger
	lo, hi = l.span(lo, hi)
	s.split(lo, hi)
	for lo < hi {
		i, end := l.top(lo, hi)
		if l.tree[i] == 0 {
			s.gap(lo, end)
		} else {
			s.below(i, lo, end, false)
			l.rest(i)
		}
		lo = end
	}
}

// split moves the readers of tree nodes that are only in part in [lo, hi) down until none is left: such nodes lie above leaf
// lo or leaf hi-1.
func (s *Sweep) split(lo, hi int32) {
	l := s.Ledger
	leaves := bits.Len32(uint32(l.size)) - 1
	first, last := l.size+lo, l.size+hi-1
	for above := l.depths & (1<<leaves - 1); above != 0; {
		depth := bits.TrailingZeros32(above)
		height := leaves - depth
		if i := first >> height; i<<height != first {
			s.pushDown(i)
		}
		if i := last >> height; (i+1)<<height != last+1 {
			s.pushDown(i)
		}
		above = l.depths & (1<<leaves - 1) &^ (2<<depth - 1)
	}
}

// pushDown moves the readers of a tree node to its children. Every reader here has read cells that are being written, so the
// copy costs no more than the edges it leads to; where these would be too many, the visitor shortens the list.
func (s *Sweep) pushDown(i int32) {
	l := s.Ledger
	head := l.tree[i].readers()
	if head == 0 {
		return
	}
	height := bits.Len32(uint32(l.size)) - bits.Len32(uint32(i))
	first := i<<height - l.size
	if l.Joins != nil {
		head = s.Visitor.Copies(first, first+1<<height, head)
	}
	left, right := l.tree[2*i].readers(), l.tree[2*i+1].readers()
	for k := head; k != 0; k = s.Lists.Entries[k].Next {
		l.Left--
		left = s.Lists.Push(left, s.Lists.Entries[k].Node)
	}
	l.setReaders(2*i, left)
	l.setReaders(2*i+1, s.Lists.join(head, right))
	l.setReaders(i, 0)
	l.tree[i] |= childBusy
}

// below empties a tree node and all below it. Somebody further up may have read its cells.
func (s *Sweep) below(i, from, to int32, read bool) {
	l := s.Ledger
	t := l.tree[i]
	if head := t.readers(); head != 0 {
		read = true
		for k := head; k != 0; k = s.Lists.Entries[k].Next {
			s.Visitor.Read(from, to, s.Lists.Entries[k].Node)
		}
		s.Lists.Release(head)
		l.setReaders(i, 0)
	}
	l.tree[i] = 0
	if t&childBusy != 0 {
		middle := (from + to) / 2
		s.below(2*i, from, middle, read)
		s.below(2*i+1, middle, to, read)
	} else if !read {
		s.gap(from, to)
	}
}

func (s *Sweep) gap(lo, hi int32) {
	hi = min(hi, s.Ledger.Cells())
	if lo >= hi {
		return
	}
	if n := len(s.Gaps); n > 0 && s.Gaps[n-1][1] == lo {
		s.Gaps[n-1][1] = hi
		return
	}
	s.Gaps = append(s.Gaps, [2]int32{lo, hi})
}
