// One pass of the list strategy: time goes from one finished node to the next, and idle streams take ready nodes. Its result is an assignment.

package place

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// score is what assignments are compared by: makespan, then waits, then records.
type score struct {
	makespan       float64
	waits, records int
}

// waitList holds the nodes that each node waits for.
type waitList struct {
	start []int32 // by node
	from  []int32
}

// idleStream is a stream and its last node, -1 if it has none.
type idleStream struct{ stream, tail int32 }

// costTable holds the cost of each ready node on each idle stream. Its slices keep their lengths through a pass, and rows and
// columns say how much is in use: storing a shorter slice would take a write barrier.
type costTable struct {
	ready   []urgency
	nodes   []int32 // the nodes that ready belongs to
	streams []idleStream
	cost    []int32 // cost of nodes[a] on streams[b]: cost[a*len(streams)+b]
	rows    int     // entries in use of ready and nodes
	columns int     // entries in use of streams
}

// draftStream is a stream before it has its final number.
type draftStream struct {
	pool     int32
	binding  int32 // index into the problem's bindings, -1 for none
	computes bool
}

// Assignment is the result of a strategy. Stream order is submission order, which is topological.
type Assignment struct {
	stream  []int32       // of each node
	order   []int32       // nodes as submitted
	streams []draftStream // by stream
	waits   *waitList     // nil: not known yet
	score   score         // as the strategy predicts it, if it does
	owner   *lister       // owner of the memory, nil for none
}

// preference decides between ready nodes that could run next.
type preference struct {
	patience float64 // while the longest remaining path is below this fraction of the time left to the goal, take the node that needs fewer waits
	newest   bool    // among equals, take the node that became ready last, not the one declared first
	moveCost int32   // cost of a stream other than the preferred one
	eager    int32   // how much cheaper a node is for each node that depends on it
}

const (
	// mostClocked limits the streams for which a pass keeps vector clocks. With more, it counts the streams of predecessors instead.
	mostClocked = 64
	// heapRoom is the initial capacity of a heap.
	heapRoom = 16
	// checkEvery is how many nodes are placed between two checks of the context.
	checkEvery = 8192
)

// lister is the state of a pass.
type lister struct {
	p *Problem
	preference
	window      int
	inLine      bool // all copies of an engine share a stream, so the engine makes them in the order of the plan
	sync        float64
	goal        float64
	streams     []listStream
	pools       []listPool
	computeRoom []int        // by device, how many more streams may run kernels, without those reserved for pools
	copyEngines []copyEngine // by device and engine
	costTable   costTable

	resolver *resolver
	pred     []int32 // what nodes wait for: that of the problem or, if it has joins, as the resolver finds it when nodes become ready
	placed   []bool  // by node; not in spots, because it is looked up for many nodes and should be small
	pending  []int32
	entrants []entrant

	// Vector clocks, and the waits that follow from them.
	clocked        bool // there are at most mostClocked streams
	width          int32
	clock          []int32 // of node i: clock[i*width:(i+1)*width]
	alone          []int32 // by stream, all 0: the clock of a stream about which nothing is known
	direct, source []int32 // by stream, for the node that is being placed
	recorded       []uint8 // by node, 1 if some node waits for it

	now       float64
	entries   []int32 // nodes in the order in which they became ready; filled only if the newest go first
	running   finishingHeap
	resumable []int32 // bound streams that may be able to start their next node
	outcome           // of the current pass
	lost      bool    // the current pass was given up
	best      outcome // of the passes before
	made      Assignment
	sorted    waitList
}

// spotted is where a node was placed: its stream, its position there, from 1, and when it ends.
type spotted struct {
	stream, position int32
	finish           float64
}

// entrant is what the costs of a ready node depend on.
type entrant struct {
	at         float64 // when it became ready
	first, end int32   // its predecessors, as indices into pred
	prefer     int32   // preferred stream, -1 for none
	frees      int32   // subtracted from its cost, for the nodes that wait for it
}

// listStream is a stream during a pass.
type listStream struct {
	draftStream
	idle       bool
	copyOnly   bool // runs only the copies of one engine
	launched   int32
	tail       int32       // last node, -1
	preferring []urgency   // ready nodes whose last predecessor ran here, the newest last; some may be placed elsewhere already
	mine       urgencyHeap // ready nodes bound here
}

// listPool holds the streams and the ready kernels of one device and priority.
type listPool struct {
	device   int
	ready    urgencyHeap // kernels bound to no stream; some may be placed already
	idle     []int32     // streams in use that run nothing
	unused   []int32     // streams not in use yet, the next one last
	left     int         // compute nodes not placed yet
	reserved bool        // one stream may run kernels whatever computeRoom says; true until one does
	copying  int         // streams in use that run only copies
	copyRoom int         // limit of copying
}

