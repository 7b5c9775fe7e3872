// The list strategy: whenever a stream is free, the ready node with the longest remaining path, or one near it that needs fewer
// waits there. Inserts no waits.

package planner

import (
	"math"
	"math/bits"
)

// taste is how much a list pass gives up to save waits.
type taste struct {
	// near is by how much a node that suits a stream may be shorter in remaining path than the longest that is ready.
	near float64
	// goal is a makespan. As long as every ready node can start later and still make it, streams take what suits them.
	goal float64
}

const (
	// mostClocked is for how many streams list keeps vector clocks: beyond that it counts predecessors' streams instead.
	mostClocked = 64
	// checkEvery is how many nodes are placed between two looks at the context.
	checkEvery = 8192
)

// lister is one pass of list over a problem.
type lister struct {
	p *problem
	taste
	sync  float64
	lanes []listLane
	pools []listPool
	rooms []int  // streams that may still begin to compute, by device; what pools without one are sure of is taken off
	turns []turn // copy engines, by device and engine

	stream, position, pending, prefer []int32
	finish                            []float64
	order                             []int32
	width                             int32
	clock                             []int32 // of node i: clock[i*width:(i+1)*width]; nil beyond mostClocked lanes

	now      float64
	running  rankedHeap // key: the finish, negated
	makespan float64
}

// listLane is a stream in the making.
type listLane struct {
	lane
	idle     bool
	launched int32
	tail     int32      // last node, -1
	suited   rankedHeap // ready nodes that need the fewest waits here; some may have gone elsewhere
	mine     rankedHeap // ready nodes bound here
}

// listPool is what nodes of one device and priority choose from.
type listPool struct {
	device   int
	ready    rankedHeap // free compute nodes; some may have gone to a lane that they suit
	idle     []int32    // lanes in use that run nothing
	fresh    []int32    // lanes not in use yet, the next one last
	left     int        // compute nodes not placed yet
	sure     bool       // no lane computes yet: one may, whatever the room
	copying  int        // lanes in use that only copy
	copyRoom int        // how many may
}

// turn is a copy engine, or several that take from one queue.
type turn struct {
	free  []float64 // when each is free; none where the machine never makes copies wait
	ready rankedHeap
}

func newLister(p *problem) *lister {
	n := p.len()
	l := &lister{p: p}
	if !p.machine.Unit {
		l.sync = p.machine.SyncUS
	}
	l.pools = make([]listPool, len(p.pools))
	devices := 0
	for q := range p.pools {
		if q > 0 && p.pools[q].device != p.pools[q-1].device {
			devices++
		}
		l.pools[q].device = devices
	}
	l.rooms = make([]int, devices+1)
	if p.engine != nil {
		l.turns = make([]turn, (devices+1)*int(engineKinds))
	}
	words := make([]int32, 5*n)
	l.stream, l.position, l.pending, l.prefer, l.order = words[:n], words[n:2*n], words[2*n:3*n], words[3*n:4*n], words[4*n:4*n]
	l.finish = make([]float64, n)
	lanes := len(p.bindings)
	for q := range l.pools {
		if p.engine != nil {
			var used [engineKinds]bool
			for i, e := range p.engine {
				if p.pool[i] == int32(q) && e != Compute && !used[e] {
					used[e] = true
					l.pools[q].copyRoom += max(1, p.machine.CopyEngines)
				}
			}
		}
		lanes += p.streams + l.pools[q].copyRoom
	}
	l.lanes = make([]listLane, 0, lanes)
	if l.width = int32(lanes); lanes <= mostClocked && (lanes <= leastBlock || n*lanes <= clockWords) {
		l.clock = make([]int32, n*lanes)
	}
	return l
}

