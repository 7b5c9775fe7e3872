// The ledger of a buffer: for every cell its last writer and the readers since. Makes no edges; it tells what it finds.

package dag

const (
	nobody int32 = -1 // no writer so far
	mixed  int32 = -2 // the cells below have different writers
)

// readerList holds linked lists of nodes in one array: head 0 is the empty list.
type readerList struct {
	entries []readerEntry
	free    int32
}

type readerEntry struct{ node, next int32 }

// push puts a node in front of a list, unless it is there already, and returns the new head.
func (l *readerList) push(head, node int32) int32 {
	if head != 0 && l.entries[head].node == node {
		return head
	}
	if k := l.free; k != 0 {
		l.free = l.entries[k].next
		l.entries[k] = readerEntry{node, head}
		return k
	}
	if len(l.entries) == 0 {
		l.entries = append(l.entries, readerEntry{})
	}
	l.entries = append(l.entries, readerEntry{node, head})
	return int32(len(l.entries) - 1)
}

// cell is the state of a range that is only ever accessed as a whole.
type cell struct {
	writer  int32
	readers int32
}

// release gives a list's entries back.
func (l *readerList) release(head int32) {
	last := head
	for l.entries[last].next != 0 {
		last = l.entries[last].next
	}
	l.entries[last].next = l.free
	l.free = head
}

// visitor is told what a ledger finds: cells [lo, hi) and the node that last wrote or that read them.
type visitor interface {
	wrote(lo, hi, writer int32) // the cells' last writer, or nobody
	read(lo, hi, reader int32)  // a reader since that write
}

// ledger keeps the state of a buffer whose accesses overlap in part: a segment tree over its cells. The writer of a tree node
// holds for all cells below it, whatever they say, unless it is mixed. A reader in a tree node's list has read all cells
// below. So a whole-buffer access touches one tree node whatever went before, except that a write visits, once each, the
// readers and writers that it puts an end to.
type ledger struct {
	cuts
	size int32 // leaves, a power of two; leaf k is tree[size+k]
	tree []ledgerNode
}

type ledgerNode struct {
	writer  int32
	readers int32
	busy    bool // some list at or below this node is not empty
}

func newLedger(c cuts) *ledger {
	l := &ledger{cuts: c, size: 1}
	for l.size < c.cells() {
		l.size *= 2
	}
	l.tree = make([]ledgerNode, 2*l.size)
	l.tree[1].writer = nobody
	return l
}

// span widens a range that ends with the last cell to the last leaf, so that the root stands for the whole buffer.
func (l *ledger) span(lo, hi int32) (int32, int32) {
	if hi == l.cells() {
		hi = l.size
	}
	return lo, hi
}

// bytes returns the byte range of leaves [lo, hi). Leaves beyond the last cell share its fate and have no bytes.
func (l *ledger) bytes(lo, hi int32) (int64, int64) {
	return l.bounds[min(lo, l.cells())], l.bounds[min(hi, l.cells())]
}

// writers visits the last writers of cells [lo, hi).
func (l *ledger) writers(lo, hi int32, v visitor) { l.writersBelow(1, 0, l.size, lo, hi, v) }

func (l *ledger) writersBelow(i, from, to, lo, hi int32, v visitor) {
	if w := l.tree[i].writer; w != mixed {
		v.wrote(max(from, lo), min(to, hi), w)
		return
	}
	middle := (from + to) / 2
	if lo < middle {
		l.writersBelow(2*i, from, middle, lo, hi, v)
	}
	if hi > middle {
		l.writersBelow(2*i+1, middle, to, lo, hi, v)
	}
}

// addReader notes that node has read cells [lo, hi).
func (l *ledger) addReader(lists *readerList, lo, hi, node int32) {
	l.addReaderBelow(lists, 1, 0, l.size, lo, hi, node)
}