// copyEngine is a copy engine, or several with one queue.
type copyEngine struct {
	free       []float64 // when each becomes free; empty if copies never wait on this machine
	ready      urgencyHeap
	copyStream int32 // stream that its copies share, -1 before the first copy
}

// listers keeps the memory of finished passes. For a small graph, allocating it takes a third of the time of a pass, and the
// garbage collector has to scan it.
var listers = sync.Pool{New: func() any { return new(lister) }}

// release lets the passes of other plans use the memory. The assignment of this lister must not be used any more.
func (l *lister) release() {
	if l.p.len() <= scratch.MostKept {
		l.p, l.pred, l.resolver = nil, nil, nil
		listers.Put(l)
	}
}

// start resets the state to before the first node.
func (l *lister) start(t preference) {
	p := l.p
	n := int32(p.len())
	l.preference = t
	l.now, l.score = 0, score{}
	l.entries = l.entries[:0]
	l.running = l.running[:0]
	l.order = scratch.Sized(l.order, int(n))[:0]
	l.spots = scratch.Sized(l.spots, int(n))
	if l.clocked {
		l.waitCount = scratch.Sized(l.waitCount, int(n))
		l.waits = scratch.Sized(l.waits, int(n+n/2))
		clear(l.recorded)
	}
	l.waits, l.resumable = l.waits[:0], l.resumable[:0]
	clear(l.placed)
	l.pred = p.pred
	if p.joined() {
		l.pred = nil
		l.resolver = p.newResolver(len(l.streams), func(i int32) int32 { return l.spots[i].stream },
			func(a, b int32) bool { return l.spots[a].position > l.spots[b].position })
	}
	for k := range l.streams {
		st := &l.streams[k]
		*st = listStream{tail: -1, preferring: st.preferring[:0], mine: st.mine[:0]}
		st.binding = -1
	}
	for d := range l.computeRoom {
		l.computeRoom[d] = p.streams
	}
	for q := range l.pools {
		pool := &l.pools[q]
		*pool = listPool{device: pool.device, copyRoom: pool.copyRoom, ready: pool.ready[:0], idle: pool.idle[:0], unused: pool.unused[:0]}
	}
	for k := range p.bindings {
		st := &l.streams[k]
		st.pool, st.binding, st.idle = p.bindings[k].pool, int32(k), true
		if !p.explicit {
			pool := &l.pools[st.pool]
			pool.idle = append(pool.idle, int32(k))
		}
	}
	last := len(l.streams)
	for q := len(l.pools) - 1; q >= 0; q-- {
		pool := &l.pools[q]
		for range p.streams + pool.copyRoom {
			last--
			l.streams[last].pool = int32(q)
			pool.unused = append(pool.unused, int32(last))
		}
	}
	for e := range l.copyEngines {
		t := &l.copyEngines[e]
		t.ready, t.copyStream = t.ready[:0], -1
		clear(t.free)
	}
	if p.engine == nil {
		l.pools[0].left = int(n)
	} else {
		for i, e := range p.engine {
			if e == plan.Compute {
				l.pools[p.pool[i]].left++
			}
		}
	}
	for q := range l.pools {
		if pool := &l.pools[q]; pool.left > 0 {
			pool.reserved = true
			l.computeRoom[pool.device]--
		}
	}
	roots := 0
	for i := range n {
		l.pending[i] = int32(len(p.preds(i)))
		if l.pending[i] == 0 {
			l.enter(i)
			roots++
		}
	}
	for j := n; j < int32(p.vertices()); j++ {
		l.pending[j] = int32(len(p.preds(j)))
	}
	if p.engine == nil && p.bound == nil && roots > 1 {
		l.spread(roots)
	}
}

// spread divides the roots among the streams in blocks: neighbours in declaration order often have a common successor, which needs
// fewer waits if they run on one stream.
func (l *lister) spread(roots int) {
	pool := &l.pools[0]
	streams := min(roots, l.p.streams)
	for k := range int32(streams) {
		l.streams[k].idle = true
		pool.idle = append(pool.idle, k)
	}
	pool.unused = pool.unused[:len(pool.unused)-streams]
	at := 0
	for i, pending := range l.pending[:l.p.len()] {
		if pending > 0 {
			continue
		}
		k := int32(at * streams / roots)
		l.entrants[i].prefer = k
		l.streams[k].preferring = append(l.streams[k].preferring, l.urgencyOf(int32(i), at))
		at++
	}
}