// start puts everything back to before the first node.
func (l *lister) start(t taste) {
	p := l.p
	n := int32(p.len())
	l.taste = t
	l.now, l.makespan = 0, 0
	l.order, l.running = l.order[:0], l.running[:0]
	old := l.lanes[:cap(l.lanes)]
	l.lanes = l.lanes[:0]
	add := func(ln lane) int32 {
		k := len(l.lanes)
		l.lanes = append(l.lanes, listLane{lane: ln, tail: -1, suited: old[k].suited[:0], mine: old[k].mine[:0]})
		return int32(k)
	}
	for d := range l.rooms {
		l.rooms[d] = p.streams
	}
	for k := range p.bindings {
		add(lane{pool: p.bindings[k].pool, binding: int32(k)})
	}
	for q := range l.pools {
		pool := &l.pools[q]
		*pool = listPool{device: pool.device, copyRoom: pool.copyRoom, ready: pool.ready[:0], idle: pool.idle[:0], fresh: pool.fresh[:0]}
		for range p.streams + pool.copyRoom {
			pool.fresh = append(pool.fresh, add(lane{pool: int32(q), binding: -1}))
		}
		for a, b := 0, len(pool.fresh)-1; a < b; a, b = a+1, b-1 {
			pool.fresh[a], pool.fresh[b] = pool.fresh[b], pool.fresh[a]
		}
	}
	for k := range p.bindings {
		l.lanes[k].idle = true
		if p.declared == nil {
			pool := &l.pools[p.bindings[k].pool]
			pool.idle = append(pool.idle, int32(k))
		}
	}
	for e := range l.turns {
		t := &l.turns[e]
		t.ready = t.ready[:0]
		if !p.machine.Unit && t.free == nil {
			t.free = make([]float64, max(1, p.machine.CopyEngines))
		}
		clear(t.free)
	}
	if p.engine == nil {
		l.pools[0].left = int(n)
	} else {
		for i, e := range p.engine {
			if e == Compute {
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
	for i := range n {
		l.stream[i] = -1
		l.pending[i] = int32(len(p.preds(i)))
	}
	var roots []int32
	for i := range n {
		if l.pending[i] > 0 {
			continue
		}
		l.enter(i)
		if p.engine == nil && p.bound == nil {
			roots = append(roots, i)
		}
	}
	l.spread(roots)
}

// spread suits roots to the lanes in blocks: neighbours in declaration order tend to meet again, and should do so on one lane.
func (l *lister) spread(roots []int32) {
	if len(roots) < 2 {
		return
	}
	pool := &l.pools[0]
	lanes := min(len(roots), l.p.streams)
	for k := range int32(lanes) {
		l.lanes[k].idle = true
		pool.idle = append(pool.idle, k)
	}
	pool.fresh = pool.fresh[:len(pool.fresh)-lanes]
	for at, i := range roots {
		k := int32(at * lanes / len(roots))
		l.prefer[i] = k
		l.lanes[k].suited.push(ranked{l.p.rank[i], i})
	}
}

// run places every node.
func (l *lister) run(t taste) error {
	l.start(t)
	p := l.p
	n := p.len()
	checked := 0
	for {
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
		l.now = -l.running[0].key
		for len(l.running) > 0 && -l.running[0].key <= l.now {
			i := l.running[0].id
			l.running.pop()
			l.leave(i)
		}
	}
	if len(l.order) != n {
		panic("planner: list left nodes out")
	}
	return p.ctx.Err()
}

// enter makes a node ready.
func (l *lister) enter(i int32) {
	p := l.p
	r := ranked{p.rank[i], i}
	if b := p.boundOf(i); b >= 0 {
		l.lanes[b].mine.push(r)
		return
	}
	q := p.poolOf(i)
	if e := p.engineOf(i); e != Compute {
		l.turns[l.pools[q].device*int(engineKinds)+int(e)].ready.push(r)
		return
	}
	l.pools[q].ready.push(r)
	k := l.suits(i, q)
	l.prefer[i] = k
	if k >= 0 {
		l.lanes[k].suited.push(r)
	}
}

// leave ends a node: its lane may be idle and its successors ready.
func (l *lister) leave(i int32) {
	k := l.stream[i]
	if ln := &l.lanes[k]; ln.tail == i {
		ln.idle = true
		if l.p.declared == nil || ln.binding < 0 {
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

// suits returns the predecessor's lane on which a node would need the fewest waits, the one that was busy last among equals.
func (l *lister) suits(i, q int32) int32 {
	preds := l.p.preds(i)
	best, bestWaits, bestFinish := int32(-1), math.MaxInt, 0.0
	var seen uint64
	for _, pred := range preds {
		k := l.stream[pred]
		if l.lanes[k].pool != q || l.p.declared != nil && l.lanes[k].binding >= 0 {
			continue
		}
		if k < 64 {
			if seen>>k&1 == 1 {
				if k == best {
					bestFinish = max(bestFinish, l.finish[pred])
				}
				continue
			}
			seen |= 1 << k
		}
		waits := 0
		if len(preds) <= 8 {
			waits = l.missing(i, k)
		}
		if waits < bestWaits || waits == bestWaits && l.finish[pred] > bestFinish {
			best, bestWaits, bestFinish = k, waits, l.finish[pred]
		}
	}
	return best
}

// missing counts the lanes that a node would have to wait for on lane k.
func (l *lister) missing(i, k int32) int {
	var mask uint64
	tail := l.lanes[k].tail
	for _, pred := range l.p.preds(i) {
		t := l.stream[pred]
		if t == k || l.clock != nil && tail >= 0 && l.position[pred] <= l.clock[tail*l.width+t] {
			continue
		}
		mask |= 1 << (t & 63)
	}
	return bits.OnesCount64(mask)
}

// startOn is when a node could start on lane k.
func (l *lister) startOn(i, k int32) float64 {
	start := l.now
	if tail := l.lanes[k].tail; tail >= 0 {
		start = max(start, l.finish[tail])
	}
	if l.sync > 0 {
		for _, pred := range l.p.preds(i) {
			if l.stream[pred] != k {
				start = max(start, l.finish[pred]+l.sync)
			}
		}
	}
	return start
}

// top drops what has been placed from a heap and returns its first entry.
func (l *lister) top(h *rankedHeap) (ranked, bool) {
	for len(*h) > 0 {
		if r := (*h)[0]; l.stream[r.id] < 0 {
			return r, true
		}
		h.pop()
	}
	return ranked{}, false
}

// mayCompute says whether a lane computes or may begin to.
func (l *lister) mayCompute(k int32) bool {
	ln := &l.lanes[k]
	return ln.computes || l.roomFor(ln.pool)
}

func (l *lister) roomFor(q int32) bool {
	return l.pools[q].sure || l.rooms[l.pools[q].device] > 0
}

func (l *lister) placeBound() {
	for k := range l.p.bindings {
		ln := &l.lanes[k]
		for ln.idle && len(ln.mine) > 0 {
			i := ln.mine[0].id
			ln.mine.pop()
			l.place(i, int32(k))
		}
	}
}

// placeCompute gives a pool's idle lanes work.
func (l *lister) placeCompute(q int32) {
	pool := &l.pools[q]
	for {
		first, ok := l.top(&pool.ready)
		if !ok {
			return
		}
		// What suits an idle lane goes first, as long as it is not much less urgent than the most urgent of all.
		least := first.key - l.near
		if first.key < l.goal-l.now {
			least = math.Inf(-1)
		}
		best := ranked{id: -1}
		bestLane := int32(-1)
		usable := false
		for _, k := range pool.idle {
			if !l.mayCompute(k) {
				continue
			}
			usable = true
			if r, ok := l.top(&l.lanes[k].suited); ok && r.key >= least && (bestLane < 0 || r.before(best)) {
				best, bestLane = r, k
			}
		}
		fresh := int32(-1)
		if len(pool.fresh) > 0 && l.roomFor(q) {
			fresh = pool.fresh[len(pool.fresh)-1]
		}
		if bestLane >= 0 {
			l.place(best.id, bestLane)
			continue
		}
		if !usable && fresh < 0 {
			return
		}
		l.place(first.id, l.laneFor(first.id, pool, fresh))
	}
}

// laneFor returns the lane for a node that suits no idle one: where it starts first, then where it needs the fewest waits, then
// one that nothing else suits, then one in use.
func (l *lister) laneFor(i int32, pool *listPool, fresh int32) int32 {
	type merit struct {
		start    float64
		waits    int
		wanted   bool
		position int
	}
	best := int32(-1)
	var bestMerit merit
	consider := func(k int32, position int) {
		m := merit{l.startOn(i, k), l.missing(i, k), len(l.lanes[k].suited) > 0, position}
		better := best < 0 || m.start < bestMerit.start
		if !better && m.start == bestMerit.start {
			better = m.waits < bestMerit.waits
			if m.waits == bestMerit.waits {
				better = bestMerit.wanted && !m.wanted
			}
		}
		if better {
			best, bestMerit = k, m
		}
	}
	for position, k := range pool.idle {
		if l.mayCompute(k) {
			consider(k, position)
		}
	}
	if fresh >= 0 {
		consider(fresh, len(pool.idle))
	}
	// A lane that is busy for less than a wait takes starts it sooner still.
	if k := l.prefer[i]; l.sync > 0 && k >= 0 && !l.lanes[k].idle && l.lanes[k].computes {
		consider(k, len(pool.idle)+1)
	}
	return best
}

// placeCopies gives a copy engine that is free its next copies.
func (l *lister) placeCopies(t *turn) {
	for len(t.ready) > 0 {
		if len(t.free) > 0 {
			soonest := t.free[0]
			for _, f := range t.free[1:] {
				soonest = min(soonest, f)
			}
			if soonest > l.now {
				return
			}
		}
		i := t.ready[0].id
		k := l.copyLane(i)
		if k < 0 {
			return
		}
		t.ready.pop()
		l.place(i, k)
	}
}

// copyLane returns the lane for a copy, -1 where it should wait for one. A lane that computes is taken only where another is
// left for kernels that come meanwhile.
func (l *lister) copyLane(i int32) int32 {
	q := l.p.poolOf(i)
	pool := &l.pools[q]
	spare := 0
	if l.roomFor(q) {
		spare++
	}
	for _, k := range pool.idle {
		if l.lanes[k].computes {
			spare++
		}
	}
	best, bestWaits := int32(-1), 0
	for _, k := range pool.idle {
		if l.lanes[k].computes && pool.left > 0 && spare < 2 {
			continue
		}
		if waits := l.missing(i, k); best < 0 || waits < bestWaits {
			best, bestWaits = k, waits
		}
	}
	if len(pool.fresh) > 0 && (pool.copying < pool.copyRoom || l.roomFor(q)) {
		k := pool.fresh[len(pool.fresh)-1]
		if waits := l.missing(i, k); best < 0 || waits < bestWaits {
			best = k
		}
	}
	return best
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
				pool.idle = append(pool.idle[:at], pool.idle[at+1:]...)
				break
			}
		}
	} else if ln.launched == 0 {
		pool.fresh = pool.fresh[:len(pool.fresh)-1]
		if ln.binding < 0 {
			pool.copying++
		}
	}
	if e := p.engineOf(i); e != Compute {
		if t := &l.turns[pool.device*int(engineKinds)+int(e)]; len(t.free) > 0 {
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
			if ln.binding < 0 {
				pool.copying--
			}
			if pool.sure {
				pool.sure = false
			} else {
				l.rooms[pool.device]--
			}
		}
	}
	if l.clock != nil {
		l.learn(i, k, ln.tail)
	}
	ln.launched++
	ln.tail = i
	l.stream[i] = k
	l.position[i] = ln.launched
	if l.clock != nil {
		l.clock[i*l.width+k] = ln.launched
	}
	l.order = append(l.order, i)
	finish := start + p.duration[i]
	l.finish[i] = finish
	l.makespan = max(l.makespan, finish)
	l.running.push(ranked{-finish, i})
}

// learn sets a node's clock from the lane's last node and its predecessors.
func (l *lister) learn(i, k, tail int32) {
	w := l.width
	mine := l.clock[i*w : (i+1)*w]
	if tail >= 0 {
		copy(mine, l.clock[tail*w:(tail+1)*w])
	} else {
		clear(mine)
	}
	for _, pred := range l.p.preds(i) {
		t := l.stream[pred]
		if t == k || l.position[pred] <= mine[t] {
			continue
		}
		for b, v := range l.clock[pred*w : (pred+1)*w] {
			if v > mine[b] {
				mine[b] = v
			}
		}
	}
}

func planList(p *problem) (*assignment, error) {
	if p.len() == 0 {
		return &assignment{}, p.ctx.Err()
	}
	l := newLister(p)
	if err := l.run(taste{}); err != nil {
		return nil, err
	}
	return l.assignment(), nil
}

func (l *lister) assignment() *assignment {
	a := &assignment{stream: l.stream, order: l.order, lanes: make([]lane, len(l.lanes))}
	for k := range l.lanes {
		a.lanes[k] = l.lanes[k].lane
	}
	return a
}
