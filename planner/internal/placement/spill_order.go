// Orders of nodes for spilling: any order that keeps every dependency gives the same results, and some need far fewer copies than the declared
// one. A greedy search makes the first few, and moves of nodes with what they depend on vary them.

package placement

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dagrun/dagrun/dag"
)

// Ordered is the same problem with nodes in another order, which must keep every dependency; nil is the declared one.
func (p *SpillProblem) Ordered(order []dag.NodeID) (*SpillProblem, error) {
	if order == nil {
		return p.ordered(nil), nil
	}
	g := p.Graph
	if len(order) != g.Len() {
		return nil, fmt.Errorf("%w: an order of %d nodes for a graph of %d", ErrCannotSpill, len(order), g.Len())
	}
	came := make([]bool, g.Vertices())
	var reached func(i dag.NodeID) bool // a node has come, or all that lead to a join
	reached = func(i dag.NodeID) bool {
		if !came[i] && g.IsJoin(i) {
			came[i] = !slices.ContainsFunc(g.Preds(i), func(from dag.NodeID) bool { return !reached(from) })
		}
		return came[i]
	}
	for _, i := range order {
		if i < 0 || int(i) >= g.Len() || came[i] {
			return nil, fmt.Errorf("%w: an order that has node %d twice or has no such node", ErrCannotSpill, i)
		}
		for _, from := range g.Preds(i) {
			if !reached(from) {
				return nil, fmt.Errorf("%w: an order with %q before what it depends on", ErrCannotSpill, g.Nodes[i].Name)
			}
		}
		came[i] = true
	}
	return p.ordered(order), nil
}

// ordered is Ordered for an order that keeps every dependency.
func (p *SpillProblem) ordered(order []dag.NodeID) *SpillProblem {
	q := *p
	q.order = order
	q.findUses()
	return &q
}

// orders makes variants of orders.
type orders struct {
	p     *SpillProblem
	at    []int32 // by node: its position
	mark  []int32 // by node or join: the last change that reached it
	stamp int32
	stack []dag.NodeID
}

func newOrders(p *SpillProblem) *orders {
	g := p.Graph
	return &orders{p: p, at: make([]int32, g.Len()), mark: make([]int32, g.Vertices())}
}

// declared is the order of declaration, but for nodes that are declared before what they come after. It is nil if there are none.
func (p *SpillProblem) declared() []dag.NodeID {
	if order := p.Graph.Topological(); !slices.IsSorted(order) {
		return order
	}
	return nil
}

// earlier moves the node at a position up to another one, together with all between that it depends on. It changes order, and returns how
// many nodes it looked at.
func (o *orders) earlier(order []dag.NodeID, from, to int32) int {
	g := o.p.Graph
	o.begin(order)
	seen := o.reach(order[from], g.Preds, func(at int32) bool { return at >= to })
	slices.SortStableFunc(order[to:from+1], func(a, b dag.NodeID) int {
		return cmp.Compare(o.mark[b], o.mark[a]) // those that were reached have the higher mark
	})
	return seen + int(from-to)
}

// later moves the node at a position down to another one, together with all between that depend on it.
func (o *orders) later(order []dag.NodeID, from, to int32) int {
	g := o.p.Graph
	o.begin(order)
	seen := o.reach(order[from], g.Succs, func(at int32) bool { return at <= to })
	slices.SortStableFunc(order[from:to+1], func(a, b dag.NodeID) int { return cmp.Compare(o.mark[a], o.mark[b]) })
	return seen + int(to-from)
}

func (o *orders) begin(order []dag.NodeID) {
	for k, i := range order {
		o.at[i] = int32(k)
	}
	for i := range o.mark {
		o.mark[i] = 0
	}
	o.stamp = 1
}

// reach marks a node and all that it leads to within some positions, and returns how many it visited.
func (o *orders) reach(i dag.NodeID, next func(dag.NodeID) []dag.NodeID, within func(at int32) bool) int {
	o.mark[i] = o.stamp
	o.stack = append(o.stack[:0], i)
	seen := 0
	for len(o.stack) > 0 {
		i := o.stack[len(o.stack)-1]
		o.stack = o.stack[:len(o.stack)-1]
		for _, j := range next(i) {
			seen++
			if o.mark[j] != o.stamp && (o.p.Graph.IsJoin(j) || within(o.at[j])) {
				o.mark[j] = o.stamp
				o.stack = append(o.stack, j)
			}
		}
	}
	return seen
}

// taste is how a greedy order chooses among nodes that can come next.
type taste struct {
	deep   bool    // among equals, what has just become ready comes first; otherwise what was declared first
	memory float64 // what a byte of memory counts that a node begins to use without a copy, beside one that is copied
	shared bool    // bytes that other nodes wait for as well count less
	noise  float64
}

// greedy makes an order in which the next node is always one that needs few bytes brought to the device. It knows what is there, as if what was
// used longest ago left first, unless nothing uses it any more.
type greedy struct {
	p       *SpillProblem
	taste   taste
	random  *rand.Rand
	waits   []int32             // by node or join: predecessors that have not come
	here    []bool              // by unit
	has     []bool              // by unit: it has contents
	used    []int32             // by unit: the position of the last node that used it
	left    []int32             // by unit: nodes that are to come
	oldest  map[int32][]lastUse // by device: what may leave, the longest unused first
	room    map[int32]int64
	ready   []int32 // by node: when it became ready, or -1
	version []int32 // by node: of its entry in the queue
	queue   nextQueue
	users   [][]int32 // by unit: nodes
	order   []dag.NodeID
	seen    int
}

// lastUse is an entry of a queue of units: it counts only if the unit has not been used since.
type lastUse struct{ unit, at int32 }

// nextNode is a node that is ready.
type nextNode struct {
	cost    float64
	tie     int32
	node    dag.NodeID
	version int32
}

