// One pass of the list strategy: time goes from one finished node to the next, and idle streams take ready nodes. Inserts no op.

package place

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/dagrun/dagrun/planner/internal/scratch"
	"github.com/dagrun/dagrun/planner/plan"
)

// taste is what a pass prefers where it has a choice.
type taste struct {
	patience float64 // as long as the longest remaining path is below this share of the time left to the goal, take what needs fewer waits
	newest   bool    // among equals the node that became ready last, not the one declared first
	suit     int32
	eager    int32
}

const (
	// mostClocked is for how many lanes a pass keeps vector clocks: beyond that it counts predecessors' lanes instead.
	mostClocked = 64
	// fewSuited is how many entries a heap has room for from the start.
	fewSuited = 16
	// checkEvery is how many nodes are placed between two looks at the context.
	checkEvery = 8192
)

// lister is the state of a pass.
type lister struct {
	p *Problem
	taste
	window int
	inLine bool // all copies of an engine share a stream: it makes them in the order of the plan
	sync   float64
	goal   float64
	lanes  []listLane
	pools  []listPool
	rooms  []int  // lanes that may still begin to compute, by device; what pools without one are sure of is taken off
	turns  []turn // copy engines, by device and engine
	choice choice

	placed   []bool // apart from spots, because what is asked of many nodes should be small
	pending  []int32
	entrants []entrant

	// Vector clocks, and the waits that follow from them.
	clocked        bool // not beyond mostClocked lanes
	width          int32
	clock          []int32 // of node i: clock[i*width:(i+1)*width]
	alone          []int32 // by lane, all 0: the clock of a lane that nothing is known of
	direct, source []int32 // by lane, for the node that is being placed
	recorded       []uint8 // 1: some node waits for it

	now     float64
	entries []int32 // nodes in the order in which they became ready; only where the newest go first
	running finishingHeap
	due     []int32 // bound lanes that may have become able to go on
	outcome         // of the pass that is made
	lost    bool    // it was given up
	best    outcome // of those before
	made    Assignment
	sorted  waitList
}

// spotted is where a node was placed: its lane, its position there, from 1, and when it ends.
type spotted struct {
	lane, position int32
	finish         float64
}

// entrant is what choices ask of a node that has become ready.
type entrant struct {
	at         float64 // when it did
	first, end int32   // its predecessors
	prefer     int32   // the lane that it suits, -1
	frees      int32   // what it is cheaper by for the nodes that wait for it
}

// listLane is a stream in the making.
type listLane struct {
	lane
	idle     bool
	line     bool // for copies only
	launched int32
	tail     int32       // last node, -1
	suited   []urgency   // ready nodes whose last predecessor ran here, the newest last; some may have gone elsewhere
	mine     urgencyHeap // ready nodes bound here
}

// listPool is what nodes of one device and priority choose from.
type listPool struct {
	device   int
	ready    urgencyHeap // free compute nodes; some may have been placed as what suits a lane
	idle     []int32     // lanes in use that run nothing
	fresh    []int32     // lanes not in use yet, the next one last
	left     int         // compute nodes not placed yet
	sure     bool        // no lane computes yet: one may, whatever the room
	copying  int         // lanes in use that only copy
	copyRoom int         // how many may
}

// turn is a copy engine, or several that take from one queue.
type turn struct {
	free  []float64 // when each is free; none where the machine never makes copies wait
	ready urgencyHeap
	line  int32 // the lane of its copies where they share one, -1 before the first
}

// listers keeps the memory of passes that are over: to allocate it takes a small graph as long as a third of its pass, and the
// collector works for every byte.
var listers = sync.Pool{New: func() any { return new(lister) }}

