// Conflicts: whether accesses to the same bytes keep their declared order. Reads the graph's accesses. The graph's edges are used only for
// the text of a violation.

package proof

import (
	"fmt"
	"slices"

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
	if bad == nobody {
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
			both, ok := shared(a.Range, b.Range)
			if !ok || (a.Mode|b.Mode)&dag.Write == 0 {
				continue
			}
			why := dag.WAW
			switch {
			case a.Mode&dag.Write != 0 && b.Mode&dag.Read != 0:
				why = dag.RAW
			case a.Mode&dag.Write == 0:
				why = dag.WAR
			}
			return dag.Edge{From: dag.NodeID(from), To: dag.NodeID(to), Buffer: a.Buffer, Why: why, Tile: both.Pitch != 0, Lo: both.Lo, Hi: both.Hi}
		}
	}
	return dag.Edge{From: dag.NodeID(from), To: dag.NodeID(to), Buffer: -1, Why: dag.After, Declared: true}
}

// accessWalk knows for every byte of every buffer which node wrote it last and which have read it since.
type accessWalk struct {
	g         *dag.Graph
	s         *schedule
	bands     []rowBands // by buffer; nil: no buffer has tiles
	buffers   []byteRuns
	readers   []reader
	free      int32  // the first of the readers that may be reused, linked by next; plus 1
	readFirst []bool // by buffer: some byte is read before it is written
	carried   []bool // by buffer: such a byte is written later

	needed []declared   // by node, and one more
	after  []dag.NodeID // the after: of all nodes, together, because the walk takes nodes in an order that is not theirs

	clock []int32 // by stream: the last launch known to have finished before the node starts; nil: nothing is checked
	ask   bool    // pairs that the clock does not order are collected in asked
	asked []pair
	need  []int32 // by stream: the last launch that the node must come after and the clock does not show, plus 1
	needs []int32 // the streams of these

	list    bool   // pairs that are submitted in the wrong order are collected in swapped, instead of ending the walk
	swapped []pair // the node submitted first comes last
}

// declared is what the walk must know about each node first.
type declared struct {
	after   int32 // where its after: start
	touches bool  // it touches bytes
}

// reader stands for all nodes of one stream that have read some bytes since they were written.
type reader struct {
	node   int32 // the last of them on its stream
	latest int32 // the last of them as declared
	next   int32 // plus 1
}

// follow sets the walk up for a graph.
func (w *accessWalk) follow(g *dag.Graph, s *schedule) {
	n := len(g.Buffers)
	*w = accessWalk{g: g, s: s, bands: lines(g), buffers: sized(w.buffers, n), readers: w.readers[:0], readFirst: zeroed(w.readFirst, n),
		carried: zeroed(w.carried, n), needed: sized(w.needed, g.Len()+1), after: w.after[:0]}
	for k := range w.buffers {
		w.buffers[k] = byteRuns{first: byteRun{lo: lowest, hi: highest, writer: -1}}
	}
	after, needed := w.after, w.needed
	for i := range g.Nodes {
		needed[i] = declared{int32(len(after)), len(g.Accesses(dag.NodeID(i))) > 0}
		after = append(after, g.Nodes[i].After...)
	}
	needed[g.Len()].after = int32(len(after))
	w.after = after
}

