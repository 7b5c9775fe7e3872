// How a list pass chooses: the cost of each ready node on each idle stream, and the cheapest pair.

package place

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dagrun/dagrun/planner/internal/scratch"
)

// size allocates the table for a pass.
func (c *costTable) size(n, window, streams int) {
	columns := min(streams, mostWeighed+1)
	rows := min(n, window+columns)
	c.ready, c.nodes, c.streams, c.cost = scratch.Sized(c.ready, rows), scratch.Sized(c.nodes, rows), scratch.Sized(c.streams,
		columns), scratch.Sized(c.cost, rows*columns)
}

const (
	waitCost  = 4
	laterCost = 1 << 10 // for a node that would start later than it could elsewhere
	// mostWeighed limits the idle streams that are compared to those that became idle last: with thousands of streams most are idle.
	mostWeighed = 32
)

// top removes nodes that are already placed from the heap and returns its first entry.
func (l *lister) top(h *urgencyHeap) (urgency, bool) {
	for len(*h) > 0 {
		if u := (*h)[0]; !l.placed[l.node(u)] {
			return u, true
		}
		h.pop()
	}
	return 0, false
}

// newestPreferring returns the newest ready node that prefers stream k.
func (l *lister) newestPreferring(k int32) (urgency, bool) {
	st := &l.streams[k]
	for last := len(st.preferring) - 1; last >= 0; last-- {
		if u := st.preferring[last]; !l.placed[l.node(u)] {
			return u, true
		}
		st.preferring = st.preferring[:last]
	}
	return 0, false
}

// mayCompute reports whether a kernel may run on the stream: it runs kernels already, or the device has room for one more that does.
func (l *lister) mayCompute(k int32) bool {
	st := &l.streams[k]
	return st.computes || !st.copyOnly && l.roomFor(st.pool)
}

func (l *lister) roomFor(q int32) bool {
	return l.pools[q].reserved || l.computeRoom[l.pools[q].device] > 0
}

func (l *lister) placeBound() {
	for _, k := range l.resumable {
		if st := &l.streams[k]; st.idle && len(st.mine) > 0 {
			i := l.node(st.mine[0])
			st.mine.pop()
			l.place(i, k)
		}
	}
	l.resumable = l.resumable[:0]
}

// placeCompute gives a pool's idle streams work.
func (l *lister) placeCompute(q int32) {
	pool := &l.pools[q]
	c := &l.costTable
	c.clear()
	for {
		first, ok := l.top(&pool.ready)
		if !ok {
			return
		}
		// While the most urgent node can still wait, any other node may go first.
		least := first | math.MaxUint32
		if first.rank() < l.patience*(l.goal-l.now) {
			least = math.MaxUint64
		}
		a, b := c.pick(first, least)
		if a < 0 {
			if a, b = l.weigh(pool, q, least); a < 0 {
				return
			}
		}
		i, k := c.nodes[a], c.streams[b].stream
		opened := len(pool.unused)
		// A busy stream starts the node even sooner if it will be free before a wait would be over.
		if other := l.entrants[i].prefer; c.cost[a*len(c.streams)+b] >= laterCost/2 && other >= 0 && !l.streams[other].idle && l.streams[other].computes &&
			l.startOn(i, other) <= l.startOn(i, k) {
			l.place(i, other)
			c.clear()
			continue
		}
		l.place(i, k)
		if len(pool.unused) != opened || l.p.engine != nil {
			c.clear()
			continue
		}
		c.drop(a, b)
	}
}

func (c *costTable) clear() { c.rows = 0 }