// outcome is the result of a pass.
type outcome struct {
	spots     []spotted
	order     []int32
	waits     []int32       // what nodes wait for, in the order of placement
	waitCount []int32       // by node
	streams   []draftStream // set when the pass is over
	score     score
}

// keep makes the current outcome the best one. The next pass overwrites the previous best.
func (l *lister) keep() {
	l.outcome.streams = scratch.Sized(l.outcome.streams, len(l.streams))
	for k := range l.streams {
		l.outcome.streams[k] = l.streams[k].draftStream
	}
	l.best, l.outcome = l.outcome, l.best
}

// enter makes a node ready.
func (l *lister) enter(i int32) {
	p := l.p
	u := l.urgencyOf(i, len(l.entries))
	if l.newest {
		l.entries = append(l.entries, i)
	}
	e := &l.entrants[i]
	*e = entrant{l.now, p.predStart[i], p.predStart[i+1], -1, l.eager * (p.succStart[i+1] - p.succStart[i])}
	if p.joined() {
		e.first = int32(len(l.pred))
		l.pred = append(l.pred, l.resolver.before(i)...)
		e.end = int32(len(l.pred))
	}
	if b := p.boundOf(i); b >= 0 {
		l.streams[b].mine.push(u)
		l.resumable = append(l.resumable, b)
		return
	}
	q := p.poolOf(i)
	if e := p.engineOf(i); e != plan.Compute {
		l.copyEngines[l.pools[q].device*int(plan.EngineKinds)+int(e)].ready.push(u)
		return
	}
	l.pools[q].ready.push(u)
	k := l.preferredStream(i, q)
	e.prefer = k
	if k >= 0 {
		l.streams[k].preferring = append(l.streams[k].preferring, u)
	}
}

// urgencyOf returns the urgency of a ready node; entry counts the nodes that became ready before it.
func (l *lister) urgencyOf(i int32, entry int) urgency {
	if l.newest {
		return urgencyOf(l.p.rank[i], ^uint32(entry))
	}
	return urgencyOf(l.p.rank[i], uint32(i))
}

// node returns the node that an urgency belongs to.
func (l *lister) node(u urgency) int32 {
	if l.newest {
		return l.entries[^u.tie()]
	}
	return int32(u.tie())
}

// leave ends a node: its stream may become idle and its successors ready.
func (l *lister) leave(i int32) {
	k := l.spots[i].stream
	if st := &l.streams[k]; st.tail == i {
		st.idle = true
		if len(st.mine) > 0 {
			l.resumable = append(l.resumable, k)
		}
		if !l.p.explicit || st.binding < 0 {
			pool := &l.pools[st.pool]
			pool.idle = append(pool.idle, k)
		}
	}
	l.finish(i)
}

// finish makes ready what waited for a node or join last.
func (l *lister) finish(i int32) {
	for _, s := range l.p.succs(i) {
		switch l.pending[s]--; {
		case l.pending[s] > 0:
		case int(s) < len(l.placed):
			l.enter(s)
		default:
			l.finish(s)
		}
	}
}

// preds are the nodes that a ready or placed node waits for; of those that joins stand for, the last on each stream.
func (l *lister) preds(i int32) []int32 {
	e := &l.entrants[i]
	return l.pred[e.first:e.end]
}

// preferredStream returns the stream of the predecessor that ended last, -1 if no predecessor ran on a stream of the pool.
func (l *lister) preferredStream(i, q int32) int32 {
	best, last := int32(-1), -1.0
	for _, pred := range l.preds(i) {
		at := &l.spots[pred]
		if at.finish > last && l.streams[at.stream].pool == q && !(l.p.explicit && l.streams[at.stream].binding >= 0) {
			best, last = at.stream, at.finish
		}
	}
	return best
}

// missing counts the streams that a node would have to wait for if it ran on stream k.
func (l *lister) missing(i, k int32) int {
	var mask uint64
	clock := l.clockOf(k)
	for _, pred := range l.preds(i) {
		if at := &l.spots[pred]; at.position > clock[at.stream] {
			mask |= 1 << (at.stream & 63)
		}
	}
	l.forget(k)
	return bits.OnesCount64(mask)
}

// clockOf returns the clock of a stream: what its next node is ordered after. Without vector clocks that is only the stream itself;
// call forget when done with the clock.
func (l *lister) clockOf(k int32) []int32 {
	tail := l.streams[k].tail
	switch {
	case tail < 0:
	case l.clocked:
		return l.clock[tail*l.width : (tail+1)*l.width]
	default:
		l.alone[k] = math.MaxInt32
	}
	return l.alone
}