// walk checks every node against the clocks of a source that follows all streams at once.
func (w *accessWalk) walk(source clockSource) pair {
	after, needed, spots := w.after, w.needed, w.s.spots
	source.begin(0)
	for {
		node, clock := source.next()
		if node < 0 {
			return nobody
		}
		asked := needed[node]
		for _, from := range after[asked.after:needed[node+1].after] {
			if at := spots[from]; clock[at.stream] < at.pos {
				return pair{int32(from), node}
			}
		}
		if asked.touches {
			if bad := w.touch(node, clock); bad != nobody {
				return bad
			}
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
	w.asks(len(o.p.Streams))
	covered := make([]int32, len(o.p.Streams))
	for k, node := range w.s.order {
		for _, from := range direct.of(k) {
			at := w.s.spots[from]
			covered[at.stream] = max(covered[at.stream], at.pos)
		}
		w.askAfter(node, covered)
		if bad := w.touch(node, covered); bad != nobody {
			return bad
		}
		for _, from := range direct.of(k) {
			covered[w.s.spots[from].stream] = 0
		}
		if len(w.asked) >= mostAsked {
			if bad := w.answer(o); bad != nobody {
				return bad
			}
		}
	}
	return w.answer(o)
}

// mostAsked is how many pairs are asked about at once, in 32 MiB. Tests lower it.
var mostAsked = 4 << 20

// asks makes the walk collect what clocks do not show, for so many streams.
func (w *accessWalk) asks(streams int) {
	w.ask = true
	w.need = make([]int32, streams)
}

// answer returns the first pair asked about that is not ordered, and forgets them all.
func (w *accessWalk) answer(o *order) pair {
	bad := unordered(o.p, w.s, o.source, w.asked)
	if len(bad) > 0 {
		return w.asked[bad[0]]
	}
	w.asked = w.asked[:0]
	return nobody
}

// touch checks that a node comes after the nodes that touched its bytes before it, without those of its after:, and notes that it has touched them.
func (w *accessWalk) touch(node int32, clock []int32) pair {
	w.clock = clock
	accesses := w.g.Accesses(dag.NodeID(node))
	for k := range accesses {
		if a := &accesses[k]; a.Mode&dag.Read != 0 && a.Lo < a.Hi {
			if bad := w.read(node, a); bad != nobody {
				return bad
			}
		}
	}
	for k := range accesses {
		if a := &accesses[k]; a.Mode&dag.Write != 0 && a.Lo < a.Hi {
			if bad := w.write(node, a); bad != nobody {
				return bad
			}
		}
	}
	if len(w.needs) > 0 {
		w.askNeeds(node)
	}
	return nobody
}

// askAfter asks about the after: of a node.
func (w *accessWalk) askAfter(node int32, clock []int32) {
	w.clock = clock
	for _, from := range w.after[w.needed[node].after:w.needed[node+1].after] {
		w.follows(int32(from), w.s.spots[from])
	}
}

// askNeeds collects what the node must come after and the clock does not show.
func (w *accessWalk) askNeeds(node int32) {
	for _, stream := range w.needs {
		w.asked = append(w.asked, pair{w.need[stream] - 1, node})
		w.need[stream] = 0
	}
	w.needs = w.needs[:0]
}

// follows reports whether the node starts after the launch at a spot has finished. With ask, it notes the launch, the last of each stream,
// and decides later.
func (w *accessWalk) follows(from int32, at spot) bool {
	if w.clock[at.stream] >= at.pos {
		return true
	}
	if !w.ask {
		return false
	}
	known := w.need[at.stream]
	if known == 0 {
		w.needs = append(w.needs, at.stream)
	}
	if known == 0 || w.s.spots[known-1].pos < at.pos {
		w.need[at.stream] = from + 1
	}
	return true
}

// comesAfter checks that a node comes after one that touched the same bytes before it in submission order.
func (w *accessWalk) comesAfter(node, from int32) pair {
	switch {
	case w.clock == nil || from == node:
	case from > node:
		return w.wrongOrder(node, from)
	case !w.follows(from, w.s.spots[from]):
		return pair{from, node}
	}
	return nobody
}

// wrongOrder notes that a node is submitted after one that is declared later.
func (w *accessWalk) wrongOrder(node, later int32) pair {
	if w.list {
		w.swapped = append(w.swapped, pair{node, later})
		return nobody
	}
	return pair{node, later}
}

// afterAll checks that a node comes after all of a list.
func (w *accessWalk) afterAll(node, list int32) pair {
	for k := list; k > 0; k = w.readers[k-1].next {
		e := &w.readers[k-1]
		if w.clock != nil && e.latest > node {
			if bad := w.wrongOrder(node, e.latest); bad != nobody {
				return bad
			}
		}
		if e.node < node {
			if bad := w.comesAfter(node, e.node); bad != nobody {
				return bad
			}
		}
	}
	return nobody
}

func (w *accessWalk) read(node int32, a *dag.Access) pair {
	if w.bands == nil {
		return w.readBytes(node, a.Buffer, a.Lo, a.Hi)
	}
	return w.bands[a.Buffer].runs(a, func(lo, hi int64) pair { return w.readBytes(node, a.Buffer, lo, hi) })
}

func (w *accessWalk) readBytes(node int32, buffer dag.BufferID, lo, hi int64) pair {
	b := &w.buffers[buffer]
	at := b.from(w, lo, hi)
	if b.chunks == nil {
		return w.readRun(node, buffer, &b.first)
	}
	for {
		if at.index == 0 {
			if c := &b.chunks[at.chunk]; len(c.runs) > fewRuns && c.end() <= hi {
				if bad := w.readChunk(node, buffer, c); bad != nobody || c.end() == hi {
					return bad
				}
				at.chunk++
				continue
			}
		}
		r := b.at(at)
		if bad := w.readRun(node, buffer, r); bad != nobody || r.hi >= hi {
			return bad
		}
		at = b.next(at)
	}
}

func (w *accessWalk) readRun(node int32, buffer dag.BufferID, r *byteRun) pair {
	if r.writer < 0 {
		w.readFirst[buffer] = true
	} else if bad := w.comesAfter(node, r.writer); bad != nobody {
		return bad
	}
	w.note(&r.readers, node, node)
	return nobody
}

// readChunk is a read of a whole chunk.
func (w *accessWalk) readChunk(node int32, buffer dag.BufferID, c *runChunk) pair {
	if !c.known {
		c.known, c.bare = true, false
		for k := range c.runs {
			if writer := c.runs[k].writer; writer >= 0 {
				w.note(&c.writers, writer, writer)
			} else {
				c.bare = true
			}
		}
	}
	w.readFirst[buffer] = w.readFirst[buffer] || c.bare
	if bad := w.afterAll(node, c.writers); bad != nobody {
		return bad
	}
	w.note(&c.readers, node, node)
	return nobody
}

func (w *accessWalk) write(node int32, a *dag.Access) pair {
	if w.bands == nil {
		return w.writeBytes(node, a.Buffer, a.Lo, a.Hi)
	}
	return w.bands[a.Buffer].runs(a, func(lo, hi int64) pair { return w.writeBytes(node, a.Buffer, lo, hi) })
}

func (w *accessWalk) writeBytes(node int32, buffer dag.BufferID, lo, hi int64) pair {
	b := &w.buffers[buffer]
	first := b.from(w, lo, hi)
	if b.chunks == nil {
		bad := w.overwrite(node, buffer, &b.first, false)
		b.first.writer = node
		return bad
	}
	var readers int32 // of the chunk
	for at := first; ; {
		if at == first || at.index == 0 {
			readers = 0
			c := &b.chunks[at.chunk]
			w.unknow(c)
			switch {
			case c.readers == 0:
			case at.index == 0 && c.end() <= hi:
				readers = c.readers
				if bad := w.afterAll(node, readers); bad != nobody {
					return bad
				}
				w.forget(&c.readers)
			default:
				w.spreadReaders(c)
			}
		}
		r := b.at(at)
		if bad := w.overwrite(node, buffer, r, readers > 0); bad != nobody {
			return bad
		}
		if r.hi >= hi {
			break
		}
		at = b.next(at)
	}
	b.join(first, hi, node)
	return nobody
}

// overwrite is a write of a whole run. readElsewhere: its chunk has readers of its own, which have been looked at.
func (w *accessWalk) overwrite(node int32, buffer dag.BufferID, r *byteRun, readElsewhere bool) pair {
	switch {
	case r.readers > 0 || readElsewhere:
		if r.writer < 0 {
			w.carried[buffer] = true
		}
		bad := w.afterAll(node, r.readers)
		w.forget(&r.readers)
		return bad
	case r.writer >= 0:
		return w.comesAfter(node, r.writer)
	}
	return nobody
}

// spreadReaders makes the readers of a whole chunk readers of each of its runs.
func (w *accessWalk) spreadReaders(c *runChunk) {
	for k := range c.runs {
		for at := c.readers; at > 0; {
			e := w.readers[at-1]
			w.note(&c.runs[k].readers, e.node, e.latest)
			at = e.next
		}
	}
	w.forget(&c.readers)
}

// unknow drops the summary of a chunk's writers.
func (w *accessWalk) unknow(c *runChunk) {
	w.forget(&c.writers)
	c.known = false
}

// note adds a node to a list that has one entry for each stream. latest is the last as declared that it stands for.
func (w *accessWalk) note(list *int32, node, latest int32) {
	at := w.s.spots[node]
	if *list > 0 && w.readers[*list-1].node == node {
		return
	}
	if at.pos > 1 { // else it is the first of its stream
		for k := *list; k > 0; k = w.readers[k-1].next {
			if e := &w.readers[k-1]; w.s.spots[e.node].stream == at.stream {
				e.latest = max(e.latest, latest)
				if w.s.spots[e.node].pos < at.pos {
					e.node = node
				}
				return
			}
		}
	}
	*list = w.newReader(reader{node, latest, *list})
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

// forget empties a list.
func (w *accessWalk) forget(list *int32) {
	for *list > 0 {
		k := *list
		*list = w.readers[k-1].next
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

// from cuts the runs at lo and hi and returns the one that begins at lo.
func (b *byteRuns) from(w *accessWalk, lo, hi int64) runAt {
	if b.chunks == nil {
		if b.first.writer < 0 && b.first.readers == 0 {
			// The first access: a run for its bytes and one for the rest would only be needed if the others differed.
			b.first.lo, b.first.hi = lo, hi
		}
		if b.first.lo == lo && b.first.hi == hi {
			return runAt{}
		}
		b.spread()
	}
	b.cut(w, hi)
	b.cut(w, lo)
	return b.find(lo)
}

// cut makes a run begin at a byte.
func (b *byteRuns) cut(w *accessWalk, byte int64) {
	at := b.find(byte)
	c := &b.chunks[at.chunk]
	r := &c.runs[at.index]
	if r.lo == byte {
		return
	}
	upper := byteRun{byte, r.hi, r.writer, w.copied(r.readers)}
	r.hi = byte
	c.runs = slices.Insert(c.runs, at.index+1, upper)
	if half := len(c.runs) / 2; len(c.runs) > runsInChunk {
		w.unknow(c)
		rest := runChunk{runs: slices.Clone(c.runs[half:]), readers: w.copied(c.readers)}
		c.runs = c.runs[:half]
		b.chunks = slices.Insert(b.chunks, at.chunk+1, rest)
	}
}

// written is the number that the user knows a node's stream by: that of a schedule of their own, which a plan may number otherwise.
func written(g *dag.Graph, node dag.NodeID, stream int32) int32 {
	if g.Sync != dag.SyncExplicit || g.IsJoin(node) || g.Nodes[node].Stream.Number() < 0 {
		return stream
	}
	return g.Nodes[node].Stream.Number()
}

// hazardViolation reports a dependency that the plan does not enforce.
func hazardViolation(g *dag.Graph, p *plan.Plan, s *schedule, e dag.Edge) *Violation {
	from, to := s.spots[e.From], s.spots[e.To]
	v := newViolation(ErrHazard, "").node(g, e.To)
	v.Before, v.BeforeName = e.From, plan.NodeName(g, e.From)
	v.Stream, v.BeforeStream = to.stream, from.stream
	v.Op = s.opOf(p, e.To)
	v.Why = e.Why
	reason := "after"
	if e.Buffer >= 0 {
		v.Buffer, v.BufferName, v.Lo, v.Hi = e.Buffer, plan.BufferName(g, e.Buffer), e.Lo, e.Hi
		v.Tile = e.Tile
		v.BeforeAccess, v.Access = modeOn(g, e.From, e), modeOn(g, e.To, e)
		reason = g.EdgeText(e)
		if g.Sync == dag.SyncExplicit {
			v.Fault = ErrRace
		}
	}
	v.Line = afterLine(g, int32(e.To), int32(e.From))
	if from.stream == to.stream && from.pos > to.pos {
		v.Problem = fmt.Sprintf("stream %d launches %q before %q, which it depends on (%s)", to.stream, v.NodeName, v.BeforeName, reason)
		return v.fix("launch %q first", v.BeforeName)
	}
	v.Problem = fmt.Sprintf("%q (stream %d) is not ordered after %q (stream %d), which it depends on (%s)",
		v.NodeName, written(g, e.To, to.stream), v.BeforeName, written(g, e.From, from.stream), reason)
	if g.Sync == dag.SyncExplicit {
		if from.stream == to.stream {
			v.Problem = fmt.Sprintf("%q is not ordered after %q, which it depends on (%s), because nodes without stream: may run in any order",
				v.NodeName, v.BeforeName, reason)
		}
		return v.fix("add %q to %q", v.Line, v.NodeName)
	}
	return v.fix("stream %d must wait before %q for an event recorded on stream %d after %q", to.stream, v.NodeName, from.stream, v.BeforeName)
}

// order is the order that must enforce conflicts, as streams and clocks over them.
type order struct {
	p      *plan.Plan // for the number of its streams, and for its ops if source does not know them
	s      *schedule
	source clockSource
	walk   *accessWalk // memory to reuse; may be nil
}