func newLister(p *Problem, window int, inLine bool) *lister {
	n := p.len()
	l := listers.Get().(*lister)
	l.p, l.window, l.inLine, l.sync, l.goal = p, window, inLine, p.sync(), p.whole(p.goal())
	pools := cap(l.pools)
	l.pools = scratch.Extended(l.pools, len(p.pools))
	devices := 0
	for q := range p.pools {
		if q > 0 && p.pools[q].device != p.pools[q-1].device {
			devices++
		}
		l.pools[q].device, l.pools[q].copyRoom = devices, 0
	}
	l.rooms = scratch.Sized(l.rooms, devices+1)
	lanes := len(p.bindings)
	l.turns = l.turns[:0]
	if p.engine != nil {
		l.turns = scratch.Extended(l.turns, (devices+1)*int(plan.EngineKinds))
		used := make([]bool, len(p.pools)*int(plan.EngineKinds))
		for i, e := range p.engine {
			if at := int(p.pool[i])*int(plan.EngineKinds) + int(e); e != plan.Compute && !used[at] {
				used[at] = true
				l.pools[p.pool[i]].copyRoom += max(1, p.machine.CopyEngines)
			}
		}
		for e := range l.turns {
			t := &l.turns[e]
			t.free = t.free[:0]
			if !p.machine.Unit {
				t.free = scratch.Sized(t.free, max(1, p.machine.CopyEngines))
			}
		}
	}
	for q := range l.pools {
		lanes += p.streams + l.pools[q].copyRoom
	}
	l.choice.size(n, window, lanes)
	l.pending, l.entrants = scratch.Sized(l.pending, n), scratch.Sized(l.entrants, n)
	l.direct, l.source, l.alone = scratch.Sized(l.direct, lanes), scratch.Sized(l.source, lanes), scratch.Zeroed(l.alone, lanes)
	l.placed = scratch.Sized(l.placed, n)
	// Most heaps stay small: they start as parts of one piece.
	known := cap(l.lanes)
	l.lanes = scratch.Extended(l.lanes, lanes)
	if few := min(n, fewSuited); lanes > known {
		heaps := make([]urgency, (lanes-known)*few)
		for k := range l.lanes[known:] {
			l.lanes[known+k].suited = heaps[k*few : k*few : (k+1)*few]
		}
	}
	if few := min(n, 4*fewSuited); len(l.pools) > pools {
		heaps := make([]urgency, (len(l.pools)-pools)*few)
		for q := range l.pools[pools:] {
			l.pools[pools+q].ready = heaps[q*few : q*few : (q+1)*few]
			l.pools[pools+q].idle, l.pools[pools+q].fresh = make([]int32, 0, lanes), make([]int32, 0, lanes)
		}
	}
	l.clock = l.clock[:0]
	if l.clocked = lanes <= mostClocked && (lanes <= leastBlock || n*lanes <= clockWords); l.clocked {
		l.width = int32(lanes)
		l.clock = scratch.Sized(l.clock, n*lanes)
		l.recorded = scratch.Sized(l.recorded, n)
	}
	return l
}

// release hands the memory to the passes of other plans. Nothing that came from here may be in use.
func (l *lister) release() {
	if l.p.len() <= scratch.MostKept {
		l.p = nil
		listers.Put(l)
	}
}