func (l *lister) forget(k int32) { l.alone[k] = 0 }

// startOn returns when a node could start on stream k.
func (l *lister) startOn(i, k int32) float64 {
	start := l.now
	if tail := l.streams[k].tail; tail >= 0 {
		start = max(start, l.spots[tail].finish)
	}
	// No predecessor ended after the node became ready.
	if l.entrants[i].at+l.sync > l.now {
		for _, pred := range l.preds(i) {
			if at := &l.spots[pred]; at.stream != k {
				start = max(start, at.finish+l.sync)
			}
		}
	}
	return start
}

// place appends a node to a stream.
func (l *lister) place(i, k int32) {
	p := l.p
	st := &l.streams[k]
	pool := &l.pools[st.pool]
	start := l.startOn(i, k)
	if st.idle {
		st.idle = false
		for at, other := range pool.idle {
			if other == k {
				copy(pool.idle[at:], pool.idle[at+1:])
				pool.idle = pool.idle[:len(pool.idle)-1]
				break
			}
		}
	} else if st.launched == 0 {
		pool.unused = pool.unused[:len(pool.unused)-1]
		pool.copying++
	}
	if e := p.engineOf(i); e != plan.Compute {
		if t := &l.copyEngines[pool.device*int(plan.EngineKinds)+int(e)]; len(t.free) > 0 {
			slot := 0
			for s, f := range t.free {
				if f < t.free[slot] {
					slot = s
				}
			}
			start = max(start, t.free[slot])
			t.free[slot] = start + p.duration[i]
		}
	} else {
		pool.left--
		if !st.computes {
			st.computes = true
			// A bound stream counts as one of the pool, unless other nodes may not use it.
			switch {
			case st.binding >= 0 && p.explicit:
			case pool.reserved:
				pool.reserved = false
			default:
				l.computeRoom[pool.device]--
			}
			if st.binding < 0 {
				pool.copying--
			}
		}
	}
	if l.clocked {
		l.learn(i, k)
	}
	st.launched++
	st.tail = i
	l.order = append(l.order, i)
	finish := start + p.duration[i]
	l.spots[i], l.placed[i] = spotted{k, st.launched, finish}, true
	l.score.makespan = max(l.score.makespan, finish)
	l.running.push(finishing{finish, i})
}

// learn sets a node's clock from the last node of its stream and from its predecessors, and stores the waits that this needs.
// Whether one predecessor implies another is unpredictable, so this is branch-free.
func (l *lister) learn(i, k int32) {
	w := l.width
	st := &l.streams[k]
	known := l.clockOf(k)
	// For each stream, find the latest predecessor that the last node of stream k is not ordered after. Earlier ones are implied.
	var touched uint64
	for _, pred := range l.preds(i) {
		t, position := l.spots[pred].stream, l.spots[pred].position
		if position <= known[t] {
			continue // this includes predecessors on stream k itself
		}
		if touched>>t&1 == 1 && l.direct[t] > position {
			continue
		}
		touched |= 1 << t
		l.direct[t] = position
		l.source[t] = pred
	}
	mine := l.clock[i*w : (i+1)*w]
	copy(mine, known)
	l.waitCount[i] = 0
	if touched != 0 {
		l.wait(i, mine, touched)
	}
	mine[k] = st.launched + 1
}

// wait makes a node wait for the predecessors on these streams that no other of them implies.
func (l *lister) wait(i int32, mine []int32, touched uint64) {
	w := l.width
	for left := touched; left != 0; left &= left - 1 {
		t := bits.TrailingZeros64(left)
		source := l.source[t]
		// The entry for its own stream stays, or the node would seem to be implied by another.
		own := mine[t]
		for b, v := range l.clock[source*w : (source+1)*w][:len(mine)] {
			mine[b] = max(mine[b], v)
		}
		mine[t] = own
	}
	if cap(l.waits)-len(l.waits) < len(mine) {
		l.waits = slices.Grow(l.waits, len(mine))
	}
	waits, at := l.waits[:cap(l.waits)], len(l.waits)
	for left := touched; left != 0; left &= left - 1 {
		t := bits.TrailingZeros64(left)
		source := l.source[t]
		waits[at] = source
		var needed, added uint8
		if l.direct[t] > mine[t] {
			needed = 1
		}
		mine[t] = max(mine[t], l.direct[t])
		at += int(needed)
		added = needed &^ l.recorded[source]
		l.recorded[source] |= needed
		l.score.records += int(added)
	}
	count := at - len(l.waits)
	l.waits = l.waits[:at] // same array: storing another one would take a write barrier
	l.waitCount[i] = int32(count)
	l.score.waits += count
}
