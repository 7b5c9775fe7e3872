// The choices of a list pass: which ready node goes to which idle stream. Changes nothing but through place.

package place

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dagrun/dagrun/planner/internal/scratch"
)

// choice weighs ready nodes against idle lanes. Its slices keep their lengths through a pass: what is in use is counted, because
// to cut a slice that is kept in memory takes a write barrier.
type choice struct {
	ready   []urgency
	nodes   []int32 // whose urgencies they are
	lanes   []idleLane
	cost    []int32 // of nodes[a] on lanes[b]: cost[a*len(lanes)+b]
	rows    int     // of ready and nodes
	columns int     // of lanes
}

// idleLane is a lane with what costs depend on.
type idleLane struct{ lane, tail int32 }

// size makes room for the choices of a pass.
func (c *choice) size(n, window, lanes int) {
	columns := min(lanes, mostWeighed+1)
	rows := min(n, window+columns)
	c.ready, c.nodes, c.lanes, c.cost = scratch.Sized(c.ready, rows), scratch.Sized(c.nodes, rows), scratch.Sized(c.lanes, columns), scratch.Sized(c.cost, rows*columns)
}

const (
	waitCost  = 4
	laterCost = 1 << 10 // a node that would start later than it could
	// mostWeighed is how many idle lanes are looked at, the latest to become idle: with thousands of streams most are idle.
	mostWeighed = 32
)

// top drops what has been placed from a heap and returns its first entry.
func (l *lister) top(h *urgencyHeap) (urgency, bool) {
	for len(*h) > 0 {
		if u := (*h)[0]; !l.placed[l.node(u)] {
			return u, true
		}
		h.pop()
	}
	return 0, false
}

// newestSuited returns the newest ready node that suits lane k.
func (l *lister) newestSuited(k int32) (urgency, bool) {
	ln := &l.lanes[k]
	for last := len(ln.suited) - 1; last >= 0; last-- {
		if u := ln.suited[last]; !l.placed[l.node(u)] {
			return u, true
		}
		ln.suited = ln.suited[:last]
	}
	return 0, false
}

// mayCompute says whether a lane computes or may begin to.
func (l *lister) mayCompute(k int32) bool {
	ln := &l.lanes[k]
	return ln.computes || !ln.line && l.roomFor(ln.pool)
}

func (l *lister) roomFor(q int32) bool {
	return l.pools[q].sure || l.rooms[l.pools[q].device] > 0
}

func (l *lister) placeBound() {
	for _, k := range l.due {
		if ln := &l.lanes[k]; ln.idle && len(ln.mine) > 0 {
			i := l.node(ln.mine[0])
			ln.mine.pop()
			l.place(i, k)
		}
	}
	l.due = l.due[:0]
}

// placeCompute gives a pool's idle lanes work.
func (l *lister) placeCompute(q int32) {
	pool := &l.pools[q]
	c := &l.choice
	c.clear()
	for {
		first, ok := l.top(&pool.ready)
		if !ok {
			return
		}
		// As long as the most urgent node can wait, any other may go first.
		least := first | math.MaxUint32
		if first.rank() < l.patience*(l.goal-l.now) {
			least = math.MaxUint64
		}
		a, b := -1, -1
		if c.rows > 0 {
			a, b = c.pick(first, least)
		}
		if a < 0 {
			if a, b = l.weigh(pool, q, least); a < 0 {
				return
			}
		}
		i, k := c.nodes[a], c.lanes[b].lane
		opened := len(pool.fresh)
		// A lane that is busy for less than a wait takes starts the node sooner still.
		if other := l.entrants[i].prefer; c.cost[a*len(c.lanes)+b] >= laterCost/2 && other >= 0 && !l.lanes[other].idle && l.lanes[other].computes && l.startOn(i, other) <= l.startOn(i, k) {
			l.place(i, other)
			c.clear()
			continue
		}
		l.place(i, k)
		if len(pool.fresh) != opened || l.p.engine != nil {
			c.clear()
			continue
		}
		c.drop(a, b)
	}
}

func (c *choice) clear() { c.rows, c.columns = 0, 0 }

// drop leaves a node and a lane out of what is weighed; the costs of the others stay as they are.
func (c *choice) drop(a, b int) {
	if c.columns == 1 {
		c.clear()
		return
	}
	// There are few of anything here: to call for a copy takes longer than to make it.
	c.columns--
	for column := b; column < c.columns; column++ {
		c.lanes[column] = c.lanes[column+1]
	}
	c.rows--
	width := len(c.lanes)
	for row := range c.rows {
		from := row
		if row >= a {
			from++
			c.nodes[row], c.ready[row] = c.nodes[from], c.ready[from]
		}
		costs, old := c.cost[row*width:(row+1)*width], c.cost[from*width:(from+1)*width]
		for column := range c.columns {
			at := column
			if column >= b {
				at++
			}
			costs[column] = old[at]
		}
	}
}

