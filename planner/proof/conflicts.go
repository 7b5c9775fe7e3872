// Conflicts: whether accesses to the same bytes keep their declared order. Reads the graph's accesses. The graph's edges are used only for
// the text of a violation.

package proof

import (
	"math"

	"github.com/dagrun/dagrun/dag"
	"github.com/dagrun/dagrun/planner/plan"
)

// checkConflicts returns the first pair of nodes whose order is declared (by after: or by bytes that both touch and one writes) but not
// enforced. If there is none, readFirst tells for each buffer whether a replay reads any of its bytes before it writes them.
//
// Nodes are visited in submission order. A node that touches bytes must come after every node that touched them before, if either
// writes; and each of those must be declared before it.
//
// o is the order that must enforce the pairs. p and s are the plan, which violations refer to.
func checkConflicts(g *dag.Graph, p *plan.Plan, s *schedule, o *order) (readFirst []bool, v *Violation) {
	w := o.walk
	if w == nil {
		w = new(accessWalk)
	}
	w.follow(g, o.s)
	var bad pair
	if len(o.p.Streams) > o.source.width() {
		bad = w.walkMany(o)
	} else {
		bad = w.walk(o.source)
	}
	if bad.to < 0 {
		return w.readFirst, nil
	}
	if v := checkEdges(g, p, s, o); v != nil {
		return nil, v
	}
	return nil, hazardViolation(g, p, s, conflictOf(g, bad.from, bad.to))
}

// readFirstOf tells for each buffer whether any of its bytes is read before it is written if nodes run in declared order.
func readFirstOf(g *dag.Graph, s *schedule) []bool {
	return walkDeclared(g, s).readFirst
}

// walkDeclared follows the accesses of nodes in declared order and checks nothing.
func walkDeclared(g *dag.Graph, s *schedule) *accessWalk {
	w := new(accessWalk)
	w.follow(g, s)
	for node := range int32(g.Len()) {
		w.touch(node, nil)
	}
	return w
}

// checkEdges returns the first of the graph's edges that is not enforced.
func checkEdges(g *dag.Graph, p *plan.Plan, s *schedule, o *order) (v *Violation) {
	forEachUnorderedEdge(g, o.p, o.s, o.source, func(to int32, pred int) bool {
		v = hazardViolation(g, p, s, g.Edges()[g.PredEdges(dag.NodeID(to))[pred]])
		return false
	})
	return v
}

// conflictOf returns the reason why two nodes must keep their declared order.
func conflictOf(g *dag.Graph, from, to int32) dag.Edge {
	for _, a := range g.Accesses(dag.NodeID(from)) {
		for _, b := range g.Accesses(dag.NodeID(to)) {
			lo, hi := max(a.Lo, b.Lo), min(a.Hi, b.Hi)
			if a.Buffer != b.Buffer || lo >= hi || (a.Mode|b.Mode)&dag.Write == 0 {
				continue
			}
			why := dag.WAW
			switch {
			case a.Mode&dag.Write != 0 && b.Mode&dag.Read != 0:
				why = dag.RAW
			case a.Mode&dag.Write == 0:
				why = dag.WAR
			}
			return dag.Edge{From: dag.NodeID(from), To: dag.NodeID(to), Buffer: a.Buffer, Why: why, Lo: lo, Hi: hi}
		}
	}
	return dag.Edge{From: dag.NodeID(from), To: dag.NodeID(to), Buffer: -1, Why: dag.After, Declared: true}
}

// accessWalk knows for every byte of every buffer which node wrote it last and which have read it since.
type accessWalk struct {
	g         *dag.Graph
	s         *schedule
	buffers   []byteRuns
	readers   []reader
	free      int32  // the first of the readers that may be reused, linked by next; plus 1
	readFirst []bool // by buffer: some byte is read before it is written
	carried   []bool // by buffer: such a byte is written later

	clock []int32 // by stream: the last launch known to have finished before the node starts; nil: nothing is checked
	asked []pair  // pairs that the clock does not order; nil unless they are collected
	ask   bool
}

// reader stands for all nodes of one stream that have read some bytes since they were written.
type reader struct {
	node   int32 // the last of them on its stream
	latest int32 // the last of them as declared
	next   int32 // plus 1
}

// byteRun is a range of bytes that the same nodes have touched last.
type byteRun struct {
	lo, hi  int64
	writer  int32 // -1 for none
	readers int32 // plus 1: the first of a list with at most one entry per stream
}

// The range of all possible bytes.
const lowest, highest = math.MinInt64, math.MaxInt64

var nobody = pair{-1, -1}

// follow sets the walk up for a graph.
func (w *accessWalk) follow(g *dag.Graph, s *schedule) {
	n := len(g.Buffers)
	*w = accessWalk{g: g, s: s, buffers: sized(w.buffers, n), readers: w.readers[:0], readFirst: zeroed(w.readFirst, n), carried: zeroed(w.carried, n)}
	for k := range w.buffers {
		w.buffers[k] = byteRuns{first: byteRun{lo: lowest, hi: highest, writer: -1}}
	}
}

// walk checks every node against the clocks of a source that follows all streams at once.
func (w *accessWalk) walk(source clockSource) pair {
	source.begin(0)
	for {
		node, clock := source.next()
		if node < 0 {
			return nobody
		}
		if bad := w.touch(node, clock); bad.to >= 0 {
			return bad
		}
	}
}