type nextQueue []nextNode

func (q nextQueue) Len() int { return len(q) }
func (q nextQueue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].cost, q[j].cost), cmp.Compare(q[i].tie, q[j].tie), cmp.Compare(q[i].node, q[j].node)) < 0
}
func (q nextQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *nextQueue) Push(x any)   { *q = append(*q, x.(nextNode)) }
func (q *nextQueue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// greedyOrder returns the order, and how many touches it looked at. The order is nil if those would be more than most.
func (p *SpillProblem) greedyOrder(taste taste, random *rand.Rand, most int) ([]dag.NodeID, int) {
	g := p.Graph
	n := g.Len()
	q := &greedy{p: p, taste: taste, random: random, waits: make([]int32, g.Vertices()), here: make([]bool, len(p.units)),
		has: make([]bool, len(p.units)), used: make([]int32, len(p.units)),
		left: make([]int32, len(p.units)), oldest: map[int32][]lastUse{}, room: map[int32]int64{}, ready: slices.Repeat([]int32{-1}, n), version: make([]int32, n)}
	q.users = p.ordered(nil).uses
	for u := range p.units {
		q.left[u] = int32(len(q.users[u]))
		q.has[u] = p.whole(p.units[u].buffer)
		q.room[p.units[u].device] = p.Limit
	}
	for u := range p.units {
		if p.stuck(int32(u)) {
			q.here[u] = true
			q.room[p.units[u].device] -= p.units[u].room
		}
	}
	for i := range dag.NodeID(g.Vertices()) {
		q.waits[i] = int32(len(g.Preds(i)))
	}
	for i := range dag.NodeID(n) {
		if q.waits[i] == 0 {
			q.enter(i)
		}
	}
	for len(q.queue) > 0 {
		if q.seen > most {
			return nil, q.seen
		}
		next := heap.Pop(&q.queue).(nextNode)
		if next.version == q.version[next.node] {
			q.run(next.node)
		}
	}
	return q.order, q.seen
}

// enter puts a node that is ready into the queue.
func (q *greedy) enter(i dag.NodeID) {
	if q.ready[i] < 0 {
		q.ready[i] = int32(len(q.order))
	}
	cost := 0.0
	for _, t := range q.p.touches[i] {
		q.seen++
		if q.here[t.unit] {
			if q.left[t.unit] == 1 { // its memory is free afterwards
				cost -= q.taste.memory * float64(q.p.units[t.unit].room) / 2
			}
			continue
		}
		bytes := q.taste.memory * float64(q.p.units[t.unit].room)
		if !t.copied && !t.all && q.has[t.unit] {
			bytes = float64(q.p.units[t.unit].room)
		}
		if q.taste.shared {
			bytes /= float64(1 + q.left[t.unit])
		}
		cost += bytes
	}
	if q.taste.noise > 0 {
		cost *= 1 + q.taste.noise*(q.random.Float64()-0.5)
	}
	tie := int32(i)
	if q.taste.deep {
		tie = -q.ready[i]
	}
	q.version[i]++
	heap.Push(&q.queue, nextNode{cost, tie, i, q.version[i]})
}

// run makes a node the next one.
func (q *greedy) run(i dag.NodeID) {
	at := int32(len(q.order))
	q.order = append(q.order, i)
	q.version[i] = -1
	touches := q.p.touches[i]
	for _, t := range touches {
		q.used[t.unit] = at
		device := q.p.units[t.unit].device
		q.oldest[device] = append(q.oldest[device], lastUse{t.unit, at})
	}
	for _, t := range touches {
		if !q.here[t.unit] && !t.across && !q.p.stuck(t.unit) {
			q.clear(q.p.units[t.unit].device, q.p.units[t.unit].room, at)
			q.change(t.unit, true)
		}
	}
	for _, t := range touches {
		q.has[t.unit] = q.has[t.unit] || t.writes
	}
	for k, t := range touches {
		if slices.ContainsFunc(touches[:k], func(other touch) bool { return other.unit == t.unit }) {
			continue
		}
		if q.left[t.unit]--; q.left[t.unit] == 0 && q.here[t.unit] && !q.p.stuck(t.unit) {
			q.change(t.unit, false)
		}
		if q.left[t.unit] == 1 {
			q.refresh(t.unit)
		}
	}
	q.release(i)
}

// release enters what has waited for a node or join.
func (q *greedy) release(i dag.NodeID) {
	for _, j := range q.p.Graph.Succs(i) {
		q.seen++
		if q.waits[j]--; q.waits[j] > 0 {
			continue
		}
		if q.p.Graph.IsJoin(j) {
			q.release(j)
		} else {
			q.enter(j)
		}
	}
}

// clear makes room on a device for the node at a position.
func (q *greedy) clear(device int32, room int64, at int32) {
	for q.room[device] < room && len(q.oldest[device]) > 0 {
		first := q.oldest[device][0]
		if first.at == at {
			return
		}
		q.oldest[device] = q.oldest[device][1:]
		if q.here[first.unit] && q.used[first.unit] == first.at && !q.p.stuck(first.unit) {
			q.change(first.unit, false)
		}
	}
}

// change brings a unit or takes it away.
func (q *greedy) change(u int32, here bool) {
	q.here[u] = here
	if room := q.p.units[u].room; here {
		q.room[q.p.units[u].device] -= room
	} else {
		q.room[q.p.units[u].device] += room
	}
	q.refresh(u)
}

// refresh enters the nodes anew that are ready and use a unit.
func (q *greedy) refresh(u int32) {
	for _, i := range q.users[u] {
		q.seen++
		if q.ready[i] >= 0 && q.version[i] >= 0 {
			q.enter(dag.NodeID(i))
		}
	}
}
