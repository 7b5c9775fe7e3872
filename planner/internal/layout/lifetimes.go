// Lifetimes: which device buffers keep their bytes for the whole program, and which of the others have finished before which others
// start. Places nothing.

package layout

import (
	"cmp"
	"math"
	"slices"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/internal/order"
	"github.com/dagrun/dagrun/planner/internal/planted"
	"github.com/dagrun/dagrun/planner/plan"
)

// Kept tells for each buffer whether it must keep bytes of its own: because it has contents before the first replay, because its contents
// are read after the last replay, or because they pass from one replay to the next. Scratch has no contents outside its kernel.
func Kept(g *dag.Graph) []bool {
	kept := make([]bool, len(g.Buffers))
	for i := range g.Buffers {
		b := &g.Buffers[i]
		kept[i] = b.Init != nil || b.Save != "" || b.Expect != nil
	}
	if planted.Is(planted.Kept) {
		return kept
	}
	for _, u := range g.ReadFirst() {
		kept[u.Buffer] = kept[u.Buffer] || !g.Buffers[u.Buffer].Scratch
	}
	return kept
}

// lifetimes tells which buffers the plan orders, among those that may share bytes. Here buffers are numbered from 0, in order of ids.
type lifetimes struct {
	buffers     []int32 // ids
	bytes       []int64 // rounded up to the arena's alignment
	first, last []int32 // places of the first and last access in the submission order

	columns  int
	start    []int32 // by buffer, columns each: the last launch of a stream that comes before all accesses of the buffer
	endStart []int32 // by buffer, into ends
	ends     []mark
	endless  []bool // used on a stream without a column, so not known to have finished
}

// mark is a launch, as the position on the stream of a column.
type mark struct{ column, pos int32 }

// before reports whether every access of buffer a has finished before any access of b starts.
func (l *lifetimes) before(a, b int32) bool {
	if l.endless[a] {
		return false
	}
	row := l.start[int(b)*l.columns : (int(b)+1)*l.columns]
	for _, m := range l.ends[l.endStart[a]:l.endStart[a+1]] {
		if row[m.column] < m.pos {
			return false
		}
	}
	return true
}

// apart reports whether two buffers may share bytes.
func (l *lifetimes) apart(a, b int32) bool {
	if l.first[a] < l.first[b] {
		return l.before(a, b)
	}
	return l.before(b, a)
}

// stay is the span of one buffer's accesses on one stream.
type stay struct {
	buffer, stream int32
	firstNode      int32
	lastPos        int32
	next           int32 // another of the buffer, plus 1
}

// readLifetimes reads the lifetimes of the given buffers, each of which is accessed. entries limits the memory for clocks: if more are
// needed, buffers of some streams count as never finished.
func readLifetimes(steps *steps, buffers []int32, entries int) *lifetimes {
	n := len(buffers)
	g, p, s := steps.g, steps.plan, steps.order
	l := &lifetimes{buffers: buffers, bytes: make([]int64, n), first: make([]int32, n), last: make([]int32, n), endless: make([]bool, n)}
	index, textured := make([]int32, len(g.Buffers)), g.Textured() // plus 1
	for k, b := range buffers {
		index[b] = int32(k) + 1
		l.bytes[k] = plan.AlignUp(g.Buffers[b].Bytes) + textureRoom(textured, int(b))
		l.first[k] = -1
	}
	head := make([]int32, n)
	stays := make([]stay, 0, 2*n)
	for rank, node := range s.Order {
		at := s.Spots[node]
		for _, a := range steps.accesses(node) {
			k := index[a.Buffer] - 1
			if k < 0 || a.Lo >= a.Hi {
				continue
			}
			if l.first[k] < 0 {
				l.first[k] = int32(rank)
			}
			l.last[k] = int32(rank)
			i := head[k]
			for i > 0 && stays[i-1].stream != at.Stream {
				i = stays[i-1].next
			}
			if i == 0 {
				stays = append(stays, stay{k, at.Stream, node, at.Pos, head[k]})
				head[k] = int32(len(stays))
			} else {
				stays[i-1].lastPos = at.Pos
			}
		}
	}
	column := l.chooseColumns(p, stays, max(1, entries/max(1, n)))
	l.endStart = make([]int32, n+1)
	l.ends = make([]mark, 0, len(stays))
	for k := range n {
		for i := head[k]; i > 0; i = stays[i-1].next {
			st := &stays[i-1]
			if column[st.stream] < 0 {
				l.endless[k] = true
			} else {
				l.ends = append(l.ends, mark{column[st.stream], st.lastPos})
			}
		}
		l.endStart[k+1] = int32(len(l.ends))
	}
	firsts := make([]order.Asked, len(stays))
	for i := range stays {
		firsts[i] = order.Asked{Node: stays[i].firstNode, Row: stays[i].buffer}
	}
	l.start = s.Finished(p, firsts, n, column, l.columns)
	if planted.Is(planted.Lifetimes) {
		for k := range l.start {
			l.start[k] = math.MaxInt32
		}
	}
	return l
}

// chooseColumns gives a column to each stream, or, if there are more than most, to the streams with the most bytes.
func (l *lifetimes) chooseColumns(p *plan.Plan, stays []stay, most int) []int32 {
	column := make([]int32, len(p.Streams))
	if len(p.Streams) <= most {
		for i := range column {
			column[i] = int32(i)
		}
		l.columns = len(column)
		return column
	}
	weight := make([]float64, len(p.Streams))
	order := make([]int32, len(p.Streams))
	for i := range order {
		order[i], column[i] = int32(i), -1
	}
	for i := range stays {
		weight[stays[i].stream] += float64(l.bytes[stays[i].buffer])
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(weight[b], weight[a]) })
	chosen := order[:most]
	slices.Sort(chosen)
	for k, stream := range chosen {
		column[stream] = int32(k)
	}
	l.columns = most
	return column
}

// busiest returns the place in the submission order where the most bytes are alive, and those bytes. All buffers alive there are alive
// together in every replay, so every layout of this plan needs at least that many bytes.
func (l *lifetimes) busiest(nodes int) (bytes int64, at int32) {
	change := make([]int64, nodes+1)
	for k := range l.buffers {
		change[l.first[k]] += l.bytes[k]
		change[l.last[k]+1] -= l.bytes[k]
	}
	live := int64(0)
	for k, c := range change {
		if live += c; live > bytes {
			bytes, at = live, int32(k)
		}
	}
	return bytes, at
}