// start puts everything back to before the first node.
func (l *lister) start(t taste) {
	p := l.p
	n := int32(p.len())
	l.taste = t
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
	l.waits, l.due = l.waits[:0], l.due[:0]
	clear(l.placed)
	for k := range l.lanes {
		ln := &l.lanes[k]
		*ln = listLane{tail: -1, suited: ln.suited[:0], mine: ln.mine[:0]}
		ln.binding = -1
	}
	for d := range l.rooms {
		l.rooms[d] = p.streams
	}
	for q := range l.pools {
		pool := &l.pools[q]
		*pool = listPool{device: pool.device, copyRoom: pool.copyRoom, ready: pool.ready[:0], idle: pool.idle[:0], fresh: pool.fresh[:0]}
	}
	for k := range p.bindings {
		ln := &l.lanes[k]
		ln.pool, ln.binding, ln.idle = p.bindings[k].pool, int32(k), true
		if !p.explicit {
			pool := &l.pools[ln.pool]
			pool.idle = append(pool.idle, int32(k))
		}
	}
	last := len(l.lanes)
	for q := len(l.pools) - 1; q >= 0; q-- {
		pool := &l.pools[q]
		for range p.streams + pool.copyRoom {
			last--
			l.lanes[last].pool = int32(q)
			pool.fresh = append(pool.fresh, int32(last))
		}
	}
	for e := range l.turns {
		t := &l.turns[e]
		t.ready, t.line = t.ready[:0], -1
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
			pool.sure = true
			l.rooms[pool.device]--
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
	if p.engine == nil && p.bound == nil && roots > 1 {
		l.spread(roots)
	}
}

// spread suits roots to the lanes in blocks: neighbours in declaration order tend to meet again, and should do so on one lane.
func (l *lister) spread(roots int) {
	pool := &l.pools[0]
	lanes := min(roots, l.p.streams)
	for k := range int32(lanes) {
		l.lanes[k].idle = true
		pool.idle = append(pool.idle, k)
	}
	pool.fresh = pool.fresh[:len(pool.fresh)-lanes]
	at := 0
	for i, pending := range l.pending {
		if pending > 0 {
			continue
		}
		k := int32(at * lanes / roots)
		l.entrants[i].prefer = k
		l.lanes[k].suited = append(l.lanes[k].suited, l.urgencyOf(int32(i), at))
		at++
	}
}

// run places every node. It stops as soon as the pass has lost against the score that it should beat, if any.
func (l *lister) run(t taste, beat *score) error {
	l.start(t)
	p := l.p
	checked := 0
	// The goal is sure where all nodes choose among the same streams; a bit less, as sums of durations are rounded.
	least := 0.0
	if p.engine == nil && p.bound == nil {
		least = l.goal * (1 - 1e-9)
	}
	for {
		if l.lost = beat != nil && l.score.beyond(*beat, least); l.lost {
			return p.ctx.Err()
		}
		if p.bound != nil {
			l.placeBound()
		}
		for q := range l.pools {
			l.placeCompute(int32(q))
		}
		for e := range l.turns {
			l.placeCopies(&l.turns[e])
		}
		if len(l.order)-checked >= checkEvery {
			checked = len(l.order)
			if err := p.ctx.Err(); err != nil {
				return err
			}
		}
		if len(l.running) == 0 {
			break
		}
		l.now = l.running[0].at
		for len(l.running) > 0 && l.running[0].at <= l.now {
			i := l.running[0].node
			l.running.pop()
			l.leave(i)
		}
	}
	if len(l.order) != p.len() {
		panic("planner: list left nodes out")
	}
	return p.ctx.Err()
}

// outcome is what a pass came to.
type outcome struct {
	spots     []spotted
	order     []int32
	waits     []int32 // what nodes wait for, in the order of placement
	waitCount []int32 // by node
	lanes     []lane  // once the pass is over
	score     score
}

// keep makes the pass's outcome the best one; the next pass writes over what was the best.
func (l *lister) keep() {
	l.outcome.lanes = scratch.Sized(l.outcome.lanes, len(l.lanes))
	for k := range l.lanes {
		l.outcome.lanes[k] = l.lanes[k].lane
	}
	l.best, l.outcome = l.outcome, l.best
}

// assignment is the best outcome. It lies in the lister's memory, until it is released.
func (l *lister) assignment() *Assignment {
	o, a := &l.best, &l.made
	*a = Assignment{stream: scratch.Sized(a.stream, len(o.spots)), order: o.order, lanes: o.lanes, score: o.score, owner: l}
	for i := range o.spots {
		a.stream[i] = o.spots[i].lane
	}
	if l.clocked && !l.p.explicit {
		l.sorted.sort(o.order, o.waitCount, o.waits)
		a.waits = &l.sorted
	}
	return a
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
	if b := p.boundOf(i); b >= 0 {
		l.lanes[b].mine.push(u)
		l.due = append(l.due, b)
		return
	}
	q := p.poolOf(i)
	if e := p.engineOf(i); e != plan.Compute {
		l.turns[l.pools[q].device*int(plan.EngineKinds)+int(e)].ready.push(u)
		return
	}
	l.pools[q].ready.push(u)
	k := l.suits(i, q)
	e.prefer = k
	if k >= 0 {
		l.lanes[k].suited = append(l.lanes[k].suited, u)
	}
}

// urgencyOf is the place of a ready node among others; entry counts those that became ready before it.
func (l *lister) urgencyOf(i int32, entry int) urgency {
	if l.newest {
		return urgencyOf(l.p.rank[i], ^uint32(entry))
	}
	return urgencyOf(l.p.rank[i], uint32(i))
}

// node is whose urgency it is.
func (l *lister) node(u urgency) int32 {
	if l.newest {
		return l.entries[^u.tie()]
	}
	return int32(u.tie())
}

// leave ends a node: its lane may be idle and its successors ready.
func (l *lister) leave(i int32) {
	k := l.spots[i].lane
	if ln := &l.lanes[k]; ln.tail == i {
		ln.idle = true
		if len(ln.mine) > 0 {
			l.due = append(l.due, k)
		}
		if !l.p.explicit || ln.binding < 0 {
			pool := &l.pools[ln.pool]
			pool.idle = append(pool.idle, k)
		}
	}
	for _, s := range l.p.succs(i) {
		if l.pending[s]--; l.pending[s] == 0 {
			l.enter(s)
		}
	}
}

// suits returns the lane of the predecessor that was the last to end, -1 where no lane of the pool has one.
func (l *lister) suits(i, q int32) int32 {
	best, last := int32(-1), -1.0
	for _, pred := range l.p.preds(i) {
		at := &l.spots[pred]
		if at.finish > last && l.lanes[at.lane].pool == q && !(l.p.explicit && l.lanes[at.lane].binding >= 0) {
			best, last = at.lane, at.finish
		}
	}
	return best
}

// missing counts the lanes that a node would have to wait for on lane k.
func (l *lister) missing(i, k int32) int {
	var mask uint64
	clock := l.clockOf(k)
	for _, pred := range l.p.preds(i) {
		if at := &l.spots[pred]; at.position > clock[at.lane] {
			mask |= 1 << (at.lane & 63)
		}
	}
	l.forget(k)
	return bits.OnesCount64(mask)
}

// clockOf is what a lane is ordered after, itself included. Where that is not known it is itself alone; forget takes that back.
func (l *lister) clockOf(k int32) []int32 {
	tail := l.lanes[k].tail
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

// startOn is when a node could start on lane k.
func (l *lister) startOn(i, k int32) float64 {
	start := l.now
	if tail := l.lanes[k].tail; tail >= 0 {
		start = max(start, l.spots[tail].finish)
	}
	// No predecessor ended after the node became ready.
	if l.entrants[i].at+l.sync > l.now {
		for _, pred := range l.p.preds(i) {
			if at := &l.spots[pred]; at.lane != k {
				start = max(start, at.finish+l.sync)
			}
		}
	}
	return start
}

// place puts a node at the end of a lane.
func (l *lister) place(i, k int32) {
	p := l.p
	ln := &l.lanes[k]
	pool := &l.pools[ln.pool]
	start := l.startOn(i, k)
	if ln.idle {
		ln.idle = false
		for at, other := range pool.idle {
			if other == k {
				copy(pool.idle[at:], pool.idle[at+1:])
				pool.idle = pool.idle[:len(pool.idle)-1]
				break
			}
		}
	} else if ln.launched == 0 {
		pool.fresh = pool.fresh[:len(pool.fresh)-1]
		pool.copying++
	}
	if e := p.engineOf(i); e != plan.Compute {
		if t := &l.turns[pool.device*int(plan.EngineKinds)+int(e)]; len(t.free) > 0 {
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
		if !ln.computes {
			ln.computes = true
			// A bound stream counts as one of the pool's, unless other nodes must keep off it.
			switch {
			case ln.binding >= 0 && p.explicit:
			case pool.sure:
				pool.sure = false
			default:
				l.rooms[pool.device]--
			}
			if ln.binding < 0 {
				pool.copying--
			}
		}
	}
	if l.clocked {
		l.learn(i, k)
	}
	ln.launched++
	ln.tail = i
	l.order = append(l.order, i)
	finish := start + p.duration[i]
	l.spots[i], l.placed[i] = spotted{k, ln.launched, finish}, true
	l.score.makespan = max(l.score.makespan, finish)
	l.running.push(finishing{finish, i})
}

// learn sets a node's clock from the lane's last node and its predecessors, and keeps the waits that this takes. Whether one
// predecessor implies another is as good as random and known only once their clocks have come from memory, so nothing branches on it.
func (l *lister) learn(i, k int32) {
	w := l.width
	ln := &l.lanes[k]
	known := l.clockOf(k)
	// The latest predecessor on each lane that the lane's last node does not come after; those before it add nothing.
	var touched uint64
	for _, pred := range l.p.preds(i) {
		t, position := l.spots[pred].lane, l.spots[pred].position
		if position <= known[t] {
			continue // of the lane itself, too
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
	mine[k] = ln.launched + 1
}

// wait makes a node wait for the predecessors on these lanes that no other of them implies.
func (l *lister) wait(i int32, mine []int32, touched uint64) {
	w := l.width
	for left := touched; left != 0; left &= left - 1 {
		t := bits.TrailingZeros64(left)
		source := l.source[t]
		// What it says of its own lane is itself: it must not make itself look implied by another.
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
		var needed, fresh uint8
		if l.direct[t] > mine[t] {
			needed = 1
		}
		mine[t] = max(mine[t], l.direct[t])
		at += int(needed)
		fresh = needed &^ l.recorded[source]
		l.recorded[source] |= needed
		l.score.records += int(fresh)
	}
	count := at - len(l.waits)
	l.waits = l.waits[:at] // in place: to assign another slice takes a write barrier
	l.waitCount[i] = int32(count)
	l.score.waits += count
}