// pick returns the cheapest pair of what is weighed, the most urgent node among equals; -1 where the most urgent ready node is
// not there to compare with.
func (c *choice) pick(first, least urgency) (int, int) {
	width := len(c.lanes)
	a, b, best := -1, -1, int32(math.MaxInt32)
	found := false
	for row, u := range c.ready[:c.rows] {
		found = found || u == first
		if u > least {
			continue
		}
		cheapest, at := int32(math.MaxInt32), -1
		for column, cost := range c.cost[row*width : row*width+c.columns] {
			if cost < cheapest {
				cheapest, at = cost, column
			}
		}
		if at >= 0 && (cheapest < best || cheapest == best && u < c.ready[a]) {
			a, b, best = row, at, cheapest
		}
	}
	if !found {
		return -1, -1
	}
	return a, b
}

// weigh collects idle lanes and ready nodes and what each pair costs. It returns the pair that pick would, -1 where no lane may
// take a node.
func (l *lister) weigh(pool *listPool, q int32, least urgency) (int, int) {
	c := &l.choice
	columns := 0
	for at := len(pool.idle) - 1; at >= 0 && columns < mostWeighed; at-- {
		if k := pool.idle[at]; l.mayCompute(k) {
			c.lanes[columns] = idleLane{k, l.lanes[k].tail}
			columns++
		}
	}
	if columns > 1 {
		slices.Reverse(c.lanes[:columns])
	}
	if len(pool.fresh) > 0 && l.roomFor(q) {
		c.lanes[columns] = idleLane{pool.fresh[len(pool.fresh)-1], -1}
		columns++
	}
	c.rows, c.columns = 0, columns
	if columns == 0 {
		return -1, -1
	}
	rows := 0
	for _, u := range pool.ready[:min(len(pool.ready), 2*l.window)] {
		if u > least {
			continue
		}
		if i := l.node(u); !l.placed[i] {
			c.ready[rows], c.nodes[rows] = u, i
			if rows++; rows == l.window {
				break
			}
		}
	}
	for _, on := range c.lanes[:columns] {
		if u, ok := l.newestSuited(on.lane); ok && u <= least && !slices.Contains(c.ready[:rows], u) {
			c.ready[rows], c.nodes[rows] = u, l.node(u)
			rows++
		}
	}
	c.rows = rows
	row, column, best := -1, -1, int32(math.MaxInt32)
	for b := range c.columns {
		if a, cost := l.setCosts(b); cost < best || cost == best && c.ready[a] < c.ready[row] {
			row, column, best = a, b, cost
		}
	}
	return row, column
}

// setCosts weighs the nodes on an idle lane: what speaks against each there. It returns the row of the cheapest, the most urgent
// among equals, and its cost. Which of a node's predecessors a lane is ordered after is unpredictable, so this is
// branch-free.
func (l *lister) setCosts(b int) (cheapest int, least int32) {
	c := &l.choice
	on := c.lanes[b]
	clock := l.clockOf(on.lane)
	soon := l.now - l.sync
	leader := int32(1)
	if on.tail < 0 {
		leader = 0
	}
	spots, entrants, preds := l.spots, l.entrants, l.p.pred
	ready, costs, width := c.ready, c.cost[b:], len(c.lanes)
	least = math.MaxInt32
	for row, i := range c.nodes[:c.rows] {
		var mask, late uint64
		stranger := leader
		e := &entrants[i]
		for _, pred := range preds[e.first:e.end] {
			at := &spots[pred]
			var missing, after uint64
			if at.position > clock[at.lane] {
				missing = 1
			}
			if at.finish > soon {
				after = 1
			}
			if pred == on.tail {
				stranger = 0
			}
			mask |= missing << (at.lane & 63)
			late |= missing & after
		}
		cost := waitCost*int32(bits.OnesCount64(mask)) + stranger + laterCost*int32(late) - e.frees
		if e.prefer != on.lane {
			cost += l.suit
		}
		costs[row*width] = cost
		if cost < least || cost == least && ready[row] < ready[cheapest] {
			cheapest, least = row, cost
		}
	}
	l.forget(on.lane)
	return cheapest, least
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
		i := l.node(t.ready[0])
		k := l.lineFor(i, t)
		if k < 0 {
			k = l.copyLane(i)
		}
		if k < 0 {
			return
		}
		t.ready.pop()
		l.place(i, k)
	}
}

// lineFor returns the lane that a copy shares with the others of its engine, -1 where it has none.
func (l *lister) lineFor(i int32, t *turn) int32 {
	pool := &l.pools[l.p.poolOf(i)]
	switch {
	case !l.inLine:
		return -1
	case t.line < 0 && len(pool.fresh) > 0 && pool.copying < pool.copyRoom:
		t.line = pool.fresh[len(pool.fresh)-1]
		l.lanes[t.line].line = true
	case t.line < 0 || l.lanes[t.line].pool != l.p.poolOf(i):
		return -1
	}
	return t.line
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
	for _, k := range pool.idle[max(0, len(pool.idle)-mostWeighed):] {
		if l.lanes[k].line || l.lanes[k].computes && pool.left > 0 && spare < 2 {
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