// drop removes a node and a stream from the table; the costs of the others do not change.
func (c *costTable) drop(a, b int) {
	if c.columns == 1 {
		c.clear()
		return
	}
	// The table is small: a call to copy takes longer than the loop.
	c.columns--
	for column := b; column < c.columns; column++ {
		c.streams[column] = c.streams[column+1]
	}
	c.rows--
	width := len(c.streams)
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

// pick returns the row and column of the cheapest pair, and the most urgent node among equals. It returns -1 if the table does not
// contain the most urgent ready node, so that it must be filled again.
func (c *costTable) pick(first, least urgency) (int, int) {
	width := len(c.streams)
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

// weigh fills the table with idle streams, ready nodes and the cost of each pair. It returns the pair that pick would return, -1 if
// no stream may take a node.
func (l *lister) weigh(pool *listPool, q int32, least urgency) (int, int) {
	c := &l.costTable
	columns := 0
	for at := len(pool.idle) - 1; at >= 0 && columns < mostWeighed; at-- {
		if k := pool.idle[at]; l.mayCompute(k) {
			c.streams[columns] = idleStream{k, l.streams[k].tail}
			columns++
		}
	}
	if columns > 1 {
		slices.Reverse(c.streams[:columns])
	}
	if len(pool.unused) > 0 && l.roomFor(q) {
		c.streams[columns] = idleStream{pool.unused[len(pool.unused)-1], -1}
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
	for _, on := range c.streams[:columns] {
		if u, ok := l.newestPreferring(on.stream); ok && u <= least && !slices.Contains(c.ready[:rows], u) {
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

// setCosts computes one column: the cost of each node on one idle stream. It returns the row of the cheapest node, the most urgent
// among equals, and its cost. Which of a node's predecessors a stream is ordered after is unpredictable, so this is branch-free.
func (l *lister) setCosts(b int) (cheapest int, least int32) {
	c := &l.costTable
	on := c.streams[b]
	clock := l.clockOf(on.stream)
	soon := l.now - l.sync
	leader := int32(1)
	if on.tail < 0 {
		leader = 0
	}
	spots, entrants, preds := l.spots, l.entrants, l.pred
	ready, costs, width := c.ready, c.cost[b:], len(c.streams)
	least = math.MaxInt32
	for row, i := range c.nodes[:c.rows] {
		var mask, late uint64
		stranger := leader
		e := &entrants[i]
		for _, pred := range preds[e.first:e.end] {
			at := &spots[pred]
			var missing, after uint64
			if at.position > clock[at.stream] {
				missing = 1
			}
			if at.finish > soon {
				after = 1
			}
			if pred == on.tail {
				stranger = 0
			}
			mask |= missing << (at.stream & 63)
			late |= missing & after
		}
		cost := waitCost*int32(bits.OnesCount64(mask)) + stranger + laterCost*int32(late) - e.frees
		if e.prefer != on.stream {
			cost += l.moveCost
		}
		costs[row*width] = cost
		if cost < least || cost == least && ready[row] < ready[cheapest] {
			cheapest, least = row, cost
		}
	}
	l.forget(on.stream)
	return cheapest, least
}

// placeCopies starts the next copies of an engine while it is free.
func (l *lister) placeCopies(t *copyEngine) {
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
		k := l.copyQueueFor(i, t)
		if k < 0 {
			k = l.streamForCopy(i)
		}
		if k < 0 {
			return
		}
		t.ready.pop()
		l.place(i, k)
	}
}

// copyQueueFor returns the stream that the copies of an engine share, -1 if they do not share one.
func (l *lister) copyQueueFor(i int32, t *copyEngine) int32 {
	pool := &l.pools[l.p.poolOf(i)]
	switch {
	case !l.inLine:
		return -1
	case t.copyStream < 0 && len(pool.unused) > 0 && pool.copying < pool.copyRoom:
		t.copyStream = pool.unused[len(pool.unused)-1]
		l.streams[t.copyStream].copyOnly = true
	case t.copyStream < 0 || l.streams[t.copyStream].pool != l.p.poolOf(i):
		return -1
	}
	return t.copyStream
}

// streamForCopy returns the stream for a copy, -1 if the copy should wait for one. It takes a stream that runs kernels only if
// another is left for kernels that become ready during the copy.
func (l *lister) streamForCopy(i int32) int32 {
	q := l.p.poolOf(i)
	pool := &l.pools[q]
	spare := 0
	if l.roomFor(q) {
		spare++
	}
	for _, k := range pool.idle {
		if l.streams[k].computes {
			spare++
		}
	}
	best, bestWaits := int32(-1), 0
	for _, k := range pool.idle[max(0, len(pool.idle)-mostWeighed):] {
		if l.streams[k].copyOnly || l.streams[k].computes && pool.left > 0 && spare < 2 {
			continue
		}
		if waits := l.missing(i, k); best < 0 || waits < bestWaits {
			best, bestWaits = k, waits
		}
	}
	if len(pool.unused) > 0 && (pool.copying < pool.copyRoom || l.roomFor(q)) {
		k := pool.unused[len(pool.unused)-1]
		if waits := l.missing(i, k); best < 0 || waits < bestWaits {
			best = k
		}
	}
	return best
}