// walkMany does the same for many streams. It needs clocks only for the few pairs that are ordered neither by their stream nor by a wait
// right before the launch.
func (w *accessWalk) walkMany(o *order) pair {
	direct, ok := o.source.(*ancestry)
	if !ok {
		direct = planAncestry(o.p, w.s)
	}
	w.ask = true
	covered := make([]int32, len(o.p.Streams))
	for k, node := range w.s.order {
		for _, from := range direct.of(k) {
			at := w.s.spots[from]
			covered[at.stream] = max(covered[at.stream], at.pos)
		}
		if bad := w.touch(node, covered); bad.to >= 0 {
			return bad
		}
		for _, from := range direct.of(k) {
			covered[w.s.spots[from].stream] = 0
		}
	}
	if bad := unordered(o.p, w.s, o.source, w.asked); len(bad) > 0 {
		return w.asked[bad[0]]
	}
	return nobody
}

// touch checks that a node comes after the nodes that touched its bytes before it, and notes that it has touched them.
func (w *accessWalk) touch(node int32, clock []int32) pair {
	w.clock = clock
	if clock != nil {
		for _, from := range w.g.Nodes[node].After {
			if at := w.s.spots[from]; from != dag.NodeID(node) && !w.follows(node, int32(from), at) {
				return pair{int32(from), node}
			}
		}
	}
	accesses := w.g.Accesses(dag.NodeID(node))
	for k := range accesses {
		if a := &accesses[k]; a.Mode&dag.Read != 0 && a.Lo < a.Hi {
			if bad := w.read(node, a); bad.to >= 0 {
				return bad
			}
		}
	}
	for k := range accesses {
		if a := &accesses[k]; a.Mode&dag.Write != 0 && a.Lo < a.Hi {
			if bad := w.write(node, a); bad.to >= 0 {
				return bad
			}
		}
	}
	return nobody
}

// follows reports whether a node starts after the launch at a spot has finished. With ask, it collects the pair and decides later.
func (w *accessWalk) follows(node, from int32, at spot) bool {
	if w.clock[at.stream] >= at.pos {
		return true
	}
	if w.ask {
		w.asked = append(w.asked, pair{from, node})
	}
	return w.ask
}

// after checks that a node comes after one that touched the same bytes before it in submission order.
func (w *accessWalk) after(node, from int32) pair {
	switch {
	case w.clock == nil || from == node:
	case from > node:
		return pair{node, from}
	case !w.follows(node, from, w.s.spots[from]):
		return pair{from, node}
	}
	return nobody
}

func (w *accessWalk) read(node int32, a *dag.Access) pair {
	b := &w.buffers[a.Buffer]
	for at := b.from(w, a.Lo, a.Hi); ; {
		r := b.at(at)
		if r.writer < 0 {
			w.readFirst[a.Buffer] = true
		} else if bad := w.after(node, r.writer); bad.to >= 0 {
			return bad
		}
		w.remember(r, node)
		if r.hi >= a.Hi {
			return nobody
		}
		at = b.next(at)
	}
}

func (w *accessWalk) write(node int32, a *dag.Access) pair {
	b := &w.buffers[a.Buffer]
	first := b.from(w, a.Lo, a.Hi)
	for at := first; ; {
		r := b.at(at)
		if r.writer < 0 && r.readers > 0 {
			w.carried[a.Buffer] = true
		}
		if r.writer >= 0 && r.readers == 0 {
			if bad := w.after(node, r.writer); bad.to >= 0 {
				return bad
			}
		}
		for k := r.readers; k > 0; k = w.readers[k-1].next {
			e := &w.readers[k-1]
			if w.clock != nil && e.latest > node {
				return pair{node, e.latest}
			}
			if bad := w.after(node, e.node); bad.to >= 0 {
				return bad
			}
		}
		w.forget(r)
		if r.hi >= a.Hi {
			break
		}
		at = b.next(at)
	}
	b.join(first, a.Hi, node)
	return nobody
}

// remember adds a node to the readers of a run.
func (w *accessWalk) remember(r *byteRun, node int32) {
	stream := w.s.spots[node].stream
	for k := r.readers; k > 0; k = w.readers[k-1].next {
		if e := &w.readers[k-1]; w.s.spots[e.node].stream == stream {
			e.latest = max(e.latest, node)
			if w.s.spots[e.node].pos < w.s.spots[node].pos {
				e.node = node
			}
			return
		}
	}
	r.readers = w.newReader(reader{node, node, r.readers})
}

func (w *accessWalk) newReader(e reader) int32 {
	if w.free > 0 {
		k := w.free
		w.free = w.readers[k-1].next
		w.readers[k-1] = e
		return k
	}
	w.readers = append(w.readers, e)
	return int32(len(w.readers))
}

// forget drops the readers of a run.
func (w *accessWalk) forget(r *byteRun) {
	for r.readers > 0 {
		k := r.readers
		r.readers = w.readers[k-1].next
		w.readers[k-1].next = w.free
		w.free = k
	}
}

// copied returns a copy of a list of readers.
func (w *accessWalk) copied(list int32) int32 {
	copied := int32(0)
	for k := list; k > 0; k = w.readers[k-1].next {
		copied = w.newReader(reader{w.readers[k-1].node, w.readers[k-1].latest, copied})
	}
	return copied
}