func (l *ledger) addReaderBelow(lists *readerList, i, from, to, lo, hi, node int32) {
	t := &l.tree[i]
	t.busy = true
	if lo <= from && to <= hi {
		t.readers = lists.push(t.readers, node)
		return
	}
	middle := (from + to) / 2
	if lo < middle {
		l.addReaderBelow(lists, 2*i, from, middle, lo, hi, node)
	}
	if hi > middle {
		l.addReaderBelow(lists, 2*i+1, middle, to, lo, hi, node)
	}
}

// sweep visits the readers of cells [lo, hi) and forgets them there. It calls gap, in ascending order, for the stretches that
// nobody has read since they were written, and covered for the others.
type sweep struct {
	ledger  *ledger
	lists   *readerList
	visitor visitor
	gaps    [][2]int32
	covered [][2]int32
}

func (s *sweep) run(lo, hi int32) {
	s.gaps, s.covered = s.gaps[:0], s.covered[:0]
	s.below(1, 0, s.ledger.size, lo, hi, false)
}

func extend(spans [][2]int32, lo, hi int32) [][2]int32 {
	if n := len(spans); n > 0 && spans[n-1][1] == lo {
		spans[n-1][1] = hi
		return spans
	}
	return append(spans, [2]int32{lo, hi})
}

func (s *sweep) below(i, from, to, lo, hi int32, read bool) {
	t := &s.ledger.tree[i]
	if !t.busy {
		if read {
			s.covered = extend(s.covered, max(from, lo), min(to, hi))
		} else {
			s.gaps = extend(s.gaps, max(from, lo), min(to, hi))
		}
		return
	}
	middle := (from + to) / 2
	if lo <= from && to <= hi {
		if t.readers != 0 {
			read = true
			s.report(t.readers, from, to)
			s.lists.release(t.readers)
			t.readers = 0
		}
		t.busy = false
		if i >= s.ledger.size {
			s.covered = extend(s.covered, from, to)
			return
		}
		s.below(2*i, from, middle, lo, hi, read)
		s.below(2*i+1, middle, to, lo, hi, read)
		return
	}
	if t.readers != 0 {
		// Every reader here has read the written cells too, so the copy costs no more than the edges it leads to.
		s.pushDown(i)
	}
	if lo < middle {
		s.below(2*i, from, middle, lo, hi, read)
	}
	if hi > middle {
		s.below(2*i+1, middle, to, lo, hi, read)
	}
	t.busy = s.ledger.tree[2*i].busy || s.ledger.tree[2*i+1].busy
}

func (s *sweep) report(head, from, to int32) {
	for k := head; k != 0; k = s.lists.entries[k].next {
		s.visitor.read(from, to, s.lists.entries[k].node)
	}
}

// pushDown moves the readers of a tree node to its children.
func (s *sweep) pushDown(i int32) {
	t, left, right := &s.ledger.tree[i], &s.ledger.tree[2*i], &s.ledger.tree[2*i+1]
	for k := t.readers; k != 0; k = s.lists.entries[k].next {
		node := s.lists.entries[k].node
		left.readers = s.lists.push(left.readers, node)
		right.readers = s.lists.push(right.readers, node)
	}
	s.lists.release(t.readers)
	t.readers = 0
	left.busy, right.busy = true, true
}

// setWriter notes that node has written cells [lo, hi).
func (l *ledger) setWriter(lo, hi, node int32) { l.setWriterBelow(1, 0, l.size, lo, hi, node) }

func (l *ledger) setWriterBelow(i, from, to, lo, hi, node int32) {
	if lo <= from && to <= hi {
		l.tree[i].writer = node
		return
	}
	left, right := &l.tree[2*i], &l.tree[2*i+1]
	if w := l.tree[i].writer; w != mixed {
		left.writer, right.writer = w, w
	}
	middle := (from + to) / 2
	if lo < middle {
		l.setWriterBelow(2*i, from, middle, lo, hi, node)
	}
	if hi > middle {
		l.setWriterBelow(2*i+1, middle, to, lo, hi, node)
	}
	l.tree[i].writer = mixed
	if left.writer == right.writer {
		l.tree[i].writer = left.writer
	}
}
