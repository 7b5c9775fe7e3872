// The choices of a list pass: which ready node goes to which idle stream. Changes nothing but through place.

package planner

import "math"

// choice weighs ready nodes against idle lanes.
type choice struct {
	nodes []ranked
	lanes []int32
	cost  []int32 // of nodes[a] on lanes[b]: cost[a*len(lanes)+b]
}

const (
	waitCost  = 4
	laterCost = 1 << 10 // a node that would start later than it could
)

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
	c := &l.choice
	c.nodes = c.nodes[:0]
	for {
		first, ok := l.top(&pool.ready)
		if !ok {
			return
		}
		// As long as the most urgent node can wait, any other may go first.
		least := first.key
		if l.patient && first.key < l.goal-l.now {
			least = math.Inf(-1)
		}
		a, b := l.pick(first, least)
		if a < 0 {
			if !l.weigh(pool, q, least) {
				return
			}
			a, b = l.pick(first, least)
		}
		i, k := c.nodes[a].id, c.lanes[b]
		opened := len(pool.fresh)
		// A lane that is busy for less than a wait takes starts the node sooner still.
		if other := l.prefer[i]; l.sync > 0 && other >= 0 && !l.lanes[other].idle && l.lanes[other].computes && l.startOn(i, other) <= l.startOn(i, k) {
			l.place(i, other)
			c.nodes = c.nodes[:0]
			continue
		}
		l.place(i, k)
		if len(pool.fresh) != opened || l.p.engine != nil {
			c.nodes = c.nodes[:0]
			continue
		}
		c.drop(a, b)
	}
}

// drop leaves a node and a lane out of what is weighed; the costs of the others stay as they are.
func (c *choice) drop(a, b int) {
	width := len(c.lanes)
	copy(c.lanes[b:], c.lanes[b+1:])
	c.lanes = c.lanes[:width-1]
	to := 0
	for row := range c.nodes {
		if row == a {
			continue
		}
		for column := range width {
			if column != b {
				c.cost[to] = c.cost[row*width+column]
				to++
			}
		}
	}
	c.nodes = append(c.nodes[:a], c.nodes[a+1:]...)
}

// pick returns the cheapest pair of what is weighed, the most urgent node among equals; -1 where the most urgent ready node is
// not there to compare with.
func (l *lister) pick(first ranked, least float64) (int, int) {
	c := &l.choice
	width := len(c.lanes)
	a, b, best := -1, -1, int32(math.MaxInt32)
	found := false
	for row, r := range c.nodes {
		found = found || r.id == first.id
		if r.key < least {
			continue
		}
		cheapest, at := int32(math.MaxInt32), -1
		for column, cost := range c.cost[row*width : (row+1)*width] {
			if cost < cheapest {
				cheapest, at = cost, column
			}
		}
		if at >= 0 && (cheapest < best || cheapest == best && r.before(c.nodes[a])) {
			a, b, best = row, at, cheapest
		}
	}
	if !found || width == 0 {
		return -1, -1
	}
	return a, b
}

// weigh collects idle lanes and ready nodes and what each pair costs. It is false where no lane may take a node.
func (l *lister) weigh(pool *listPool, q int32, least float64) bool {
	c := &l.choice
	c.nodes, c.lanes, c.cost = c.nodes[:0], c.lanes[:0], c.cost[:0]
	for _, k := range pool.idle {
		if l.mayCompute(k) {
			c.lanes = append(c.lanes, k)
		}
	}
	if len(pool.fresh) > 0 && l.roomFor(q) {
		c.lanes = append(c.lanes, pool.fresh[len(pool.fresh)-1])
	}
	if len(c.lanes) == 0 {
		return false
	}
	for at := 0; at < len(pool.ready) && len(c.nodes) < l.window; at++ {
		if r := pool.ready[at]; l.stream[r.id] < 0 && r.key >= least {
			c.nodes = append(c.nodes, r)
		} else if at >= 4*l.window {
			break
		}
	}
	window := len(c.nodes)
	for _, k := range c.lanes {
		r, ok := l.top(&l.lanes[k].suited)
		if !ok || r.key < least {
			continue
		}
		known := false
		for _, other := range c.nodes[:window] {
			if other.id == r.id {
				known = true
				break
			}
		}
		if !known {
			c.nodes = append(c.nodes, r)
		}
	}
	for _, r := range c.nodes {
		for _, k := range c.lanes {
			c.cost = append(c.cost, l.cost(r.id, k))
		}
	}
	return true
}

// cost is what speaks against a node on a lane.
func (l *lister) cost(i, k int32) int32 {
	cost := waitCost*int32(l.missing(i, k)) - l.eager*int32(len(l.p.succs(i)))
	if l.prefer[i] != k {
		cost += l.suit
	}
	if tail := l.lanes[k].tail; tail >= 0 {
		follows := false
		for _, pred := range l.p.preds(i) {
			follows = follows || pred == tail
		}
		if !follows {
			cost++
		}
	}
	if l.sync > 0 && l.startOn(i, k) > l.now {
		cost += laterCost
	}
	return cost
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
